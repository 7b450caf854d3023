/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of threads that wait for the answer. What thread and loop share lives until both are done
 * with it; neither the client's closing nor the loop's end leaves a thread waiting. */
#include <pthread.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "participant/link/coordinator_client_private.h"

struct waiting {
    struct loop_call post;
    struct loop_end_watch end;
    struct coordinator_client *client;
    atomic_uint references; /* the waiting thread, and the loop */
    uint16_t type;
    struct buf head;
    uint64_t timeout_ms, attempt_ms;

    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over; /* this and the rest is under lock */
    int err;
    struct buf reply_head;
    struct tg_errmsg msg;
};

static void release(struct waiting *w)
{
    if (atomic_fetch_sub(&w->references, 1) != 1)
        return;
    buf_close(&w->head);
    buf_close(&w->reply_head);
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
        if (w->reply_head.err != 0)
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

static void start_on_loop(struct loop_call *post)
{
    struct waiting *w = post->data;
    struct coordinator_client *client = w->client;

    if (client->closing) {
        struct rpc_reply reply = {.err = TG_CANCELED, .message = "the node shuts down"};

        on_reply(w, &reply);
    } else {
        coordinator_client_call(client, w->type, &w->head, w->timeout_ms, w->attempt_ms, on_reply,
                                w);
    }
    coordinator_client_release(client);
}

int coordinator_client_call_wait(struct coordinator_client *client, uint16_t type, struct buf *head,
                                 uint64_t timeout_ms, uint64_t attempt_ms, struct buf *reply_head,
                                 struct tg_errmsg *msg)
{
    struct loop *loop = client->loop;
    struct waiting *w = calloc(1, sizeof *w);

    TG_CHECK(w != NULL && !loop_is_here(loop));
    w->client = client;
    w->type = type;
    w->head = *head;
    buf_init(head);
    w->timeout_ms = timeout_ms;
    w->attempt_ms = attempt_ms;
    w->post = (struct loop_call){.run = start_on_loop, .data = w};
    w->end = (struct loop_end_watch){.ended = on_loop_end, .data = w};
    atomic_init(&w->references, 1);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ended, NULL);
    if (!loop_end_watch_add(loop, &w->end)) {
        release(w);
        return tg_fail(msg, TG_CANCELED, "the node shuts down");
    }
    atomic_fetch_add(&w->references, 1);
    atomic_fetch_add(&client->references, 1);
    loop_post(loop, &w->post);
    pthread_mutex_lock(&w->lock);
    while (!w->over)
        pthread_cond_wait(&w->ended, &w->lock);
    pthread_mutex_unlock(&w->lock);
    loop_end_watch_remove(loop, &w->end);
    int err = w->err;
    if (err != 0)
        tg_fail(msg, err, "%s", w->msg.text);
    if (reply_head != NULL)
        buf_append(reply_head, w->reply_head.data, w->reply_head.len);
    if (err == 0 && reply_head != NULL)
        err = reply_head->err;
    release(w);
    return err;
}
