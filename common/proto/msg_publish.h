/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_PUBLISH: bind staged rowsets to versions. Binding alone makes nothing readable
 * (rule 2). */
#ifndef TG_COMMON_PROTO_MSG_PUBLISH_H
#define TG_COMMON_PROTO_MSG_PUBLISH_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/base/checksum.h"
#include "common/model/ids.h"

enum { PUBLISH_BINDS_MAX = 16384 };

struct publish_rowset {
    rowset_id rowset;
    struct digest digest;
};
/* One tablet's part of one version. Binds of a message are applied in order, all that succeed in
 * one storage transaction. */
struct publish_bind {
    tablet_id tablet;
    table_id table;
    version_t version;
    version_t prev; /* the last version that touched this tablet, 0 if none (rule 1) */
    txn_id txn;
    bool replace; /* everything below this version is replaced (TRUNCATE): reads at it see only
                     these rowsets */
    uint32_t rowset_count;          /* ascending rowset ids: the newest load last */
    struct publish_rowset *rowsets; /* owned by the message */
};
struct cursor;
void publish_bind_encode(const struct publish_bind *bind, struct buf *out);
/* Into a zeroed bind; errors are the cursor's. What it owns is rowsets, also then. */
void publish_bind_decode(struct cursor *cursor, struct publish_bind *bind);

struct msg_publish {
    node_id node; /* to whom, … */
    uint64_t
        epoch; /* … in which registration: a participant in another one refuses with TG_FENCED */
    uint32_t bind_count;
    struct publish_bind *binds; /* owned */
};

/* The numbers travel. */
enum publish_status {
    PUBLISH_BOUND = 0,   /* now or already, durable */
    PUBLISH_BEHIND = 1,  /* the tablet's last bound version here is not prev */
    PUBLISH_MISSING = 2, /* a rowset is not here, or not sealed */
    PUBLISH_DIGEST = 3,  /* a rowset here has another digest */
    PUBLISH_FAILED = 4   /* storage error: ask again */
};
struct msg_publish_reply {
    uint32_t count;  /* = bind_count */
    uint8_t *status; /* enum publish_status, owned */
};
void msg_publish_encode(const struct msg_publish *message, struct buf *out);
int msg_publish_decode(struct slice head, struct msg_publish *message);
void msg_publish_close(struct msg_publish *message);
void msg_publish_reply_encode(const struct msg_publish_reply *reply, struct buf *out);
int msg_publish_reply_decode(struct slice head, struct msg_publish_reply *reply);
void msg_publish_reply_close(struct msg_publish_reply *reply);

#endif
