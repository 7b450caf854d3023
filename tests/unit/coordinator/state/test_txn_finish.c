/* SPDX-License-Identifier: Apache-2.0 */
/* Precommit, commit and abort: one wins, the others are told the real state in the words that
 * clients match. */
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
    table.table = "occ";
    table.occ = true;
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

static struct txn *precommitted(struct state_builder *b, const char *table, const char *label,
                                uint64_t buckets)
{
    assert_int_equal(state_builder_begin(b, 1, "d", table, label, true), 0);
    txn_id id = b->last.txn;
    assert_int_equal(state_builder_done(b, id, b->last.rowset, buckets, 7), 0);
    return txn_table_find(&b->state.txns, id);
}

static void expect_msg(const struct state_builder *b, const char *format, txn_id txn)
{
    char text[200];
    snprintf(text, sizeof text, format, (unsigned long long)txn);
    assert_string_equal(b->last.msg.text, text);
}

static void test_commit_answers_in_every_state(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, 99), TG_TXN_NOT_FOUND);
    expect_msg(b, "transaction [%llu] not found", 99);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "p", true), 0);
    txn_id prepare = b->last.txn;
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, prepare), TG_TXN_STATE);
    expect_msg(b, "transaction [%llu] is prepare, not pre-committed.", prepare);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_PRECOMMIT, prepare), TG_TXN_STATE);

    txn_id txn = precommitted(b, "t", "l", 1)->id;
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
    assert_int_equal(b->last.txn_state, TXN_COMMITTED);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), TG_TXN_STATE);
    expect_msg(b, "transaction [%llu] is already committed, not pre-committed.", txn);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, txn), TG_TXN_STATE);
    expect_msg(b, "transaction [%llu] is already COMMITTED, could not abort.", txn);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 3), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), TG_TXN_STATE);
    expect_msg(b, "transaction [%llu] is already visible, not pre-committed.", txn);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, txn), TG_TXN_STATE);
    expect_msg(b, "transaction [%llu] is already VISIBLE, could not abort.", txn);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_PRECOMMIT, txn), TG_TXN_STATE);

    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, prepare), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, prepare), TG_TXN_ABORTED);
    expect_msg(b, "transaction [%llu] is already aborted, abort reason: User Abort", prepare);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, prepare), TG_TXN_ABORTED);
    expect_msg(b, "transaction [%llu] is already aborted. abort reason: User Abort", prepare);
}

static void test_a_repeated_request_gets_the_same_answer(void **state)
{
    struct state_builder *b = *state;
    const enum command_type types[] = {COMMAND_TXN_COMMIT, COMMAND_TXN_ABORT};
    const char *const labels[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        struct txn *txn = precommitted(b, "t", labels[i], 1);
        struct command command = {.type = types[i]};
        command.finish.txn = txn->id;
        command.finish.db = txn->db;
        command.finish.key = (struct request_key){0, 111, (uint64_t)i};
        assert_int_equal(state_builder_apply(b, &command), 0);
        assert_false(b->last.repeated);
        enum txn_state after = b->last.txn_state;
        assert_int_equal(state_builder_apply(b, &command), 0);
        assert_true(b->last.repeated);
        assert_int_equal(b->last.txn_state, after);
        command.finish.key.request += 10;
        assert_int_not_equal(state_builder_apply(b, &command), 0);
    }
    assert_int_equal(state_builder_find(b, "d", "t")->committed, 1);
}

static void test_a_transaction_of_another_database_is_not_found(void **state)
{
    struct state_builder *b = *state;
    struct command command = {.type = COMMAND_TXN_COMMIT};
    command.finish.txn = precommitted(b, "t", "a", 1)->id;
    command.finish.db = 77;
    assert_int_equal(state_builder_apply(b, &command), TG_TXN_NOT_FOUND);
}

static void test_precommit_is_idempotent(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = precommitted(b, "t", "a", 1);
    uint64_t seq = txn->state_seq;
    uint64_t at = txn->precommit_elapsed_ms;
    state_builder_elapse(b, 1000);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_PRECOMMIT, txn->id), 0);
    assert_true(b->last.repeated);
    assert_int_equal(txn->state_seq, seq);
    assert_int_equal(txn->precommit_elapsed_ms, at);
}

/* The age of a precommitted transaction counts from its precommit. */
static void test_ages_are_elapsed_time_from_begin_and_from_precommit(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "a1", true), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    uint64_t began = txn->begin_elapsed_ms;
    state_builder_elapse(b, 5000);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 1, 7), 0);
    assert_int_equal(txn->precommit_elapsed_ms, began + 5000);
    assert_int_equal(b->state.elapsed_ms - txn->precommit_elapsed_ms, 0);
    state_builder_elapse(b, 3000);
    assert_int_equal(b->state.elapsed_ms - txn->precommit_elapsed_ms, 3000);
    /* The sweeper's abort, and what the late commit hears. */
    struct command sweep = {.type = COMMAND_TXN_ABORT};
    sweep.finish = (struct command_finish){.txn = txn->id,
                                           .expect_state = TXN_PRECOMMITTED,
                                           .expect_seq = txn->state_seq,
                                           .reason = "timeout by txn manager"};
    assert_int_equal(state_builder_apply(b, &sweep), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), TG_TXN_ABORTED);
    expect_msg(b, "transaction [%llu] is already aborted. abort reason: timeout by txn manager",
               txn->id);
    /* The label is free again. */
    txn = precommitted(b, "t", "a1", 1);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), 0);
}

/* Commit and abort race; either order leaves one outcome, and both hear of it. */
static void test_commit_and_abort_race_in_both_orders(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = precommitted(b, "t", "a", 1);
    uint64_t seq = txn->state_seq;
    struct command sweep = {.type = COMMAND_TXN_ABORT};
    sweep.finish = (struct command_finish){
        .txn = txn->id, .expect_state = TXN_PRECOMMITTED, .expect_seq = seq};
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), 0);
    assert_int_equal(state_builder_apply(b, &sweep), TG_TXN_STATE);
    assert_int_equal(b->last.txn_state, TXN_COMMITTED);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, txn->id), TG_TXN_STATE);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 7), 0);

    txn = precommitted(b, "t", "b", 1);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, txn->id), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), TG_TXN_ABORTED);
    /* No version is lost: the next load becomes visible. */
    state_builder_load(b, "d", "t", "c");
    assert_int_equal(state_builder_find(b, "d", "t")->visible, 2);
}

/* Rule 8: what was decided on an old look does not apply. */
static void test_an_automatic_abort_applies_only_to_what_was_seen(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "a", true), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    struct command sweep = {.type = COMMAND_TXN_ABORT};
    sweep.finish = (struct command_finish){
        .txn = txn->id, .expect_state = TXN_PREPARE, .expect_seq = txn->state_seq};
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 1, 7), 0);
    assert_int_equal(state_builder_apply(b, &sweep), TG_TXN_STATE);
    assert_int_equal(txn->state, TXN_PRECOMMITTED);
    sweep.finish.expect_state = TXN_PRECOMMITTED;
    assert_int_equal(state_builder_apply(b, &sweep), TG_TXN_STATE);
    sweep.finish.expect_seq = txn->state_seq;
    assert_int_equal(state_builder_apply(b, &sweep), 0);
}

static void test_an_explicit_transaction_commits_from_prepare_when_its_loads_are_done(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), 0);
    rowset_id rowset = b->last.rowset;
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), TG_TXN_STATE);
    expect_msg(b, "transaction [%llu] is prepare, not pre-committed: its load 1 still runs", txn);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_PRECOMMIT, txn), TG_TXN_STATE);
    assert_int_equal(state_builder_done(b, txn, rowset, 1, 7), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
    assert_int_equal(b->last.txn_state, TXN_COMMITTED);
}

static void test_an_explicit_transaction_may_precommit_first(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), 0);
    assert_int_equal(state_builder_done(b, txn, b->last.rowset, 1, 7), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_PRECOMMIT, txn), 0);
    assert_int_equal(b->last.txn_state, TXN_PRECOMMITTED);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
}

/* Each load has its quorum, but only one replica holds both: committed like that, the version would
 * wait for copies that nobody has. */
static void
test_an_explicit_transaction_leaves_prepare_with_a_quorum_for_all_its_loads(void **state)
{
    static const enum command_type ways[] = {COMMAND_TXN_PRECOMMIT, COMMAND_TXN_COMMIT};
    struct state_builder *b = *state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(state_builder_begin(b, 0, "d", NULL, i == 0 ? "x" : "y", false), 0);
        txn_id txn = b->last.txn;
        assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), 0);
        assert_int_equal(state_builder_done(b, txn, b->last.rowset, 3, 3), 0);
        assert_int_equal(state_builder_load_start(b, 2, txn, "d", "t"), 0);
        assert_int_equal(state_builder_done(b, txn, b->last.rowset, 2, 6), 0);
        assert_int_equal(state_builder_finish(b, ways[i], txn), TG_QUORUM);
        assert_non_null(
            strstr(b->last.msg.text, "succ replica num 1 < load required replica num 2"));
        assert_int_equal(txn_table_find(&b->state.txns, txn)->state, TXN_PREPARE);
        assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, txn), 0);
    }
}

/* A replica that fell behind after the load's report counts no more. */
static void test_leaving_prepare_judges_replicas_as_they_are_then(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), 0);
    assert_int_equal(state_builder_done(b, txn, b->last.rowset, 1, 6), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "other", false), 0);
    assert_int_equal(state_builder_done(b, b->last.txn, b->last.rowset, 1, 3), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), TG_QUORUM);
}

static void test_an_explicit_transaction_without_loads_commits(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 0), 0);
    assert_true(txn_table_find(&b->state.txns, txn)->confirmed);
    assert_int_equal(b->state.txn_low_water, b->state.next_txn);
}

/* Rule 15. */
static void test_commit_of_a_dropped_table_fails_and_abort_works(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = precommitted(b, "t", "a", 1);
    table_id table = txn->tables[0].table;
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "t", false, false), 0);
    assert_true(catalog_table_by_id(&b->state.catalog, table)->dropped);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), TG_NOT_FOUND);
    assert_string_equal(b->last.msg.text, "table not found, tableName=t");
    assert_int_equal(txn->state, TXN_PRECOMMITTED);
    state_builder_restore(b);
    assert_non_null(catalog_table_by_id(&b->state.catalog, table));
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, 1), 0);
    assert_null(catalog_table_by_id(&b->state.catalog, table));
}

static void test_transactions_of_a_dropped_database_can_only_be_aborted(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id empty = b->last.txn;
    txn_id loaded = precommitted(b, "t", "a", 1)->id;
    assert_int_equal(state_builder_name(b, COMMAND_DROP_DB, "d", NULL, false, true), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, empty), TG_NOT_FOUND);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, loaded), TG_NOT_FOUND);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, empty), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, loaded), 0);
    assert_null(b->state.catalog.tables);
}

static void test_occ_refuses_what_was_written_since(void **state)
{
    struct state_builder *b = *state;
    struct txn *first = precommitted(b, "occ", "a", 1);
    struct txn *second = precommitted(b, "occ", "b", 1);
    struct txn *elsewhere = precommitted(b, "occ", "c", 2);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, first->id), 0);
    /* Only COMMITTED, not yet visible: a conflict all the same. */
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, second->id), TG_REFUSED);
    assert_non_null(strstr(b->last.msg.text, "conflicts with version 1 of table occ"));
    assert_int_equal(second->state, TXN_PRECOMMITTED);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, elsewhere->id), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, second->id), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, first->id, 7), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, elsewhere->id, 7), 0);
    /* One that began after it saw it. */
    assert_int_equal(
        state_builder_finish(b, COMMAND_TXN_COMMIT, precommitted(b, "occ", "d", 1)->id), 0);
}

static void test_occ_refuses_a_plain_load_as_a_whole(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 1, "d", "occ", "a", false), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    state_builder_load(b, "d", "occ", "b");
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 1, 7), TG_REFUSED);
    assert_int_equal(txn->state, TXN_PREPARE);
    assert_int_equal(txn->loads[0].state, LOAD_RUNNING);
    assert_null(txn->loads[0].tablets);
    assert_int_equal(state_builder_failed(b, txn->id, txn->loads[0].rowset, "conflict"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commit_answers_in_every_state),
        TEST(test_a_repeated_request_gets_the_same_answer),
        TEST(test_a_transaction_of_another_database_is_not_found),
        TEST(test_precommit_is_idempotent),
        TEST(test_ages_are_elapsed_time_from_begin_and_from_precommit),
        TEST(test_commit_and_abort_race_in_both_orders),
        TEST(test_an_automatic_abort_applies_only_to_what_was_seen),
        TEST(test_an_explicit_transaction_commits_from_prepare_when_its_loads_are_done),
        TEST(test_an_explicit_transaction_may_precommit_first),
        TEST(test_an_explicit_transaction_leaves_prepare_with_a_quorum_for_all_its_loads),
        TEST(test_leaving_prepare_judges_replicas_as_they_are_then),
        TEST(test_an_explicit_transaction_without_loads_commits),
        TEST(test_commit_of_a_dropped_table_fails_and_abort_works),
        TEST(test_transactions_of_a_dropped_database_can_only_be_aborted),
        TEST(test_occ_refuses_what_was_written_since),
        TEST(test_occ_refuses_a_plain_load_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
