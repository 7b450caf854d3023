/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_REGISTER and MSG_HEARTBEAT on the leader. */
#include "coordinator/dispatch/dispatch_member.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/log.h"

struct register_call {
    struct consensus_request request;
    struct dispatch *dispatch;
    dispatch_done *done;
    void *data;
};

static void register_applied(struct consensus_request *request, int err,
                             const struct apply_result *result)
{
    struct register_call *call = request->data;
    struct msg_register_reply reply = {0};
    struct buf head = BUF_INIT;
    const char *sentence = err != 0 ? tg_err_sentence(err) : result->msg.text;

    if (err == 0)
        err = result->err;
    if (err == 0) {
        const struct state *state = consensus_state(call->dispatch->consensus);

        reply.node = result->node;
        reply.epoch = result->epoch;
        memcpy(reply.cluster_uuid, state->cluster_uuid, sizeof reply.cluster_uuid);
        msg_register_reply_encode(&reply, &head);
        /* Who registers is alive: nobody need wait for its first heartbeat. */
        struct msg_heartbeat alive = {.node = reply.node, .epoch = reply.epoch};
        health_heard(call->dispatch->health, &alive, clock_monotonic_ms(call->dispatch->clock));
        log_info("members", "registered node=%u epoch=%lu", reply.node, reply.epoch);
    }
    call->done(call->data, err, sentence, slice_of(head.data, head.len));
    buf_close(&head);
    free(call);
}

/* Whose place the node is to take, NULL if nobody's. Not the node itself when it asks again. */
static const struct member *rejoins(const struct state *state, const struct msg_register *message)
{
    const struct member *member = members_find(&state->members, message->wanted);

    for (uint32_t i = 0; i < state->members.count; i++)
        if (strcmp(state->members.list[i].uuid, message->node_uuid) == 0)
            member = &state->members.list[i];
    return member != NULL && member->nonce != message->new_nonce ? member : NULL;
}

/* A node that lives does not lose its place to a slip of the hand: it must end, or be silent for
 * its lease. */
static bool refuse_living(struct dispatch *dispatch, const struct msg_register *message,
                          dispatch_done *done, void *data)
{
    const struct member *member = rejoins(consensus_state(dispatch->consensus), message);
    struct tg_errmsg msg = {{0}};

    if (member == NULL ||
        !health_is_alive(dispatch->health, member->node, clock_monotonic_ms(dispatch->clock)))
        return false;
    tg_fail(&msg, TG_BUSY,
            "participant %u was alive a moment ago: stop it first, or wait until its lease is over",
            member->node);
    done(data, TG_BUSY, msg.text, slice_of(NULL, 0));
    return true;
}

int dispatch_member_register(struct dispatch *dispatch, struct slice head, dispatch_done *done,
                             void *data)
{
    struct command command = {.type = COMMAND_MEMBER_REGISTER};
    struct register_call *call;
    int err = msg_register_decode(head, &command.member.message);

    if (err != 0)
        return err;
    if (command.member.message.rejoin) {
        command.type = COMMAND_MEMBER_REJOIN;
        if (refuse_living(dispatch, &command.member.message, done, data))
            return 0;
    }
    call = calloc(1, sizeof *call);
    TG_CHECK_MEMORY(call != NULL);
    call->request.done = register_applied;
    call->request.data = call;
    call->dispatch = dispatch;
    call->done = done;
    call->data = data;
    consensus_propose(dispatch->consensus, &command, &call->request);
    return 0;
}

struct heartbeat_call {
    struct consensus_request request;
    struct dispatch *dispatch;
    struct msg_heartbeat message;
    dispatch_done *done;
    void *data;
};

/* Closes the message. */
static void answer_heartbeat(struct dispatch *dispatch, struct msg_heartbeat *message, bool proven,
                             int err, dispatch_done *done, void *data)
{
    const struct state *state = consensus_state(dispatch->consensus);
    struct msg_heartbeat_reply reply;
    struct buf out = BUF_INIT;

    if (err == 0 && !members_is_current(&state->members, message->node, message->epoch))
        err = TG_FENCED;
    if (err == 0)
        err = health_answer(state, message, proven, &reply);
    if (err == 0) {
        reply.closed_position = dispatch->consensus->ops->applied_index(dispatch->consensus);
        err = health_heard(dispatch->health, message, clock_monotonic_ms(dispatch->clock));
        msg_heartbeat_reply_encode(&reply, &out);
        msg_heartbeat_reply_close(&reply);
    }
    msg_heartbeat_close(message);
    done(data, err, tg_err_sentence(err), slice_of(out.data, out.len));
    buf_close(&out);
}

static void heartbeat_proven(struct consensus_request *request, int err,
                             const struct apply_result *result)
{
    struct heartbeat_call *call = request->data;

    (void)result;
    answer_heartbeat(call->dispatch, &call->message, true, err, call->done, call->data);
    free(call);
}

int dispatch_member_heartbeat(struct dispatch *dispatch, struct slice head, dispatch_done *done,
                              void *data)
{
    const struct state *state = consensus_state(dispatch->consensus);
    struct msg_heartbeat message;
    int err = msg_heartbeat_decode(head, &message);

    if (err != 0)
        return err;
    if (!health_has_retired(state, &message)) {
        answer_heartbeat(dispatch, &message, false, 0, done, data);
        return 0;
    }
    struct heartbeat_call *call = calloc(1, sizeof *call);
    TG_CHECK_MEMORY(call != NULL);
    *call = (struct heartbeat_call){
        .dispatch = dispatch, .message = message, .done = done, .data = data};
    call->request.done = heartbeat_proven;
    call->request.data = call;
    consensus_barrier(dispatch->consensus, 0, &call->request);
    return 0;
}
