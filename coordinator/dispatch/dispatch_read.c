/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_POINT: which version a read sees.
 *
 * A read of the past that can no longer change is answered at once. A read of the newest version
 * waits for a barrier, so that it sees every commit answered before it came. A read as of a time
 * above the closed timestamp waits for a batch whose stamp closes that time: nothing can complete
 * at or below it any more, so the answer stays the same for ever. A time a little
 * ahead of the clock is simply closed by a stamp that has to be that high; one further ahead is
 * refused. */
#include "coordinator/dispatch/dispatch_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/mutant.h"
#include "common/proto/message.h"
#include "common/proto/msg_read.h"

enum { READ_AHEAD_US_MAX = 500000 };

struct read_call {
    struct consensus_request request;
    struct dispatch *dispatch;
    dispatch_done *done;
    void *data;
    struct msg_read_point message;
};

static void fill_nodes(const struct state *state, struct msg_read_point_reply *reply)
{
    reply->nodes = calloc(state->members.count + 1, sizeof *reply->nodes);
    TG_CHECK_MEMORY(reply->nodes != NULL);
    for (uint32_t i = 0; i < state->members.count; i++) {
        const struct member *member = &state->members.list[i];
        struct read_point_node *node = &reply->nodes[reply->node_count++];

        node->node = member->node;
        node->epoch = member->epoch;
        snprintf(node->rpc, sizeof node->rpc, "%s", member->rpc);
    }
}

static void answer(struct dispatch *dispatch, const struct msg_read_point *message,
                   dispatch_done *done, void *data)
{
    const struct state *state = consensus_state(dispatch->consensus);
    struct msg_read_point_reply reply;
    struct tg_errmsg msg = {{0}};
    struct buf head = BUF_INIT;
    int err;

    msg_read_point_reply_init(&reply);
    err = catalog_read_point(state, message, dispatch->consensus->ops->now_us(dispatch->consensus),
                             &reply, &msg);
    if (err == 0) {
        fill_nodes(state, &reply);
        msg_read_point_reply_encode(&reply, &head);
        err = head.err;
    }
    done(data, err, err == 0 ? "" : msg.text, slice_of(head.data, head.len));
    msg_read_point_reply_close(&reply);
    buf_close(&head);
}

static void barrier_passed(struct consensus_request *request, int err,
                           const struct apply_result *result)
{
    struct read_call *call = request->data;

    (void)result;
    if (err != 0)
        call->done(call->data, err, tg_err_sentence(err), slice_of(NULL, 0));
    else
        answer(call->dispatch, &call->message, call->done, call->data);
    free(call);
}

/* The latest microsecond that the read asks about, 0 if it asks for no time. */
static uint64_t latest_time(const struct msg_read_point *message)
{
    uint64_t us = message->bound.at == READ_TIME ? message->bound.value : 0;

    if (message->with_changes && message->after.at == READ_TIME && message->after.value > us)
        us = message->after.value;
    return us;
}

/* Nothing that comes can change what this bound means: a time that is closed, a version that is
 * visible. */
static bool is_settled(const struct state *state, const struct table *table,
                       const struct read_bound *bound)
{
    switch (bound->at) {
    case READ_TIME:
        return bound->value <= state->stamp_us || MUTANT(17);
    case READ_VERSION:
        return bound->value <= table->visible;
    case READ_LATEST:
        break;
    }
    return false;
}

/* A read of the settled past is answered from what is applied, without asking anybody: every
 * coordinator that has applied it gives the same answer for ever. */
static bool asks_the_settled_past(const struct state *state, const struct msg_read_point *message)
{
    const struct database *db = catalog_database(&state->catalog, message->db);
    const struct table *table = db != NULL ? catalog_table(db, message->table) : NULL;

    return table != NULL && is_settled(state, table, &message->bound) &&
           (!message->with_changes || is_settled(state, table, &message->after));
}

bool dispatch_read_wants_no_leader(const struct dispatch *dispatch, uint16_t type,
                                   struct slice head)
{
    struct msg_read_point message;

    return type == MSG_READ_POINT && msg_read_point_decode(head, &message) == 0 &&
           (message.local || asks_the_settled_past(consensus_state(dispatch->consensus), &message));
}

int dispatch_read_point(struct dispatch *dispatch, struct slice head, dispatch_done *done,
                        void *data)
{
    struct msg_read_point message;
    int err = msg_read_point_decode(head, &message);

    if (err != 0)
        return err;
    uint64_t closes_us = latest_time(&message);
    if (closes_us > dispatch->consensus->ops->now_us(dispatch->consensus) + READ_AHEAD_US_MAX) {
        done(data, TG_FUTURE, "the time asked for lies more than 500 ms in the future",
             slice_of(NULL, 0));
        return 0;
    }
    if (message.local || asks_the_settled_past(consensus_state(dispatch->consensus), &message)) {
        answer(dispatch, &message, done, data);
        return 0;
    }
    struct read_call *call = calloc(1, sizeof *call);
    TG_CHECK_MEMORY(call != NULL);
    call->request.done = barrier_passed;
    call->request.data = call;
    call->dispatch = dispatch;
    call->done = done;
    call->data = data;
    call->message = message;
    consensus_barrier(dispatch->consensus, closes_us, &call->request);
    return 0;
}
