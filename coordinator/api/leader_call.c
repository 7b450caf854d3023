/* SPDX-License-Identifier: Apache-2.0 */
/* A message to whoever leads.
 *
 * An attempt goes to the leader that this node's consensus knows of. A refusal, a lost connection
 * or a silence makes the call pause and look again; so does another leader appearing while the
 * answer of the old one is still out: that attempt is given up, its late answer is dropped. */
#include "coordinator/api/leader_call.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/log.h"

struct attempt {
    struct leader_call *call; /* NULL once it was given up */
    uint64_t leader;
};

struct leader_call {
    struct leader_link *link;
    struct leader_call *prev, *next;
    uint16_t type;
    struct buf head;
    uint64_t deadline_ms;
    uint64_t pause_ms;
    uint64_t not_before_ms;
    bool may_have_happened;
    bool waits; /* for the next attempt */
    struct attempt *attempt;
    leader_call_done *done;
    void *data;
};

static void try(struct leader_call *call);

static void finish(struct leader_call *call, int err, const char *sentence, struct slice head)
{
    struct leader_link *link = call->link;

    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        link->calls = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    link->count--;
    if (call->attempt != NULL)
        call->attempt->call = NULL;
    call->done(call->data, err, sentence, head);
    buf_close(&call->head);
    free(call);
}

static void give_up(struct leader_call *call)
{
    if (call->may_have_happened)
        finish(call, TG_UNKNOWN_OUTCOME,
               "no leading coordinator told the outcome in time; it is not known",
               slice_of(NULL, 0));
    else
        finish(call, TG_UNREACHABLE, "no leading coordinator could be reached in time",
               slice_of(NULL, 0));
}

static bool should_retry(int err)
{
    return err == TG_NOT_LEADER || err == TG_UNREACHABLE || err == TG_CLOSED ||
           err == TG_UNKNOWN_OUTCOME || err == TG_TIMEOUT || err == TG_BUSY || err == TG_CANCELED;
}

static bool may_have_happened(int err)
{
    return err == TG_CLOSED || err == TG_UNKNOWN_OUTCOME || err == TG_TIMEOUT || err == TG_CANCELED;
}

/* The next attempt is made on a tick. */
static void pause_call(struct leader_call *call)
{
    uint64_t now = loop_now_ms(call->link->loop);

    if (now >= call->deadline_ms) {
        give_up(call);
        return;
    }
    call->waits = true;
    call->not_before_ms = now + call->pause_ms;
    call->pause_ms = call->pause_ms * 2 < LEADER_CALL_PAUSE_MS_MAX ? call->pause_ms * 2
                                                                   : LEADER_CALL_PAUSE_MS_MAX;
}

static void attempt_ended(struct attempt *attempt, int err, const char *sentence, struct slice head)
{
    struct leader_call *call = attempt->call;

    free(attempt);
    if (call == NULL)
        return;
    call->attempt = NULL;
    if (call->link->closing) {
        finish(call, TG_CANCELED, "the coordinator shuts down", slice_of(NULL, 0));
        return;
    }
    if (!should_retry(err)) {
        finish(call, err, sentence, head);
        return;
    }
    log_debug("leader_call", "retry type=%u err=%s", call->type, tg_err_name(err));
    call->may_have_happened = call->may_have_happened || may_have_happened(err);
    pause_call(call);
}

static void on_local(void *data, int err, const char *sentence, struct slice head)
{
    attempt_ended(data, err, sentence, head);
}

static void on_remote(void *data, const struct rpc_reply *reply)
{
    attempt_ended(data, reply->err, reply->message, reply->head);
}

static void try_there(struct leader_call *call, struct attempt *attempt, uint64_t left_ms)
{
    struct leader_link *link = call->link;
    const struct dispatch_peer *peer = dispatch_peer_find(link->dispatch, attempt->leader);
    struct tg_errmsg msg = {{0}};
    struct rpc_client *client =
        peer != NULL ? rpc_pool_client(&link->pool, peer->id, peer->rpc, &msg) : NULL;

    if (client == NULL) {
        attempt_ended(attempt, TG_UNREACHABLE, msg.text, slice_of(NULL, 0));
        return;
    }
    rpc_client_call(client, call->type, slice_of(call->head.data, call->head.len),
                    slice_of(NULL, 0), left_ms, on_remote, attempt);
}

static void try(struct leader_call *call)
{
    struct leader_link *link = call->link;
    const struct consensus *consensus = link->dispatch->consensus;
    uint64_t now = loop_now_ms(link->loop);
    uint64_t leader = consensus->ops->leader(consensus);

    if (leader == 0) {
        pause_call(call);
        return;
    }
    struct attempt *attempt = calloc(1, sizeof *attempt);
    TG_CHECK_MEMORY(attempt != NULL);
    attempt->call = call;
    attempt->leader = leader;
    call->attempt = attempt;
    call->waits = false;
    if (leader == link->dispatch->self)
        dispatch_call(link->dispatch, call->type, slice_of(call->head.data, call->head.len),
                      on_local, attempt);
    else
        try_there(call, attempt, now < call->deadline_ms ? call->deadline_ms - now : 1);
}

/* What is asked of a leader that leads no more may never be answered. */
static void look_at(struct leader_call *call, uint64_t now, uint64_t leader)
{
    if (call->waits) {
        if (now >= call->deadline_ms)
            give_up(call);
        else if (now >= call->not_before_ms)
            try(call);
        return;
    }
    struct attempt *attempt = call->attempt;
    if (attempt != NULL && leader != 0 && attempt->leader != leader &&
        attempt->leader != call->link->dispatch->self) {
        attempt->call = NULL;
        call->attempt = NULL;
        call->may_have_happened = true;
        try(call);
    }
}

static void tick(void *data)
{
    struct leader_link *link = data;
    const struct consensus *consensus = link->dispatch->consensus;
    uint64_t now = loop_now_ms(link->loop);
    uint64_t leader = consensus->ops->leader(consensus);
    struct leader_call *next;

    for (struct leader_call *call = link->calls; call != NULL; call = next) {
        next = call->next;
        look_at(call, now, leader);
    }
    if (link->calls == NULL) {
        loop_timer_stop(link->timer);
        link->ticking = false;
    }
}

int leader_link_open(struct leader_link *link, struct loop *loop, struct dispatch *dispatch,
                     const char *secret, struct tg_errmsg *msg)
{
    *link = (struct leader_link){.loop = loop, .dispatch = dispatch};
    int err = rpc_pool_init(&link->pool, loop, secret, msg);
    if (err != 0)
        return err;
    link->timer = loop_timer_open(loop, tick, link);
    return link->timer != NULL ? 0 : tg_fail(msg, TG_NOMEM, "no memory for a timer");
}

void leader_link_close(struct leader_link *link)
{
    if (link->loop == NULL)
        return;
    link->closing = true;
    rpc_pool_close(&link->pool); /* ends the attempts that are out */
    while (link->calls != NULL)
        finish(link->calls, TG_CANCELED, "the coordinator shuts down", slice_of(NULL, 0));
    if (link->timer != NULL)
        loop_timer_close(link->timer);
    link->timer = NULL;
    link->loop = NULL;
}

void leader_call_start(struct leader_link *link, uint16_t type, struct buf *head,
                       uint64_t timeout_ms, leader_call_done *done, void *data)
{
    struct leader_call *call;

    if (link->closing || link->count >= LEADER_CALLS_MAX || head->err != 0) {
        int err = link->closing ? TG_CANCELED : head->err != 0 ? head->err : TG_BUSY;

        buf_close(head);
        done(data, err, tg_err_sentence(err), slice_of(NULL, 0));
        return;
    }
    call = calloc(1, sizeof *call);
    TG_CHECK_MEMORY(call != NULL);
    call->link = link;
    call->type = type;
    call->head = *head;
    buf_init(head);
    call->deadline_ms = loop_now_ms(link->loop) + timeout_ms;
    call->pause_ms = LEADER_CALL_PAUSE_MS_MIN;
    call->done = done;
    call->data = data;
    call->next = link->calls;
    if (link->calls != NULL)
        link->calls->prev = call;
    link->calls = call;
    link->count++;
    if (!link->ticking) {
        link->ticking = true;
        loop_timer_start(link->timer, LEADER_CALL_TICK_MS, LEADER_CALL_TICK_MS);
    }
    try(call);
}
