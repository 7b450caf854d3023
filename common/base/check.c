/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process that has no memory left. */
#include "common/base/check.h"

#include <time.h>
#include <unistd.h>

_Noreturn void tg_no_memory(const char *file, int line)
{
    /* A line as the log's, which stands above this file, made without memory. No handlers run and
     * nothing is flushed: other threads may be at work. */
    char text[256];
    char stamp[32] = "";
    struct timespec now = {0};
    struct tm day;

    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &day) != NULL)
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &day);
    int len =
        snprintf(text, sizeof text, "%s.%06ldZ ERROR process out of memory, it ends at=%s:%d\n",
                 stamp, now.tv_nsec / 1000, file, line);
    if (len > 0)
        (void)!write(STDERR_FILENO, text, (size_t)len < sizeof text ? (size_t)len : sizeof text);
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
