/* SPDX-License-Identifier: Apache-2.0 */
/* A message to the leader to whoever handles it. */
#include "coordinator/dispatch/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "common/proto/message.h"
#include "common/proto/msg_query.h"
#include "common/proto/msg_status.h"
#include "coordinator/dispatch/dispatch_lost.h"
#include "coordinator/dispatch/dispatch_member.h"
#include "coordinator/dispatch/dispatch_read.h"
#include "coordinator/query/query.h"

const struct dispatch_peer *dispatch_peer_find(const struct dispatch *dispatch, uint64_t id)
{
    for (uint32_t i = 0; i < dispatch->peer_count; i++)
        if (dispatch->peers[i].id == id)
            return &dispatch->peers[i];
    return NULL;
}

static void fail(dispatch_done *done, void *data, int err)
{
    done(data, err, tg_err_sentence(err), slice_of(NULL, 0));
}

static void call_status(struct dispatch *dispatch, dispatch_done *done, void *data)
{
    const struct consensus_ops *ops = dispatch->consensus->ops;
    struct msg_status_reply reply = {.coordinator = dispatch->self};
    const struct state *state = consensus_state(dispatch->consensus);
    struct buf head = BUF_INIT;

    reply.leader = ops->leader(dispatch->consensus);
    const struct dispatch_peer *leader = dispatch_peer_find(dispatch, reply.leader);
    if (leader != NULL) {
        snprintf(reply.leader_rpc, sizeof reply.leader_rpc, "%s", leader->rpc);
        snprintf(reply.leader_http, sizeof reply.leader_http, "%s", leader->http);
    }
    memcpy(reply.cluster_uuid, state->cluster_uuid, sizeof reply.cluster_uuid);
    reply.term = ops->term(dispatch->consensus);
    reply.applied_index = ops->applied_index(dispatch->consensus);
    reply.last_stamp_us = state->stamp_us;
    reply.of_cluster = dispatch->of_cluster && state->cluster_uuid[0] == '\0';
    reply.wall_us = clock_wall_us(dispatch->clock);
    reply.room = dispatch->room;
    reply.disk_free_bytes = dispatch->disk_free_bytes;
    members_infos(&state->coordinators, &reply.coordinators);
    msg_status_reply_encode(&reply, &head);
    done(data, head.err, "", slice_of(head.data, head.len));
    buf_close(&head);
}

/* Each decodes, hands over, closes. */

static int call_begin(struct dispatch *dispatch, struct slice head, dispatch_done *done, void *data)
{
    struct msg_txn_begin message;
    int err = msg_txn_begin_decode(head, &message);

    if (err == 0)
        txn_manager_begin(dispatch->txns, &message, done, data);
    return err;
}

static int call_load_done(struct dispatch *dispatch, struct slice head, dispatch_done *done,
                          void *data)
{
    struct msg_load_done message;
    int err = msg_load_done_decode(head, &message);

    if (err != 0)
        return err;
    txn_manager_load_done(dispatch->txns, &message, done, data);
    msg_load_done_close(&message);
    return 0;
}

static int call_load_failed(struct dispatch *dispatch, struct slice head, dispatch_done *done,
                            void *data)
{
    struct msg_load_failed message;
    int err = msg_load_failed_decode(head, &message);

    if (err == 0)
        txn_manager_load_failed(dispatch->txns, &message, done, data);
    return err;
}

static int call_2pc(struct dispatch *dispatch, struct slice head, dispatch_done *done, void *data)
{
    struct msg_txn_2pc message;
    int err = msg_txn_2pc_decode(head, &message);

    if (err == 0)
        txn_manager_2pc(dispatch->txns, &message, done, data);
    return err;
}

static int call_query(struct dispatch *dispatch, struct slice head, dispatch_done *done, void *data)
{
    struct query_context context = {.consensus = dispatch->consensus,
                                    .health = dispatch->health,
                                    .clock = dispatch->clock,
                                    .waits = dispatch->waits,
                                    .self = dispatch->self};
    struct msg_query message;
    int err = msg_query_decode(head, &message);

    if (err != 0)
        return err;
    if (message.kind == QUERY_DECLARE_LOST)
        dispatch_lost(dispatch, &message, done, data);
    else
        query_run(&context, &message, done, data);
    msg_query_close(&message);
    return 0;
}

void dispatch_call(struct dispatch *dispatch, uint16_t type, struct slice head, dispatch_done *done,
                   void *data)
{
    int err;

    if (type == MSG_STATUS) {
        call_status(dispatch, done, data);
        return;
    }
    if (!consensus_is_leader(dispatch->consensus) &&
        !dispatch_read_wants_no_leader(dispatch, type, head)) {
        fail(done, data, TG_NOT_LEADER);
        return;
    }
    switch (type) {
    case MSG_REGISTER:
        err = dispatch_member_register(dispatch, head, done, data);
        break;
    case MSG_HEARTBEAT:
        err = dispatch_member_heartbeat(dispatch, head, done, data);
        break;
    case MSG_COORDINATOR:
        err = dispatch->members != NULL ? members_call(dispatch->members, head, done, data)
                                        : TG_UNSUPPORTED;
        break;
    case MSG_TXN_BEGIN:
        err = call_begin(dispatch, head, done, data);
        break;
    case MSG_LOAD_DONE:
        err = call_load_done(dispatch, head, done, data);
        break;
    case MSG_LOAD_FAILED:
        err = call_load_failed(dispatch, head, done, data);
        break;
    case MSG_TXN_2PC:
        err = call_2pc(dispatch, head, done, data);
        break;
    case MSG_READ_POINT:
        err = dispatch_read_point(dispatch, head, done, data);
        break;
    case MSG_QUERY:
        err = call_query(dispatch, head, done, data);
        break;
    default:
        err = TG_UNSUPPORTED;
        break;
    }
    if (err != 0)
        fail(done, data, err);
}
