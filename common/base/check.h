/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants that stay on in every build: a broken one ends the process with its place and text,
 * because a store that goes on after a broken invariant may lose what it was trusted with. */
#ifndef TG_COMMON_BASE_CHECK_H
#define TG_COMMON_BASE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define TG_CHECK(condition)                                  \
    do {                                                     \
        if (__builtin_expect(!(condition), 0))               \
            tg_check_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* For memory without which there is no going on: there is none, so the process ends, with a sentence
 * in its log and nothing half done that a restart would not find as after a kill. What belongs to
 * one request alone is better failed with TG_NOMEM. */
#define TG_CHECK_MEMORY(condition)             \
    do {                                       \
        if (__builtin_expect(!(condition), 0)) \
            tg_no_memory(__FILE__, __LINE__);  \
    } while (0)

enum { TG_EXIT_NO_MEMORY = 71 }; /* the exit status then; EX_OSERR */

_Noreturn void tg_no_memory(const char *file, int line);

/* For libraries that abort or go astray without memory: as malloc, realloc and calloc, but where
 * these give NULL for more than no bytes, the process ends as above. */
void *tg_must_malloc(size_t size);
void *tg_must_realloc(void *old, size_t size);
void *tg_must_calloc(size_t count, size_t size);

#define TG_UNREACHABLE() tg_check_failed(__FILE__, __LINE__, "unreachable")

_Noreturn static inline void tg_check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
    abort();
}

#endif
