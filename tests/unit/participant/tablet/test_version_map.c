/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader sees at a version, and what may be bound next. */
#include "participant/tablet/version_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/err.h"

static int setup(void **state)
{
    struct version_map *map = malloc(sizeof *map);
    assert_non_null(map);
    version_map_init(map);
    *state = map;
    return 0;
}

static int teardown(void **state)
{
    version_map_close(*state);
    free(*state);
    return 0;
}

static struct publish_bind bind_of(version_t version, version_t prev,
                                   struct publish_rowset *rowsets, uint32_t count)
{
    return (struct publish_bind){.tablet = 1,
                                 .table = 2,
                                 .version = version,
                                 .prev = prev,
                                 .txn = 100 + version,
                                 .rowset_count = count,
                                 .rowsets = rowsets};
}

/* A version with one rowset, its number ten times the version's. */
static int append(struct version_map *map, version_t version, version_t prev)
{
    struct publish_rowset rowset = {.rowset = version * 10};
    struct publish_bind bind = bind_of(version, prev, &rowset, 1);
    return version_map_append(map, &bind);
}

static void assert_view(const struct version_view *view, const rowset_id *rowsets, uint32_t count)
{
    assert_int_equal(view->count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(view->rowsets[i].rowset, rowsets[i]);
}

static void test_an_empty_map_answers_only_what_needs_nothing(void **state)
{
    struct version_view view;
    assert_int_equal(version_map_at(*state, 5, 0, &view), 0);
    assert_int_equal(view.count, 0);
    assert_int_equal(version_map_at(*state, 5, 3, &view), TG_BEHIND);
    assert_int_equal(version_map_last(*state), 0);
    assert_false(version_map_has(*state, 1));
}

static void test_a_version_shows_all_rowsets_up_to_it_newest_last(void **state)
{
    struct version_view view;
    struct publish_rowset two[] = {{.rowset = 41}, {.rowset = 42}};
    struct publish_bind bind = bind_of(4, 2, two, 2);
    assert_int_equal(append(*state, 2, 0), 0);
    assert_int_equal(version_map_append(*state, &bind), 0);
    assert_int_equal(append(*state, 9, 4), 0);
    assert_int_equal(version_map_at(*state, 1, 0, &view), 0);
    assert_view(&view, NULL, 0);
    assert_int_equal(version_map_at(*state, 3, 2, &view), 0);
    assert_view(&view, (rowset_id[]){20}, 1);
    assert_int_equal(version_map_at(*state, 8, 4, &view), 0);
    assert_view(&view, (rowset_id[]){20, 41, 42}, 3);
    assert_int_equal(view.rowsets[2].version, 4);
    assert_int_equal(version_map_at(*state, 100, 9, &view), 0);
    assert_view(&view, (rowset_id[]){20, 41, 42, 90}, 4);
}

static void test_a_missing_version_is_behind_and_never_an_older_answer(void **state)
{
    struct version_view view;
    assert_int_equal(append(*state, 2, 0), 0);
    assert_int_equal(version_map_at(*state, 7, 5, &view), TG_BEHIND);
    assert_int_equal(view.count, 0);
    assert_int_equal(version_map_at(*state, 1, 1, &view), TG_BEHIND);
    assert_int_equal(version_map_between(*state, 0, 7, 5, &view), TG_BEHIND);
    assert_int_equal(version_map_at(*state, 2, 5, &view), TG_INVALID);
}

static void test_a_replacing_version_hides_everything_below(void **state)
{
    struct version_view view;
    struct publish_bind truncate = bind_of(3, 2, NULL, 0);
    truncate.replace = true;
    assert_int_equal(append(*state, 1, 0), 0);
    assert_int_equal(append(*state, 2, 1), 0);
    assert_int_equal(version_map_append(*state, &truncate), 0);
    assert_int_equal(version_map_at(*state, 3, 3, &view), 0);
    assert_view(&view, NULL, 0);
    assert_int_equal(append(*state, 5, 3), 0);
    assert_int_equal(version_map_at(*state, 5, 5, &view), 0);
    assert_view(&view, (rowset_id[]){50}, 1);
    assert_int_equal(version_map_at(*state, 2, 2, &view), 0);
    assert_view(&view, (rowset_id[]){10, 20}, 2);
    assert_int_equal(version_map_between(*state, 1, 5, 5, &view), 0);
    assert_view(&view, (rowset_id[]){20, 50}, 2);
}

static void test_changes_are_those_after_one_version_up_to_another(void **state)
{
    struct version_view view;
    for (version_t version = 1; version <= 5; version++)
        assert_int_equal(append(*state, version, version - 1), 0);
    assert_int_equal(version_map_between(*state, 2, 4, 4, &view), 0);
    assert_view(&view, (rowset_id[]){30, 40}, 2);
    assert_int_equal(version_map_between(*state, 4, 4, 4, &view), 0);
    assert_view(&view, NULL, 0);
    assert_int_equal(version_map_between(*state, 9, 4, 4, &view), 0);
    assert_view(&view, NULL, 0);
}

static void test_only_what_follows_the_last_version_may_be_bound(void **state)
{
    bool already;
    struct publish_rowset rowset = {.rowset = 20};
    struct publish_bind bind = bind_of(2, 0, &rowset, 1);
    assert_int_equal(version_map_bind_check(*state, &bind, &already), PUBLISH_BOUND);
    assert_false(already);
    assert_int_equal(version_map_append(*state, &bind), 0);
    assert_int_equal(version_map_bind_check(*state, &bind, &already), PUBLISH_BOUND);
    assert_true(already);

    struct publish_bind gap = bind_of(5, 4, &rowset, 1);
    assert_int_equal(version_map_bind_check(*state, &gap, &already), PUBLISH_BEHIND);
    assert_int_equal(version_map_append(*state, &gap), TG_INVALID);

    rowset.digest.bytes[0] = 1;
    assert_int_equal(version_map_bind_check(*state, &bind, &already), PUBLISH_BEHIND);
    assert_false(already);
}

static void test_a_share_stays_as_it_was(void **state)
{
    struct version_map share;
    struct version_view view;
    assert_int_equal(append(*state, 1, 0), 0);
    version_map_share(*state, &share);
    for (version_t version = 2; version <= 200; version++)
        assert_int_equal(append(*state, version, version - 1), 0);
    assert_int_equal(version_map_last(&share), 1);
    assert_int_equal(version_map_at(&share, 200, 200, &view), TG_BEHIND);
    assert_int_equal(version_map_at(&share, 200, 1, &view), 0);
    assert_view(&view, (rowset_id[]){10}, 1);
    assert_int_equal(version_map_at(*state, 200, 200, &view), 0);
    assert_int_equal(view.count, 200);
    version_map_close(&share);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_an_empty_map_answers_only_what_needs_nothing),
        TEST(test_a_version_shows_all_rowsets_up_to_it_newest_last),
        TEST(test_a_missing_version_is_behind_and_never_an_older_answer),
        TEST(test_a_replacing_version_hides_everything_below),
        TEST(test_changes_are_those_after_one_version_up_to_another),
        TEST(test_only_what_follows_the_last_version_may_be_bound),
        TEST(test_a_share_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
