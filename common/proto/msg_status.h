/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_STATUS: a coordinator tells who it is, who leads as far as it knows, and how far it has
 * applied. */
#ifndef TG_COMMON_PROTO_MSG_STATUS_H
#define TG_COMMON_PROTO_MSG_STATUS_H

#include "common/base/buf.h"
#include "common/model/ids.h"

struct msg_status_reply {
    uint64_t coordinator;           /* its raft id */
    uint64_t leader;                /* raft id of the leader it knows, 0 if none */
    char leader_rpc[ADDRESS_BYTES]; /* "" if none */
    char leader_http[ADDRESS_BYTES];
    char cluster_uuid[37]; /* "" before the cluster was formed */
    uint64_t term;
    uint64_t applied_index;
    uint64_t last_stamp_us;
};

void msg_status_reply_encode(const struct msg_status_reply *reply, struct buf *out);
int msg_status_reply_decode(struct slice head, struct msg_status_reply *reply);

#endif
