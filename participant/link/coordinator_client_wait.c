/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of threads that wait for the answer. Neither the client's closing nor the loop's end leaves
 * a thread waiting. */
#include <stdlib.h>

#include "common/base/check.h"
#include "common/net/rpc_wait.h"
#include "participant/link/coordinator_client_private.h"

struct waiting {
    struct rpc_wait wait; /* first */
    struct loop_call post;
    struct coordinator_client *client;
    uint16_t type;
    struct buf head;
    uint64_t timeout_ms, attempt_ms;
};

static void on_gone(struct rpc_wait *wait)
{
    struct waiting *w = (struct waiting *)wait;

    buf_close(&w->head);
    free(w);
}

static void start_on_loop(struct loop_call *post)
{
    struct waiting *w = post->data;
    struct coordinator_client *client = w->client;

    if (client->closing) {
        struct rpc_reply reply = {.err = TG_CANCELED, .message = "the node shuts down"};

        rpc_wait_reply(&w->wait, &reply);
    } else {
        coordinator_client_call(client, w->type, &w->head, w->timeout_ms, w->attempt_ms,
                                rpc_wait_reply, &w->wait);
    }
    coordinator_client_release(client);
}

int coordinator_client_call_wait(struct coordinator_client *client, uint16_t type, struct buf *head,
                                 uint64_t timeout_ms, uint64_t attempt_ms, struct buf *reply_head,
                                 struct tg_errmsg *msg)
{
    struct loop *loop = client->loop;
    struct waiting *w = calloc(1, sizeof *w);

    TG_CHECK_MEMORY(w != NULL);
    w->client = client;
    w->type = type;
    w->head = *head;
    buf_init(head);
    w->timeout_ms = timeout_ms;
    w->attempt_ms = attempt_ms;
    w->post = (struct loop_call){.run = start_on_loop, .data = w};
    int err = rpc_wait_begin(&w->wait, loop, on_gone, msg);
    if (err != 0)
        return err;
    atomic_fetch_add(&client->references, 1);
    loop_post(loop, &w->post);
    return rpc_wait_end(&w->wait, NULL, reply_head, NULL, msg);
}
