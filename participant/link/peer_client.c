/* SPDX-License-Identifier: Apache-2.0 */
/* One RPC connection to each other participant. */
#include "participant/link/peer_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer {
    node_id node;
    struct rpc_client *client;
};

struct peer_clients {
    struct loop *loop;
    char *secret;
    bool closed;
    uint32_t count;
    struct peer list[NODES_MAX];
};

int peer_clients_open(struct loop *loop, const char *secret, struct peer_clients **peers,
                      struct tg_errmsg *msg)
{
    struct peer_clients *p = calloc(1, sizeof *p);

    if (p == NULL || (p->secret = strdup(secret)) == NULL) {
        free(p);
        return tg_fail(msg, TG_NOMEM, "no memory for the peers' connections");
    }
    p->loop = loop;
    *peers = p;
    return 0;
}

void peer_clients_close(struct peer_clients *peers)
{
    if (peers == NULL)
        return;
    peers->closed = true;
    for (uint32_t i = 0; i < peers->count; i++)
        rpc_client_close(peers->list[i].client);
    peers->count = 0;
    free(peers->secret);
    free(peers);
}

/* A node that came back at another address gets a new connection. */
static struct rpc_client *client_of(struct peer_clients *peers, node_id node, const char *address,
                                    struct tg_errmsg *msg)
{
    struct peer *peer = NULL;

    for (uint32_t i = 0; i < peers->count && peer == NULL; i++)
        if (peers->list[i].node == node)
            peer = &peers->list[i];
    if (peer != NULL && strcmp(rpc_client_address(peer->client), address) == 0)
        return peer->client;
    if (peer == NULL && peers->count == NODES_MAX) {
        tg_fail(msg, TG_LIMIT, "more than %d peers", NODES_MAX);
        return NULL;
    }
    struct rpc_client *client;
    if (rpc_client_open(peers->loop, address, peers->secret, &client, msg) != 0)
        return NULL;
    if (peer != NULL)
        rpc_client_close(peer->client);
    else
        peer = &peers->list[peers->count++];
    peer->node = node;
    peer->client = client;
    return client;
}

static void send_on_loop(struct loop_call *post)
{
    struct peer_call *call = post->data;
    struct tg_errmsg msg = {{0}};
    struct rpc_client *client = client_of(call->peers, call->node, call->address, &msg);

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
