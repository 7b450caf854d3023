/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process that has no memory left. */
#include "common/base/check.h"

#include <unistd.h>

#include "common/base/log.h"

_Noreturn void tg_no_memory(const char *file, int line)
{
    /* Writing a line takes no memory. No handlers, no buffers to flush: others may be at work. */
    log_error("process", "out of memory, it ends at=%s:%d", file, line);
    _exit(TG_EXIT_NO_MEMORY);
}

void *tg_must_malloc(size_t size)
{
    void *memory = malloc(size);
    TG_CHECK_MEMORY(memory != NULL || size == 0);
    return memory;
}

void *tg_must_realloc(void *old, size_t size)
{
    void *memory = realloc(old, size);
    TG_CHECK_MEMORY(memory != NULL || size == 0);
    return memory;
}

void *tg_must_calloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    TG_CHECK_MEMORY(memory != NULL || count == 0 || size == 0);
    return memory;
}
