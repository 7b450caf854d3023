/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that moves only when a test moves it. */
#include "tests/lib/fake_clock.h"

/* The clock is the struct's first member. */
static uint64_t fake_wall(struct clock *clock)
{
    return ((struct fake_clock *)clock)->wall;
}

static uint64_t fake_mono(struct clock *clock)
{
    return ((struct fake_clock *)clock)->mono;
}

void fake_clock_init(struct fake_clock *fake)
{
    *fake = (struct fake_clock){
        .clock = {fake_wall, fake_mono}, .wall = FAKE_CLOCK_WALL_US, .mono = FAKE_CLOCK_MONO_US};
}

void fake_clock_advance_us(struct fake_clock *fake, uint64_t us)
{
    fake->wall += us;
    fake->mono += us;
}

void fake_clock_advance_ms(struct fake_clock *fake, uint64_t ms)
{
    fake_clock_advance_us(fake, ms * 1000);
}

void fake_clock_jump_wall(struct fake_clock *fake, int64_t us)
{
    fake->wall += (uint64_t)us;
}
