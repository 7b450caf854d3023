/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that all loads of a node may hold together: what a load holds of rows, of a body that
 * it has not taken apart yet and of documents is counted here, and who would exceed it is refused
 * before the kernel ends everybody. Any thread. */
#ifndef TG_PARTICIPANT_INGEST_LOAD_MEMORY_H
#define TG_PARTICIPANT_INGEST_LOAD_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOAD_MEMORY_ALWAYS = 512 * 1024 /* bytes that every load may have, so that small ones go on */
};

struct load_memory {
    uint64_t limit;
    atomic_ullong used;
    atomic_ullong refused; /* loads, since the start */
};

/* *held, what the load is counted for, becomes `want`. False: that would be too much, and *held is
 * as before. Less, or at most LOAD_MEMORY_ALWAYS, is never refused. */
bool load_memory_change(struct load_memory *memory, size_t *held, size_t want);
/* Whether a load that may become large has a chance at all. */
bool load_memory_has_room(const struct load_memory *memory);

#endif
