/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request between the loop that receives it and the thread that reads it: bounded.
 * The loop is told to stop reading the socket when it is full, and to go on when there is room. */
#ifndef TG_PARTICIPANT_INGEST_BODY_QUEUE_H
#define TG_PARTICIPANT_INGEST_BODY_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/err.h"

enum {
    BODY_CHUNK_BYTES = 256 * 1024,
    BODY_CHUNK_BYTES_MIN = 4096,
    BODY_CHUNKS_FULL = 8, /* from so many chunks on the socket is not read */
    BODY_CHUNKS_MAX = 12  /* what was read already still finds room */
};

struct body_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct clock *clock;
    void (*on_room)(void *ctx); /* reader's thread: the writer may go on */
    void *ctx;
    size_t chunk_bytes;
    uint8_t *chunks[BODY_CHUNKS_MAX]; /* a ring; NULL until used */
    size_t lens[BODY_CHUNKS_MAX];
    uint32_t first;
    uint32_t count; /* chunks with bytes */
    size_t at;      /* bytes of the first chunk that were read */
    bool ended;
    bool stopped;
    bool paused;
    int err; /* the body broke off */
    char why[128];
};

/* size_hint: the body's length if known, 0 otherwise: small bodies take little memory. */
void body_queue_init(struct body_queue *queue, struct clock *clock, uint64_t size_hint,
                     void (*on_room)(void *ctx), void *ctx);
void body_queue_free(struct body_queue *queue);

/* The writer's side. push: true if the writer should pause. More than fits (a writer that does not
 * pause), or no memory: the body is broken off. */
bool body_queue_push(struct body_queue *queue, const uint8_t *bytes, size_t len);
void body_queue_end(struct body_queue *queue);
void body_queue_break(struct body_queue *queue, int err, const char *why);
/* Any thread: the reader gets TG_CANCELED. */
void body_queue_stop(struct body_queue *queue);

/* The reader's: see load_source. */
int body_queue_read(struct body_queue *queue, uint8_t *out, size_t cap, uint64_t deadline_ms,
                    size_t *n, struct tg_errmsg *msg);

#endif
