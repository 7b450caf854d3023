/* SPDX-License-Identifier: Apache-2.0 */
/* Clones between two stores: what is missing, damaged or contradicting here becomes what the source
 * has; what is here is not fetched again; nothing is collected meanwhile. */
#include "participant/maintain/cloner.h"
#include "tests/lib/test_dir.h"
#include "tests/unit/participant/maintain/clone_fixture.h"

/* ---- tests ---- */

static void an_empty_replica_gets_everything(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 6; v++)
        add_version(pair->there, pair->there_set, v, v == 4 ? 0 : v == 5 ? LARGE : SMALL);
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(bound, 6);
    is_equal(pair);
    restart_here(pair);
    is_equal(pair);
    for (version_t v = 1; v <= 6; v++)
        if (v != 4)
            assert_int_equal(fixture_check(pair->here, TABLET, v, v == 5 ? LARGE : SMALL), 0);
    /* Again: nothing to do, nothing fetched. */
    pair->reads = 0;
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(pair->reads, 0);
    assert_int_equal(bound, 6);
}

static void many_versions_come_in_pages(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= CLONE_LIST_VERSIONS_MAX + 20; v++)
        add_version(pair->there, pair->there_set, v * 2, 100);
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(bound, 2 * (CLONE_LIST_VERSIONS_MAX + 20));
    assert_true(pair->lists >= 3);
    is_equal(pair);
}

static void what_is_staged_here_is_not_fetched(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->there, pair->there_set, v, SMALL);
    add_version(pair->here, pair->here_set, 1, SMALL);
    assert_int_equal(fixture_put(pair->here, TXN + 3, 3, TABLET, SMALL, SMALL), 0);
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(pair->reads, 1);
    is_equal(pair);
}

/* Staged with other bytes under the same number: not what the log names. */
static void a_staged_rowset_with_another_digest_is_replaced(void **state)
{
    struct pair *pair = *state;
    struct rowset_meta meta;
    version_t bound;
    char other[] = "other bytes than there";

    add_version(pair->there, pair->there_set, 1, SMALL);
    fixture_meta(&meta, TXN + 1, 1, TABLET, slice_str(other));
    assert_int_equal(fixture_send(pair->here, TXN + 1, 1, TABLET, 0, slice_str(other), &meta), 0);
    rowset_meta_close(&meta);
    assert_int_equal(run(pair, 0, &bound), 0);
    is_equal(pair);
    assert_int_equal(fixture_check(pair->here, TABLET, 1, SMALL), 0);
}

static void a_chain_that_contradicts_is_dropped_and_cloned_anew(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->there, pair->there_set, v, SMALL);
    add_version(pair->here, pair->here_set, 1, SMALL);
    add_version(pair->here, pair->here_set, 2, SMALL + 1); /* another rowset by that number */
    pair->untrusted = true; /* then it may be the source that is wrong */
    assert_int_equal(run(pair, 0, &bound), TG_CORRUPT);
    assert_int_equal(tablet_set_last(pair->here_set, TABLET), 2);
    pair->untrusted = false;
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(bound, 3);
    is_equal(pair);
    restart_here(pair);
    is_equal(pair);
}

static void a_replica_that_is_ahead_of_the_source_stays_so(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->here, pair->here_set, v, SMALL);
    add_version(pair->there, pair->there_set, 1, SMALL);
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(bound, 3);
    assert_int_equal(tablet_set_last(pair->here_set, TABLET), 3);
}

/* Rule 10 and case O33: clones belong to transactions that are long over, which collection would
 * drop. Its word may even come in the middle. */
static void drop_all(struct pair *pair)
{
    rowset_store_set_low_water(pair->here->store, TXN + 50);
    for (version_t v = 1; v <= 4; v++)
        assert_int_equal(rowset_drop_txn(pair->here->store, TXN + v), 0);
}

static void collection_takes_nothing_from_a_clone_under_way(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 4; v++)
        add_version(pair->there, pair->there_set, v, v == 2 ? LARGE : SMALL);
    pair->between = drop_all;
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(bound, 4);
    is_equal(pair);
    /* Afterwards the word counts again. */
    struct buf content = BUF_INIT;
    fixture_content(77, 100, &content);
    assert_int_equal(
        fixture_send(pair->here, TXN + 4, 77, TABLET, 0, slice_of(content.data, content.len), NULL),
        TG_REFUSED);
    buf_close(&content);
}

static void one_round_of_a_tablet_at_a_time(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    add_version(pair->there, pair->there_set, 1, SMALL);
    assert_int_equal(rowset_store_hold(pair->here->store, TABLET), 0);
    assert_int_equal(run(pair, 0, &bound), TG_BUSY);
    rowset_store_let_go(pair->here->store, TABLET);
    assert_int_equal(run(pair, 0, &bound), 0);
}
static void damaged_rowsets_are_replaced(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++) {
        add_version(pair->there, pair->there_set, v, LARGE / 4);
        add_version(pair->here, pair->here_set, v, LARGE / 4);
    }
    spoil_rowset_2(pair->here);
    assert_int_equal(fixture_check(pair->here, TABLET, 1, LARGE / 4), 0);
    struct tg_errmsg msg;
    struct clone_tablet clone = {.store = pair->here->store,
                                 .tablets = pair->here_set,
                                 .throttle = &pair->throttle,
                                 .stop = &pair->stop,
                                 .order = {.tablet = TABLET}};
    version_t damaged;
    assert_int_equal(clone_tablet_verify(&clone, 0, &damaged, &msg), 0);
    assert_int_equal(damaged, 2);
    /* A round that is not told leaves it, one that is mends it. */
    assert_int_equal(run(pair, 0, &bound), 0);
    assert_int_equal(pair->reads, 0);
    assert_int_equal(run(pair, 2, &bound), 0);
    assert_true(pair->reads > 0);
    assert_int_equal(clone_tablet_verify(&clone, 0, &damaged, &msg), 0);
    assert_int_equal(damaged, 0);
    is_equal(pair);
    restart_here(pair);
    is_equal(pair);
    for (version_t v = 1; v <= 3; v++)
        assert_int_equal(fixture_check(pair->here, TABLET, v, LARGE / 4), 0);
}

/* Cut off between the drop of the damaged rowset and its coming back. */
static void a_mending_that_is_cut_off_is_gone_on_with(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++) {
        add_version(pair->there, pair->there_set, v, LARGE);
        add_version(pair->here, pair->here_set, v, LARGE);
    }
    spoil_rowset_2(pair->here);
    pair->fail_reads = 2;
    assert_int_equal(run(pair, 1, &bound), TG_UNREACHABLE);
    restart_here(pair);
    pair->fail_reads = 0;
    assert_int_equal(run(pair, 1, &bound), 0);
    is_equal(pair);
    assert_int_equal(fixture_check(pair->here, TABLET, 2, LARGE), 0);
}

static void a_damaged_source_is_not_copied(void **state)
{
    struct pair *pair = *state;
    version_t bound;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->there, pair->there_set, v, LARGE / 4);
    spoil_rowset_2(pair->there);
    assert_int_not_equal(run(pair, 0, &bound), 0);
    assert_true(bound < 2);
}

/* ---- orders ---- */

static void orders_are_carried_out_and_asked_for(void **state)
{
    struct pair *pair = *state;
    struct cloner_options options = {.store = pair->here->store,
                                     .tablets = pair->here_set,
                                     .damage = &pair->damage,
                                     .clock = clock_system(),
                                     .calls = pair->calls};
    struct msg_clone order = {
        .tablet = TABLET, .table = FIXTURE_TABLE, .round = 1, .source = 1, .address = "there"};
    struct msg_clone_reply reply;
    struct cloner *cloner;

    add_version(pair->there, pair->there_set, 1, SMALL);
    assert_int_equal(cloner_open(&options, &cloner), 0);
    do
        assert_int_equal(cloner_order(cloner, &order, &reply), 0);
    while (reply.state == CLONE_UNDER_WAY);
    assert_int_equal(reply.state, CLONE_DONE);
    assert_int_equal(reply.bound, 1);
    assert_true(reply.bytes > 0);
    /* The same round again is a question, another one an order. */
    add_version(pair->there, pair->there_set, 2, SMALL);
    assert_int_equal(cloner_order(cloner, &order, &reply), 0);
    assert_int_equal(reply.state, CLONE_DONE);
    assert_int_equal(reply.bound, 1);
    order.round = 2;
    do
        assert_int_equal(cloner_order(cloner, &order, &reply), 0);
    while (reply.state == CLONE_UNDER_WAY);
    assert_int_equal(reply.bound, 2);
    assert_int_equal(cloner_rounds(cloner), 2);
    /* When it was ordered is remembered: nobody may drop it on older word. */
    uint64_t now = clock_monotonic_ms(clock_system());
    assert_true(cloner_ordered_since(cloner, TABLET, now > 60000 ? now - 60000 : 1));
    assert_false(cloner_ordered_since(cloner, TABLET, now + 1000));
    assert_false(cloner_ordered_since(cloner, TABLET + 1, now > 60000 ? now - 60000 : 1));
    /* A tablet that a reader complained about. */
    tablet_set_suspect(pair->here_set, TABLET);
    while (tablet_set_take_suspect(pair->here_set) != 0)
        ;
    cloner_close(cloner);
    assert_int_equal(pair->damage.count, 0);
    is_equal(pair);
}

static void a_throttle_makes_takers_wait_in_turn(void **state)
{
    struct throttle throttle;

    (void)state;
    throttle_init(&throttle, clock_system(), 1000);
    assert_int_equal(throttle_take(&throttle, 1000), 0);
    uint64_t second = throttle_take(&throttle, 1000);
    uint64_t third = throttle_take(&throttle, 1);
    assert_in_range(second, 900000, 1000000);
    assert_in_range(third, 1900000, 2000000);
    throttle_close(&throttle);
    throttle_init(&throttle, clock_system(), 0);
    assert_int_equal(throttle_take(&throttle, 1u << 30), 0);
    assert_int_equal(throttle_take(&throttle, 1u << 30), 0);
    throttle_close(&throttle);
}

static void the_first_damaged_version_of_a_tablet_is_told(void **state)
{
    struct pair *pair = *state;
    struct damaged_version *list;
    uint32_t count;

    assert_true(damage_list_add(&pair->damage, 1, 9));
    assert_true(damage_list_add(&pair->damage, 1, 4));
    assert_true(damage_list_add(&pair->damage, 2, 7));
    assert_int_equal(damage_list_copy(&pair->damage, &list, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].version, 4);
    free(list);
    damage_list_remove(&pair->damage, 1);
    damage_list_remove(&pair->damage, 2);
    damage_list_remove(&pair->damage, 3);
    assert_int_equal(damage_list_copy(&pair->damage, &list, &count), 0);
    assert_int_equal(count, 0);
    for (tablet_id t = 1; t <= HEARTBEAT_DAMAGED_MAX; t++)
        assert_true(damage_list_add(&pair->damage, t, 1));
    assert_false(damage_list_add(&pair->damage, 1000, 1));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_replica_gets_everything),
        TEST(many_versions_come_in_pages),
        TEST(what_is_staged_here_is_not_fetched),
        TEST(a_staged_rowset_with_another_digest_is_replaced),
        TEST(a_chain_that_contradicts_is_dropped_and_cloned_anew),
        TEST(a_replica_that_is_ahead_of_the_source_stays_so),
        TEST(collection_takes_nothing_from_a_clone_under_way),
        TEST(one_round_of_a_tablet_at_a_time),
        TEST(damaged_rowsets_are_replaced),
        TEST(a_mending_that_is_cut_off_is_gone_on_with),
        TEST(a_damaged_source_is_not_copied),
        TEST(orders_are_carried_out_and_asked_for),
        TEST(a_throttle_makes_takers_wait_in_turn),
        TEST(the_first_damaged_version_of_a_tablet_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
