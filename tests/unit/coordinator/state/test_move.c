/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that move under open transactions (rule 17), and participants that leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/state/move.h"
#include "tests/lib/state_builder.h"

/* Table t is on 1, 2 and 3, in slots of that order; 4 and 5 are spare. */
static struct tablet *tablet_of(struct state_builder *b)
{
    return state_builder_find(b, "d", "t")->tablets[0];
}

static int setup(void **state)
{
    struct state_builder *b = malloc(sizeof *b);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 1, .replication = 3};
    state_builder_init(b);
    state_builder_members(b, 1, 3);
    assert_int_equal(state_builder_db(b, "d"), 0);
    assert_int_equal(state_builder_table(b, &table), 0);
    state_builder_members(b, 4, 5);
    for (node_id i = 0; i < 3; i++)
        assert_int_equal(tablet_of(b)->replicas[i].node, i + 1);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct state_builder *b = *state;
    struct state copy;
    state_builder_check(&b->state);
    assert_int_equal(state_init(&copy), 0);
    state_builder_replay(slice_of(b->log.data, b->log.len), &copy);
    assert_int_equal(state_hash(&copy), state_hash(&b->state));
    state_close(&copy);
    uint64_t hash = state_hash(&b->state);
    uint32_t behind = b->state.catalog.behind_count;
    state_builder_restore(b);
    assert_int_equal(state_hash(&b->state), hash);
    assert_int_equal(b->state.catalog.behind_count, behind);
    state_builder_close(b);
    free(b);
    return 0;
}

static int move(struct state_builder *b, enum command_type type, node_id node)
{
    struct command command = {.type = type};
    const struct table *table = tablet_of(b)->table;
    command.move = (struct command_move){tablet_of(b)->id, node, table->placement_epoch};
    return state_builder_apply(b, &command);
}

static int replica(struct state_builder *b, enum command_type type, node_id node, version_t version)
{
    struct command command = {.type = type};
    command.replica = (struct command_replica){tablet_of(b)->id, node, version};
    return state_builder_apply(b, &command);
}

static int drain(struct state_builder *b, node_id node, bool on)
{
    struct command command = {.type = COMMAND_NODE_DRAIN, .node = {node, 0, on}};
    return state_builder_apply(b, &command);
}

static int drop(struct state_builder *b, node_id node)
{
    struct command command = {.type = COMMAND_NODE_DROP,
                              .node = {node, state_builder_epoch(b, node), false}};
    return state_builder_apply(b, &command);
}

/* The whole way of a new replica. */
static void join(struct state_builder *b, node_id node)
{
    const struct tablet *tablet = tablet_of(b);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, node), 0);
    assert_int_equal(replica(b, COMMAND_REPLICA_CATCH, node, 0), 0);
    version_t last = tablet->touched_count > 0 ? tablet->touched[tablet->touched_count - 1] : 0;
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, node, last), 0);
}

static txn_id begin(struct state_builder *b, const char *label, rowset_id *rowset)
{
    assert_int_equal(state_builder_begin(b, 1, "d", "t", label, true), 0);
    *rowset = b->last.rowset;
    return b->last.txn;
}

static void test_a_new_replica_counts_for_nothing_until_it_is_good(void **state)
{
    struct state_builder *b = *state;
    rowset_id rowset;
    state_builder_load(b, "d", "t", "a");
    uint64_t epoch = tablet_of(b)->table->placement_epoch;
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 4), 0);
    assert_int_equal(tablet_of(b)->table->placement_epoch, epoch + 1);
    assert_int_equal(tablet_joining(tablet_of(b)), 8);
    assert_int_equal(tablet_behind(tablet_of(b)), 8);
    assert_int_equal(tablet_write_quorum(tablet_of(b)), 2); /* of three, not of four */

    txn_id txn = begin(b, "too few", &rowset);
    assert_int_equal(state_builder_done(b, txn, rowset, 1, 8 | 1), TG_QUORUM);
    assert_int_equal(state_builder_done(b, txn, rowset, 1, 2 | 1), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 8 | 1), TG_QUORUM);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 2 | 1), 0);
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, 4, 2), TG_STALE);
    assert_int_equal(replica(b, COMMAND_REPLICA_CATCH, 4, 0), 0);
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, 4, 1), TG_STALE);
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, 4, 2), 0);
    assert_int_equal(tablet_joining(tablet_of(b)), 0);
    assert_int_equal(tablet_good(tablet_of(b)), 8 | 2 | 1); /* 3 missed a write of its own */
}

static void test_additions_that_are_refused(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 9), TG_REFUSED);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 2), TG_EXISTS);
    assert_int_equal(drain(b, 5, true), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 5), TG_REFUSED);
    assert_int_equal(drain(b, 5, false), 0);
    struct command stale = {.type = COMMAND_REPLICA_ADD, .move = {tablet_of(b)->id, 5, 99}};
    assert_int_equal(state_builder_apply(b, &stale), TG_STALE);
    struct command unknown = {.type = COMMAND_REPLICA_ADD, .move = {99, 5, 1}};
    assert_int_equal(state_builder_apply(b, &unknown), TG_NOT_FOUND);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 4), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 5), TG_LIMIT);
    /* One that never was good may go at any time. */
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 4), 0);
    assert_int_equal(tablet_of(b)->replica_count, 3);
    assert_int_equal(b->state.catalog.behind_count, 0);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 4), 0);
    assert_true(b->last.repeated);
}

static void test_a_replica_leaves_only_when_enough_others_are_good(void **state)
{
    struct state_builder *b = *state;
    state_builder_load(b, "d", "t", "a");
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), TG_REFUSED);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 4), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), TG_REFUSED);
    assert_int_equal(replica(b, COMMAND_REPLICA_CATCH, 4, 0), 0);
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, 4, 1), 0);
    assert_int_equal(replica(b, COMMAND_REPLICA_LACKS, 3, 1), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), TG_REFUSED);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 3), 0); /* the one that is behind */
    assert_int_equal(tablet_all(tablet_of(b)), 8 | 2 | 1);
    assert_int_equal(tablet_good(tablet_of(b)), 8 | 2 | 1);
    assert_int_equal(tablet_slot(tablet_of(b), 4), 3);
}

/* Rule 17. */
static void test_a_replica_stays_while_an_older_transaction_needs_it(void **state)
{
    struct state_builder *b = *state;
    rowset_id running_rowset;
    rowset_id done_rowset;
    txn_id done = begin(b, "done", &done_rowset);
    assert_int_equal(state_builder_done(b, done, done_rowset, 1, 7), 0); /* PRECOMMITTED */
    txn_id running = begin(b, "running", &running_rowset);
    join(b, 4);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), TG_BUSY);
    assert_int_equal(move_blocker(&b->state, tablet_of(b), 0)->id, done);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, done), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), TG_BUSY);
    assert_int_equal(move_blocker(&b->state, tablet_of(b), 0)->id, running);
    /* Its report comes under an older placement, and is taken. */
    assert_int_equal(state_builder_done(b, running, running_rowset, 1, 7), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), TG_BUSY);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, running), 0);
    /* 4 was not written to by it, so it lacks it. */
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), TG_REFUSED);
    assert_true(tablet_of(b)->replicas[3].catching);
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, 4, 1), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, running, 2), TG_QUORUM);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, running, 8 | 2), 0);
}

static void test_newer_transactions_do_not_hold_a_replica_up(void **state)
{
    struct state_builder *b = *state;
    rowset_id running_rowset;
    rowset_id done_rowset;
    state_builder_load(b, "d", "t", "a");
    join(b, 4);
    txn_id running = begin(b, "running", &running_rowset);
    txn_id done = begin(b, "done", &done_rowset);
    assert_int_equal(state_builder_done(b, done, done_rowset, 1, 15), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), 0);
    assert_int_equal(tablet_of(b)->replicas[0].node, 0);
    assert_int_equal(txn_table_find(&b->state.txns, done)->loads[0].tablets[0].sealed, 14);
    /* Planned with four, one of them gone since: its word does not count, and does no harm. */
    assert_int_equal(state_builder_done(b, running, running_rowset, 1, 8 | 1), TG_QUORUM);
    assert_int_equal(state_builder_done(b, running, running_rowset, 1, 15), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, running), 0);
    assert_int_equal(tablet_behind(tablet_of(b)), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, done), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, running, 14), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, done, 14), 0);
    assert_int_equal(b->state.txns.publishing.count, 0);
}

/* Somebody else holds the slot by the time a report comes that names it. */
static void test_a_report_never_counts_for_the_next_holder_of_a_slot(void **state)
{
    struct state_builder *b = *state;
    rowset_id rowset;
    state_builder_load(b, "d", "t", "a");
    join(b, 4);
    txn_id txn = begin(b, "long", &rowset); /* planned for 1, 2, 3 and 4 */
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), 0);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 5), 0);
    assert_int_equal(tablet_slot(tablet_of(b), 5), 0);
    assert_int_equal(replica(b, COMMAND_REPLICA_CATCH, 5, 0), 0);
    assert_int_equal(state_builder_done(b, txn, rowset, 1, 15), 0);
    assert_int_equal(txn_table_find(&b->state.txns, txn)->loads[0].tablets[0].sealed, 14);
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, 5, 1), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
    assert_int_equal(tablet_behind(tablet_of(b)), 1); /* 5 lacks it, as it must */
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, 5, 2), 0);
}

static void test_confirmations_go_with_who_gave_them(void **state)
{
    struct state_builder *b = *state;
    rowset_id rowset;
    join(b, 4);
    txn_id txn = begin(b, "a", &rowset);
    assert_int_equal(state_builder_done(b, txn, rowset, 1, 15), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 1 | 2 | 4), 0);
    assert_int_equal(b->state.txns.publishing.count, 1); /* 4 is awaited */
    assert_int_equal(move(b, COMMAND_REPLICA_REMOVE, 1), 0);
    assert_int_equal(txn_table_find(&b->state.txns, txn)->publish[0].confirmed, 2 | 4);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 5), 0);
    /* A proposal that was made when 1 had the slot. */
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, txn, 8), 0);
    assert_int_equal(b->state.txns.publishing.count, 0);
}

static void test_write_quorum_all_means_replication_num_during_a_move(void **state)
{
    struct state_builder *b = *state;
    struct table *table = tablet_of(b)->table;
    table->write_all = true;
    assert_int_equal(tablet_write_quorum(tablet_of(b)), 3);
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 4), 0);
    assert_int_equal(tablet_write_quorum(tablet_of(b)), 3);
    assert_int_equal(replica(b, COMMAND_REPLICA_CATCH, 4, 0), 0);
    assert_int_equal(replica(b, COMMAND_REPLICA_HEALED, 4, 0), 0);
    assert_int_equal(tablet_write_quorum(tablet_of(b)), 3);
    table->write_all = false; /* as the log has it */
}

/* ---- nodes ---- */

static void test_draining_wants_enough_others(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(drain(b, 9, true), TG_NOT_FOUND);
    assert_int_equal(drain(b, 4, true), 0);
    assert_int_equal(drain(b, 4, true), 0);
    assert_true(b->last.repeated);
    assert_int_equal(drain(b, 1, true), 0);
    assert_int_equal(drain(b, 2, true), TG_REFUSED);
    assert_non_null(strstr(b->last.msg.text, "table t has replication_num 3"));
    assert_int_equal(drain(b, 1, false), 0);
    assert_int_equal(drain(b, 2, true), 0);
    assert_true(members_find(&b->state.members, 2)->draining);
    /* Its next registration changes nothing of that. */
    struct command again = {.type = COMMAND_MEMBER_REGISTER};
    memcpy(again.member.message.node_uuid, members_find(&b->state.members, 2)->uuid, UUID_BYTES);
    again.member.message.previous_nonce = members_find(&b->state.members, 2)->nonce;
    again.member.message.new_nonce = b->next_nonce++;
    assert_int_equal(state_builder_apply(b, &again), 0);
    assert_true(members_find(&b->state.members, 2)->draining);
    /* New tables go elsewhere. */
    struct state_builder_table table = {.db = "d", .table = "u", .buckets = 9, .replication = 3};
    assert_int_equal(state_builder_table(b, &table), 0);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(tablet_slot(state_builder_find(b, "d", "u")->tablets[i], 2), -1);
        assert_int_equal(tablet_slot(state_builder_find(b, "d", "u")->tablets[i], 4), -1);
    }
    table = (struct state_builder_table){.db = "d", .table = "v", .buckets = 1, .replication = 4};
    assert_int_not_equal(state_builder_table(b, &table), 0);
}

static void test_a_dropped_node_takes_its_replicas_along(void **state)
{
    struct state_builder *b = *state;
    state_builder_load(b, "d", "t", "a");
    struct command stale = {.type = COMMAND_NODE_DROP, .node = {3, 1, false}};
    assert_int_equal(state_builder_apply(b, &stale), TG_STALE); /* it came back meanwhile */
    assert_int_equal(drop(b, 9), TG_NOT_FOUND);
    assert_int_equal(move_replicas(&b->state, 3), 1);
    assert_int_equal(drop(b, 3), 0);
    assert_null(members_find(&b->state.members, 3));
    assert_int_equal(tablet_all(tablet_of(b)), 3);
    assert_int_equal(tablet_of(b)->replica_count, 2);
    assert_int_equal(tablet_write_quorum(tablet_of(b)), 2); /* of three, still */
    assert_int_equal(move(b, COMMAND_REPLICA_ADD, 5), 0);
    assert_int_equal(tablet_slot(tablet_of(b), 5), 2);
    /* Its id is not given to somebody else, its directory is not taken back, its uploads are over.
     */
    struct command again = {.type = COMMAND_MEMBER_REGISTER};
    memcpy(again.member.message.node_uuid, "00000000-0000-4000-8000-000000000003", UUID_BYTES);
    memcpy(again.member.message.cluster_uuid, b->state.cluster_uuid, UUID_BYTES);
    again.member.message.previous_nonce = 3;
    again.member.message.new_nonce = 1000;
    assert_int_equal(state_builder_apply(b, &again), TG_REFUSED);
    again.member.message.cluster_uuid[0] = '\0';
    assert_int_equal(state_builder_apply(b, &again), 0);
    assert_int_equal(b->last.node, 6);
    assert_int_equal(state_builder_begin(b, 3, "d", "t", "b", false), TG_FENCED);
}

static void test_the_last_good_replica_is_not_dropped(void **state)
{
    struct state_builder *b = *state;
    state_builder_load(b, "d", "t", "a");
    assert_int_equal(replica(b, COMMAND_REPLICA_LACKS, 1, 1), 0);
    assert_int_equal(replica(b, COMMAND_REPLICA_LACKS, 2, 1), 0);
    assert_int_equal(drop(b, 3), TG_REFUSED);
    assert_non_null(strstr(b->last.msg.text, "without a good replica"));
    assert_int_equal(drop(b, 2), 0);
    assert_int_equal(drop(b, 3), TG_REFUSED);
}

static void test_the_only_copy_of_an_open_transaction_is_not_dropped(void **state)
{
    struct state_builder *b = *state;
    struct state_builder_table table = {.db = "d", .table = "one", .buckets = 5, .replication = 1};
    rowset_id rowset;
    assert_int_equal(state_builder_table(b, &table), 0);
    txn_id txn = begin(b, "kept", &rowset);
    assert_int_equal(state_builder_done(b, txn, rowset, 1, 1 | 2), 0);
    assert_int_equal(drop(b, 3), TG_REFUSED); /* has a tablet of `one` */
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "one", false, false), 0);
    assert_int_equal(drop(b, 1), 0);
    assert_int_equal(drop(b, 2), TG_REFUSED);
    assert_non_null(strstr(b->last.msg.text, "commit or abort it first"));
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, txn), 0);
    assert_int_equal(drop(b, 2), 0);
}

int main(void)
{
#define STORY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        STORY(test_a_new_replica_counts_for_nothing_until_it_is_good),
        STORY(test_additions_that_are_refused),
        STORY(test_a_replica_leaves_only_when_enough_others_are_good),
        STORY(test_a_replica_stays_while_an_older_transaction_needs_it),
        STORY(test_newer_transactions_do_not_hold_a_replica_up),
        STORY(test_a_report_never_counts_for_the_next_holder_of_a_slot),
        STORY(test_confirmations_go_with_who_gave_them),
        STORY(test_write_quorum_all_means_replication_num_during_a_move),
        STORY(test_draining_wants_enough_others),
        STORY(test_a_dropped_node_takes_its_replicas_along),
        STORY(test_the_last_good_replica_is_not_dropped),
        STORY(test_the_only_copy_of_an_open_transaction_is_not_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
