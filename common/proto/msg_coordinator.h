/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_COORDINATOR: who the coordinators are and how they fare; an operator's orders to add, drop or
 * let lead; and the question of one with an empty directory whether the log has admitted it. */
#ifndef TG_COMMON_PROTO_MSG_COORDINATOR_H
#define TG_COMMON_PROTO_MSG_COORDINATOR_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/proto/msg_status.h"

enum coordinator_order {
    COORDINATOR_ORDER_LIST = 1,
    COORDINATOR_ORDER_ADD = 2,      /* id and addresses: it must run and wait to be added */
    COORDINATOR_ORDER_DROP = 3,     /* id */
    COORDINATOR_ORDER_TRANSFER = 4, /* id, 0 = to whom it fits best: begun when answered */
    COORDINATOR_ORDER_JOIN = 5      /* id and nonce: am I admitted? */
};

struct msg_coordinator {
    enum coordinator_order order;
    uint64_t id;
    uint64_t nonce;
    char raft[ADDRESS_BYTES];
    char rpc[ADDRESS_BYTES];
    char http[ADDRESS_BYTES];
};

/* How one of the list fares, as the leader sees it. */
struct coordinator_fare {
    uint32_t role; /* enum consensus_role, 0: raft's configuration does not have it */
    bool alive;    /* answered within the last seconds */
    uint64_t match_index;
    int64_t ahead_us; /* its clock less the leader's, about; 0 if it has not been heard */
    enum status_room room;
    uint64_t disk_free_bytes;
};
/* Verdicts: 0; TG_REFUSED (another change is under way, it would cost the majority; ADD: nobody
 * waits there to be added; JOIN: this directory may not come back), TG_EXISTS (id or address in
 * use, id used before), TG_NOT_FOUND. */
struct msg_coordinator_reply {
    bool admitted; /* JOIN: start with raft now */
    uint64_t leader;
    uint64_t last_index; /* of the leader's log */
    char cluster_uuid[37];
    struct coordinator_infos coordinators;
    struct coordinator_fare fares[COORDINATORS_MAX]; /* one for each */
};

void msg_coordinator_encode(const struct msg_coordinator *message, struct buf *out);
int msg_coordinator_decode(struct slice head, struct msg_coordinator *message);
void msg_coordinator_reply_encode(const struct msg_coordinator_reply *reply, struct buf *out);
int msg_coordinator_reply_decode(struct slice head, struct msg_coordinator_reply *reply);

#endif
