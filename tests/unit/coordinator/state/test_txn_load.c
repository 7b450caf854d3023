/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a load: reports are checked, quorums counted, failures remembered. */
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
    table.table = "all";
    table.write_all = true;
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

static struct txn *begin(struct state_builder *b, const char *table, const char *label,
                         bool two_phase)
{
    assert_int_equal(state_builder_begin(b, 1, "d", table, label, two_phase), 0);
    return txn_table_find(&b->state.txns, b->last.txn);
}

/* A report over one bucket, to be damaged by the test. */
static struct command report(const struct state_builder *b, const struct txn *txn,
                             struct load_report_tablet *tablet)
{
    const struct txn_load *load = &txn->loads[0];
    const struct table *table = catalog_table_by_id(&b->state.catalog, load->table);
    *tablet = (struct load_report_tablet){
        .tablet = table->tablets[0]->id, .sealed = 7, .rows = 1, .bytes = 1};
    struct command command = {.type = COMMAND_LOAD_DONE};
    command.load_done.message = (struct msg_load_done){.node = load->key.node,
                                                       .epoch = load->key.epoch,
                                                       .request_id = load->key.request,
                                                       .txn = txn->id,
                                                       .rowset = load->rowset,
                                                       .placement_epoch = load->placement_epoch,
                                                       .finish = LOAD_FINISH_COMMIT,
                                                       .rows = 1,
                                                       .tablet_count = 1,
                                                       .tablets = tablet};
    return command;
}

static void test_a_plain_load_commits_with_its_report(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", false);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 3, 7), 0);
    assert_int_equal(b->last.txn_state, TXN_COMMITTED);
    assert_int_equal(txn->state, TXN_COMMITTED);
    assert_int_equal(txn->loads[0].rows, 20);
    assert_int_equal(txn->loads[0].tablet_count, 2);
    assert_int_equal(txn_table_version(txn, txn->loads[0].table), 1);
    /* Repeated: the same answer, nothing twice. */
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 3, 7), 0);
    assert_true(b->last.repeated);
    assert_int_equal(state_builder_find(b, "d", "t")->committed, 1);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 7), 0);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 3, 7), 0);
    assert_int_equal(b->last.txn_state, TXN_VISIBLE);
}

static void test_a_two_phase_load_precommits(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", true);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 15, 3), 0);
    assert_int_equal(txn->state, TXN_PRECOMMITTED);
    assert_int_equal(state_builder_find(b, "d", "t")->committed, 0);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 15, 3), 0);
    assert_true(b->last.repeated);
}

static void test_a_load_without_rows_commits_an_empty_version(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", false);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 0, 7), 0);
    assert_int_equal(txn->state, TXN_COMMITTED);
    assert_int_equal(txn->publish_count, 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 0), 0);
    const struct table *table = state_builder_find(b, "d", "t");
    assert_int_equal(table->visible, 1);
    assert_int_equal(table->tablets[0]->touched_count, 0);
    assert_true(txn->confirmed);
}

static void test_a_majority_of_seals_is_needed_for_every_tablet(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", false);
    const struct state *now = &b->state;
    uint64_t before[] = {now->seq, now->stamp_us, now->batch_next_us, state_hash(now)};
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 3, 4), TG_QUORUM);
    tablet_id tablet = state_builder_find(b, "d", "t")->tablets[0]->id;
    char text[200];
    snprintf(text, sizeof text,
             "Failed to commit txn %llu, cause tablet %llu succ replica num 1 < load required "
             "replica num 2. table t,",
             (unsigned long long)txn->id, (unsigned long long)tablet);
    assert_memory_equal(b->last.msg.text, text, strlen(text));
    /* Nothing changed but time and the number of commands. */
    uint64_t after[] = {now->seq, now->stamp_us, now->batch_next_us};
    b->state.seq = before[0];
    b->state.stamp_us = before[1];
    b->state.batch_next_us = before[2];
    assert_int_equal(state_hash(now), before[3]);
    b->state.seq = after[0];
    b->state.stamp_us = after[1];
    b->state.batch_next_us = after[2];
    assert_int_equal(txn->state, TXN_PREPARE);
    assert_int_equal(txn->loads[0].state, LOAD_RUNNING);
    assert_null(txn->loads[0].tablets);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 3, 5), 0);
}

static void test_write_quorum_all_wants_every_replica(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "all", "l", false);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 1, 3), TG_QUORUM);
    assert_non_null(strstr(b->last.msg.text, "succ replica num 2 < load required replica num 3"));
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 1, 7), 0);
}

/* Rule 3: the replica that missed the first load counts for nothing in the second. */
static void test_a_replica_that_is_behind_counts_for_no_quorum(void **state)
{
    struct state_builder *b = *state;
    struct txn *first = begin(b, "t", "a", false);
    assert_int_equal(state_builder_done(b, first->id, first->loads[0].rowset, 1, 3), 0);
    const struct tablet *tablet = state_builder_find(b, "d", "t")->tablets[0];
    assert_true(tablet->replicas[2].behind);
    assert_int_equal(tablet->replicas[2].behind_version, 1);
    assert_int_equal(tablet_behind(tablet), 4);

    struct txn *second = begin(b, "t", "b", false);
    assert_int_equal(state_builder_done(b, second->id, second->loads[0].rowset, 1, 5), TG_QUORUM);
    assert_non_null(strstr(b->last.msg.text, "is behind"));
    assert_int_equal(state_builder_done(b, second->id, second->loads[0].rowset, 2, 5), 0);
}

static void test_the_word_of_the_ingest_node_is_checked(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", false);
    struct load_report_tablet tablet;
    struct command good = report(b, txn, &tablet);
    struct load_report_tablet two[2];
    for (int i = 0; i < 10; i++) {
        struct command bad = report(b, txn, &tablet);
        struct msg_load_done *message = &bad.load_done.message;
        int expected = TG_INVALID;
        switch (i) {
        case 0:
            tablet.tablet = state_builder_find(b, "d", "all")->tablets[0]->id;
            break;
        case 1:
            tablet.tablet = 999999;
            break;
        case 2:
            tablet.sealed = 8 | 7;
            break;
        case 3:
            two[0] = two[1] = tablet;
            message->tablets = two;
            message->tablet_count = 2;
            break;
        case 4:
            message->request_id++;
            break;
        case 5:
            message->epoch--;
            expected = TG_FENCED;
            break;
        case 6:
            message->placement_epoch++;
            expected = TG_STALE;
            break;
        case 7:
            message->finish = LOAD_FINISH_PRECOMMIT;
            break;
        case 8:
            message->rowset++;
            break;
        case 9:
            message->txn = 55;
            expected = TG_TXN_NOT_FOUND;
            break;
        }
        assert_int_equal(state_builder_apply(b, &bad), expected);
        assert_int_equal(txn->state, TXN_PREPARE);
    }
    good = report(b, txn, &tablet);
    assert_int_equal(state_builder_apply(b, &good), 0);
}

static void test_a_node_that_registered_again_cannot_finish_its_old_load(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", false);
    struct command again = {.type = COMMAND_MEMBER_REGISTER};
    const struct member *member = members_find(&b->state.members, 1);
    memcpy(again.member.message.node_uuid, member->uuid, UUID_BYTES);
    again.member.message.previous_nonce = member->nonce;
    again.member.message.new_nonce = 999;
    assert_int_equal(state_builder_apply(b, &again), 0);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 1, 7), TG_FENCED);
}

static void test_a_load_into_a_dropped_table_fails(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", false);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "t", false, false), 0);
    assert_int_equal(state_builder_done(b, txn->id, txn->loads[0].rowset, 1, 7), TG_NOT_FOUND);
    assert_string_equal(b->last.msg.text, "table not found, tableName=t");
    assert_int_equal(state_builder_failed(b, txn->id, txn->loads[0].rowset, "gone"), 0);
    assert_int_equal(txn->state, TXN_ABORTED);
    assert_int_equal(HASH_CNT(hh, b->state.catalog.tables), 1);
}

static void test_a_failed_load_aborts_its_transaction(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", true);
    rowset_id rowset = txn->loads[0].rowset;
    assert_int_equal(state_builder_failed(b, txn->id, rowset, "too many filtered rows"), 0);
    assert_int_equal(b->last.txn_state, TXN_ABORTED);
    assert_string_equal(txn->reason, "too many filtered rows");
    assert_int_equal(state_builder_failed(b, txn->id, rowset, "again"), 0);
    assert_true(b->last.repeated);
    assert_string_equal(txn->reason, "too many filtered rows");
    assert_int_equal(state_builder_done(b, txn->id, rowset, 1, 7), TG_TXN_ABORTED);
    assert_non_null(strstr(b->last.msg.text, "too many filtered rows"));
}

/* Rule 11: a failure that comes after the decision learns what was decided. */
static void test_a_failure_that_is_too_late_learns_the_outcome(void **state)
{
    struct state_builder *b = *state;
    struct txn *txn = begin(b, "t", "l", true);
    rowset_id rowset = txn->loads[0].rowset;
    assert_int_equal(state_builder_done(b, txn->id, rowset, 1, 7), 0);
    assert_int_equal(state_builder_failed(b, txn->id, rowset, "no answer"), 0);
    assert_int_equal(b->last.txn_state, TXN_PRECOMMITTED);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), 0);
    assert_int_equal(state_builder_failed(b, txn->id, rowset, "no answer"), 0);
    assert_int_equal(b->last.txn_state, TXN_COMMITTED);
}

static void test_a_failed_load_makes_an_explicit_transaction_abort_only(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    assert_int_equal(state_builder_load_start(b, 1, txn->id, "d", "t"), 0);
    rowset_id good = b->last.rowset;
    assert_int_equal(state_builder_load_start(b, 2, txn->id, "d", "t"), 0);
    rowset_id bad = b->last.rowset;
    assert_int_equal(state_builder_done(b, txn->id, good, 1, 7), 0);
    assert_int_equal(b->last.txn_state, TXN_PREPARE);
    /* The load is over, which its node may tell its client; the transaction is not. */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(state_builder_failed(b, txn->id, bad, "cut off"), TG_TXN_ABORTED);
        assert_int_equal(b->last.txn_state, TXN_PREPARE);
        assert_int_equal(b->last.repeated, i == 1);
    }
    assert_true(txn->failed);
    txn_id id = txn->id;
    state_builder_restore(b);
    txn = txn_table_find(&b->state.txns, id);
    for (int i = 0; i < 2; i++) {
        enum command_type type = i == 0 ? COMMAND_TXN_PRECOMMIT : COMMAND_TXN_COMMIT;
        assert_int_equal(state_builder_finish(b, type, txn->id), TG_TXN_STATE);
        assert_non_null(strstr(b->last.msg.text, "can only be aborted, load 2 failed: cut off"));
    }
    assert_int_equal(state_builder_load_start(b, 2, txn->id, "d", "t"), TG_TXN_STATE);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, txn->id), 0);
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
}

/* The ingest node may not have learned that its report arrived; a client that is told Fail repeats
 * the load, so the first one must not count. */
static void test_a_done_load_may_still_fail_in_an_explicit_transaction(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "x", false), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    assert_int_equal(state_builder_load_start(b, 1, txn->id, "d", "t"), 0);
    rowset_id rowset = b->last.rowset;
    assert_int_equal(state_builder_done(b, txn->id, rowset, 1, 7), 0);
    assert_int_equal(state_builder_failed(b, txn->id, rowset, "no answer"), TG_TXN_ABORTED);
    assert_true(txn->failed);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), TG_TXN_STATE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_plain_load_commits_with_its_report),
        TEST(test_a_two_phase_load_precommits),
        TEST(test_a_load_without_rows_commits_an_empty_version),
        TEST(test_a_majority_of_seals_is_needed_for_every_tablet),
        TEST(test_write_quorum_all_wants_every_replica),
        TEST(test_a_replica_that_is_behind_counts_for_no_quorum),
        TEST(test_the_word_of_the_ingest_node_is_checked),
        TEST(test_a_node_that_registered_again_cannot_finish_its_old_load),
        TEST(test_a_load_into_a_dropped_table_fails),
        TEST(test_a_failed_load_aborts_its_transaction),
        TEST(test_a_failure_that_is_too_late_learns_the_outcome),
        TEST(test_a_failed_load_makes_an_explicit_transaction_abort_only),
        TEST(test_a_done_load_may_still_fail_in_an_explicit_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
