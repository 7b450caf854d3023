/* SPDX-License-Identifier: Apache-2.0 */
/* One RPC connection to each other participant. */
#include "participant/link/peer_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/net/rpc_pool.h"

struct peer_clients {
    struct loop *loop;
    struct rpc_pool pool;
};

int peer_clients_open(struct loop *loop, const char *secret, struct peer_clients **peers,
                      struct tg_errmsg *msg)
{
    struct peer_clients *p = calloc(1, sizeof *p);
    int err;

    if (p == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for the peers' connections");
    p->loop = loop;
    err = rpc_pool_init(&p->pool, loop, secret, msg);
    if (err != 0) {
        free(p);
        return err;
    }
    *peers = p;
    return 0;
}

void peer_clients_close(struct peer_clients *peers)
{
    if (peers == NULL)
        return;
    rpc_pool_close(&peers->pool);
    free(peers);
}

static void send_on_loop(struct loop_call *post)
{
    struct peer_call *call = post->data;
    struct tg_errmsg msg = {{0}};
    struct rpc_client *client =
        rpc_pool_client(&call->peers->pool, call->node, call->address, &msg);

    if (client == NULL) {
        struct rpc_reply reply = {.err = TG_UNREACHABLE, .message = msg.text};

        buf_close(&call->head);
        buf_close(&call->payload);
        call->done(call->data, &reply);
        return;
    }
    rpc_client_call_take(client, call->type, &call->head, &call->payload, call->timeout_ms,
                         call->done, call->data);
}

void peer_call_start(struct peer_clients *peers, struct peer_call *call)
{
    call->peers = peers;
    call->post.run = send_on_loop;
    call->post.data = call;
    loop_post(peers->loop, &call->post);
}

struct waiting {
    struct peer_call call;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    int err;
    struct buf *reply_head;
    struct buf *reply_payload;
    struct tg_errmsg *msg;
};

static void wake(void *data, const struct rpc_reply *reply)
{
    struct waiting *w = data;

    pthread_mutex_lock(&w->lock);
    w->err = reply->err;
    if (w->reply_head != NULL)
        buf_append(w->reply_head, reply->head.data, reply->head.len);
    if (w->reply_payload != NULL)
        buf_append(w->reply_payload, reply->payload.data, reply->payload.len);
    if (reply->err != 0)
        tg_fail(w->msg, reply->err, "%s",
                reply->message[0] != 0 ? reply->message : tg_err_sentence(reply->err));
    w->over = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
}

int peer_call_wait(struct peer_clients *peers, node_id node, const char *address, uint16_t type,
                   struct buf *head, struct buf *payload, uint64_t timeout_ms,
                   struct buf *reply_head, struct buf *reply_payload, struct tg_errmsg *msg)
{
    struct waiting w = {.reply_head = reply_head, .reply_payload = reply_payload, .msg = msg};

    w.call.node = node;
    snprintf(w.call.address, sizeof w.call.address, "%s", address);
    w.call.type = type;
    w.call.timeout_ms = timeout_ms;
    w.call.done = wake;
    w.call.data = &w;
    w.call.head = *head;
    buf_init(head);
    if (payload != NULL) {
        w.call.payload = *payload;
        buf_init(payload);
    }
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.ended, NULL);
    peer_call_start(peers, &w.call);
    pthread_mutex_lock(&w.lock);
    while (!w.over)
        pthread_cond_wait(&w.ended, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
    if (reply_head != NULL && reply_head->err != 0)
        return reply_head->err;
    return w.err;
}
