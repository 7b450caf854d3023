/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of chunks. Chunks are kept until the body's end: freed megabytes would have to be faulted
 * in again. */
#include "participant/ingest/body_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS_MAX = 1000 /* longer waits are made of several */ };

void body_queue_init(struct body_queue *queue, struct clock *clock, uint64_t size_hint,
                     void (*on_room)(void *ctx), void *ctx)
{
    pthread_condattr_t attr;

    *queue = (struct body_queue){.clock = clock, .on_room = on_room, .ctx = ctx};
    queue->chunk_bytes = BODY_CHUNK_BYTES;
    if (size_hint > 0 && size_hint < BODY_CHUNK_BYTES)
        queue->chunk_bytes = size_hint < BODY_CHUNK_BYTES_MIN ? BODY_CHUNK_BYTES_MIN : size_hint;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->changed, &attr);
    pthread_condattr_destroy(&attr);
}

void body_queue_free(struct body_queue *queue)
{
    for (uint32_t i = 0; i < BODY_CHUNKS_MAX; i++)
        free(queue->chunks[i]);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}

static void broken(struct body_queue *q, int err, const char *why)
{
    if (q->err != 0 || q->ended)
        return;
    q->err = err;
    snprintf(q->why, sizeof q->why, "%s", why);
}

bool body_queue_push(struct body_queue *queue, const uint8_t *bytes, size_t len)
{
    struct body_queue *q = queue;

    pthread_mutex_lock(&q->lock);
    while (len > 0 && q->err == 0) {
        uint32_t last = (q->first + q->count + BODY_CHUNKS_MAX - 1) % BODY_CHUNKS_MAX;
        if (q->count == 0 || q->lens[last] == q->chunk_bytes) {
            if (q->count == BODY_CHUNKS_MAX) {
                broken(q, TG_LIMIT, "the body came faster than it was read");
                break;
            }
            last = (q->first + q->count++) % BODY_CHUNKS_MAX;
            q->lens[last] = 0;
            if (q->chunks[last] == NULL)
                q->chunks[last] = malloc(q->chunk_bytes);
            if (q->chunks[last] == NULL) {
                q->count--;
                broken(q, TG_NOMEM, "out of memory");
                break;
            }
        }
        size_t room = q->chunk_bytes - q->lens[last];
        size_t take = len < room ? len : room;
        memcpy(q->chunks[last] + q->lens[last], bytes, take);
        q->lens[last] += take;
        bytes += take;
        len -= take;
    }
    q->paused |= q->count >= BODY_CHUNKS_FULL;
    bool pause = q->paused;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return pause;
}

void body_queue_end(struct body_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->ended = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void body_queue_break(struct body_queue *queue, int err, const char *why)
{
    pthread_mutex_lock(&queue->lock);
    broken(queue, err, why);
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void body_queue_stop(struct body_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->stopped = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* Copies what is there; returns how much. With the lock held. */
static size_t take(struct body_queue *q, uint8_t *out, size_t cap)
{
    size_t done = 0;

    while (done < cap && q->count > 0) {
        size_t have = q->lens[q->first] - q->at;
        size_t n = have < cap - done ? have : cap - done;
        memcpy(out + done, q->chunks[q->first] + q->at, n);
        done += n;
        q->at += n;
        if (q->at == q->lens[q->first]) {
            q->at = 0;
            q->count--;
            if (q->count > 0) /* else the same chunk, still warm, takes what comes next */
                q->first = (q->first + 1) % BODY_CHUNKS_MAX;
        }
    }
    return done;
}

/* Waits for a change, at most until the deadline. False when it has passed. With the lock held. */
static bool wait_for_change(struct body_queue *q, uint64_t deadline_ms)
{
    uint64_t now = clock_monotonic_ms(q->clock);
    struct timespec until;

    if (now >= deadline_ms)
        return false;
    uint64_t wait = deadline_ms - now < WAIT_MS_MAX ? deadline_ms - now : WAIT_MS_MAX;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(wait / 1000);
    until.tv_nsec += (long)(wait % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&q->changed, &q->lock, &until);
    return true;
}

int body_queue_read(struct body_queue *queue, uint8_t *out, size_t cap, uint64_t deadline_ms,
                    size_t *n, struct tg_errmsg *msg)
{
    struct body_queue *q = queue;
    int err = 0;
    bool room = false;

    *n = 0;
    pthread_mutex_lock(&q->lock);
    while (err == 0) {
        if (q->stopped) {
            err = tg_fail(msg, TG_CANCELED,
                          "[CANCELLED]the load was stopped: its transaction was aborted meanwhile, "
                          "or this participant shuts down");
        } else if (q->count > 0) {
            *n = take(q, out, cap);
            break;
        } else if (q->err != 0) {
            err = tg_fail(msg, q->err, "[CANCELLED]%s", q->why);
        } else if (q->ended) {
            break;
        } else if (!wait_for_change(q, deadline_ms)) {
            err = tg_fail(msg, TG_TIMEOUT, "[TIMEOUT]the body did not come in time");
        }
    }
    if (q->paused && q->count <= BODY_CHUNKS_FULL / 2) {
        q->paused = false;
        room = true;
    }
    pthread_mutex_unlock(&q->lock);
    if (room)
        q->on_room(q->ctx);
    return err;
}
