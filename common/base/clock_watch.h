/* SPDX-License-Identifier: Apache-2.0 */
/* Notices a wall clock that jumps, by comparing it with the monotonic one: an alarm for people,
 * because nothing here depends on it (rules 9 and 14). Pure: whoever looks hands in both times. */
#ifndef TG_COMMON_BASE_CLOCK_WATCH_H
#define TG_COMMON_BASE_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_WATCH_JUMP_US = 500 * 1000 /* what is less may be a clock being steered */ };

struct clock_watch {
    bool known;
    int64_t apart_us; /* wall less monotonic, when it was looked at last */
    uint64_t jumps;
};

/* By how many microseconds the wall clock went too far since the last look, negative: back; 0 if it
 * went as it should, or at the first look. To be called every second or so. */
int64_t clock_watch_look(struct clock_watch *watch, uint64_t wall_us, uint64_t monotonic_us);

#endif
