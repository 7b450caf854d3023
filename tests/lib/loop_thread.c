/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop on a thread of its own. */
#include "tests/lib/loop_thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/check.h"

enum { ANSWER_WAIT_S = 20 };

static void *run(void *data)
{
    struct loop_thread *thread = data;

    loop_run(thread->loop);
    return NULL;
}

void loop_thread_open(struct loop_thread *thread)
{
    memset(thread, 0, sizeof *thread);
    TG_CHECK(loop_open(&thread->loop, NULL) == 0);
    TG_CHECK(pthread_create(&thread->thread, NULL, run, thread) == 0);
    thread->runs = true;
}

struct doing {
    struct loop_call call;
    void (*run)(void *data);
    void *data;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
};

static void do_it(struct loop_call *call)
{
    struct doing *doing = call->data;

    doing->run(doing->data);
    pthread_mutex_lock(&doing->lock);
    doing->is_done = true;
    pthread_cond_signal(&doing->done);
    pthread_mutex_unlock(&doing->lock);
}

void loop_thread_do(struct loop_thread *thread, void (*what)(void *data), void *data)
{
    struct doing doing = {.run = what, .data = data};

    if (!thread->runs) {
        what(data);
        return;
    }
    doing.call = (struct loop_call){.run = do_it, .data = &doing};
    pthread_mutex_init(&doing.lock, NULL);
    pthread_cond_init(&doing.done, NULL);
    loop_post(thread->loop, &doing.call);
    pthread_mutex_lock(&doing.lock);
    while (!doing.is_done)
        pthread_cond_wait(&doing.done, &doing.lock);
    pthread_mutex_unlock(&doing.lock);
    pthread_cond_destroy(&doing.done);
    pthread_mutex_destroy(&doing.lock);
}

void loop_thread_end(struct loop_thread *thread)
{
    if (!thread->runs)
        return;
    loop_stop(thread->loop);
    pthread_join(thread->thread, NULL);
    thread->runs = false;
}

void loop_thread_close(struct loop_thread *thread)
{
    loop_thread_end(thread);
    loop_close(thread->loop);
    thread->loop = NULL;
}

void rpc_answer_init(struct rpc_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    pthread_mutex_init(&answer->lock, NULL);
    pthread_cond_init(&answer->came, NULL);
}

void rpc_answer_close(struct rpc_answer *answer)
{
    buf_close(&answer->head);
    pthread_cond_destroy(&answer->came);
    pthread_mutex_destroy(&answer->lock);
}

void rpc_answer_done(void *data, const struct rpc_reply *reply)
{
    struct rpc_answer *answer = data;

    pthread_mutex_lock(&answer->lock);
    answer->times++;
    answer->err = reply->err;
    snprintf(answer->message, sizeof answer->message, "%s", reply->message);
    buf_clear(&answer->head);
    buf_append(&answer->head, reply->head.data, reply->head.len);
    pthread_cond_signal(&answer->came);
    pthread_mutex_unlock(&answer->lock);
}

int rpc_answer_wait(struct rpc_answer *answer)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ANSWER_WAIT_S;
    pthread_mutex_lock(&answer->lock);
    while (answer->times == 0)
        TG_CHECK(pthread_cond_timedwait(&answer->came, &answer->lock, &until) != ETIMEDOUT);
    TG_CHECK(answer->times == 1);
    int err = answer->err;
    pthread_mutex_unlock(&answer->lock);
    return err;
}

bool rpc_answer_is_there(struct rpc_answer *answer)
{
    pthread_mutex_lock(&answer->lock);
    bool there = answer->times > 0;
    pthread_mutex_unlock(&answer->lock);
    return there;
}
