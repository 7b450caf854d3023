/* SPDX-License-Identifier: Apache-2.0 */
/* A participant whose directory is gone or old counts for nothing until it has proven what it
 * holds; versions of which no copy is left (DESIGN.md 2.4, rules 3, 4 and 13). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/state_builder.h"

static struct tablet *tablet_of(struct state_builder *b)
{
    return state_builder_find(b, "d", "t")->tablets[0];
}

static int setup_with(void **state, uint8_t replication)
{
    struct state_builder *b = malloc(sizeof *b);
    struct state_builder_table table = {
        .db = "d", .table = "t", .buckets = 1, .replication = replication};
    state_builder_init(b);
    state_builder_members(b, 1, 3);
    assert_int_equal(state_builder_db(b, "d"), 0);
    assert_int_equal(state_builder_table(b, &table), 0);
    *state = b;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, 3);
}

static int setup_single(void **state)
{
    return setup_with(state, 1);
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
    state_builder_restore(b);
    assert_int_equal(state_hash(&b->state), hash);
    state_builder_close(b);
    free(b);
    return 0;
}

static int rejoin(struct state_builder *b, node_id node, const char *uuid, uint64_t nonce)
{
    struct command command = {.type = COMMAND_MEMBER_REJOIN};
    struct msg_register *message = &command.member.message;
    message->wanted = node;
    message->new_nonce = nonce;
    snprintf(message->node_uuid, sizeof message->node_uuid, "%s", uuid);
    snprintf(message->http, sizeof message->http, "127.0.0.1:1");
    snprintf(message->rpc, sizeof message->rpc, "127.0.0.1:2");
    return state_builder_apply(b, &command);
}

static int on_replica(struct state_builder *b, enum command_type type, unsigned slot,
                      version_t version)
{
    struct command command = {.type = type};
    const struct tablet *tablet = tablet_of(b);
    command.replica = (struct command_replica){tablet->id, tablet->replicas[slot].node, version};
    return state_builder_apply(b, &command);
}

static int prove(struct state_builder *b, unsigned slot, version_t bound, version_t version,
                 const struct digest *chain)
{
    struct command command = {.type = COMMAND_REPLICA_PROVEN};
    const struct tablet *tablet = tablet_of(b);
    command.proven = (struct command_proven){.tablet = tablet->id,
                                             .node = tablet->replicas[slot].node,
                                             .bound = bound,
                                             .version = version,
                                             .chain = *chain};
    return state_builder_apply(b, &command);
}

static int declare_lost(struct state_builder *b, version_t kept)
{
    struct command command = {.type = COMMAND_DECLARE_LOST};
    command.lost = (struct command_lost){.tablet = tablet_of(b)->id, .kept = kept};
    return state_builder_apply(b, &command);
}

/* A load that these slots hold: precommitted or committed. */
static txn_id loaded(struct state_builder *b, const char *label, bool two_phase, uint8_t sealed)
{
    assert_int_equal(state_builder_begin(b, 1, "d", "t", label, two_phase), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_done(b, txn, b->last.rowset, 1, sealed), 0);
    return txn;
}

static txn_id visible(struct state_builder *b, const char *label, uint8_t sealed)
{
    txn_id txn = loaded(b, label, false, sealed);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, sealed), 0);
    return txn;
}

static node_id node_of(struct state_builder *b, unsigned slot)
{
    return tablet_of(b)->replicas[slot].node;
}

/* ---- a participant that takes its place anew ---- */

static void test_all_its_replicas_are_behind_from_the_first_version(void **state)
{
    struct state_builder *b = *state;
    struct state_builder_table untouched = {
        .db = "d", .table = "u", .buckets = 1, .replication = 3};
    assert_int_equal(state_builder_table(b, &untouched), 0);
    visible(b, "a", 7);
    visible(b, "b", 7);
    node_id node = node_of(b, 1);
    uint64_t epoch = state_builder_epoch(b, node);
    assert_int_equal(rejoin(b, node, "new", 900), 0);
    assert_int_equal(b->last.node, node);
    assert_true(b->last.epoch > epoch);
    assert_int_equal(b->state.members.count, 3);
    assert_int_equal(tablet_behind(tablet_of(b)), 2);
    assert_int_equal(tablet_of(b)->replicas[1].behind_version, 1);
    /* What nothing has touched lacks nothing. */
    assert_int_equal(tablet_behind(state_builder_find(b, "d", "u")->tablets[0]), 0);
    /* The same registration again changes nothing. */
    epoch = b->last.epoch;
    assert_int_equal(rejoin(b, node, "new", 900), 0);
    assert_true(b->last.repeated);
    assert_int_equal(b->last.epoch, epoch);
    /* The one whose place it was is a stranger now. */
    struct command old = {.type = COMMAND_MEMBER_REGISTER};
    snprintf(old.member.message.node_uuid, UUID_BYTES, "00000000-0000-4000-8000-%012u", node);
    old.member.message.wanted = node;
    old.member.message.previous_nonce = 1;
    old.member.message.new_nonce = 901;
    assert_int_equal(state_builder_apply(b, &old), TG_REFUSED);
    /* And an ordinary start of the new one is an ordinary start. */
    struct command next = {.type = COMMAND_MEMBER_REGISTER};
    snprintf(next.member.message.node_uuid, UUID_BYTES, "new");
    next.member.message.previous_nonce = 900;
    next.member.message.new_nonce = 902;
    assert_int_equal(state_builder_apply(b, &next), 0);
}

static void test_whose_place_it_is_must_be_said(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(rejoin(b, 0, "new", 900), TG_REFUSED);
    assert_int_equal(b->state.members.count, 3);
}

static void test_an_old_copy_with_the_flag_replaces_what_runs(void **state)
{
    struct state_builder *b = *state;
    char uuid[UUID_BYTES];
    visible(b, "a", 7);
    snprintf(uuid, sizeof uuid, "00000000-0000-4000-8000-%012u", 2);
    assert_int_equal(rejoin(b, 2, uuid, 950), 0);
    assert_int_equal(b->last.node, 2);
    int slot = tablet_slot(tablet_of(b), 2);
    assert_int_equal(tablet_behind(tablet_of(b)), 1 << slot);
    assert_int_equal(rejoin(b, 3, uuid, 951), TG_REFUSED); /* it is 2's */
}

/* What it sealed of unfinished transactions is gone: neither a report that is still on its way nor
 * an earlier one makes a quorum with it. */
static void test_its_seals_count_no_more(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_begin(b, 1, "d", "t", "running", false), 0);
    txn_id running = b->last.txn;
    rowset_id rowset = b->last.rowset;
    txn_id pending = loaded(b, "pending", true, 3);
    unsigned lost = node_of(b, 1) == 1 ? 0 : 1; /* the ingest node of both stays */
    assert_int_equal(rejoin(b, node_of(b, lost), "new", 900), 0);
    assert_int_equal(tablet_behind(tablet_of(b)), 0); /* nothing is committed yet */
    const struct txn *txn = txn_table_find(&b->state.txns, pending);
    assert_int_equal(txn->loads[0].tablets[0].sealed, 3 & ~(1 << lost));
    assert_int_equal(state_builder_done(b, running, rowset, 1, 3), TG_QUORUM);
    assert_int_equal(state_builder_done(b, running, rowset, 1, 7), 0);
    /* It was precommitted: that is kept, as long as a copy is there. */
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, pending), 0);
    assert_int_equal(tablet_behind(tablet_of(b)) & (1 << lost), 1 << lost);
}

static void test_a_precommitted_transaction_without_any_copy_is_only_aborted(void **state)
{
    struct state_builder *b = *state;
    txn_id pending = loaded(b, "pending", true, 3);
    assert_int_equal(rejoin(b, node_of(b, 0), "new-0", 900), 0);
    assert_int_equal(rejoin(b, node_of(b, 1), "new-1", 901), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, pending), TG_QUORUM);
    assert_non_null(strstr(b->last.msg.text, "is lost"));
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, pending), 0);
}

/* ---- proofs ---- */

static void test_healed_is_only_who_holds_what_the_log_has(void **state)
{
    struct state_builder *b = *state;
    static const struct digest other = {{1}};
    visible(b, "a", 7);
    visible(b, "b", 7);
    struct digest chain = tablet_of(b)->chain;
    assert_int_equal(rejoin(b, node_of(b, 2), "new", 900), 0);
    assert_int_equal(prove(b, 2, 2, 2, &chain), TG_STALE); /* it is not written to */
    assert_int_equal(on_replica(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    assert_int_equal(prove(b, 2, 1, 2, &chain), TG_STALE);
    assert_int_equal(prove(b, 2, 2, 1, &chain), TG_STALE);
    assert_int_equal(prove(b, 2, 2, 2, &other), TG_DIGEST);
    assert_int_equal(prove(b, 2, 3, 2, &chain), TG_DIGEST); /* there is no third version */
    assert_int_equal(tablet_behind(tablet_of(b)), 4);
    assert_int_equal(prove(b, 2, 2, 2, &chain), 0);
    assert_int_equal(tablet_behind(tablet_of(b)), 0);
    assert_int_equal(prove(b, 2, 2, 2, &other), 0);
    assert_true(b->last.repeated);
}

/* What it has to prove is what it missed: what came later it has written itself. */
static void test_a_proof_does_not_wait_for_what_is_under_way(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 3);
    struct digest chain = tablet_of(b)->chain;
    assert_int_equal(on_replica(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    visible(b, "b", 7);
    assert_int_equal(prove(b, 2, 1, 1, &chain), 0);
    assert_int_equal(tablet_behind(tablet_of(b)), 0);
}

/* ---- no copy is left ---- */

static void test_nothing_is_lost_while_a_copy_is_good(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 7);
    assert_int_equal(declare_lost(b, 0), TG_REFUSED);
    assert_int_equal(rejoin(b, node_of(b, 0), "new-0", 900), 0);
    assert_int_equal(rejoin(b, node_of(b, 1), "new-1", 901), 0);
    assert_int_equal(declare_lost(b, 0), TG_REFUSED);
    assert_int_equal(tablet_of(b)->touched_count, 1);
}

static void test_the_only_copy_is_lost_and_later_transactions_go_on(void **state)
{
    struct state_builder *b = *state;
    static const struct digest empty;
    visible(b, "a", 1);
    txn_id stuck = loaded(b, "b", false, 1);
    assert_int_equal(rejoin(b, node_of(b, 0), "new", 900), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, stuck, 1), TG_QUORUM);
    assert_int_equal(declare_lost(b, 7), TG_NOT_FOUND);
    assert_int_equal(declare_lost(b, 0), 0);
    const struct table *table = tablet_of(b)->table;
    assert_true(table->versions[0].lost && table->versions[1].lost);
    assert_int_equal(tablet_of(b)->touched_count, 0);
    assert_int_equal(table->committed, 2);
    /* It becomes visible without that part. */
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, stuck, 0), 0);
    assert_int_equal(table->visible, 2);
    /* The empty replica is good. */
    assert_int_equal(on_replica(b, COMMAND_REPLICA_CATCH, 0, 0), 0);
    assert_int_equal(prove(b, 0, 0, 2, &empty), 0);
    assert_int_equal(tablet_behind(tablet_of(b)), 0);
    visible(b, "c", 1);
    assert_int_equal(table->visible, 3);
    assert_int_equal(txn_table_find_label(&b->state.txns, table->db, "c")->state, TXN_VISIBLE);
}

static void test_what_lies_sealed_somewhere_is_kept(void **state)
{
    struct state_builder *b = *state;
    visible(b, "a", 7);
    txn_id lost = loaded(b, "b", false, 3); /* the third lacks it */
    assert_int_equal(on_replica(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    txn_id kept = loaded(b, "c", false, 7);
    assert_int_equal(rejoin(b, node_of(b, 0), "new-0", 900), 0);
    assert_int_equal(rejoin(b, node_of(b, 1), "new-1", 901), 0);
    assert_int_equal(tablet_behind(tablet_of(b)), 7);
    assert_int_equal(declare_lost(b, 1), 0);
    const struct tablet *tablet = tablet_of(b);
    assert_int_equal(tablet->touched_count, 2);
    assert_int_equal(tablet->touched[1], 3);
    assert_false(tablet->table->versions[0].lost);
    assert_true(tablet->table->versions[1].lost);
    assert_false(tablet->table->versions[2].lost);
    assert_false(tablet->chain_known); /* nobody remembers what it was at version 1 */
    const struct txn *txn = txn_table_find(&b->state.txns, kept);
    assert_int_equal(txn->publish[0].prev, 1);
    assert_int_equal(tablet_published_to(tablet), 7);
    /* Who has it says what the chain is. */
    static const struct digest chain = {{9}};
    assert_int_equal(on_replica(b, COMMAND_REPLICA_CATCH, 2, 0), 0);
    assert_int_equal(prove(b, 2, 3, 3, &chain), 0);
    assert_true(tablet->chain_known);
    assert_int_equal(on_replica(b, COMMAND_REPLICA_CATCH, 1, 0), 0);
    static const struct digest other = {{8}};
    assert_int_equal(prove(b, 1, 3, 3, &other), TG_DIGEST);
    assert_int_equal(prove(b, 1, 3, 3, &chain), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, lost, 0), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, kept, 6), 0);
}

int main(void)
{
#define TEST(name)        cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_SINGLE(name) cmocka_unit_test_setup_teardown(name, setup_single, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_all_its_replicas_are_behind_from_the_first_version),
        TEST(test_whose_place_it_is_must_be_said),
        TEST(test_an_old_copy_with_the_flag_replaces_what_runs),
        TEST(test_its_seals_count_no_more),
        TEST(test_a_precommitted_transaction_without_any_copy_is_only_aborted),
        TEST(test_healed_is_only_who_holds_what_the_log_has),
        TEST(test_a_proof_does_not_wait_for_what_is_under_way),
        TEST(test_nothing_is_lost_while_a_copy_is_good),
        TEST_SINGLE(test_the_only_copy_is_lost_and_later_transactions_go_on),
        TEST(test_what_lies_sealed_somewhere_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
