/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_REGISTER and MSG_HEARTBEAT: a participant joins, proves its identity (rule 13), says what it
 * holds, and is told what it may drop (rule 10). */
#ifndef TG_COMMON_PROTO_MSG_MEMBER_H
#define TG_COMMON_PROTO_MSG_MEMBER_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/model/ids.h"

enum { UUID_BYTES = 37 };

struct msg_register {
    node_id wanted; /* 0 = any */
    char node_uuid[UUID_BYTES];
    char cluster_uuid[UUID_BYTES]; /* "" on an empty directory */
    uint64_t previous_nonce;       /* 0 on an empty directory */
    uint64_t new_nonce;            /* persisted before this is sent */
    char http[ADDRESS_BYTES];
    char rpc[ADDRESS_BYTES];
    bool rejoin; /* the directory is empty, or an old one, or a copy: what it holds counts only once
                    it was compared */
};
/* Verdicts: 0; TG_BUSY (rejoin: the one that is to be replaced is alive); TG_FENCED (another process registered with that directory, or a stale copy);
 * TG_REFUSED (other cluster, id taken). */
struct msg_register_reply {
    node_id node;
    uint64_t epoch; /* grows with each accepted registration of any node; goes with every call */
    char cluster_uuid[UUID_BYTES];
};

enum {
    HEARTBEAT_LIVE_MAX = 8192,
    HEARTBEAT_STAGED_MAX = 4096,
    HEARTBEAT_TABLETS_MAX = 4096,
    HEARTBEAT_DAMAGED_MAX = 64
};

struct damaged_version {
    tablet_id tablet;
    version_t version;
};

struct msg_heartbeat {
    node_id node;
    uint64_t epoch;
    uint64_t request_high; /* the largest request id this epoch has given out so far … */
    uint64_t *live;        /* … and those of them whose load is still under way (rule 7): owned */
    uint32_t live_count;
    txn_id *staged; /* some transactions with staged, unbound rowsets here (in turn, if there are
                       many): owned */
    uint32_t staged_count;
    tablet_id *tablets; /* some tablets held here (in turn): owned */
    uint32_t tablet_count;
    uint64_t disk_free_bytes;
    uint64_t disk_total_bytes;
    struct damaged_version *damaged; /* bound versions whose data cannot be read here: owned */
    uint32_t damaged_count;
};
struct msg_heartbeat_reply {
    txn_id *dead; /* of the staged ones: ABORTED in the applied log, or below txn_low_water: drop
                     their rowsets. owned */
    uint32_t dead_count;
    uint64_t
        *stopped; /* of the live requests: their transaction is over; the load must stop. owned */
    uint32_t stopped_count;
    tablet_id *dropped; /* of the tablets: no longer in the catalog: drop them. owned */
    uint32_t dropped_count;
    txn_id txn_low_water;
    uint64_t closed_us;       /* no completion will ever have a time at or below this … */
    uint64_t closed_position; /* … as of this applied index */
    /* RPC addresses of the coordinators, as the log has them; none: it does not say. */
    uint32_t coordinator_count;
    char coordinators[COORDINATORS_MAX][ADDRESS_BYTES];
};

void msg_register_encode(const struct msg_register *message, struct buf *out);
int msg_register_decode(struct slice head, struct msg_register *message);
void msg_register_reply_encode(const struct msg_register_reply *reply, struct buf *out);
int msg_register_reply_decode(struct slice head, struct msg_register_reply *reply);
void msg_heartbeat_encode(const struct msg_heartbeat *message, struct buf *out);
int msg_heartbeat_decode(struct slice head, struct msg_heartbeat *message);
void msg_heartbeat_close(struct msg_heartbeat *message);
void msg_heartbeat_reply_encode(const struct msg_heartbeat_reply *reply, struct buf *out);
int msg_heartbeat_reply_decode(struct slice head, struct msg_heartbeat_reply *reply);
void msg_heartbeat_reply_close(struct msg_heartbeat_reply *reply);

#endif
