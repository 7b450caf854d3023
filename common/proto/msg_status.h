/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_STATUS: a coordinator tells who it is, who leads as far as it knows, and how far it has
 * applied. */
#ifndef TG_COMMON_PROTO_MSG_STATUS_H
#define TG_COMMON_PROTO_MSG_STATUS_H

#include "common/base/buf.h"
#include "common/model/ids.h"

/* How far a coordinator is with its start. The numbers travel. */
enum status_phase {
    STATUS_SERVES = 0, /* takes part in the log */
    STATUS_LOOKS = 1,  /* its directory is empty; it asks the others whether there is a cluster */
    STATUS_READY = 2   /* it has heard from all of them that there is none */
};

struct msg_status_reply {
    uint64_t coordinator;           /* its raft id */
    uint64_t leader;                /* raft id of the leader it knows, 0 if none */
    char leader_rpc[ADDRESS_BYTES]; /* "" if none */
    char leader_http[ADDRESS_BYTES];
    char cluster_uuid[37]; /* "" before the cluster was formed */
    uint64_t term;
    uint64_t applied_index;
    uint64_t last_stamp_us;
    enum status_phase phase;
};

void msg_status_reply_encode(const struct msg_status_reply *reply, struct buf *out);
int msg_status_reply_decode(struct slice head, struct msg_status_reply *reply);

#endif
