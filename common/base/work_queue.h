/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue of pointers between threads: first in, first out; full and empty wait. */
#ifndef TG_COMMON_BASE_WORK_QUEUE_H
#define TG_COMMON_BASE_WORK_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORK_QUEUE_CAPACITY_MAX = 1 << 20 }; /* items */
#define WORK_QUEUE_FOREVER UINT64_MAX

struct work_queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    void **items; /* a ring */
    size_t capacity;
    size_t first;
    size_t count;
    bool closed;
};

/* capacity in items, 1..WORK_QUEUE_CAPACITY_MAX. 0, TG_INVALID or TG_NOMEM. */
int work_queue_init(struct work_queue *queue, size_t capacity);
/* Frees the queue; no thread may be inside. Items that are left belong to the caller: pop them
 * first (a closed queue still gives what it holds). */
void work_queue_free(struct work_queue *queue);
/* Waits for room. 0 (the queue's taker owns item now) or TG_CLOSED (the caller still does). */
int work_queue_push(struct work_queue *queue, void *item);
/* Does not wait. 0, TG_BUSY when full, TG_CLOSED. */
int work_queue_try_push(struct work_queue *queue, void *item);
/* The oldest item, waiting up to timeout_ms (0: not at all; WORK_QUEUE_FOREVER). 0, TG_TIMEOUT, or
 * TG_CLOSED once the queue is closed and empty. */
int work_queue_pop(struct work_queue *queue, uint64_t timeout_ms, void **item);
/* Wakes everybody: pushes fail from now on, pops empty the queue and then fail. */
void work_queue_close(struct work_queue *queue);
/* How many items wait at this moment. */
size_t work_queue_count(struct work_queue *queue);

#endif
