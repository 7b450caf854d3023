/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of pointers under one lock. */
#include "common/base/work_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/check.h"
#include "common/base/err.h"

int work_queue_init(struct work_queue *queue, size_t capacity)
{
    if (capacity < 1 || capacity > WORK_QUEUE_CAPACITY_MAX)
        return TG_INVALID;
    *queue = (struct work_queue){.capacity = capacity};
    queue->items = calloc(capacity, sizeof *queue->items);
    if (queue->items == NULL)
        return TG_NOMEM;
    pthread_condattr_t attributes;
    TG_CHECK(pthread_condattr_init(&attributes) == 0);
    /* Timeouts must not move with the wall clock. */
    TG_CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    TG_CHECK(pthread_mutex_init(&queue->lock, NULL) == 0);
    TG_CHECK(pthread_cond_init(&queue->not_empty, &attributes) == 0);
    TG_CHECK(pthread_cond_init(&queue->not_full, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
    return 0;
}

void work_queue_free(struct work_queue *queue)
{
    pthread_cond_destroy(&queue->not_empty);
    pthread_cond_destroy(&queue->not_full);
    pthread_mutex_destroy(&queue->lock);
    free(queue->items);
    queue->items = NULL;
}

/* With the lock held and room there. */
static void put(struct work_queue *queue, void *item)
{
    queue->items[(queue->first + queue->count) % queue->capacity] = item;
    queue->count++;
    pthread_cond_signal(&queue->not_empty);
}

int work_queue_push(struct work_queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == queue->capacity)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    int err = queue->closed ? TG_CLOSED : 0;
    if (err == 0)
        put(queue, item);
    pthread_mutex_unlock(&queue->lock);
    return err;
}

int work_queue_try_push(struct work_queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    int err = queue->closed ? TG_CLOSED : queue->count == queue->capacity ? TG_BUSY : 0;
    if (err == 0)
        put(queue, item);
    pthread_mutex_unlock(&queue->lock);
    return err;
}

static struct timespec deadline_after(uint64_t timeout_ms)
{
    struct timespec at;
    TG_CHECK(clock_gettime(CLOCK_MONOTONIC, &at) == 0);
    uint64_t limit = 1000ULL * 86400 * 365 * 10; /* ten years stand for "longer" */
    uint64_t ms = timeout_ms < limit ? timeout_ms : limit;
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

int work_queue_pop(struct work_queue *queue, uint64_t timeout_ms, void **item)
{
    int waited = 0;
    pthread_mutex_lock(&queue->lock);
    if (queue->count == 0 && !queue->closed && timeout_ms > 0) {
        struct timespec deadline = deadline_after(timeout_ms);
        while (queue->count == 0 && !queue->closed && waited != ETIMEDOUT)
            waited = pthread_cond_timedwait(&queue->not_empty, &queue->lock, &deadline);
    }
    int err = queue->count > 0 ? 0 : queue->closed ? TG_CLOSED : TG_TIMEOUT;
    if (err == 0) {
        *item = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        pthread_cond_signal(&queue->not_full);
    }
    pthread_mutex_unlock(&queue->lock);
    return err;
}

void work_queue_close(struct work_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_cond_broadcast(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
}

size_t work_queue_count(struct work_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    size_t count = queue->count;
    pthread_mutex_unlock(&queue->lock);
    return count;
}
