/* SPDX-License-Identifier: Apache-2.0 */
/* The loads' memory: what is refused, what never is, and that refusals change nothing. */
#include "participant/ingest/load_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MIB = 1024 * 1024 };

static void test_growth_beyond_the_limit_is_refused_and_changes_nothing(void **state)
{
    struct load_memory memory = {.limit = 10 * MIB};
    size_t one = 0;
    size_t two = 0;
    (void)state;
    assert_true(load_memory_change(&memory, &one, 6 * MIB));
    assert_true(load_memory_change(&memory, &two, 4 * MIB));
    assert_false(load_memory_change(&memory, &two, 4 * MIB + 1));
    assert_int_equal(two, 4 * MIB);
    assert_int_equal(atomic_load(&memory.used), 10 * MIB);
    assert_false(load_memory_has_room(&memory));
    assert_true(load_memory_change(&memory, &one, 0));
    assert_true(load_memory_change(&memory, &two, 5 * MIB));
    assert_int_equal(atomic_load(&memory.used), 5 * MIB);
    assert_true(load_memory_has_room(&memory));
}

static void test_every_load_may_have_a_little_and_less_is_never_refused(void **state)
{
    struct load_memory memory = {.limit = MIB};
    size_t large = 0;
    size_t small = 0;
    (void)state;
    assert_true(load_memory_change(&memory, &large, MIB));
    assert_true(load_memory_change(&memory, &small, LOAD_MEMORY_ALWAYS));
    assert_false(load_memory_change(&memory, &small, LOAD_MEMORY_ALWAYS + 1));
    assert_true(load_memory_change(&memory, &large, MIB - 1));
    assert_true(load_memory_change(&memory, &small, 0));
    assert_true(load_memory_change(&memory, &large, 0));
    assert_int_equal(atomic_load(&memory.used), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth_beyond_the_limit_is_refused_and_changes_nothing),
        cmocka_unit_test(test_every_load_may_have_a_little_and_less_is_never_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
