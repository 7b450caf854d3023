/* SPDX-License-Identifier: Apache-2.0 */
/* Notices a wall clock that jumps. */
#include "common/base/clock_watch.h"

int64_t clock_watch_look(struct clock_watch *watch, uint64_t wall_us, uint64_t monotonic_us)
{
    /* Both are below 2^63 for some hundred thousand years. */
    int64_t apart = (int64_t)wall_us - (int64_t)monotonic_us;
    int64_t moved = apart - watch->apart_us;
    bool jumped = watch->known && (moved >= CLOCK_WATCH_JUMP_US || moved <= -CLOCK_WATCH_JUMP_US);

    watch->known = true;
    watch->apart_us = apart;
    watch->jumps += jumped;
    return jumped ? moved : 0;
}
