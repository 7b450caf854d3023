/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness: seeds repeat, bounds hold, the kernel's differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/random.h"

static void a_seed_gives_the_same_numbers_for_ever(void **state)
{
    (void)state;
    struct random_seeded a;
    struct random_seeded b;
    random_seeded_init(&a, 42);
    random_seeded_init(&b, 42);
    /* A change here would change every recorded simulation seed. */
    assert_true(random_u64(&a.source) == UINT64_C(1546998764402558742));
    assert_true(random_u64(&b.source) == UINT64_C(1546998764402558742));
    for (int i = 0; i < 100; i++)
        assert_true(random_u64(&a.source) == random_u64(&b.source));
    random_seeded_init(&b, 43);
    assert_true(random_u64(&a.source) != random_u64(&b.source));
}

static void draws_below_a_bound_reach_every_value_evenly(void **state)
{
    (void)state;
    struct random_seeded seeded;
    random_seeded_init(&seeded, 1);
    int hits[7] = {0};
    for (int i = 0; i < 70000; i++)
        hits[random_below(&seeded.source, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(hits[i], 9500, 10500);
    assert_true(random_below(&seeded.source, 1) == 0);
    for (int i = 0; i < 100; i++)
        assert_true(random_below(&seeded.source, UINT64_MAX) < UINT64_MAX);
}

static void the_kernel_gives_something_else_each_time(void **state)
{
    (void)state;
    uint8_t a[1000] = {0};
    uint8_t b[1000] = {0};
    random_fill(random_system(), a, sizeof a);
    random_fill(random_system(), b, sizeof b);
    assert_true(memcmp(a, b, sizeof a) != 0);
    assert_true(memcmp(a + 900, b, 100) != 0);
    random_fill(random_system(), NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_the_same_numbers_for_ever),
        cmocka_unit_test(draws_below_a_bound_reach_every_value_evenly),
        cmocka_unit_test(the_kernel_gives_something_else_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
