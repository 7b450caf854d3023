/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that all loads of a node may hold together. */
#include "participant/ingest/load_memory.h"

bool load_memory_change(struct load_memory *memory, size_t *held, size_t want)
{
    if (want <= *held) {
        atomic_fetch_sub(&memory->used, *held - want);
        *held = want;
        return true;
    }
    size_t more = want - *held;
    unsigned long long before = atomic_fetch_add(&memory->used, more);
    if (before + more > memory->limit && want > LOAD_MEMORY_ALWAYS) {
        atomic_fetch_sub(&memory->used, more);
        return false;
    }
    *held = want;
    return true;
}

bool load_memory_has_room(const struct load_memory *memory)
{
    return atomic_load(&memory->used) + LOAD_MEMORY_ALWAYS < memory->limit;
}
