/* SPDX-License-Identifier: Apache-2.0 */
/* A replica falls behind, is written to again and is good again (DESIGN.md 2.4, rule 3), and what
 * its node may drop meanwhile (rule 10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/state_builder.h"

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
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct state_builder *b = *state;
    struct state copy;
    state_builder_check(&b->state);
    /* The log gives the same state, and so does the snapshot. */
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

static int apply(struct state_builder *b, enum command_type type, unsigned slot, version_t version)
{
    struct command command = {.type = type};
    const struct tablet *tablet = tablet_of(b);
    command.replica = (struct command_replica){tablet->id, tablet->replicas[slot].node, version};
    return state_builder_apply(b, &command);
}

/* A committed load that these slots hold. */
static struct txn *committed(struct state_builder *b, const char *label, uint8_t sealed)
{
    assert_int_equal(state_builder_begin(b, 1, "d", "t", label, false), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_done(b, txn, b->last.rowset, 1, sealed), 0);
    return txn_table_find(&b->state.txns, txn);
}

static struct txn *visible(struct state_builder *b, const char *label, uint8_t sealed)
{
    struct txn *txn = committed(b, label, sealed);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, sealed & 3), 0);
    return txn;
}

static void is(struct state_builder *b, unsigned slot, bool behind, bool catching)
{
    assert_int_equal(tablet_of(b)->replicas[slot].behind, behind);
    assert_int_equal(tablet_of(b)->replicas[slot].catching, catching);
    assert_int_equal(b->state.catalog.behind_count, behind);
}

static void test_behind_then_written_to_again_then_healed(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 3);
    is(b, 2, true, false);
    assert_int_equal(tablet_of(b)->replicas[2].behind_version, 1);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 1), TG_STALE);
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    is(b, 2, true, true);
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    assert_true(b->last.repeated);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 1), 0);
    is(b, 2, false, false);
    assert_int_equal(tablet_of(b)->replicas[2].behind_version, 0);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 1), 0);
    assert_true(b->last.repeated);
}

/* What counts is said when the command is applied: a version that was missed in between is more
 * than the bound one. */
static void test_healed_is_refused_when_it_misses_more_by_then(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 3);
    /* Begun before CATCH: its plan did not have the replica. */
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "old", false), 0);
    txn_id old = b->last.txn;
    rowset_id rowset = b->last.rowset;
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    assert_int_equal(state_builder_done(b, old, rowset, 1, 3), 0);
    is(b, 2, true, true); /* still written to: it failed at nothing */
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 1), TG_STALE);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 2), 0);
    is(b, 2, false, false);
}

/* It converges under a steady load: what it wrote itself need not be bound yet. */
static void test_a_replica_heals_while_further_versions_are_under_way(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 3);
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    struct txn *second = visible(b, "b", 7);
    struct txn *third = committed(b, "c", 7);
    assert_int_equal(second->loads[0].tablets[0].sealed, 7);
    is(b, 2, true, true);
    /* They are not over before it has bound them: what it staged for them stays, and so does the
     * list of what is to be published. */
    assert_false(second->confirmed);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 1), 0);
    is(b, 2, false, false);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, second->id, 4), 0);
    assert_true(second->confirmed);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, third->id, 6), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, third->id, 1), 0);
    assert_true(third->confirmed);
}

static void test_catching_counts_for_no_quorum(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 3);
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "b", false), 0);
    assert_int_equal(state_builder_done(b, b->last.txn, b->last.rowset, 1, 5), TG_QUORUM);
    struct txn *txn = committed(b, "c", 7);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 5), TG_QUORUM);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 3), 0);
}

static void test_a_failed_write_puts_a_catching_replica_back(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 3);
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    struct txn *second = visible(b, "b", 7);
    visible(b, "c", 3); /* planned with it, and not sealed by it */
    is(b, 2, true, false);
    assert_int_equal(tablet_of(b)->replicas[2].behind_version, 1);
    assert_true(second->confirmed); /* nobody waits for it any more */
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 3), TG_STALE);
}

/* A load from before CATCH that ends after HEALED: at once catching again, so that loads that begin
 * now have it in their plans. */
static void test_an_old_load_after_healed_does_not_start_it_all_over(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 3);
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "old", false), 0);
    txn_id old = b->last.txn;
    rowset_id rowset = b->last.rowset;
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 1), 0);
    is(b, 2, false, false);
    assert_int_equal(state_builder_done(b, old, rowset, 1, 3), 0);
    is(b, 2, true, true);
    assert_int_equal(tablet_of(b)->replicas[2].behind_version, 2);
    struct txn *next = committed(b, "next", 7);
    is(b, 2, true, true);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 2), 0);
    assert_int_equal(next->loads[0].tablets[0].sealed, 7);
    is(b, 2, false, false);
}

static void test_damage_is_told_by_the_version(void **state)
{
    struct state_builder *b = *state;
    state_builder_load(b, "d", "t", "a");
    state_builder_load(b, "d", "t", "b");
    assert_int_equal(apply(b, COMMAND_REPLICA_LACKS, 1, 3), TG_NOT_FOUND);
    assert_int_equal(apply(b, COMMAND_REPLICA_LACKS, 1, 0), TG_NOT_FOUND);
    assert_int_equal(apply(b, COMMAND_REPLICA_LACKS, 1, 2), 0);
    is(b, 1, true, false);
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 1, 0), 0);
    /* More damage found while it is repaired: from the beginning. */
    assert_int_equal(apply(b, COMMAND_REPLICA_LACKS, 1, 1), 0);
    is(b, 1, true, false);
    assert_int_equal(tablet_of(b)->replicas[1].behind_version, 1);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 1, 2), TG_STALE);
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 1, 0), 0);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 1, 2), 0);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 1, 77), 0);
    assert_true(b->last.repeated);
}

static void test_a_truncate_is_missed_by_nobody_who_catches(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 3);
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    assert_int_equal(state_builder_name(b, COMMAND_TRUNCATE_TABLE, "d", "t", false, false), 0);
    struct txn *txn = txn_table_find(&b->state.txns, b->last.txn);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 3), 0);
    assert_false(txn->confirmed);
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 1), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, txn->id, 4), 0);
    assert_true(txn->confirmed);
}

static bool is_dead(struct state_builder *b, txn_id txn, node_id node)
{
    return state_staged_is_dead(&b->state, txn, catalog_has_behind(&b->state.catalog, node));
}

/* Rule 10: what a clone has staged belongs to transactions that are long over. */
static void test_a_clone_under_way_is_not_called_dead(void **state)
{
    struct state_builder *b = *state;
    struct txn *old = visible(b, "a", 3);
    node_id node = tablet_of(b)->replicas[2].node;
    node_id other = tablet_of(b)->replicas[0].node;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "x", false), 0);
    txn_id aborted = b->last.txn;
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, aborted), 0);
    assert_true(old->confirmed);
    assert_true(old->id < b->state.txn_low_water);
    assert_true(is_dead(b, old->id, other));
    assert_false(is_dead(b, old->id, node));
    assert_true(is_dead(b, aborted, node));
    assert_false(is_dead(b, b->state.next_txn, node));
    /* Not even when nobody knows it any more. */
    txn_id id = old->id;
    state_builder_elapse(b, UINT64_C(13) * 3600 * 1000);
    assert_int_equal(state_builder_forget(b, id), 0);
    assert_false(is_dead(b, id, node));
    assert_int_equal(apply(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    assert_false(is_dead(b, id, node));
    assert_int_equal(apply(b, COMMAND_REPLICA_HEALED, 2, 1), 0);
    assert_true(is_dead(b, id, node));
}

static void test_a_dropped_table_takes_its_replicas_out_of_the_count(void **state)
{
    struct state_builder *b = *state;
    struct state_builder_table table = {.db = "d", .table = "u", .buckets = 2, .replication = 3};
    assert_int_equal(state_builder_table(b, &table), 0);
    assert_int_equal(state_builder_begin(b, 1, "d", "u", "u", false), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_done(b, txn, b->last.rowset, 3, 3), 0);
    assert_int_equal(b->state.catalog.behind_count, 2);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 3), 0);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "u", false, false), 0);
    assert_int_equal(b->state.catalog.behind_count, 0);
}

static void test_nobody_knows_a_replica_that_is_not_there(void **state)
{
    struct state_builder *b = *state;
    const enum command_type types[] = {COMMAND_REPLICA_LACKS, COMMAND_REPLICA_CATCH,
                                       COMMAND_REPLICA_HEALED};
    for (size_t i = 0; i < 3; i++) {
        struct command command = {.type = types[i], .replica = {tablet_of(b)->id, 77, 1}};
        assert_int_equal(state_builder_apply(b, &command), TG_NOT_FOUND);
        command.replica = (struct command_replica){77, 1, 1};
        assert_int_equal(state_builder_apply(b, &command), TG_NOT_FOUND);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_behind_then_written_to_again_then_healed),
        TEST(test_healed_is_refused_when_it_misses_more_by_then),
        TEST(test_a_replica_heals_while_further_versions_are_under_way),
        TEST(test_catching_counts_for_no_quorum),
        TEST(test_a_failed_write_puts_a_catching_replica_back),
        TEST(test_an_old_load_after_healed_does_not_start_it_all_over),
        TEST(test_damage_is_told_by_the_version),
        TEST(test_a_truncate_is_missed_by_nobody_who_catches),
        TEST(test_a_clone_under_way_is_not_called_dead),
        TEST(test_a_dropped_table_takes_its_replicas_out_of_the_count),
        TEST(test_nobody_knows_a_replica_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
