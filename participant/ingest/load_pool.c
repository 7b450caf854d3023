/* SPDX-License-Identifier: Apache-2.0 */
/* A pool that grows with its work and shrinks when it is idle. */
#include "participant/ingest/load_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/err.h"

struct load_pool {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* a job waits, or the pool closes */
    pthread_cond_t ended; /* a thread has ended */
    uint32_t threads_max;
    uint32_t threads;
    uint32_t idle;
    uint32_t waiting; /* jobs without a thread: never more than idle threads that wake up */
    struct load_pool_job *first;
    struct load_pool_job **last;
    bool closing;
};

int load_pool_open(uint32_t threads_max, struct load_pool **pool)
{
    struct load_pool *p = calloc(1, sizeof *p);
    pthread_condattr_t attr;

    if (threads_max == 0) {
        free(p);
        return TG_INVALID;
    }
    if (p == NULL)
        return TG_NOMEM;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->work, &attr);
    pthread_cond_init(&p->ended, &attr);
    pthread_condattr_destroy(&attr);
    p->threads_max = threads_max;
    p->last = &p->first;
    *pool = p;
    return 0;
}

void load_pool_close(struct load_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    while (pool->threads > 0)
        pthread_cond_wait(&pool->ended, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->ended);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* The next job; NULL: the thread may end. With the lock held. */
static struct load_pool_job *next_job(struct load_pool *p)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOAD_POOL_IDLE_S;
    p->idle++;
    int rc = 0;
    while (p->first == NULL && !p->closing && rc == 0)
        rc = pthread_cond_timedwait(&p->work, &p->lock, &until);
    p->idle--;
    struct load_pool_job *job = p->first;
    if (job != NULL) {
        p->first = job->next;
        if (p->first == NULL)
            p->last = &p->first;
        p->waiting--;
    }
    return job;
}

static void *work(void *data)
{
    struct load_pool *p = data;

    pthread_mutex_lock(&p->lock);
    for (struct load_pool_job *job = next_job(p); job != NULL; job = next_job(p)) {
        pthread_mutex_unlock(&p->lock);
        job->run(job);
        pthread_mutex_lock(&p->lock);
    }
    p->threads--;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* With the lock held. */
static int add_thread(struct load_pool *p)
{
    pthread_attr_t attr;
    pthread_t thread;

    if (p->threads == p->threads_max)
        return TG_BUSY;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, LOAD_POOL_STACK_BYTES);
    int rc = pthread_create(&thread, &attr, work, p);
    pthread_attr_destroy(&attr);
    if (rc != 0)
        return TG_NOMEM;
    p->threads++;
    return 0;
}

int load_pool_submit(struct load_pool *pool, struct load_pool_job *job)
{
    int err = 0;

    pthread_mutex_lock(&pool->lock);
    if (pool->closing)
        err = TG_CLOSED;
    else if (pool->waiting >= pool->idle)
        err = add_thread(pool);
    if (err == 0) {
        job->next = NULL;
        *pool->last = job;
        pool->last = &job->next;
        pool->waiting++;
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    return err;
}
