/* SPDX-License-Identifier: Apache-2.0 */
/* The one write thread of an environment: takes all that waits (up to a size), one LMDB
 * transaction, one sync, then tells all. The sync under way is what gathers the next group; there
 * is no timer. */
#ifndef TG_PARTICIPANT_STORE_STORE_WRITER_H
#define TG_PARTICIPANT_STORE_STORE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "participant/store/lmdb_txn.h"

enum {
    STORE_WRITER_BATCH_BYTES = 16 * 1024 * 1024, /* of one transaction, or one larger job */
    STORE_WRITER_BATCH_JOBS = 16 * 1024,
    STORE_WRITER_HARD_FACTOR = 8 /* more than this many times the queue's bytes: TG_BUSY */
};

/* A piece of work; the caller's memory until done. */
struct store_job {
    size_t bytes; /* about how much it writes */
    bool shrinks; /* frees space, or finishes what was promised: may use the map's last pages */
    /* On the writer thread, inside a transaction that may hold other jobs too. 0, or an error of
     * its own: then it has changed nothing. LMDB's errors stay in txn->err: the transaction is
     * given up, and each job of it is run again alone. */
    int (*apply)(struct store_job *job, struct lmdb_txn *txn);
    /* On the writer thread, in the order of submission: 0 = durable. Must not wait for this writer.
     */
    void (*done)(struct store_job *job, int err);
    struct store_job *next; /* the writer's */
    int err;                /* the writer's */
};

struct store_writer;

/* queue_bytes: beyond so much waiting work store_writer_wait_room makes producers wait. */
int store_writer_start(struct lmdb_env *env, uint64_t queue_bytes, struct store_writer **writer);
/* Finishes all that waits, then ends the thread. NULL is allowed. */
void store_writer_stop(struct store_writer *writer);

/* Does not wait. 0: done will be called; TG_BUSY (hard limit), TG_CLOSED: it will not. */
int store_writer_submit(struct store_writer *writer, struct store_job *job);

/* Somebody who wants to know when less than queue_bytes is waiting; the caller's memory until
 * ready. */
struct store_waiter {
    void (*ready)(struct store_waiter *waiter); /* on the writer thread */
    struct store_waiter *next;
};
/* False: there is room now, and ready will not be called. */
bool store_writer_wait_room(struct store_writer *writer, struct store_waiter *waiter);

/* Submits and waits until it is durable; for threads that may wait. apply as in store_job. */
int store_writer_run(struct store_writer *writer, bool shrinks, size_t bytes,
                     int (*apply)(void *data, struct lmdb_txn *txn), void *data);

#endif
