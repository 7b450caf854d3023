/* SPDX-License-Identifier: Apache-2.0 */
/* From COMMITTED to VISIBLE and to confirmed: versions, prev, quorums, stragglers, TRUNCATE and
 * DROP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/state_builder.h"

static int setup(void **state)
{
    static struct state_builder builder;
    state_builder_init(&builder);
    state_builder_members(&builder, 1, 3);
    assert_int_equal(state_builder_db(&builder, "d"), 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 4, .replication = 3};
    assert_int_equal(state_builder_table(&builder, &table), 0);
    table.table = "u";
    assert_int_equal(state_builder_table(&builder, &table), 0);
    *state = &builder;
    return 0;
}
static int teardown(void **state)
{
    struct state_builder *builder = *state;
    state_builder_check(&builder->state);
    state_builder_close(builder);
    return 0;
}

/* A plain load into these buckets, COMMITTED. */
static struct txn *committed(struct state_builder *b, const char *table, const char *label,
                             uint64_t buckets, uint8_t sealed)
{
    assert_int_equal(state_builder_begin(b, 1, "d", table, label, false), 0);
    txn_id id = b->last.txn;
    assert_int_equal(state_builder_done(b, id, b->last.rowset, buckets, sealed), 0);
    return txn_table_find(&b->state.txns, id);
}

/* Rule 1: a version touches some tablets only, and publish says which version came before there. */
static void test_prev_is_the_last_version_that_touched_the_tablet(void **state)
{
    struct state_builder *b = *state;
    struct txn *one = committed(b, "t", "a", 3, 7);   /* buckets 0, 1 */
    struct txn *two = committed(b, "t", "b", 2, 7);   /* bucket 1 */
    struct txn *three = committed(b, "t", "c", 9, 7); /* buckets 0, 3 */
    const struct table *table = state_builder_find(b, "d", "t");
    assert_int_equal(one->publish_count, 2);
    assert_int_equal(one->publish[0].tablet, table->tablets[0]->id);
    assert_int_equal(one->publish[0].prev, 0);
    assert_int_equal(two->publish_count, 1);
    assert_int_equal(two->publish[0].prev, 1);
    assert_int_equal(three->publish_count, 2);
    assert_int_equal(three->publish[0].prev, 1);
    assert_int_equal(three->publish[1].tablet, table->tablets[3]->id);
    assert_int_equal(three->publish[1].prev, 0);
    assert_int_equal(table->committed, 3);
    assert_int_equal(table->visible, 0);
    assert_int_equal(tablet_need(table->tablets[0], 2), 1);
    assert_int_equal(tablet_need(table->tablets[0], 3), 3);
    assert_int_equal(tablet_need(table->tablets[2], 3), 0);
}

static void test_several_loads_of_one_transaction_make_one_version_of_each_table(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    const char *const tables[] = {"u", "t", "u"};
    const uint64_t buckets[] = {1, 15, 6};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(state_builder_load_start(b, 1u + (unsigned)i, txn->id, "d", tables[i]), 0);
        assert_int_equal(state_builder_done(b, txn->id, b->last.rowset, buckets[i], 7), 0);
    }
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), 0);
    const struct table *t = state_builder_find(b, "d", "t");
    const struct table *u = state_builder_find(b, "d", "u");
    assert_int_equal(txn->table_count, 2);
    assert_int_equal(txn->tables[0].table, u->id); /* the order of the first loads */
    assert_int_equal(txn->tables[0].version, 1);
    assert_int_equal(txn->tables[1].version, 1);
    assert_int_equal(txn->publish_count, 3 + 4);
    assert_int_equal(u->versions[0].rows, 30);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 7), 0);
    /* Both tables at the same instant. */
    assert_int_equal(t->versions[0].time_us, u->versions[0].time_us);
    assert_int_equal(t->visible, 1);
    assert_int_equal(u->visible, 1);
    assert_int_equal(u->row_estimate, 30);
}

static void test_visible_needs_a_majority_of_every_tablet(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = committed(b, "t", "a", 3, 7);
    uint8_t bits[2] = {7, 1};
    struct visible_txn named = {.txn = txn->id, .tablet_count = 2, .confirmed = bits};
    struct command command = {.type = COMMAND_TXN_VISIBLE, .visible = {1, &named}};
    assert_int_equal(txn_may_become_visible(&b->state, txn, bits, false), TG_QUORUM);
    assert_int_equal(state_builder_apply(b, &command), TG_QUORUM);
    assert_int_equal(txn->state, TXN_COMMITTED);
    assert_int_equal(txn->publish[0].confirmed, 0);
    /* After publish_wait one good replica suffices, but one it must be. */
    named.one_is_enough = true;
    bits[1] = 0;
    assert_int_equal(state_builder_apply(b, &command), TG_QUORUM);
    bits[1] = 1;
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(txn->state, TXN_VISIBLE);
    /* A wrong number of tablets is a mistake of the publisher. */
    txn = committed(b, "t", "b", 1, 7);
    named.txn = txn->id;
    assert_int_equal(state_builder_apply(b, &command), TG_INVALID);
}

static void test_versions_become_visible_in_order_only(void **state)
{
    struct state_builder *b = *state;
    struct txn *one = committed(b, "t", "a", 1, 7);
    struct txn *two = committed(b, "t", "b", 2, 7);
    uint8_t bits[1] = {7};
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, two->id, 7), TG_STALE);
    struct visible_txn named[2] = {{.txn = two->id, .tablet_count = 1, .confirmed = bits},
                                   {.txn = one->id, .tablet_count = 1, .confirmed = bits}};
    struct command command = {.type = COMMAND_TXN_VISIBLE, .visible = {2, named}};
    /* In the wrong order the first is left out, the second goes through. */
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(one->state, TXN_VISIBLE);
    assert_int_equal(two->state, TXN_COMMITTED);
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(two->state, TXN_VISIBLE);
}

static void test_completions_of_one_command_take_following_microseconds(void **state)
{
    struct state_builder *b = *state;
    struct visible_txn named[3];
    uint8_t bits[1] = {7};
    const char *const labels[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        named[i] = (struct visible_txn){
            .txn = committed(b, "t", labels[i], 1, 7)->id, .tablet_count = 1, .confirmed = bits};
    struct command command = {.type = COMMAND_TXN_VISIBLE, .visible = {3, named}};
    assert_int_equal(state_builder_apply(b, &command), 0);
    const struct table *table = state_builder_find(b, "d", "t");
    for (int i = 0; i < 3; i++)
        assert_int_equal(table->versions[i].time_us, b->now_us + (uint64_t)i);
    assert_int_equal(b->state.stamp_us, b->now_us + 2);
    assert_int_equal(table->row_estimate, 30);
}

static void test_a_transaction_is_over_when_every_good_replica_confirmed(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = committed(b, "t", "a", 15, 7);
    txn_id low = b->state.txn_low_water;
    assert_int_equal(low, txn->id);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 3), 0);
    assert_false(txn->confirmed);
    assert_int_equal(b->state.txn_low_water, low);
    assert_int_equal(txn->publish[0].confirmed, 3);
    assert_non_null(txn->loads[0].tablets);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, txn->id, 4), 0);
    assert_true(txn->confirmed);
    assert_null(txn->publish);
    assert_null(txn->loads[0].tablets);
    assert_int_equal(b->state.txn_low_water, txn->id + 1);
    assert_int_equal(b->state.txns.finished.count, 1);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, txn->id, 4), 0);
    /* Only what is VISIBLE can be confirmed. */
    txn = committed(b, "t", "b", 1, 7);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, txn->id, 4), TG_TXN_STATE);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, 99, 4), TG_TXN_NOT_FOUND);
}

static void test_a_missed_write_puts_a_replica_behind_and_nobody_waits_for_it(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = committed(b, "t", "a", 3, 6);
    const struct table *table = state_builder_find(b, "d", "t");
    assert_int_equal(tablet_behind(table->tablets[0]), 1);
    assert_int_equal(tablet_behind(table->tablets[1]), 1);
    assert_int_equal(tablet_behind(table->tablets[2]), 0);
    /* The replica that is behind is no vote. */
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 3), TG_QUORUM);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 6), 0);
    assert_true(txn->confirmed);
}

static void test_one_missing_load_of_several_puts_a_replica_behind(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id txn = b->last.txn;
    const uint8_t sealed[] = {7, 5, 7};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), 0);
        assert_int_equal(state_builder_done(b, txn, b->last.rowset, 1, sealed[i]), 0);
    }
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
    assert_int_equal(tablet_behind(state_builder_find(b, "d", "t")->tablets[0]), 2);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 3), TG_QUORUM);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 5), 0);
}

static void test_a_replica_that_says_it_is_behind_is_believed(void **state)
{
    struct state_builder *b = *state;
    struct txn *one = committed(b, "t", "a", 1, 7);
    struct txn *two = committed(b, "t", "b", 1, 7);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, one->id, 3), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, two->id, 3), 0);
    assert_false(one->confirmed);
    const struct tablet *tablet = state_builder_find(b, "d", "t")->tablets[0];
    struct command command = {.type = COMMAND_REPLICA_BEHIND};
    command.behind = (struct command_behind){tablet->id, tablet->replicas[2].node, two->id};
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(tablet->replicas[2].behind_version, 2);
    /* Nothing waits for it any more, so that leftovers can be collected. */
    assert_true(one->confirmed);
    assert_true(two->confirmed);
    assert_int_equal(b->state.txn_low_water, b->state.next_txn);
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_true(b->last.repeated);
    command.behind.txn = one->id;
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(tablet->replicas[2].behind_version, 1);

    command.behind.node = 77;
    assert_int_equal(state_builder_apply(b, &command), TG_NOT_FOUND);
    command.behind.node = tablet->replicas[1].node;
    command.behind.txn = 77;
    assert_int_equal(state_builder_apply(b, &command), TG_TXN_NOT_FOUND);
    /* A version that did not touch the tablet is nothing it could lack. */
    command.behind.txn = committed(b, "t", "c", 2, 7)->id;
    assert_int_equal(state_builder_apply(b, &command), TG_TXN_STATE);
}

static void test_truncate_is_a_version_that_replaces_everything(void **state)
{
    struct state_builder *b = *state;
    state_builder_load(b, "d", "t", "a");
    struct table *table = state_builder_find(b, "d", "t");
    assert_int_equal(table->row_estimate, 40);
    assert_int_equal(state_builder_name(b, COMMAND_TRUNCATE_TABLE, "d", "t", false, false), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    assert_int_equal(txn->state, TXN_COMMITTED);
    assert_true(txn->tables[0].truncate);
    assert_int_equal(txn->publish_count, 4);
    assert_int_equal(txn->publish[3].prev, 1);
    assert_int_equal(table->versions[1].action, VERSION_TRUNCATE);
    assert_int_equal(table->committed, 2);
    char label[40];
    snprintf(label, sizeof label, "truncate_%llu", (unsigned long long)txn->id);
    assert_string_equal(txn->label, label);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 7), 0);
    assert_int_equal(table->visible, 2);
    assert_int_equal(table->row_estimate, 0);
    assert_int_equal(state_builder_name(b, COMMAND_TRUNCATE_TABLE, "d", "x", false, false),
                     TG_NOT_FOUND);
    /* A client may have taken the next label of that form already. */
    snprintf(label, sizeof label, "truncate_%llu", (unsigned long long)b->state.next_txn + 1);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", label, false), 0);
    assert_int_equal(state_builder_name(b, COMMAND_TRUNCATE_TABLE, "d", "t", false, false), 0);
    assert_string_not_equal(txn_table_find(&b->state.txns, b->last.txn)->label, label);
}

/* Rule 15: a dropped table counts as published. */
static void test_a_dropped_table_holds_nobody_up(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    const char *const tables[] = {"t", "u"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(state_builder_load_start(b, 1, txn->id, "d", tables[i]), 0);
        assert_int_equal(state_builder_done(b, txn->id, b->last.rowset, 1, 7), 0);
    }
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), 0);
    table_id t = state_builder_find(b, "d", "t")->id;
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "t", false, false), 0);
    assert_true(txn->tables[0].gone);
    assert_false(txn->tables[1].gone);
    assert_non_null(catalog_table_by_id(&b->state.catalog, t));
    uint8_t bits[2] = {0, 3};
    struct visible_txn named = {.txn = txn->id, .tablet_count = 2, .confirmed = bits};
    struct command command = {.type = COMMAND_TXN_VISIBLE, .visible = {1, &named}};
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(state_builder_find(b, "d", "u")->visible, 1);
    assert_false(txn->confirmed);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "u", false, false), 0);
    assert_true(txn->confirmed);
    assert_null(b->state.catalog.tables);
    assert_null(b->state.catalog.tablets);
}

/* Rule 10: what is below low water is dead, and low water passes nothing unfinished. */
static void test_low_water_stops_at_the_oldest_unfinished_transaction(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "slow", true), 0);
    txn_id slow = b->last.txn;
    rowset_id rowset = b->last.rowset;
    for (int i = 0; i < 5; i++) {
        char label[16];
        snprintf(label, sizeof label, "l%d", i);
        state_builder_load(b, "d", "t", label);
    }
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "dead", true), 0);
    txn_id dead = b->last.txn;
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, dead), 0);
    assert_int_equal(b->state.txn_low_water, slow);
    assert_false(state_staged_is_dead(&b->state, slow, false));
    assert_true(state_staged_is_dead(&b->state, dead, false));
    assert_int_equal(state_builder_done(b, slow, rowset, 1, 7), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, slow), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, slow, 7), 0);
    assert_int_equal(b->state.txn_low_water, b->state.next_txn);
    assert_true(state_staged_is_dead(&b->state, slow, false));
}

static void test_the_publishing_list_is_in_the_order_of_commits(void **state)
{
    struct state_builder *b = *state;
    txn_id ids[3];
    rowset_id rowsets[3];
    const char *const labels[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(state_builder_begin(b, 1, "d", "t", labels[i], false), 0);
        ids[i] = b->last.txn;
        rowsets[i] = b->last.rowset;
    }
    const int order[] = {1, 2, 0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(state_builder_done(b, ids[order[i]], rowsets[order[i]], 1, 7), 0);
    state_builder_restore(b);
    const struct txn *txn = b->state.txns.publishing.first;
    for (int i = 0; i < 3; i++, txn = txn->next) {
        assert_int_equal(txn->id, ids[order[i]]);
        assert_int_equal(txn->tables[0].version, i + 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_prev_is_the_last_version_that_touched_the_tablet),
        TEST(test_several_loads_of_one_transaction_make_one_version_of_each_table),
        TEST(test_visible_needs_a_majority_of_every_tablet),
        TEST(test_versions_become_visible_in_order_only),
        TEST(test_completions_of_one_command_take_following_microseconds),
        TEST(test_a_transaction_is_over_when_every_good_replica_confirmed),
        TEST(test_a_missed_write_puts_a_replica_behind_and_nobody_waits_for_it),
        TEST(test_one_missing_load_of_several_puts_a_replica_behind),
        TEST(test_a_replica_that_says_it_is_behind_is_believed),
        TEST(test_truncate_is_a_version_that_replaces_everything),
        TEST(test_a_dropped_table_holds_nobody_up),
        TEST(test_low_water_stops_at_the_oldest_unfinished_transaction),
        TEST(test_the_publishing_list_is_in_the_order_of_commits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
