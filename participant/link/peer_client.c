/* SPDX-License-Identifier: Apache-2.0 */
/* One RPC connection to each other participant. */
#include "participant/link/peer_client.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "common/net/rpc_pool.h"
#include "common/net/rpc_wait.h"

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

struct waiting {
    struct rpc_wait wait; /* first */
    struct peer_call call;
};

static void on_gone(struct rpc_wait *wait)
{
    struct waiting *w = (struct waiting *)wait;

    buf_close(&w->call.head);
    buf_close(&w->call.payload);
    free(w);
}

static void take_over(struct buf *from, struct buf *to)
{
    if (from == NULL)
        return;
    *to = *from;
    buf_init(from);
}

int peer_call_wait(struct peer_clients *peers, node_id node, const char *address, uint16_t type,
                   struct buf *head, struct buf *payload, uint64_t timeout_ms,
                   const atomic_bool *stop, struct buf *reply_head, struct buf *reply_payload,
                   struct tg_errmsg *msg)
{
    struct waiting *w = calloc(1, sizeof *w);

    TG_CHECK_MEMORY(w != NULL);
    w->call.node = node;
    snprintf(w->call.address, sizeof w->call.address, "%s", address);
    w->call.type = type;
    w->call.timeout_ms = timeout_ms;
    w->call.done = rpc_wait_reply;
    w->call.data = &w->wait;
    take_over(head, &w->call.head);
    take_over(payload, &w->call.payload);
    int err = rpc_wait_begin(&w->wait, peers->loop, on_gone, msg);
    if (err != 0)
        return err;
    peer_call_start(peers, &w->call);
    return rpc_wait_end(&w->wait, stop, reply_head, reply_payload, msg);
}
