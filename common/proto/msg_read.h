/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_POINT: which version a read sees, and who holds it. MSG_READ_TABLET: rows of one tablet
 * at that version, from a replica. */
#ifndef TG_COMMON_PROTO_MSG_READ_H
#define TG_COMMON_PROTO_MSG_READ_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/model/ids.h"
#include "common/model/schema.h"

enum read_at {
    READ_LATEST = 0,
    READ_VERSION = 1,
    READ_TIME = 2 /* the newest version with completion time ≤ the microsecond */
};
struct read_bound {
    enum read_at at;
    uint64_t value; /* version, or microseconds since the epoch */
};

enum { READ_VERSIONS_MAX = 100000 };

struct msg_read_point {
    char db[NAME_BYTES];
    char table[NAME_BYTES];
    struct read_bound bound;
    bool with_changes; /* also: the versions in (after, bound] */
    struct read_bound after;
    bool local; /* consistency=local: the asked coordinator's applied state will do */
};
/* Verdicts: 0; TG_NOT_FOUND; TG_NOT_YET (version beyond the newest); TG_FUTURE (more than 500 ms
 * ahead); TG_EXPIRED. */
struct read_point_tablet {
    tablet_id tablet;
    version_t need;        /* the last version ≤ the read's that touched the tablet: rule 1 */
    uint8_t replica_count; /* those that are not behind first; ready says how many */
    uint8_t ready;
    node_id replicas[REPLICAS_MAX];
};
struct read_point_node {
    node_id node;
    uint64_t epoch;
    char rpc[ADDRESS_BYTES];
};
struct read_point_version {
    version_t version;
    uint64_t time_us; /* completion */
    txn_id txn;
    bool replace; /* TRUNCATE: everything before is gone at this version */
};
struct msg_read_point_reply {
    table_id table;
    version_t version;
    uint64_t time_us;     /* completion of that version; the creation's for 0 */
    version_t after;      /* with_changes: the resolved exclusive bound */
    struct schema schema; /* owned */
    uint32_t distribution_count;
    uint32_t *distribution;            /* owned */
    uint32_t tablet_count;             /* bucket order */
    struct read_point_tablet *tablets; /* owned */
    uint32_t node_count;
    struct read_point_node *nodes; /* owned */
    uint32_t version_count; /* with_changes: at most READ_VERSIONS_MAX; if there are more, `version`
                               is the last one listed */
    struct read_point_version *versions; /* owned */
};
void msg_read_point_encode(const struct msg_read_point *message, struct buf *out);
int msg_read_point_decode(struct slice head, struct msg_read_point *message);
void msg_read_point_reply_init(struct msg_read_point_reply *reply);
void msg_read_point_reply_encode(const struct msg_read_point_reply *reply, struct buf *out);
int msg_read_point_reply_decode(struct slice head, struct msg_read_point_reply *reply);
void msg_read_point_reply_close(struct msg_read_point_reply *reply);

enum { READ_POSITION_MAX = 256 * 1024 + 64 }; /* bytes of a position: a key and a little more */

enum read_tablet_mode {
    READ_TABLET_ROWS = 0,   /* the visible rows at `version`, in key order */
    READ_TABLET_CHANGES = 1 /* every row written in (after, version], in version order */
};
struct msg_read_tablet {
    tablet_id tablet;
    version_t version;
    version_t need;
    version_t after; /* READ_TABLET_CHANGES */
    enum read_tablet_mode mode;
    struct schema schema; /* owned: what the reader wants to see */
    uint32_t column_count;
    uint32_t *columns;    /* stored column ids to return, in order: owned */
    bool include_deleted; /* READ_TABLET_ROWS: rows with the delete sign too */
    bool in_key_order;   /* READ_TABLET_ROWS of a table that keeps every row: sorted all the same */
    struct buf from;     /* encoded key, inclusive; empty = from the start */
    struct buf to;       /* encoded key, exclusive; empty = to the end */
    uint64_t row_limit;  /* 0 = as many as fit one answer */
    struct buf position; /* where to go on: as the last answer said; empty at the start */
};
/* Verdict: 0; TG_BEHIND (this replica has not bound `need`); TG_CORRUPT; TG_NOT_FOUND.
 * payload: one block (rowset_block.h) with the columns, plus COLUMN_ID_VERSION (BIGINT) for
 * changes; empty when there are no more rows. */
#define COLUMN_ID_VERSION 0xFFFFFF03u
struct msg_read_tablet_reply {
    uint64_t rows;
    bool done;
    struct buf position; /* owned */
};
void msg_read_tablet_encode(const struct msg_read_tablet *message, struct buf *out);
int msg_read_tablet_decode(struct slice head, struct msg_read_tablet *message);
void msg_read_tablet_close(struct msg_read_tablet *message);
void msg_read_tablet_reply_encode(const struct msg_read_tablet_reply *reply, struct buf *out);
int msg_read_tablet_reply_decode(struct slice head, struct msg_read_tablet_reply *reply);
void msg_read_tablet_reply_close(struct msg_read_tablet_reply *reply);

#endif
