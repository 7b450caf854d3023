/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for loads: one for each load that runs, made when needed and kept for a while. A load
 * that waits for its body occupies nobody else's thread. */
#ifndef TG_PARTICIPANT_INGEST_LOAD_POOL_H
#define TG_PARTICIPANT_INGEST_LOAD_POOL_H

#include <stddef.h>
#include <stdint.h>

enum {
    LOAD_POOL_STACK_BYTES = 512 * 1024,
    LOAD_POOL_IDLE_S = 10 /* a thread without work ends after so long */
};

struct load_pool;

/* Owned by the caller until run was called; run may free it. */
struct load_pool_job {
    void (*run)(struct load_pool_job *job);
    struct load_pool_job *next; /* the pool's */
};

/* threads_max: loads at once. TG_NOMEM, TG_INVALID. */
int load_pool_open(uint32_t threads_max, struct load_pool **pool);
/* Waits until all jobs have run and all threads have ended. */
void load_pool_close(struct load_pool *pool);
/* Any thread. TG_BUSY: threads_max jobs are running; TG_NOMEM: no thread could be made; TG_CLOSED.
 */
int load_pool_submit(struct load_pool *pool, struct load_pool_job *job);

#endif
