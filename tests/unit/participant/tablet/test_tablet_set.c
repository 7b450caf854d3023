/* SPDX-License-Identifier: Apache-2.0 */
/* The set of tablets: found, listed in turn, shared with readers. */
#include "participant/tablet/tablet_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int append(struct tablet_set *set, tablet_id tablet, version_t version, version_t prev)
{
    struct publish_rowset rowset = {.rowset = version};
    struct publish_bind bind = {
        .tablet = tablet, .version = version, .prev = prev, .rowset_count = 1, .rowsets = &rowset};
    return tablet_set_append(set, &bind);
}

static void test_tablets_are_listed_ascending_and_in_turn(void **state)
{
    (void)state;
    struct tablet_set *set;
    tablet_id tablets[40];
    assert_int_equal(tablet_set_open(NULL, &set), 0);
    for (tablet_id tablet = 100; tablet > 60; tablet--)
        assert_int_equal(append(set, tablet, 1, 0), 0);
    assert_int_equal(tablet_set_list(set, 0, tablets, 30), 30);
    for (uint32_t i = 0; i < 30; i++)
        assert_int_equal(tablets[i], 61 + i);
    assert_int_equal(tablet_set_list(set, 90, tablets, 30), 10);
    assert_int_equal(tablets[9], 100);
    assert_int_equal(tablet_set_list(set, UINT64_MAX, tablets, 30), 0);
    tablet_set_close(set);
}

static void test_a_share_outlives_its_tablet(void **state)
{
    (void)state;
    struct tablet_set *set;
    struct version_map share;
    struct version_map none;
    assert_int_equal(tablet_set_open(NULL, &set), 0);
    assert_int_equal(append(set, 5, 1, 0), 0);
    assert_int_equal(append(set, 5, 3, 1), 0);
    assert_int_equal(append(set, 5, 9, 4), TG_INVALID);
    tablet_set_share(set, 5, &share);
    tablet_set_remove(set, 5);
    tablet_set_remove(set, 5);
    assert_int_equal(tablet_set_last(set, 5), 0);
    assert_int_equal(version_map_last(&share), 3);
    tablet_set_share(set, 5, &none);
    assert_int_equal(version_map_last(&none), 0);
    version_map_close(&none);
    tablet_set_close(set);
    assert_true(version_map_has(&share, 1));
    version_map_close(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tablets_are_listed_ascending_and_in_turn),
        cmocka_unit_test(test_a_share_outlives_its_tablet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
