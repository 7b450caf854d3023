/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for answers which come on the loop. */
#include "common/net/rpc_wait.h"

#include <time.h>

#include "common/base/check.h"

static void release(struct rpc_wait *wait)
{
    if (atomic_fetch_sub(&wait->references, 1) != 1)
        return;
    buf_close(&wait->head);
    buf_close(&wait->payload);
    pthread_cond_destroy(&wait->ended);
    pthread_mutex_destroy(&wait->lock);
    wait->gone(wait);
}

/* The first end counts. */
static void finish(struct rpc_wait *wait, const struct rpc_reply *reply)
{
    pthread_mutex_lock(&wait->lock);
    if (!wait->over) {
        wait->over = true;
        wait->err = reply->err;
        buf_append(&wait->head, reply->head.data, reply->head.len);
        buf_append(&wait->payload, reply->payload.data, reply->payload.len);
        if (wait->head.err != 0 || wait->payload.err != 0)
            wait->err = TG_NOMEM;
        tg_fail(&wait->msg, wait->err, "%s",
                reply->message != NULL && reply->message[0] != 0 ? reply->message
                                                                 : tg_err_sentence(wait->err));
        pthread_cond_signal(&wait->ended);
    }
    pthread_mutex_unlock(&wait->lock);
}

static void on_loop_end(struct loop_end_watch *watch)
{
    struct rpc_reply reply = {.err = TG_CANCELED, .message = "the node shuts down"};

    finish(watch->data, &reply);
}

int rpc_wait_begin(struct rpc_wait *wait, struct loop *loop, void (*gone)(struct rpc_wait *wait),
                   struct tg_errmsg *msg)
{
    pthread_condattr_t attributes;

    TG_CHECK(!loop_is_here(loop));
    wait->loop = loop;
    wait->end = (struct loop_end_watch){.ended = on_loop_end, .data = wait};
    wait->gone = gone;
    wait->over = false;
    atomic_init(&wait->references, 1);
    buf_init(&wait->head);
    buf_init(&wait->payload);
    pthread_mutex_init(&wait->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wait->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    if (!loop_end_watch_add(loop, &wait->end)) {
        release(wait);
        return tg_fail(msg, TG_CANCELED, "the node shuts down");
    }
    atomic_fetch_add(&wait->references, 1);
    return 0;
}

void rpc_wait_reply(void *data, const struct rpc_reply *reply)
{
    finish(data, reply);
    release(data);
}

static void wait_a_moment(struct rpc_wait *wait)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += RPC_WAIT_LOOK_MS * 1000000l;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&wait->ended, &wait->lock, &until);
}

static void wait_for_end(struct rpc_wait *wait, const atomic_bool *stop)
{
    struct rpc_reply stopped = {.err = TG_CANCELED, .message = "the call was stopped"};
    bool over = false;

    while (!over) {
        if (stop != NULL && atomic_load(stop))
            finish(wait, &stopped);
        pthread_mutex_lock(&wait->lock);
        if (stop == NULL) {
            while (!wait->over)
                pthread_cond_wait(&wait->ended, &wait->lock);
        } else if (!wait->over) {
            wait_a_moment(wait);
        }
        over = wait->over;
        pthread_mutex_unlock(&wait->lock);
    }
}

static void take(struct buf *from, struct buf *to)
{
    if (to == NULL)
        return;
    buf_close(to);
    *to = *from;
    buf_init(from);
}

int rpc_wait_end(struct rpc_wait *wait, const atomic_bool *stop, struct buf *head,
                 struct buf *payload, struct tg_errmsg *msg)
{
    wait_for_end(wait, stop);
    loop_end_watch_remove(wait->loop, &wait->end);
    /* What was given up may still be answered on the loop. */
    pthread_mutex_lock(&wait->lock);
    int err = wait->err;
    if (err != 0)
        tg_fail(msg, err, "%s", wait->msg.text);
    take(&wait->head, head);
    take(&wait->payload, payload);
    pthread_mutex_unlock(&wait->lock);
    release(wait);
    return err;
}
