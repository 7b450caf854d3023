/* SPDX-License-Identifier: Apache-2.0 */
/* The system's clock runs, and the fake one only when it is told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "tests/lib/fake_clock.h"
#include <cmocka.h>

static void the_system_clock_is_in_this_century_and_never_goes_back(void **state)
{
    (void)state;
    struct clock *clock = clock_system();
    assert_true(clock_wall_us(clock) > UINT64_C(1577836800000000)); /* 2020 */
    uint64_t before = clock_monotonic_us(clock);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_monotonic_us(clock);
        assert_true(now >= before);
        before = now;
    }
}

static void the_fake_clock_moves_only_by_hand(void **state)
{
    (void)state;
    struct fake_clock fake;
    fake_clock_init(&fake);
    assert_int_equal(clock_wall_us(&fake.clock), FAKE_CLOCK_WALL_US);
    assert_int_equal(clock_monotonic_us(&fake.clock), FAKE_CLOCK_MONO_US);
    fake_clock_advance_us(&fake, 7);
    fake_clock_advance_ms(&fake, 2);
    fake_clock_jump_wall(&fake, -5000000);
    assert_int_equal(clock_wall_us(&fake.clock), FAKE_CLOCK_WALL_US + 2007 - 5000000);
    assert_int_equal(clock_monotonic_us(&fake.clock), FAKE_CLOCK_MONO_US + 2007);
    assert_int_equal(clock_monotonic_ms(&fake.clock), (FAKE_CLOCK_MONO_US + 2007) / 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_clock_is_in_this_century_and_never_goes_back),
        cmocka_unit_test(the_fake_clock_moves_only_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
