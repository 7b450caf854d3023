/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the leading coordinator.
 *
 * A call goes to the coordinator that is believed to lead (at first: any). An answer that says "not
 * I", or none at all, makes it ask the next coordinator by MSG_STATUS who leads, and the call is
 * sent again after a pause that grows from RETRY_MS_MIN to RETRY_MS_MAX. All messages are
 * idempotent by request key, so sending again is safe whatever became of the first. */
#include "participant/link/coordinator_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/proto/message.h"
#include "common/proto/msg_status.h"

enum { RETRY_MS_MIN = 20, RETRY_MS_MAX = 200, STATUS_TIMEOUT_MS = 500 };

struct call {
    struct coordinator_client *client;
    struct call *prev, *next;
    uint16_t type;
    struct buf head;
    uint64_t deadline_ms;
    uint64_t attempt_ms;
    uint64_t pause_ms;
    unsigned asked; /* which coordinator got the last attempt or question */
    rpc_done *done;
    void *data;
    struct loop_timer *timer; /* pauses */
    bool in_air;              /* an rpc call of ours is under way */
};

struct coordinator_client {
    struct loop *loop;
    bool closing;
    unsigned count;
    unsigned leader; /* index of the one to try first */
    struct rpc_client *peers[COORDINATORS_MAX];
    struct call *calls;
    uint32_t call_count;
};

static void attempt(struct call *call);

int coordinator_client_open(struct loop *loop, const char *addresses, const char *secret,
                            struct coordinator_client **client, struct tg_errmsg *msg)
{
    struct coordinator_client *c = calloc(1, sizeof *c);
    char *copy = strdup(addresses);
    char *save = NULL;
    int err = 0;

    if (c == NULL || copy == NULL) {
        free(c);
        free(copy);
        return tg_fail(msg, TG_NOMEM, "no memory for the coordinators' connections");
    }
    c->loop = loop;
    for (char *one = strtok_r(copy, ", ", &save); one != NULL && err == 0;
         one = strtok_r(NULL, ", ", &save)) {
        if (c->count == COORDINATORS_MAX)
            err = tg_fail(msg, TG_LIMIT, "more than %d coordinators", COORDINATORS_MAX);
        else
            err = rpc_client_open(loop, one, secret, &c->peers[c->count], msg);
        if (err == 0)
            c->count++;
    }
    free(copy);
    if (err == 0 && c->count == 0)
        err = tg_fail(msg, TG_INVALID, "no coordinator address is given");
    if (err != 0) {
        coordinator_client_close(c);
        return err;
    }
    *client = c;
    return 0;
}

/* Takes the call off the list and tells its owner. */
static void finish(struct call *call, const struct rpc_reply *reply)
{
    struct coordinator_client *c = call->client;

    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        c->calls = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    c->call_count--;
    if (call->timer != NULL)
        loop_timer_close(call->timer);
    call->done(call->data, reply);
    buf_close(&call->head);
    free(call);
}

static void finish_err(struct call *call, int err, const char *message)
{
    struct rpc_reply reply = {.err = err, .message = message};

    finish(call, &reply);
}

void coordinator_client_close(struct coordinator_client *client)
{
    if (client == NULL)
        return;
    client->closing = true;
    /* Closing a connection ends its calls with TG_CANCELED, which ends ours in on_reply; what is
     * left waits on a timer. */
    for (unsigned i = 0; i < client->count; i++)
        rpc_client_close(client->peers[i]);
    while (client->calls != NULL)
        finish_err(client->calls, TG_CANCELED, "the node shuts down");
    free(client);
}

static bool should_retry(int err)
{
    return err == TG_NOT_LEADER || err == TG_UNREACHABLE || err == TG_CLOSED ||
           err == TG_UNKNOWN_OUTCOME || err == TG_TIMEOUT || err == TG_BUSY;
}

static uint64_t time_left(const struct call *call)
{
    uint64_t now = loop_now_ms(call->client->loop);

    return call->deadline_ms > now ? call->deadline_ms - now : 0;
}

static void on_pause_over(void *data)
{
    attempt(data);
}

static void retry_later(struct call *call)
{
    uint64_t left = time_left(call);

    if (left == 0) {
        finish_err(call, TG_TIMEOUT, "no leading coordinator answered in time");
        return;
    }
    if (call->timer == NULL)
        call->timer = loop_timer_open(call->client->loop, on_pause_over, call);
    if (call->timer == NULL) {
        finish_err(call, TG_NOMEM, "out of memory");
        return;
    }
    loop_timer_start(call->timer, call->pause_ms < left ? call->pause_ms : left, 0);
    call->pause_ms = call->pause_ms * 2 < RETRY_MS_MAX ? call->pause_ms * 2 : RETRY_MS_MAX;
}

static void on_status(void *data, const struct rpc_reply *reply)
{
    struct call *call = data;
    struct coordinator_client *c = call->client;
    struct msg_status_reply status;

    call->in_air = false;
    if (c->closing) {
        finish_err(call, TG_CANCELED, "the node shuts down");
        return;
    }
    if (reply->err == 0 && msg_status_reply_decode(reply->head, &status) == 0 &&
        status.leader != 0) {
        for (unsigned i = 0; i < c->count; i++)
            if (strcmp(rpc_client_address(c->peers[i]), status.leader_rpc) == 0)
                c->leader = i;
    }
    retry_later(call);
}

/* Asks the coordinator after the one that disappointed us. */
static void look_for_leader(struct call *call)
{
    struct coordinator_client *c = call->client;

    if (time_left(call) == 0) {
        finish_err(call, TG_TIMEOUT, "no leading coordinator answered in time");
        return;
    }
    call->asked = (call->asked + 1) % c->count;
    if (call->asked == c->leader && c->count > 1)
        call->asked = (call->asked + 1) % c->count;
    call->in_air = true;
    rpc_client_call(c->peers[call->asked], MSG_STATUS, slice_of(NULL, 0), slice_of(NULL, 0),
                    STATUS_TIMEOUT_MS, on_status, call);
}

static void on_reply(void *data, const struct rpc_reply *reply)
{
    struct call *call = data;
    struct coordinator_client *c = call->client;

    call->in_air = false;
    if (c->closing) {
        finish_err(call, TG_CANCELED, "the node shuts down");
        return;
    }
    if (!should_retry(reply->err)) {
        finish(call, reply);
        return;
    }
    log_debug("coordinator_client", "retry type=%u err=%s left_ms=%lu", call->type,
              tg_err_name(reply->err), time_left(call));
    if (reply->err == TG_BUSY)
        retry_later(call);
    else
        look_for_leader(call);
}

static void attempt(struct call *call)
{
    struct coordinator_client *c = call->client;
    uint64_t left = time_left(call);

    if (left == 0) {
        finish_err(call, TG_TIMEOUT, "no leading coordinator answered in time");
        return;
    }
    call->asked = c->leader;
    call->in_air = true;
    rpc_client_call(c->peers[c->leader], call->type, slice_of(call->head.data, call->head.len),
                    slice_of(NULL, 0), call->attempt_ms < left ? call->attempt_ms : left, on_reply,
                    call);
}

void coordinator_client_call(struct coordinator_client *client, uint16_t type, struct buf *head,
                             uint64_t timeout_ms, uint64_t attempt_ms, rpc_done *done, void *data)
{
    struct call *call = calloc(1, sizeof *call);

    /* Without room for its own record a call cannot be kept; the process is about to fail anyway.
     */
    TG_CHECK(call != NULL);
    call->client = client;
    call->type = type;
    call->head = *head;
    buf_init(head);
    call->deadline_ms = loop_now_ms(client->loop) + timeout_ms;
    call->attempt_ms = attempt_ms != 0 ? attempt_ms : COORDINATOR_ATTEMPT_MS;
    call->pause_ms = RETRY_MS_MIN;
    call->done = done;
    call->data = data;
    call->next = client->calls;
    if (client->calls != NULL)
        client->calls->prev = call;
    client->calls = call;
    if (++client->call_count > COORDINATOR_CALLS_MAX)
        retry_later(call);
    else
        attempt(call);
}

struct waiting {
    struct loop_call post;
    struct coordinator_client *client;
    uint16_t type;
    struct buf head;
    uint64_t timeout_ms, attempt_ms;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    int err;
    struct buf *reply_head;
    struct tg_errmsg *msg;
};

static void wake(void *data, const struct rpc_reply *reply)
{
    struct waiting *w = data;

    pthread_mutex_lock(&w->lock);
    w->err = reply->err;
    if (w->reply_head != NULL)
        buf_append(w->reply_head, reply->head.data, reply->head.len);
    if (reply->err != 0)
        tg_fail(w->msg, reply->err, "%s",
                reply->message[0] != 0 ? reply->message : tg_err_sentence(reply->err));
    w->over = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
}

static void start_on_loop(struct loop_call *post)
{
    struct waiting *w = post->data;

    coordinator_client_call(w->client, w->type, &w->head, w->timeout_ms, w->attempt_ms, wake, w);
}

int coordinator_client_call_wait(struct coordinator_client *client, uint16_t type, struct buf *head,
                                 uint64_t timeout_ms, uint64_t attempt_ms, struct buf *reply_head,
                                 struct tg_errmsg *msg)
{
    struct waiting w = {
        .client = client,
        .type = type,
        .head = *head,
        .timeout_ms = timeout_ms,
        .attempt_ms = attempt_ms,
        .reply_head = reply_head,
        .msg = msg,
    };

    buf_init(head);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.ended, NULL);
    w.post.run = start_on_loop;
    w.post.data = &w;
    loop_post(client->loop, &w.post);
    pthread_mutex_lock(&w.lock);
    while (!w.over)
        pthread_cond_wait(&w.ended, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
    return w.err;
}
