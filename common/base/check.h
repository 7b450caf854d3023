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

#define TG_UNREACHABLE() tg_check_failed(__FILE__, __LINE__, "unreachable")

_Noreturn static inline void tg_check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
    abort();
}

#endif
