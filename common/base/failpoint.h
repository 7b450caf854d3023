/* SPDX-License-Identifier: Apache-2.0 */
/* Named places where a test can kill or hold a process. Only in builds with FAILPOINTS=ON; in all
 * others the macros leave nothing behind.
 *
 * The environment's TIDEGATE_FAILPOINTS names a file with lines
 *
 *     NAME ACTION N [PID]
 *
 * read at each hit, so that a running process can be armed. At the N-th hit of NAME since a process
 * first saw the line, once: `kill` ends it by SIGKILL, `later:MS` does so after MS milliseconds,
 * `hold:MS` sleeps, `error` lets FAILPOINT_ERROR return its error. With PID the line is for that
 * process alone. */
#ifndef TG_COMMON_BASE_FAILPOINT_H
#define TG_COMMON_BASE_FAILPOINT_H

#ifdef TG_FAILPOINTS
#include <stdbool.h>

/* Any thread. True if an armed `error` is due. */
bool failpoint_hit(const char *name);
/* How often an action of this name was done in this process. Any thread. */
unsigned failpoint_done(const char *name);
#define FAILPOINT(name)              ((void)failpoint_hit(name))
#define FAILPOINT_ERROR(name, error) (failpoint_hit(name) ? (error) : 0)
#else
#define FAILPOINT(name)              ((void)0)
#define FAILPOINT_ERROR(name, error) 0
#endif

#endif
