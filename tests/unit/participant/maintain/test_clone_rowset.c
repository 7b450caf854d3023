/* SPDX-License-Identifier: Apache-2.0 */
/* Clones that were cut off are gone on with; and what a replica holds is compared with the log. */
#include "tests/unit/participant/maintain/clone_fixture.h"

#include "participant/maintain/clone_rowset.h"
#include "participant/store/store_keys.h"
#include "tests/lib/test_dir.h"

/* Where it was cut off, or where what was on the disk by then ends. */
static void go_on_after_a_cut(struct pair *pair, bool restart)
{
    version_t bound;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->there, pair->there_set, v, v == 2 ? LARGE : SMALL);
    pair->fail_reads = 3; /* in the middle of the large one */
    assert_int_equal(run(pair, 0, &bound), TG_UNREACHABLE);
    pair->fail_reads = 0;
    pair->reads = 0;
    if (restart)
        restart_here(pair);
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(bound, 3);
    uint64_t had = restart ? CLONE_READ_BYTES_MAX / EXTENT_256K_BYTES * EXTENT_256K_BYTES
                           : CLONE_READ_BYTES_MAX;
    assert_int_equal(pair->bytes, LARGE - had + SMALL);
    is_equal(pair);
    assert_int_equal(fixture_check(pair->here, TABLET, 2, LARGE), 0);
    restart_here(pair);
    assert_int_equal(fixture_check(pair->here, TABLET, 2, LARGE), 0);
}

static void a_round_that_is_cut_off_is_gone_on_with(void **state)
{
    go_on_after_a_cut(*state, false);
}

static void a_round_that_is_cut_off_by_a_restart_is_gone_on_with(void **state)
{
    go_on_after_a_cut(*state, true);
}

/* What lies here of it is not what it should be: it is fetched from the begin. */
static void a_wrong_begin_is_not_gone_on_with(void **state)
{
    struct pair *pair = *state;
    struct buf other = BUF_INIT;
    version_t bound;

    add_version(pair->there, pair->there_set, 1, LARGE);
    fixture_content(99, LARGE / 2, &other);
    assert_int_equal(
        fixture_send(pair->here, TXN + 1, 1, TABLET, 0, slice_of(other.data, other.len), NULL), 0);
    buf_close(&other);
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(bound, 1);
    is_equal(pair);
    assert_int_equal(fixture_check(pair->here, TABLET, 1, LARGE), 0);
    /* The same with more than there is of it. */
    add_version(pair->there, pair->there_set, 2, LARGE / 3);
    fixture_content(98, LARGE, &other);
    assert_int_equal(
        fixture_send(pair->here, TXN + 2, 2, TABLET, 0, slice_of(other.data, other.len), NULL), 0);
    buf_close(&other);
    restart_here(pair);
    assert_int_equal(run(pair, 0, &bound), 0);
    is_equal(pair);
    assert_int_equal(fixture_check(pair->here, TABLET, 2, LARGE / 3), 0);
}

/* What was declared lost is taken away where it still is; what came before stays. */
static void versions_that_the_log_has_no_more_are_taken_away(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->there, pair->there_set, v, v == 3 ? LARGE : SMALL);
    for (version_t v = 1; v <= 5; v++)
        add_version(pair->here, pair->here_set, v, v >= 3 ? LARGE : SMALL);
    pair->chain_known = true;
    pair->missed = 3;
    pair->prove = 5;
    pair->chain = chain_of(pair->there_set);
    pair->untrusted = true;
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(bound, 3);
    assert_int_equal(pair->reads, 0);
    restart_here(pair);
    assert_int_equal(tablet_set_last(pair->here_set, TABLET), 3);
    assert_int_equal(fixture_check(pair->here, TABLET, 3, LARGE), 0);
    assert_int_not_equal(fixture_check(pair->here, TABLET, 4, LARGE), 0);
    /* Its rowsets are collected with their transactions. */
    for (version_t v = 4; v <= 5; v++)
        assert_int_equal(rowset_drop_txn(pair->here->store, TXN + v), 0);
    is_equal(pair);
    /* And the next version is bound on top of what is left. */
    add_version(pair->here, pair->here_set, 6, SMALL);
    restart_here(pair);
    assert_int_equal(tablet_set_last(pair->here_set, TABLET), 6);
}

/* It is not what the log has, and may be the last that there is: it stays, and is not good. */
static void what_contradicts_the_log_is_not_proven(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++) {
        add_version(pair->there, pair->there_set, v, SMALL);
        add_version(pair->here, pair->here_set, v, SMALL + (v == 2));
    }
    pair->chain_known = true;
    pair->missed = 3;
    pair->prove = 3;
    pair->chain = chain_of(pair->there_set);
    pair->self = true;
    assert_int_equal(run(pair, 0, &bound), TG_DIGEST);
    assert_int_equal(bound, 3);
    pair->self = false;
    assert_int_equal(run(pair, 0, &bound), 0);
    is_equal(pair);
}

/* Nobody else is there: what is here is read, and told. */
static void a_replica_alone_checks_itself(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->here, pair->here_set, v, LARGE / 4);
    pair->chain_known = true;
    pair->missed = 3;
    pair->prove = 3;
    pair->chain = chain_of(pair->here_set);
    pair->self = true;
    assert_int_equal(run(pair, 1, &bound), 0);
    assert_int_equal(bound, 3);
    assert_int_equal(pair->reads, 0);
    spoil_rowset_2(pair->here);
    assert_int_equal(run(pair, 1, &bound), TG_CORRUPT);
    assert_int_equal(tablet_set_last(pair->here_set, TABLET), 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_round_that_is_cut_off_is_gone_on_with),
        TEST(a_round_that_is_cut_off_by_a_restart_is_gone_on_with),
        TEST(a_wrong_begin_is_not_gone_on_with),
        TEST(versions_that_the_log_has_no_more_are_taken_away),
        TEST(what_contradicts_the_log_is_not_proven),
        TEST(a_replica_alone_checks_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
