/* SPDX-License-Identifier: Apache-2.0 */
/* Jumps of a wall clock are told from its going and from its being steered. */
#include "common/base/clock_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000)

static void test_jumps_both_ways_are_told_once_with_their_size(void **state)
{
    struct clock_watch watch = {0};
    uint64_t wall = 1800000000 * (uint64_t)SECOND;
    (void)state;
    assert_int_equal(clock_watch_look(&watch, wall, 5), 0);
    assert_int_equal(clock_watch_look(&watch, wall + SECOND, 5 + SECOND), 0);
    assert_int_equal(clock_watch_look(&watch, wall - 3599 * SECOND, 5 + 2 * SECOND),
                     -3601 * SECOND);
    assert_int_equal(clock_watch_look(&watch, wall - 3598 * SECOND, 5 + 3 * SECOND), 0);
    assert_int_equal(clock_watch_look(&watch, wall + 86400 * SECOND, 5 + 3 * SECOND),
                     (86400 + 3598) * SECOND);
    assert_int_equal(watch.jumps, 2);
}

static void test_a_clock_that_is_steered_or_looked_at_late_does_not_jump(void **state)
{
    struct clock_watch watch = {0};
    uint64_t wall = 1800000000 * (uint64_t)SECOND;
    uint64_t monotonic = 77;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(clock_watch_look(&watch, wall, monotonic), 0);
        wall += SECOND + 500; /* the fastest that a clock is steered by */
        monotonic += SECOND;
    }
    assert_int_equal(clock_watch_look(&watch, wall + 900 * SECOND, monotonic + 900 * SECOND), 0);
    assert_int_equal(watch.jumps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jumps_both_ways_are_told_once_with_their_size),
        cmocka_unit_test(test_a_clock_that_is_steered_or_looked_at_late_does_not_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
