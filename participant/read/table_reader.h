/* SPDX-License-Identifier: Apache-2.0 */
/* One read of a whole table at one version, wherever its tablets lie: from the own store where this
 * node has a good replica, from peers where not, and from another replica when one turns out to be
 * behind, damaged or gone. Runs on a worker thread and waits there. */
#ifndef TG_PARTICIPANT_READ_TABLE_READER_H
#define TG_PARTICIPANT_READ_TABLE_READER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/vector.h"
#include "common/proto/msg_read.h"
#include "participant/link/node_identity.h"
#include "participant/link/peer_client.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"

enum {
    TABLE_READER_PEER_MS = 10000, /* a peer's answer, one block; then another replica is asked */
    TABLE_READER_ORDERED_ROWS = 65536,           /* read ahead of all tablets together, … */
    TABLE_READER_ORDERED_BYTES = 8 * 1024 * 1024 /* … and bytes given at a time, about */
};

struct table_reader_context {
    struct store *store;
    struct tablet_set *tablets;
    struct peer_clients *peers;
    const struct node_identity *identity;
};

struct table_read {
    const struct msg_read_point_reply *point; /* resolved version, tablets and nodes */
    enum read_tablet_mode mode;
    uint32_t column_count;
    const uint32_t *columns; /* stored column ids, in the order wanted */
    bool include_deleted;
    bool in_key_order;       /* over the whole table; else tablet after tablet */
    int64_t bucket;          /* only this tablet; -1 = all */
    struct slice from, to;   /* encoded keys: [from, to) */
    uint64_t limit;          /* rows; 0 = all */
    const atomic_bool *stop; /* checked between blocks: ends with TG_CANCELED. May be NULL */
};

/* Rows of the wanted columns; for READ_TABLET_CHANGES, whose rows come in order of versions over
 * the whole table, also their versions. Valid during the call. 0 to go on, else the read ends with
 * that error. */
typedef int table_reader_rows(void *data, const struct vector *columns,
                              const struct vector *versions, uint32_t rows);

/* 0 when all rows were given. TG_UNREACHABLE: no good replica of a tablet answered; TG_CORRUPT:
 * every replica's copy is damaged; TG_CANCELED; what `rows` returned. Rows that were given before
 * an error stay given: whoever writes them must break the answer off. */
int table_reader_run(const struct table_reader_context *context, const struct table_read *read,
                     table_reader_rows *rows, void *data, struct tg_errmsg *msg);

#endif
