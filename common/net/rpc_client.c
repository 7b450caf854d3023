/* SPDX-License-Identifier: Apache-2.0 */
/* RPC client: calls to one address over one link that is opened when it is needed.
 *
 *   idle ──call──▶ connecting ──hello──▶ up ──lost──▶ resting (back-off)
 *
 * From resting it goes on to connecting if calls wait, else to idle. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/rpc.h"
#include "common/net/rpc_call_table.h"
#include "common/net/rpc_link.h"
#include "common/net/tcp.h"

enum { RPC_CLIENT_REST_MIN_MS = 50, RPC_CLIENT_REST_MAX_MS = 1000 };

struct rpc_client_link;

struct rpc_client {
    struct loop *loop;
    char *address;
    char *secret;
    struct sockaddr_storage socket_address;
    struct rpc_client_link *link; /* NULL while idle or resting */
    struct loop_timer *rest;      /* runs while resting */
    struct loop_timer *deadline;
    struct loop_turn_hook hook; /* tells the calls that failed at once */
    uint64_t deadline_at_ms;    /* what `deadline` is set to; 0 = not set */
    uint64_t rest_ms;
    uint64_t patience_ms;   /* 0: calls wait until their deadline */
    uint64_t down_since_ms; /* when the link was lost or could not be opened; 0: not known down */
    uint64_t tried_ms;      /* when the last attempt began */
    uint64_t lost_ms;       /* when it, or the link that came of it, ended */
    bool resting;
    bool closed;
    atomic_uint references; /* the owner, each link */
    struct rpc_call_table table;
    struct rpc_call_list waiting; /* no link yet */
    struct rpc_call_list sent;
    struct rpc_call_list failed; /* to be told at the end of the turn */
    size_t waiting_bytes;
};

struct rpc_client_link {
    struct rpc_link link;
    struct rpc_client *client; /* NULL once the client let go of it */
    struct rpc_client *owner;  /* whose memory this link holds on to */
};

static void rpc_client_release(struct rpc_client *client)
{
    if (atomic_fetch_sub(&client->references, 1) != 1)
        return;
    free(client->address);
    free(client->secret);
    free(client);
}

/* ---- ends of calls ---- */

/* call is in no list and not in the table any more. */
static void rpc_client_finish(struct rpc_call *call, const struct rpc_reply *reply)
{
    call->done(call->data, reply);
    buf_close(&call->head);
    buf_close(&call->payload);
    free(call);
}

static void rpc_client_finish_err(struct rpc_call *call, int err, const char *message)
{
    struct rpc_reply reply = {.err = err, .message = message};
    rpc_client_finish(call, &reply);
}

static void rpc_client_take_out(struct rpc_client *client, struct rpc_call *call)
{
    if (call->state == RPC_CALL_WAITING)
        client->waiting_bytes -= call->head.len + call->payload.len;
    rpc_call_list_remove(call->state == RPC_CALL_WAITING ? &client->waiting : &client->sent, call);
    rpc_call_table_remove(&client->table, call);
}

static void rpc_client_fail_all(struct rpc_client *client, struct rpc_call_list *list, int err,
                                const char *message)
{
    /* Callbacks may add calls; those are newer and stay. */
    struct rpc_call_list all = *list;
    *list = (struct rpc_call_list){0};
    for (struct rpc_call *call = all.first; call != NULL; call = call->next) {
        if (call->state == RPC_CALL_WAITING)
            client->waiting_bytes -= call->head.len + call->payload.len;
        if (call->state != RPC_CALL_FAILED)
            rpc_call_table_remove(&client->table, call);
    }
    while (all.first != NULL) {
        struct rpc_call *call = all.first;
        rpc_call_list_remove(&all, call);
        rpc_client_finish_err(call, err, message);
    }
}

static void rpc_client_tell_failed(struct loop_turn_hook *hook)
{
    struct rpc_client *client = hook->data;
    atomic_fetch_add(&client->references, 1); /* a callback may close the client */
    while (client->failed.first != NULL) {
        struct rpc_call *call = client->failed.first;
        rpc_call_list_remove(&client->failed, call);
        rpc_client_finish_err(call, call->err, call->why);
    }
    rpc_client_release(client);
}

static void rpc_client_on_deadline(void *data)
{
    struct rpc_client *client = data;
    uint64_t now = loop_now_ms(client->loop);
    struct rpc_call_list late = {0};
    uint64_t next = UINT64_MAX;
    struct rpc_call_list *lists[] = {&client->waiting, &client->sent};
    for (size_t i = 0; i < 2; i++) {
        struct rpc_call *call = lists[i]->first;
        while (call != NULL) {
            struct rpc_call *following = call->next;
            if (call->deadline_ms <= now) {
                rpc_client_take_out(client, call);
                rpc_call_list_append(&late, call);
            } else if (call->deadline_ms < next) {
                next = call->deadline_ms;
            }
            call = following;
        }
    }
    client->deadline_at_ms = 0;
    if (next != UINT64_MAX) {
        client->deadline_at_ms = next;
        loop_timer_start(client->deadline, next - now, 0);
    }
    while (late.first != NULL) {
        struct rpc_call *call = late.first;
        rpc_call_list_remove(&late, call);
        if (call->state == RPC_CALL_WAITING)
            rpc_client_finish_err(call, TG_UNREACHABLE, "no connection before the deadline");
        else
            rpc_client_finish_err(call, TG_TIMEOUT, "no answer before the deadline");
    }
}

static void rpc_client_watch_deadline(struct rpc_client *client, uint64_t deadline_ms)
{
    if (client->deadline_at_ms != 0 && client->deadline_at_ms <= deadline_ms)
        return;
    uint64_t now = loop_now_ms(client->loop);
    client->deadline_at_ms = deadline_ms;
    loop_timer_start(client->deadline, deadline_ms > now ? deadline_ms - now : 0, 0);
}

/* ---- the link ---- */

static void rpc_client_send(struct rpc_client *client, struct rpc_call *call)
{
    struct rpc_frame frame = {.type = call->type, .id = call->id};
    call->state = RPC_CALL_SENT;
    rpc_call_list_append(&client->sent, call);
    rpc_link_send(&client->link->link, &frame, &call->head, &call->payload);
}

/* The node was out of reach for longer than callers have patience. */
static bool rpc_client_given_up(const struct rpc_client *client)
{
    return client->patience_ms > 0 && client->down_since_ms > 0 &&
           loop_now_ms(client->loop) - client->down_since_ms >= client->patience_ms;
}

/* … and the attempt under way has lasted as long, too: the node is silent, not down for the moment
 * it takes to start. */
static bool rpc_client_is_silent(const struct rpc_client *client)
{
    return rpc_client_given_up(client) && client->link != NULL && !client->link->link.up &&
           loop_now_ms(client->loop) - client->tried_ms >= client->patience_ms;
}

/* What was learnt when a node was down says nothing of it now: it may have come back, and be the one
 * that a quorum needs. So a call that waits for a node that was given up is worth another attempt,
 * as soon as the shortest rest is over. */
static void rpc_client_hasten(struct rpc_client *client)
{
    uint64_t rested = loop_now_ms(client->loop) - client->lost_ms;

    if (client->resting && rpc_client_given_up(client))
        loop_timer_start(client->rest,
                         rested < RPC_CLIENT_REST_MIN_MS ? RPC_CLIENT_REST_MIN_MS - rested : 0, 0);
}

static void rpc_client_on_up(void *data)
{
    struct rpc_client_link *link = data;
    struct rpc_client *client = link->client;
    if (client == NULL)
        return;
    client->rest_ms = 0;
    client->down_since_ms = 0;
    while (client->waiting.first != NULL) {
        struct rpc_call *call = client->waiting.first;
        rpc_call_list_remove(&client->waiting, call);
        client->waiting_bytes -= call->head.len + call->payload.len;
        rpc_client_send(client, call);
    }
}

static void rpc_client_on_frame(void *data, const struct rpc_frame *frame, uint8_t *body)
{
    struct rpc_client_link *link = data;
    struct rpc_client *client = link->client;
    struct rpc_call *call = client == NULL ? NULL : rpc_call_table_find(&client->table, frame->id);
    /* An answer that comes after its deadline finds nobody. */
    if (call != NULL && call->state == RPC_CALL_SENT && (frame->flags & RPC_FRAME_REPLY) != 0) {
        char text[RPC_FRAME_TEXT_BYTES_MAX + 1];
        if (frame->text.len > 0)
            memcpy(text, frame->text.data, frame->text.len);
        text[frame->text.len] = '\0';
        struct rpc_reply reply = {
            .err = frame->err, .head = frame->head, .payload = frame->payload, .message = text};
        rpc_client_take_out(client, call);
        rpc_client_finish(call, &reply);
    }
    free(body);
}

static void rpc_client_on_written(void *data)
{
    (void)data;
}

static void rpc_client_on_lost(void *data, int err, const char *why)
{
    struct rpc_client_link *link = data;
    struct rpc_client *client = link->client;
    if (client == NULL)
        return;
    link->client = NULL;
    client->link = NULL;
    client->rest_ms = client->rest_ms == 0 ? RPC_CLIENT_REST_MIN_MS : client->rest_ms * 2;
    if (client->rest_ms > RPC_CLIENT_REST_MAX_MS)
        client->rest_ms = RPC_CLIENT_REST_MAX_MS;
    client->resting = true;
    client->lost_ms = loop_now_ms(client->loop);
    if (client->down_since_ms == 0)
        client->down_since_ms = client->lost_ms;
    loop_timer_start(client->rest, client->rest_ms, 0);
    if (err == TG_DENIED || err == TG_CORRUPT)
        log_warn("rpc", "link refused peer=%s error=%s why=%s", client->address, tg_err_name(err),
                 log_quote(why));
    else
        log_debug("rpc", "link lost peer=%s why=%s", client->address, log_quote(why));
    atomic_fetch_add(&client->references, 1); /* a callback may close the client */
    rpc_client_fail_all(client, &client->sent, TG_CLOSED,
                        "the connection was lost before the answer");
    if (!client->closed && rpc_client_given_up(client))
        rpc_client_fail_all(client, &client->waiting, TG_UNREACHABLE, "cannot be reached");
    rpc_client_release(client);
}

static void rpc_client_on_closed(void *data)
{
    struct rpc_client_link *link = data;
    rpc_client_release(link->owner);
    free(link);
}

static const struct rpc_link_handlers rpc_client_handlers = {.on_up = rpc_client_on_up,
                                                             .on_frame = rpc_client_on_frame,
                                                             .on_written = rpc_client_on_written,
                                                             .on_lost = rpc_client_on_lost,
                                                             .on_closed = rpc_client_on_closed};

static void rpc_client_connect(struct rpc_client *client)
{
    struct rpc_client_link *link = calloc(1, sizeof *link);
    TG_CHECK_MEMORY(link != NULL);
    int err = rpc_link_init(&link->link, client->loop, "rpc", client->secret, false,
                            &rpc_client_handlers, link);
    TG_CHECK_MEMORY(err == 0);
    link->client = client;
    link->owner = client;
    atomic_fetch_add(&client->references, 1);
    client->link = link;
    client->tried_ms = loop_now_ms(client->loop);
    rpc_link_connect(&link->link, (struct sockaddr *)&client->socket_address);
}

static void rpc_client_rested(void *data)
{
    struct rpc_client *client = data;
    client->resting = false;
    if (client->waiting.first != NULL)
        rpc_client_connect(client);
}

/* ---- calls ---- */

static void rpc_client_refuse(struct rpc_client *client, struct rpc_call *call, int err,
                              const char *why)
{
    call->state = RPC_CALL_FAILED;
    call->err = err;
    call->why = why;
    rpc_call_list_append(&client->failed, call);
    loop_turn_hook_arm(client->loop, &client->hook);
}

void rpc_client_call_take(struct rpc_client *client, uint16_t type, struct buf *head,
                          struct buf *payload, uint64_t timeout_ms, rpc_done *done, void *data)
{
    struct rpc_call *call = calloc(1, sizeof *call);
    TG_CHECK_MEMORY(call != NULL);
    TG_CHECK(!client->closed);
    call->type = type;
    call->done = done;
    call->data = data;
    if (head != NULL)
        call->head = *head;
    if (payload != NULL)
        call->payload = *payload;
    if (head != NULL)
        buf_init(head);
    if (payload != NULL)
        buf_init(payload);
    size_t bytes = call->head.len + call->payload.len;
    if (call->head.err != 0 || call->payload.err != 0) {
        rpc_client_refuse(client, call, TG_NOMEM, "no memory for the call");
    } else if (call->head.len > RPC_HEAD_BYTES_MAX || call->payload.len > RPC_PAYLOAD_BYTES_MAX) {
        rpc_client_refuse(client, call, TG_TOO_LARGE, "the call does not fit into a frame");
    } else if (rpc_client_queued_bytes(client) + bytes > RPC_QUEUED_BYTES_MAX) {
        rpc_client_refuse(client, call, TG_BUSY, "too many bytes wait to be sent to this node");
    } else if (rpc_client_is_silent(client)) {
        rpc_client_refuse(client, call, TG_UNREACHABLE, "cannot be reached");
    } else if (!rpc_call_table_add(&client->table, call)) {
        rpc_client_refuse(client, call, TG_BUSY, "too many calls to this node are outstanding");
    } else {
        uint64_t now = loop_now_ms(client->loop);
        call->deadline_ms = timeout_ms > UINT64_MAX - now ? UINT64_MAX - 1 : now + timeout_ms;
        rpc_client_watch_deadline(client, call->deadline_ms);
        if (client->link != NULL && client->link->link.up) {
            rpc_client_send(client, call);
            return;
        }
        call->state = RPC_CALL_WAITING;
        client->waiting_bytes += bytes;
        rpc_call_list_append(&client->waiting, call);
        if (client->link == NULL && !client->resting)
            rpc_client_connect(client);
        else
            rpc_client_hasten(client);
    }
}

void rpc_client_call(struct rpc_client *client, uint16_t type, struct slice head,
                     struct slice payload, uint64_t timeout_ms, rpc_done *done, void *data)
{
    struct buf head_copy = BUF_INIT;
    struct buf payload_copy = BUF_INIT;
    buf_append(&head_copy, head.data, head.len);
    buf_append(&payload_copy, payload.data, payload.len);
    rpc_client_call_take(client, type, &head_copy, &payload_copy, timeout_ms, done, data);
}

void rpc_client_set_patience(struct rpc_client *client, uint64_t patience_ms)
{
    client->patience_ms = patience_ms;
}

const char *rpc_client_address(const struct rpc_client *client)
{
    return client->address;
}

size_t rpc_client_queued_bytes(const struct rpc_client *client)
{
    return client->waiting_bytes + (client->link == NULL ? 0 : client->link->link.queued_bytes);
}

bool rpc_client_connected(const struct rpc_client *client)
{
    return client->link != NULL && client->link->link.up;
}

/* ---- life ---- */

int rpc_client_open(struct loop *loop, const char *address, const char *secret,
                    struct rpc_client **out, struct tg_errmsg *msg)
{
    char host[TCP_HOST_BYTES];
    uint16_t port;
    struct sockaddr_storage socket_address;
    int err = tcp_split_address(address, host, &port, msg);
    if (err == 0)
        err = tcp_resolve(host, port, &socket_address, msg);
    if (err != 0)
        return err;
    struct rpc_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for an RPC client");
    client->loop = loop;
    client->socket_address = socket_address;
    client->address = strdup(address);
    client->secret = strdup(secret);
    client->rest = loop_timer_open(loop, rpc_client_rested, client);
    client->deadline = loop_timer_open(loop, rpc_client_on_deadline, client);
    TG_CHECK_MEMORY(client->address != NULL && client->secret != NULL && client->rest != NULL &&
                    client->deadline != NULL);
    client->hook = (struct loop_turn_hook){.run = rpc_client_tell_failed, .data = client};
    loop_turn_hook_add(loop, &client->hook);
    rpc_call_table_init(&client->table);
    atomic_store(&client->references, 1);
    *out = client;
    return 0;
}

void rpc_client_close(struct rpc_client *client)
{
    if (client == NULL)
        return;
    client->closed = true;
    loop_timer_close(client->rest);
    loop_timer_close(client->deadline);
    loop_turn_hook_remove(client->loop, &client->hook);
    if (client->link != NULL) {
        client->link->client = NULL;
        rpc_link_close(&client->link->link);
        client->link = NULL;
    }
    struct rpc_call_list *lists[] = {&client->failed, &client->sent, &client->waiting};
    for (size_t i = 0; i < 3; i++)
        rpc_client_fail_all(client, lists[i], TG_CANCELED, "the client was closed");
    rpc_client_release(client);
}
