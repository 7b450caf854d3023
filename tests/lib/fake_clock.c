/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that moves only when a test moves it. */
#include "tests/lib/fake_clock.h"

/* The clock is the struct's first member. Atomic, as a test may move it under a running loop. */
static uint64_t fake_wall(struct clock *clock)
{
    return __atomic_load_n(&((struct fake_clock *)clock)->wall, __ATOMIC_RELAXED);
}

static uint64_t fake_mono(struct clock *clock)
{
    return __atomic_load_n(&((struct fake_clock *)clock)->mono, __ATOMIC_RELAXED);
}

void fake_clock_init(struct fake_clock *fake)
{
    *fake = (struct fake_clock){
        .clock = {fake_wall, fake_mono}, .wall = FAKE_CLOCK_WALL_US, .mono = FAKE_CLOCK_MONO_US};
}

void fake_clock_advance_us(struct fake_clock *fake, uint64_t us)
{
    __atomic_fetch_add(&fake->wall, us, __ATOMIC_RELAXED);
    __atomic_fetch_add(&fake->mono, us, __ATOMIC_RELAXED);
}

void fake_clock_advance_ms(struct fake_clock *fake, uint64_t ms)
{
    fake_clock_advance_us(fake, ms * 1000);
}

void fake_clock_jump_wall(struct fake_clock *fake, int64_t us)
{
    __atomic_fetch_add(&fake->wall, (uint64_t)us, __ATOMIC_RELAXED);
}
