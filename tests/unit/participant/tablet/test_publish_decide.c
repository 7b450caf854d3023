/* SPDX-License-Identifier: Apache-2.0 */
/* The decision on a bind, without any store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "participant/tablet/publish.h"

static struct publish_rowset rowsets[] = {{.rowset = 1, .digest = {{1}}},
                                          {.rowset = 2, .digest = {{2}}}};
static const struct publish_bind sample = {
    .tablet = 1, .version = 8, .prev = 5, .txn = 3, .rowset_count = 2, .rowsets = rowsets};

static void test_a_bind_that_fits_is_done(void **state)
{
    (void)state;
    struct bind_staged staged[] = {{true, {{1}}}, {true, {{2}}}};
    struct bind_facts facts = {.last = 5, .staged = staged};
    assert_int_equal(publish_decide(&sample, &facts), PUBLISH_BOUND);
}

static void test_a_gap_below_is_behind(void **state)
{
    (void)state;
    struct bind_staged staged[] = {{true, {{1}}}, {true, {{2}}}};
    struct bind_facts facts = {.last = 4, .staged = staged};
    assert_int_equal(publish_decide(&sample, &facts), PUBLISH_BEHIND);
    facts.last = 6;
    assert_int_equal(publish_decide(&sample, &facts), PUBLISH_BEHIND);
    facts.last = 0;
    assert_int_equal(publish_decide(&sample, &facts), PUBLISH_BEHIND);
}

static void test_a_missing_rowset_and_a_wrong_digest_are_told_apart(void **state)
{
    (void)state;
    struct bind_staged staged[] = {{true, {{1}}}, {false, {{2}}}};
    struct bind_facts facts = {.last = 5, .staged = staged};
    assert_int_equal(publish_decide(&sample, &facts), PUBLISH_MISSING);
    staged[1] = (struct bind_staged){true, {{3}}};
    assert_int_equal(publish_decide(&sample, &facts), PUBLISH_DIGEST);
}

static void test_a_repetition_is_bound_whatever_came_since(void **state)
{
    (void)state;
    struct bind_staged staged[] = {{false, {{0}}}, {false, {{0}}}};
    struct bind_facts facts = {.last = 12, .bound = true, .bound_same = true, .staged = staged};
    assert_int_equal(publish_decide(&sample, &facts), PUBLISH_BOUND);
    facts.bound_same = false;
    assert_int_equal(publish_decide(&sample, &facts), PUBLISH_BEHIND);
}

static void test_a_version_without_rowsets_binds(void **state)
{
    (void)state;
    struct publish_bind truncate = {.tablet = 1, .version = 8, .prev = 5, .replace = true};
    struct bind_facts facts = {.last = 5};
    assert_int_equal(publish_decide(&truncate, &facts), PUBLISH_BOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bind_that_fits_is_done),
        cmocka_unit_test(test_a_gap_below_is_behind),
        cmocka_unit_test(test_a_missing_rowset_and_a_wrong_digest_are_told_apart),
        cmocka_unit_test(test_a_repetition_is_bound_whatever_came_since),
        cmocka_unit_test(test_a_version_without_rowsets_binds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
