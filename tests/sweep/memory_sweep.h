/* SPDX-License-Identifier: Apache-2.0 */
/* Lets the n-th allocation fail, once and from then on, for every n until a run is untouched. Each
 * run is a process of its own, which may say TG_NOMEM or end with TG_EXIT_NO_MEMORY, and nothing
 * else. Whoever links this has its malloc, calloc and realloc. */
#ifndef TG_TESTS_SWEEP_MEMORY_SWEEP_H
#define TG_TESTS_SWEEP_MEMORY_SWEEP_H

#include <stdbool.h>

struct memory_sweep {
    int (*run)(void *data);     /* 0 or TG_NOMEM, and what it made is freed again */
    void (*before)(void *data); /* in the parent; may be NULL */
    void (*after)(void *data);  /* in the parent: looks whether nothing is broken; may be NULL */
    void *data;
};

/* Ends the test where a run ends otherwise. */
void memory_sweep(const struct memory_sweep *sweep, const char *what);

/* Between these two of a run nothing fails: for what the test itself allocates. */
long memory_sweep_pause(void);
void memory_sweep_go_on(long paused);

#endif
