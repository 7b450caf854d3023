/* SPDX-License-Identifier: Apache-2.0 */
/* Beginning: labels, repeated requests, fences, limits, further loads, forgetting. */
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

static struct command begin_command(struct state_builder *b, node_id node, uint64_t request,
                                    const char *label)
{
    struct command command = {.type = COMMAND_TXN_BEGIN};
    command.begin.key = (struct request_key){node, state_builder_epoch(b, node), request};
    strcpy(command.begin.db, "d");
    strcpy(command.begin.table, "t");
    snprintf(command.begin.label, LABEL_BYTES, "%s", label);
    strcpy(command.begin.user, "root");
    command.begin.timeout_ms = 1000;
    return command;
}

static struct txn *find(struct state_builder *b, txn_id id)
{
    return txn_table_find(&b->state.txns, id);
}

static void test_a_begin_makes_a_transaction_and_its_first_load(void **state)
{
    struct state_builder *b = *state;
    struct command command = begin_command(b, 2, 41, "l");
    assert_int_equal(state_builder_apply(b, &command), 0);
    const struct txn *txn = find(b, b->last.txn);
    assert_int_equal(txn->state, TXN_PREPARE);
    assert_int_equal(b->last.txn_state, TXN_PREPARE);
    assert_false(txn->explicit_begin);
    assert_int_equal(txn->load_count, 1);
    assert_int_equal(txn->loads[0].rowset, b->last.rowset);
    assert_int_equal(txn->loads[0].load_no, 1);
    assert_int_equal(txn->tables[0].table, b->last.table);
    assert_int_equal(txn->timeout_ms, 1000);
    assert_string_equal(txn->user, "root");
    assert_ptr_equal(txn_table_find_label(&b->state.txns, txn->db, "l"), txn);
    assert_ptr_equal(txn_table_find_request(&b->state.txns, &command.begin.key), txn);
    assert_int_equal(catalog_database(&b->state.catalog, "d")->running_txns, 1);
}

static void test_the_same_request_gets_the_same_transaction_in_any_state(void **state)
{
    struct state_builder *b = *state;
    struct command command = begin_command(b, 2, 41, "l");
    assert_int_equal(state_builder_apply(b, &command), 0);
    struct apply_result first = b->last;
    txn_id next = b->state.next_txn;
    const enum txn_state states[] = {TXN_PREPARE, TXN_COMMITTED, TXN_VISIBLE};
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            assert_int_equal(state_builder_done(b, first.txn, first.rowset, 1, 7), 0);
        if (i == 2)
            assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, first.txn, 7), 0);
        assert_int_equal(state_builder_apply(b, &command), 0);
        assert_true(b->last.repeated);
        assert_int_equal(b->last.txn, first.txn);
        assert_int_equal(b->last.rowset, first.rowset);
        assert_int_equal(b->last.table, first.table);
        assert_int_equal(b->last.txn_state, states[i]);
    }
    command = begin_command(b, 2, 42, "m");
    assert_int_equal(state_builder_apply(b, &command), 0);
    txn_id aborted = b->last.txn;
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, aborted), 0);
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(b->last.txn, aborted);
    assert_int_equal(b->last.txn_state, TXN_ABORTED);
    assert_int_equal(b->state.next_txn, next + 1);
}

/* What a second load with a used label is told. */
static void test_a_used_label_is_answered_with_its_transaction_and_state(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "L", true), 0);
    struct apply_result first = b->last;
    const char *const names[] = {"PREPARE", "PRECOMMITTED", "COMMITTED", "VISIBLE"};
    for (int i = 0; i < 4; i++) {
        if (i == 1)
            assert_int_equal(state_builder_done(b, first.txn, first.rowset, 1, 7), 0);
        if (i == 2)
            assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, first.txn), 0);
        if (i == 3)
            assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, first.txn, 7), 0);
        assert_int_equal(state_builder_begin(b, 2, "d", "t", "L", true), TG_LABEL_EXISTS);
        assert_int_equal(b->last.txn, first.txn);
        assert_string_equal(txn_state_name(b->last.txn_state), names[i]);
        char text[200];
        snprintf(text, sizeof text,
                 "Label [L] has already been used, relate to txn [%llu], status [%s].",
                 (unsigned long long)first.txn, names[i]);
        assert_string_equal(b->last.msg.text, text);
    }
    assert_string_equal(txn_state_job_status(TXN_PREPARE), "RUNNING");
    assert_string_equal(txn_state_job_status(TXN_VISIBLE), "FINISHED");
}

static void test_an_aborted_label_is_free_again_and_old_ones_stay_known(void **state)
{
    struct state_builder *b = *state;
    db_id db = catalog_database(&b->state.catalog, "d")->id;
    txn_id ids[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(state_builder_begin(b, 1, "d", "t", "L", false), 0);
        ids[i] = b->last.txn;
        if (i < 3)
            assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, ids[i]), 0);
    }
    const struct txn *txn = txn_table_find_label(&b->state.txns, db, "L");
    for (int i = 3; i >= 0; i--, txn = txn->same_label)
        assert_int_equal(txn->id, ids[i]);
    assert_null(txn);
    /* The middle one goes first. */
    b->state.limits.label_keep_ms = 0;
    assert_int_equal(state_builder_forget(b, ids[1]), 0);
    txn = txn_table_find_label(&b->state.txns, db, "L");
    assert_int_equal(txn->same_label->id, ids[2]);
    assert_int_equal(txn->same_label->same_label->id, ids[0]);
    assert_int_equal(state_builder_forget(b, ids[0]), 0);
    assert_int_equal(state_builder_forget(b, ids[2]), 0);
    assert_null(txn->same_label);
}

static void test_labels_of_two_databases_do_not_collide(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_db(b, "e"), 0);
    struct state_builder_table table = {.db = "e", .table = "t", .buckets = 1, .replication = 1};
    assert_int_equal(state_builder_table(b, &table), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "L", false), 0);
    assert_int_equal(state_builder_begin(b, 1, "e", "t", "L", false), 0);
    assert_int_equal(state_builder_begin(b, 1, "e", "t", "L", false), TG_LABEL_EXISTS);
}

static void test_unknown_names_are_told(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 1, "x", "t", "L", false), TG_NOT_FOUND);
    assert_string_equal(b->last.msg.text, "unknown database, database=x");
    assert_int_equal(state_builder_begin(b, 1, "d", "x", "L", false), TG_NOT_FOUND);
    assert_string_equal(b->last.msg.text, "table not found, tableName=x");
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "", false), TG_INVALID);
    assert_int_equal(b->state.next_txn, 1);
}

static void test_an_old_registration_is_fenced(void **state)
{
    struct state_builder *b = *state;
    struct command command = begin_command(b, 1, 1, "l");
    command.begin.key.epoch--;
    assert_int_equal(state_builder_apply(b, &command), TG_FENCED);
    command.begin.key.node = 9;
    assert_int_equal(state_builder_apply(b, &command), TG_FENCED);
}

static void test_the_limit_of_running_transactions_counts_a_database(void **state)
{
    struct state_builder *b = *state;
    b->state.limits.running_txns_per_db_max = 2;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "a", true), 0);
    txn_id first = b->last.txn;
    assert_int_equal(state_builder_done(b, first, b->last.rowset, 1, 7), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "b", false), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "c", false), TG_LIMIT);
    assert_string_equal(b->last.msg.text, "current running txns on db 1 is 2, larger than limit 2");
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, first), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "c", false), TG_LIMIT);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, first, 3), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "c", false), 0);
}

static void test_too_many_unpublished_transactions_name_the_blocker(void **state)
{
    struct state_builder *b = *state;
    b->state.limits.unpublished_per_table_max = 2;
    txn_id ids[2];
    const char *const labels[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(state_builder_begin(b, 1, "d", "t", labels[i], false), 0);
        ids[i] = b->last.txn;
        assert_int_equal(state_builder_done(b, ids[i], b->last.rowset, 1, 7), 0);
    }
    char blocker[40];
    snprintf(blocker, sizeof blocker, "is transaction [%llu]", (unsigned long long)ids[0]);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "c", false), TG_LIMIT);
    assert_non_null(strstr(b->last.msg.text, blocker));
    /* The other table is not concerned, and a begin without a table meets the limit at its load. */
    assert_int_equal(state_builder_begin(b, 1, "d", "u", "c", false), 0);
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "e", false), 0);
    assert_int_equal(state_builder_load_start(b, 1, b->last.txn, "d", "t"), TG_LIMIT);
    assert_non_null(strstr(b->last.msg.text, blocker));
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, ids[0], 7), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "c2", false), 0);
}

static void test_full_label_memory_refuses_rather_than_forgets(void **state)
{
    struct state_builder *b = *state;
    state_builder_load(b, "d", "t", "a");
    b->state.limits.label_memory_max = b->state.txns.finished_bytes;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "b", false), TG_LIMIT);
    assert_non_null(strstr(b->last.msg.text, "labels of 1 finished transactions"));
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "a", false), TG_LABEL_EXISTS);
    b->state.limits.label_memory_max++;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "b", false), 0);
}

/* A begin whose answer was lost is given up, and the label is free at once. */
static void test_giving_up_an_unknown_begin_aborts_what_it_made(void **state)
{
    struct state_builder *b = *state;
    struct command begin = begin_command(b, 1, 5, "l");
    assert_int_equal(state_builder_apply(b, &begin), 0);
    txn_id txn = b->last.txn;
    struct command failed = {.type = COMMAND_LOAD_FAILED};
    failed.load_failed = (struct command_load_failed){.key = begin.begin.key, .reason = "lost"};
    assert_int_equal(state_builder_apply(b, &failed), 0);
    assert_int_equal(b->last.txn, txn);
    assert_int_equal(b->last.txn_state, TXN_ABORTED);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "l", false), 0);
}

static void test_giving_up_a_begin_that_has_not_come_keeps_it_out_for_good(void **state)
{
    struct state_builder *b = *state;
    struct command begin = begin_command(b, 1, 5, "l");
    struct command failed = {.type = COMMAND_LOAD_FAILED};
    failed.load_failed = (struct command_load_failed){.key = begin.begin.key, .reason = "lost"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(state_builder_apply(b, &failed), 0);
        assert_int_equal(b->last.txn, 0);
        assert_int_equal(b->last.txn_state, TXN_ABORTED);
        assert_int_equal(b->last.repeated, i == 1);
    }
    assert_int_equal(b->state.txns.fence_count, 1);
    state_builder_restore(b);
    assert_int_equal(state_builder_apply(b, &begin), TG_REFUSED);
    assert_int_equal(b->state.next_txn, 1);

    /* The fence goes with the registration, and then the epoch keeps the begin out. */
    struct command again = {.type = COMMAND_MEMBER_REGISTER};
    const struct member *member = members_find(&b->state.members, 1);
    memcpy(again.member.message.node_uuid, member->uuid, UUID_BYTES);
    again.member.message.previous_nonce = member->nonce;
    again.member.message.new_nonce = 999;
    assert_int_equal(state_builder_apply(b, &again), 0);
    assert_int_equal(b->state.txns.fence_count, 0);
    assert_int_equal(state_builder_apply(b, &begin), TG_FENCED);
    assert_int_equal(state_builder_apply(b, &failed), 0);
    assert_int_equal(b->state.txns.fence_count, 0);
}

static void test_loads_join_an_explicit_transaction(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id txn = b->last.txn;
    assert_true(find(b, txn)->explicit_begin);
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), 0);
    rowset_id first = b->last.rowset;
    assert_int_equal(state_builder_load_start(b, 2, txn, "d", "u"), 0);
    assert_true(b->last.rowset > first);
    assert_int_equal(state_builder_load_start(b, 3, txn, "d", "t"), 0);
    assert_int_equal(find(b, txn)->load_count, 3);
    assert_int_equal(find(b, txn)->loads[2].load_no, 3);
    assert_int_equal(find(b, txn)->table_count, 2);

    /* Repeated: the same load. */
    struct command start = {.type = COMMAND_LOAD_START};
    start.load_start.key = find(b, txn)->loads[1].key;
    start.load_start.txn = txn;
    strcpy(start.load_start.db, "d");
    strcpy(start.load_start.table, "u");
    assert_int_equal(state_builder_apply(b, &start), 0);
    assert_true(b->last.repeated);
    assert_int_equal(b->last.rowset, find(b, txn)->loads[1].rowset);
    assert_int_equal(find(b, txn)->load_count, 3);
    /* The same key for another transaction is a mistake. */
    start.load_start.txn = txn + 1;
    assert_int_equal(state_builder_apply(b, &start), TG_INVALID);
}

static void test_a_load_cannot_join_where_it_must_not(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_load_start(b, 1, 77, "d", "t"), TG_TXN_NOT_FOUND);
    assert_string_equal(b->last.msg.text, "transaction [77] not found");
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "single", false), 0);
    assert_int_equal(state_builder_load_start(b, 1, b->last.txn, "d", "t"), TG_TXN_STATE);

    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_db(b, "e"), 0);
    assert_int_equal(state_builder_load_start(b, 1, txn, "e", "t"), TG_TXN_NOT_FOUND);
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "nothing"), TG_NOT_FOUND);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_PRECOMMIT, txn), 0);
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), TG_TXN_STATE);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, txn), 0);
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), TG_TXN_ABORTED);
    assert_non_null(strstr(b->last.msg.text, "abort reason: User Abort"));
}

static void test_a_transaction_holds_a_bounded_number_of_loads(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    txn_id txn = b->last.txn;
    for (int i = 0; i < LOADS_PER_TXN_MAX; i++)
        assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), 0);
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "t"), TG_LIMIT);
}

static void test_finished_transactions_are_forgotten_after_their_time_only(void **state)
{
    struct state_builder *b = *state;
    b->state.limits.label_keep_ms = 1000;
    txn_id done = state_builder_load(b, "d", "t", "a");
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "b", false), 0);
    txn_id running = b->last.txn;
    state_builder_elapse(b, 999);
    assert_int_equal(state_builder_forget(b, done), 0);
    assert_non_null(find(b, done));
    state_builder_elapse(b, 1);
    assert_int_equal(state_builder_forget(b, done), 0);
    assert_null(find(b, done));
    assert_int_equal(b->state.txns.finished_bytes, 0);
    assert_int_equal(b->state.txns.finished.count, 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "a", false), 0);
    state_builder_elapse(b, 100000);
    assert_int_equal(state_builder_forget(b, running), 0);
    assert_non_null(find(b, running));
    /* What is forgotten was final everywhere: leftovers of it are dead. */
    assert_true(state_staged_is_dead(&b->state, done, false));
    assert_false(state_staged_is_dead(&b->state, running, false));
    assert_false(state_staged_is_dead(&b->state, b->state.next_txn, false));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_begin_makes_a_transaction_and_its_first_load),
        TEST(test_the_same_request_gets_the_same_transaction_in_any_state),
        TEST(test_a_used_label_is_answered_with_its_transaction_and_state),
        TEST(test_an_aborted_label_is_free_again_and_old_ones_stay_known),
        TEST(test_labels_of_two_databases_do_not_collide),
        TEST(test_unknown_names_are_told),
        TEST(test_an_old_registration_is_fenced),
        TEST(test_the_limit_of_running_transactions_counts_a_database),
        TEST(test_too_many_unpublished_transactions_name_the_blocker),
        TEST(test_full_label_memory_refuses_rather_than_forgets),
        TEST(test_giving_up_an_unknown_begin_aborts_what_it_made),
        TEST(test_giving_up_a_begin_that_has_not_come_keeps_it_out_for_good),
        TEST(test_loads_join_an_explicit_transaction),
        TEST(test_a_load_cannot_join_where_it_must_not),
        TEST(test_a_transaction_holds_a_bounded_number_of_loads),
        TEST(test_finished_transactions_are_forgotten_after_their_time_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
