/* SPDX-License-Identifier: Apache-2.0 */
/* The system's clocks. */
#include "common/base/clock.h"

#include <time.h>

#include "common/base/check.h"

static uint64_t read_us(clockid_t id)
{
    struct timespec now;
    TG_CHECK(clock_gettime(id, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t system_wall_us(struct clock *clock)
{
    (void)clock;
    return read_us(CLOCK_REALTIME);
}

static uint64_t system_monotonic_us(struct clock *clock)
{
    (void)clock;
    return read_us(CLOCK_MONOTONIC);
}

struct clock *clock_system(void)
{
    static struct clock system = {system_wall_us, system_monotonic_us};
    return &system;
}
