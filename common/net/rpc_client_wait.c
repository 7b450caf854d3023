/* SPDX-License-Identifier: Apache-2.0 */
/* RPC calls of threads that wait for the answer. What thread and loop share lives until both are
 * done with it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/net/rpc.h"
#include "common/net/rpc_client_private.h"
#include "common/net/rpc_frame.h"

struct rpc_wait {
    struct loop_call post;
    struct loop_end_watch end;
    struct rpc_client *client;
    atomic_uint references; /* the waiting thread, and the loop */
    uint16_t type;
    uint64_t timeout_ms;
    struct buf head;
    struct buf payload;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool finished; /* the rest is under lock */
    int err;
    char message[RPC_FRAME_TEXT_BYTES_MAX + 1];
    struct buf reply_head;
    struct buf reply_payload;
};

static void rpc_wait_release(struct rpc_wait *wait)
{
    if (atomic_fetch_sub(&wait->references, 1) != 1)
        return;
    buf_close(&wait->head);
    buf_close(&wait->payload);
    buf_close(&wait->reply_head);
    buf_close(&wait->reply_payload);
    pthread_cond_destroy(&wait->changed);
    pthread_mutex_destroy(&wait->lock);
    free(wait);
}

static void rpc_wait_finish(struct rpc_wait *wait, const struct rpc_reply *reply)
{
    pthread_mutex_lock(&wait->lock);
    if (!wait->finished) {
        wait->finished = true;
        wait->err = reply->err;
        strncpy(wait->message, reply->message, sizeof wait->message - 1);
        buf_append(&wait->reply_head, reply->head.data, reply->head.len);
        buf_append(&wait->reply_payload, reply->payload.data, reply->payload.len);
        if (wait->reply_head.err != 0 || wait->reply_payload.err != 0)
            wait->err = TG_NOMEM;
        pthread_cond_signal(&wait->changed);
    }
    pthread_mutex_unlock(&wait->lock);
}

static void rpc_wait_on_reply(void *data, const struct rpc_reply *reply)
{
    rpc_wait_finish(data, reply);
    rpc_wait_release(data);
}

static void rpc_wait_on_end(struct loop_end_watch *watch)
{
    struct rpc_reply reply = {.err = TG_CANCELED, .message = "this node is stopping"};
    rpc_wait_finish(watch->data, &reply);
}

static void rpc_wait_on_loop(struct loop_call *post)
{
    struct rpc_wait *wait = post->data;
    struct rpc_client *client = wait->client;
    if (client->closed) {
        struct rpc_reply reply = {.err = TG_CANCELED, .message = "the client was closed"};
        rpc_wait_on_reply(wait, &reply);
    } else {
        rpc_client_call_take(client, wait->type, &wait->head, &wait->payload, wait->timeout_ms,
                             rpc_wait_on_reply, wait);
    }
    rpc_client_release(client);
}

int rpc_client_call_wait(struct rpc_client *client, uint16_t type, struct buf *head,
                         struct buf *payload, uint64_t timeout_ms, struct buf *reply_head,
                         struct buf *reply_payload, struct tg_errmsg *msg)
{
    TG_CHECK(!loop_is_here(client->loop));
    struct rpc_wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for the call");
    pthread_mutex_init(&wait->lock, NULL);
    pthread_cond_init(&wait->changed, NULL);
    wait->post = (struct loop_call){.run = rpc_wait_on_loop, .data = wait};
    wait->end = (struct loop_end_watch){.ended = rpc_wait_on_end, .data = wait};
    wait->client = client;
    wait->type = type;
    wait->timeout_ms = timeout_ms;
    if (head != NULL) {
        wait->head = *head;
        buf_init(head);
    }
    if (payload != NULL) {
        wait->payload = *payload;
        buf_init(payload);
    }
    atomic_store(&wait->references, 1);
    if (!loop_end_watch_add(client->loop, &wait->end)) {
        rpc_wait_release(wait);
        return tg_fail(msg, TG_CANCELED, "this node is stopping");
    }
    struct loop *loop = client->loop;
    atomic_fetch_add(&wait->references, 1);
    atomic_fetch_add(&client->references, 1);
    loop_post(loop, &wait->post);
    pthread_mutex_lock(&wait->lock);
    while (!wait->finished)
        pthread_cond_wait(&wait->changed, &wait->lock);
    pthread_mutex_unlock(&wait->lock);
    loop_end_watch_remove(loop, &wait->end);
    int err = wait->err;
    if (err != 0 && msg != NULL)
        tg_fail(msg, err, "%s", wait->message[0] != '\0' ? wait->message : tg_err_sentence(err));
    if (reply_head != NULL) {
        *reply_head = wait->reply_head;
        buf_init(&wait->reply_head);
    }
    if (reply_payload != NULL) {
        *reply_payload = wait->reply_payload;
        buf_init(&wait->reply_payload);
    }
    rpc_wait_release(wait);
    return err;
}
