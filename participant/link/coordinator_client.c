/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the leading coordinator.
 *
 * Who leads is found out once for all calls: a search asks one coordinator after the other by
 * MSG_STATUS, follows the name it hears, and ends with the one that says "I". Calls made meanwhile
 * are parked. A call that ends without a verdict starts a search, rests for a pause that grows from
 * RETRY_MS_MIN to RETRY_MS_MAX, and is sent again: all messages are idempotent by request key, so
 * sending again is safe whatever became of the first.
 *
 *   new ──▶ PARKED ──leader found──▶ SENT ──verdict──▶ done
 *              ▲                      │ no verdict, or another leader is found
 *              └───────── PAUSED ◀────┘
 *
 * A leader whose connection is down is searched for rather than waited for: the others know of its
 * successor long before an attempt would time out. */
#include "participant/link/coordinator_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/proto/message.h"
#include "common/proto/msg_status.h"
#include "participant/link/coordinator_client_private.h"

enum {
    RETRY_MS_MIN = 20,
    RETRY_MS_MAX = 200,
    STATUS_TIMEOUT_MS = 500, /* an answer over a connection that stands */
    CONNECT_TIMEOUT_MS = 250,
    UNREACHABLE_MS = 1000 /* so long one that did not answer is not asked because others name it */
};

struct call;

/* One sending of a call. */
struct attempt {
    struct call *call; /* NULL once it was given up */
    unsigned target;
};

enum call_state { CALL_SENT, CALL_PAUSED, CALL_PARKED, CALL_REFUSED };

struct call {
    struct coordinator_client *client;
    struct call *prev, *next;
    enum call_state state;
    uint16_t type;
    struct buf head;
    uint64_t deadline_ms;
    uint64_t attempt_ms;
    uint64_t pause_ms;
    struct attempt *attempt; /* CALL_SENT */
    rpc_done *done;
    void *data;
    struct loop_timer *timer; /* made when first needed */
};

static void search_start(struct coordinator_client *c);
static void search_goes_on(void *data);

int coordinator_client_open(struct loop *loop, const char *addresses, const char *secret,
                            struct coordinator_client **client, struct tg_errmsg *msg)
{
    struct coordinator_client *c = calloc(1, sizeof *c);
    char *copy = strdup(addresses);
    char *save = NULL;
    int err = 0;

    char *kept = strdup(secret);

    if (c == NULL || copy == NULL || kept == NULL) {
        free(c);
        free(copy);
        free(kept);
        return tg_fail(msg, TG_NOMEM, "no memory for the coordinators' connections");
    }
    c->loop = loop;
    c->secret = kept;
    atomic_init(&c->references, 1);
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
    if (err == 0 && (c->search_timer = loop_timer_open(loop, search_goes_on, c)) == NULL)
        err = tg_fail(msg, TG_NOMEM, "no memory for a timer");
    if (err != 0) {
        coordinator_client_close(c);
        return err;
    }
    *client = c;
    return 0;
}

void coordinator_client_release(struct coordinator_client *client)
{
    if (atomic_fetch_sub(&client->references, 1) == 1) {
        free(client->secret);
        free(client);
    }
}

/* ---- whom there is to ask ---- */

static int find_peer(const struct coordinator_client *c, const char *address)
{
    for (unsigned i = 0; i < c->count; i++)
        if (strcmp(rpc_client_address(c->peers[i]), address) == 0)
            return (int)i;
    return -1;
}

static bool is_listed(const char (*addresses)[ADDRESS_BYTES], uint32_t count, const char *address)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(addresses[i], address) == 0)
            return true;
    return false;
}

/* One that is not listed, does not lead, and is not being asked; -1 if there is none. */
static int find_spare(const struct coordinator_client *c, const char (*addresses)[ADDRESS_BYTES],
                      uint32_t count)
{
    for (unsigned i = 0; i < c->count; i++)
        if (i != c->leader && !(c->searching && i == c->asking) &&
            !is_listed(addresses, count, rpc_client_address(c->peers[i])))
            return (int)i;
    return -1;
}

bool coordinator_client_learn(struct coordinator_client *c, const char (*addresses)[ADDRESS_BYTES],
                              uint32_t count)
{
    bool any = false;

    for (uint32_t i = 0; i < count && !c->closing; i++) {
        struct rpc_client *fresh;
        struct rpc_client *old = NULL;

        if (find_peer(c, addresses[i]) >= 0)
            continue;
        int at = c->count < COORDINATOR_PEERS_MAX ? (int)c->count : find_spare(c, addresses, count);
        if (at < 0 || rpc_client_open(c->loop, addresses[i], c->secret, &fresh, NULL) != 0)
            continue;
        if ((unsigned)at == c->count)
            c->count++;
        else
            old = c->peers[at];
        c->peers[at] = fresh;
        c->silent_until_ms[at] = 0;
        any = true;
        log_info("coordinator_client", "coordinator=%s", addresses[i]);
        if (old != NULL)
            rpc_client_close(old);
    }
    return any;
}

/* ---- ends ---- */

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
    if (call->attempt != NULL)
        call->attempt->call = NULL;
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
    if (client->search_timer != NULL)
        loop_timer_close(client->search_timer);
    /* Closing a connection ends its calls with TG_CANCELED, which ends ours; the others wait on a
     * timer. Those that a callback adds meanwhile end here too. */
    for (unsigned i = 0; i < client->count; i++)
        rpc_client_close(client->peers[i]);
    while (client->calls != NULL)
        finish_err(client->calls, TG_CANCELED, "the node shuts down");
    coordinator_client_release(client);
}

/* ---- a call's way ---- */

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

static void on_timer(void *data);

static void wait_in(struct call *call, enum call_state state, uint64_t ms)
{
    if (call->timer == NULL)
        call->timer = loop_timer_open(call->client->loop, on_timer, call);
    TG_CHECK_MEMORY(call->timer != NULL); /* as for the call itself */
    call->state = state;
    loop_timer_start(call->timer, ms, 0);
}

static void pause_call(struct call *call)
{
    uint64_t left = time_left(call);

    wait_in(call, CALL_PAUSED, call->pause_ms < left ? call->pause_ms : left);
    call->pause_ms = call->pause_ms * 2 < RETRY_MS_MAX ? call->pause_ms * 2 : RETRY_MS_MAX;
}

static void on_reply(void *data, const struct rpc_reply *reply)
{
    struct attempt *attempt = data;
    struct call *call = attempt->call;
    unsigned target = attempt->target;

    free(attempt);
    if (call == NULL)
        return;
    struct coordinator_client *c = call->client;
    call->attempt = NULL;
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
    /* A late word from one that is not believed in any more says nothing about the new one. */
    if (reply->err != TG_BUSY && c->leader_known && c->leader == target)
        c->leader_known = false;
    pause_call(call);
    if (!c->leader_known)
        search_start(c);
}

static void send_call(struct call *call)
{
    struct coordinator_client *c = call->client;
    struct attempt *attempt = calloc(1, sizeof *attempt);
    uint64_t left = time_left(call);

    TG_CHECK_MEMORY(attempt != NULL);
    attempt->call = call;
    attempt->target = c->leader;
    call->attempt = attempt;
    call->state = CALL_SENT;
    if (call->timer != NULL)
        loop_timer_stop(call->timer);
    rpc_client_call(c->peers[c->leader], call->type, slice_of(call->head.data, call->head.len),
                    slice_of(NULL, 0), call->attempt_ms < left ? call->attempt_ms : left, on_reply,
                    attempt);
}

/* Sends, or parks until a search has found to whom. */
static void go_on(struct call *call)
{
    struct coordinator_client *c = call->client;

    if (c->leader_known && !rpc_client_connected(c->peers[c->leader]))
        c->leader_known = false;
    if (c->leader_known) {
        send_call(call);
        return;
    }
    wait_in(call, CALL_PARKED, time_left(call));
    search_start(c);
}

static void on_timer(void *data)
{
    struct call *call = data;

    if (call->state == CALL_REFUSED)
        finish_err(call, TG_BUSY, "too many calls to the coordinators are under way");
    else if (time_left(call) == 0)
        finish_err(call, TG_TIMEOUT, "no leading coordinator answered in time");
    else
        go_on(call);
}

void coordinator_client_call(struct coordinator_client *client, uint16_t type, struct buf *head,
                             uint64_t timeout_ms, uint64_t attempt_ms, rpc_done *done, void *data)
{
    struct call *call = calloc(1, sizeof *call);
    uint64_t now = loop_now_ms(client->loop);

    /* Without room for its own record a call cannot be kept; the process is about to fail anyway.
     */
    TG_CHECK_MEMORY(call != NULL);
    call->client = client;
    call->type = type;
    call->head = *head;
    buf_init(head);
    call->deadline_ms = timeout_ms > UINT64_MAX - now ? UINT64_MAX : now + timeout_ms;
    call->attempt_ms = attempt_ms != 0 ? attempt_ms : COORDINATOR_ATTEMPT_MS;
    call->pause_ms = RETRY_MS_MIN;
    call->done = done;
    call->data = data;
    call->next = client->calls;
    if (client->calls != NULL)
        client->calls->prev = call;
    client->calls = call;
    client->call_count++;
    if (client->closing)
        call->state = CALL_REFUSED; /* coordinator_client_close ends it */
    else if (client->call_count > COORDINATOR_CALLS_MAX)
        wait_in(call, CALL_REFUSED, 0);
    else if (timeout_ms == 0)
        wait_in(call, CALL_PARKED, 0);
    else
        go_on(call);
}

/* ---- the search ---- */

static void ask(struct coordinator_client *c, unsigned which);

static void found(struct coordinator_client *c, unsigned leader)
{
    struct call *next;

    c->searching = false;
    c->leader_known = true;
    c->leader = leader;
    log_debug("coordinator_client", "leader=%s", rpc_client_address(c->peers[leader]));
    for (struct call *call = c->calls; call != NULL; call = next) {
        next = call->next;
        /* What was asked of one that leads no more may never be answered. */
        if (call->state == CALL_SENT && call->attempt->target != leader) {
            call->attempt->call = NULL;
            call->attempt = NULL;
            go_on(call);
        } else if (call->state == CALL_PARKED) {
            go_on(call);
        }
    }
}

/* Which one an answer names, -1 if it is none, or one that was silent a moment ago. A leader that
 * came after this node's list was written is learned from it. */
static int named(struct coordinator_client *c, const struct msg_status_reply *status)
{
    char address[1][ADDRESS_BYTES];

    memcpy(address[0], status->leader_rpc, sizeof address[0]);
    if (address[0][0] != '\0')
        coordinator_client_learn(c, (const char(*)[ADDRESS_BYTES])address, 1);
    for (unsigned i = 0; i < c->count; i++)
        if (i != c->asking && strcmp(rpc_client_address(c->peers[i]), status->leader_rpc) == 0)
            return loop_now_ms(c->loop) >= c->silent_until_ms[i] ? (int)i : -1;
    return -1;
}

/* The leader may be one that came after the last heartbeat's answer. */
static void learn_of_others(struct coordinator_client *c, const struct msg_status_reply *status)
{
    char addresses[COORDINATORS_MAX + 1][ADDRESS_BYTES];
    uint32_t count = 0;

    for (uint32_t i = 0; i < status->coordinators.count; i++)
        if (status->coordinators.list[i].rpc[0] != '\0')
            memcpy(addresses[count++], status->coordinators.list[i].rpc, ADDRESS_BYTES);
    if (status->leader_rpc[0] != '\0')
        memcpy(addresses[count++], status->leader_rpc, ADDRESS_BYTES);
    coordinator_client_learn(c, addresses, count);
}

static void on_status(void *data, const struct rpc_reply *reply)
{
    struct coordinator_client *c = data;
    struct msg_status_reply status;
    int next = -1;

    if (c->closing)
        return;
    int err = reply->err != 0 ? reply->err : msg_status_reply_decode(reply->head, &status);
    if (err == 0)
        learn_of_others(c, &status);
    if (err != 0) {
        c->silent_until_ms[c->asking] = loop_now_ms(c->loop) + UNREACHABLE_MS;
    } else if (status.leader != 0 && status.leader == status.coordinator) {
        c->silent_until_ms[c->asking] = 0;
        found(c, c->asking);
        return;
    } else if (status.leader != 0 && c->asked < 2 * c->count) {
        next = named(c, &status);
    }
    if (next >= 0) {
        ask(c, (unsigned)next);
        return;
    }
    c->asking = (c->asking + 1) % c->count;
    if (c->asked < c->count) {
        ask(c, c->asking);
        return;
    }
    c->asked = 0;
    loop_timer_start(c->search_timer, c->search_pause_ms, 0);
    c->search_pause_ms =
        c->search_pause_ms * 2 < RETRY_MS_MAX ? c->search_pause_ms * 2 : RETRY_MS_MAX;
}

static void ask(struct coordinator_client *c, unsigned which)
{
    c->asking = which;
    c->asked++;
    rpc_client_call(c->peers[which], MSG_STATUS, slice_of(NULL, 0), slice_of(NULL, 0),
                    rpc_client_connected(c->peers[which]) ? STATUS_TIMEOUT_MS : CONNECT_TIMEOUT_MS,
                    on_status, c);
}

static void search_goes_on(void *data)
{
    struct coordinator_client *c = data;

    if (c->calls == NULL) /* nobody wants to know any more */
        c->searching = false;
    else
        ask(c, c->asking);
}

/* Begins with the one behind the one that disappointed. */
static void search_start(struct coordinator_client *c)
{
    if (c->searching)
        return;
    c->searching = true;
    c->asked = 0;
    c->search_pause_ms = RETRY_MS_MIN;
    ask(c, c->searched_before ? (c->leader + 1) % c->count : c->leader);
    c->searched_before = true;
}
