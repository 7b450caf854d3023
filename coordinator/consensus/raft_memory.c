/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the raft library: there is some, or the process ends. */
#include "coordinator/consensus/raft_memory.h"

#include <raft.h>
#include <stdlib.h>

#include "common/base/check.h"

static void *memory_malloc(void *data, size_t size)
{
    (void)data;
    return tg_must_malloc(size);
}

static void memory_free(void *data, void *memory)
{
    (void)data;
    free(memory);
}

static void *memory_calloc(void *data, size_t count, size_t size)
{
    (void)data;
    return tg_must_calloc(count, size);
}

static void *memory_realloc(void *data, void *old, size_t size)
{
    (void)data;
    return tg_must_realloc(old, size);
}

static void *memory_aligned_alloc(void *data, size_t alignment, size_t size)
{
    (void)data;
    void *memory = aligned_alloc(alignment, size);
    TG_CHECK_MEMORY(memory != NULL || size == 0);
    return memory;
}

static void memory_aligned_free(void *data, size_t alignment, void *memory)
{
    (void)data;
    (void)alignment;
    free(memory);
}

void raft_memory_set(void)
{
    static struct raft_heap heap = {.malloc = memory_malloc,
                                    .free = memory_free,
                                    .calloc = memory_calloc,
                                    .realloc = memory_realloc,
                                    .aligned_alloc = memory_aligned_alloc,
                                    .aligned_free = memory_aligned_free};
    raft_heap_set(&heap);
}
