/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that moves only when a test moves it. */
#ifndef TG_TESTS_LIB_FAKE_CLOCK_H
#define TG_TESTS_LIB_FAKE_CLOCK_H

#include <stdint.h>

#include "common/base/clock.h"

/* Both start here unless the test sets them: 2026-01-31T12:00:00Z, and an odd monotonic time. */
#define FAKE_CLOCK_WALL_US UINT64_C(1769860800000000)
#define FAKE_CLOCK_MONO_US UINT64_C(5000001)

struct fake_clock {
    struct clock clock; /* hand out &fake.clock */
    uint64_t wall;      /* microseconds; free to set */
    uint64_t mono;
};

void fake_clock_init(struct fake_clock *fake);
/* Time passes: both clocks go on. */
void fake_clock_advance_us(struct fake_clock *fake, uint64_t us);
void fake_clock_advance_ms(struct fake_clock *fake, uint64_t ms);
/* Somebody sets the wall clock, by this much forward or back. */
void fake_clock_jump_wall(struct fake_clock *fake, int64_t us);

#endif
