/* SPDX-License-Identifier: Apache-2.0 */
/* One RPC connection to each other participant. */
#include "participant/link/peer_client.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/check.h"
#include "common/net/rpc_pool.h"

struct peer_clients {
    struct loop *loop;
    struct rpc_pool pool;
    bool closed;
    atomic_uint references; /* the owner, each posted call */
};

int peer_clients_open(struct loop *loop, const char *secret, struct peer_clients **peers,
                      struct tg_errmsg *msg)
{
    struct peer_clients *p = calloc(1, sizeof *p);
    int err;

    if (p == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for the peers' connections");
    p->loop = loop;
    atomic_init(&p->references, 1);
    err = rpc_pool_init(&p->pool, loop, secret, msg);
    if (err != 0) {
        free(p);
        return err;
    }
    p->pool.patience_ms = PEER_PATIENCE_MS;
    *peers = p;
    return 0;
}

static void release_peers(struct peer_clients *peers)
{
    if (atomic_fetch_sub(&peers->references, 1) == 1)
        free(peers);
}

void peer_clients_close(struct peer_clients *peers)
{
    if (peers == NULL)
        return;
    peers->closed = true;
    rpc_pool_close(&peers->pool);
    release_peers(peers);
}

static void refuse(struct peer_call *call, int err, const char *message)
{
    struct rpc_reply reply = {.err = err, .message = message};

    buf_close(&call->head);
    buf_close(&call->payload);
    call->done(call->data, &reply);
}

static void send_on_loop(struct loop_call *post)
{
    struct peer_call *call = post->data;
    struct peer_clients *peers = call->peers;
    struct tg_errmsg msg = {{0}};
    struct rpc_client *client;

    if (peers->closed) {
        refuse(call, TG_CANCELED, "the node shuts down");
    } else if ((client = rpc_pool_client(&peers->pool, call->node, call->address, &msg)) == NULL) {
        refuse(call, TG_UNREACHABLE, msg.text);
    } else {
        rpc_client_call_take(client, call->type, &call->head, &call->payload, call->timeout_ms,
                             call->done, call->data);
    }
    release_peers(peers);
}

void peer_call_start(struct peer_clients *peers, struct peer_call *call)
{
    atomic_fetch_add(&peers->references, 1);
    call->peers = peers;
    call->post.run = send_on_loop;
    call->post.data = call;
    loop_post(peers->loop, &call->post);
}

/* ---- threads that wait ---- */

/* Shared by the waiting thread and the loop: each lets go of it once. */
struct waiting {
    struct peer_call call;
    struct loop_end_watch end;
    atomic_uint references;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over; /* this and the rest is under lock */
    int err;
    struct buf reply_head;
    struct buf reply_payload;
    struct tg_errmsg msg;
};

static void release(struct waiting *w)
{
    if (atomic_fetch_sub(&w->references, 1) != 1)
        return;
    buf_close(&w->call.head);
    buf_close(&w->call.payload);
    buf_close(&w->reply_head);
    buf_close(&w->reply_payload);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void finish(struct waiting *w, const struct rpc_reply *reply)
{
    pthread_mutex_lock(&w->lock);
    if (!w->over) {
        w->over = true;
        w->err = reply->err;
        buf_append(&w->reply_head, reply->head.data, reply->head.len);
        buf_append(&w->reply_payload, reply->payload.data, reply->payload.len);
        if (w->reply_head.err != 0 || w->reply_payload.err != 0)
            w->err = TG_NOMEM;
        tg_fail(&w->msg, w->err, "%s",
                reply->message != NULL && reply->message[0] != 0 ? reply->message
                                                                 : tg_err_sentence(w->err));
        pthread_cond_signal(&w->ended);
    }
    pthread_mutex_unlock(&w->lock);
}

static void on_reply(void *data, const struct rpc_reply *reply)
{
    finish(data, reply);
    release(data);
}

static void on_loop_end(struct loop_end_watch *watch)
{
    struct rpc_reply reply = {.err = TG_CANCELED, .message = "the node shuts down"};

    finish(watch->data, &reply);
}

static struct waiting *waiting_new(void)
{
    struct waiting *w = calloc(1, sizeof *w);
    pthread_condattr_t attributes;

    TG_CHECK(w != NULL);
    atomic_init(&w->references, 1);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    return w;
}

static void take_over(struct buf *from, struct buf *to)
{
    if (from == NULL)
        return;
    *to = *from;
    buf_init(from);
}

static void wait_for_end(struct waiting *w, const atomic_bool *stop)
{
    struct rpc_reply stopped = {.err = TG_CANCELED, .message = "the call was stopped"};
    bool over = false;

    while (!over) {
        if (stop != NULL && atomic_load(stop))
            finish(w, &stopped);
        pthread_mutex_lock(&w->lock);
        if (stop == NULL) {
            while (!w->over)
                pthread_cond_wait(&w->ended, &w->lock);
        } else if (!w->over) {
            struct timespec until;

            clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_nsec += PEER_STOP_LOOK_MS * 1000000l;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            pthread_cond_timedwait(&w->ended, &w->lock, &until);
        }
        over = w->over;
        pthread_mutex_unlock(&w->lock);
    }
}

int peer_call_wait(struct peer_clients *peers, node_id node, const char *address, uint16_t type,
                   struct buf *head, struct buf *payload, uint64_t timeout_ms,
                   const atomic_bool *stop, struct buf *reply_head, struct buf *reply_payload,
                   struct tg_errmsg *msg)
{
    struct loop *loop = peers->loop;
    struct waiting *w = waiting_new();

    TG_CHECK(!loop_is_here(loop));
    w->call.node = node;
    snprintf(w->call.address, sizeof w->call.address, "%s", address);
    w->call.type = type;
    w->call.timeout_ms = timeout_ms;
    w->call.done = on_reply;
    w->call.data = w;
    take_over(head, &w->call.head);
    take_over(payload, &w->call.payload);
    w->end = (struct loop_end_watch){.ended = on_loop_end, .data = w};
    if (!loop_end_watch_add(loop, &w->end)) {
        release(w);
        return tg_fail(msg, TG_CANCELED, "the node shuts down");
    }
    atomic_fetch_add(&w->references, 1);
    peer_call_start(peers, &w->call);
    wait_for_end(w, stop);
    loop_end_watch_remove(loop, &w->end);
    int err = w->err;
    if (err != 0)
        tg_fail(msg, err, "%s", w->msg.text);
    /* What was given up may still be answered: then the memory is the loop's. */
    pthread_mutex_lock(&w->lock);
    if (reply_head != NULL)
        take_over(&w->reply_head, reply_head);
    if (reply_payload != NULL)
        take_over(&w->reply_payload, reply_payload);
    pthread_mutex_unlock(&w->lock);
    release(w);
    return err;
}
