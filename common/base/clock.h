/* SPDX-License-Identifier: Apache-2.0 */
/* Time as an injected object: production reads the system's clocks, tests hold the hands. */
#ifndef TG_COMMON_BASE_CLOCK_H
#define TG_COMMON_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    /* Wall clock, microseconds since the Unix epoch. May jump either way. */
    uint64_t (*wall_us)(struct clock *clock);
    /* Monotonic clock, microseconds since some start; never goes back. */
    uint64_t (*monotonic_us)(struct clock *clock);
};

/* The process's real clock. */
struct clock *clock_system(void);

static inline uint64_t clock_wall_us(struct clock *clock)
{
    return clock->wall_us(clock);
}

static inline uint64_t clock_monotonic_us(struct clock *clock)
{
    return clock->monotonic_us(clock);
}

static inline uint64_t clock_monotonic_ms(struct clock *clock)
{
    return clock->monotonic_us(clock) / 1000;
}

#endif
