/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the table of open rowsets, shared by its two files. */
#ifndef TG_PARTICIPANT_STORE_OPEN_TABLE_INTERNAL_H
#define TG_PARTICIPANT_STORE_OPEN_TABLE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/model/ids.h"

enum {
    OPEN_BUCKETS = 8192,
    OPEN_HELD_MAX = 16, /* tablets being cloned at once */
    /* Dead transactions remembered; what comes late for an older one is collected again. */
    OPEN_DEAD_MAX = 8192
};

struct open_rowset;

struct open_table {
    atomic_size_t tail_bytes; /* of all tails */
    pthread_mutex_t lock;     /* all below */
    struct open_rowset *buckets[OPEN_BUCKETS];
    uint32_t count;
    txn_id low_water;
    tablet_id held[OPEN_HELD_MAX]; /* being cloned; 0 = free */
    txn_id dead[OPEN_DEAD_MAX];    /* by number, the newer one wins a place; 0 = none */
};

#endif
