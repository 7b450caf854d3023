/* SPDX-License-Identifier: Apache-2.0 */
/* The state as a whole: order of stamps, equal results of equal logs, and long random histories,
 * with and without snapshots in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/random.h"
#include "tests/lib/state_builder.h"

static void test_a_stamp_that_does_not_grow_is_refused(void **unused)
{
    (void)unused;
    struct state_builder b;
    state_builder_init(&b);
    uint64_t stamp = b.state.stamp_us;
    uint64_t elapsed = b.state.elapsed_ms;
    const uint64_t bad[] = {stamp, stamp - 1, 0, UINT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct batch_header header = {.stamp_us = bad[i], .elapsed_delta_ms = 5};
        assert_int_equal(state_begin_batch(&b.state, &header), TG_INVALID);
        assert_int_equal(b.state.stamp_us, stamp);
        assert_int_equal(b.state.elapsed_ms, elapsed);
    }
    struct batch_header header = {.stamp_us = stamp + 1, .elapsed_delta_ms = 5};
    assert_int_equal(state_begin_batch(&b.state, &header), 0);
    assert_int_equal(b.state.stamp_us, stamp + 1);
    assert_int_equal(b.state.elapsed_ms, elapsed + 5);
    state_builder_close(&b);
}

static void test_times_of_one_batch_are_distinct_and_below_the_next_stamp(void **unused)
{
    (void)unused;
    struct state_builder b;
    state_builder_init(&b);
    struct batch_header header = {.stamp_us = b.state.stamp_us + 10, .count = 3};
    assert_int_equal(state_begin_batch(&b.state, &header), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct command command = {.type = COMMAND_CREATE_DB};
        snprintf(command.name.db, NAME_BYTES, "d%u", i);
        struct apply_result result;
        state_apply(&b.state, &command, &result);
        assert_int_equal(result.time_us, header.stamp_us + i);
    }
    assert_int_equal(b.state.stamp_us, header.stamp_us + 2);
    header.stamp_us += 2;
    assert_int_equal(state_begin_batch(&b.state, &header), TG_INVALID);
    state_builder_close(&b);
}

static void test_unknown_commands_are_refused(void **unused)
{
    (void)unused;
    struct state_builder b;
    state_builder_init(&b);
    struct command command = {.type = (enum command_type)250};
    struct apply_result result;
    state_apply(&b.state, &command, &result);
    assert_int_equal(result.err, TG_UNSUPPORTED);
    state_builder_close(&b);
}

/* A commits, B aborts, another leader goes on with C; whoever replays the log has the same
 * state: A and C once each in order, B absent and its label free. */
static void test_replaying_a_log_with_an_abort_gives_the_same_state(void **unused)
{
    (void)unused;
    struct state_builder b;
    state_builder_init(&b);
    state_builder_members(&b, 1, 3);
    assert_int_equal(state_builder_db(&b, "d"), 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 2, .replication = 3};
    assert_int_equal(state_builder_table(&b, &table), 0);
    txn_id a = state_builder_load(&b, "d", "t", "A");
    assert_int_equal(state_builder_begin(&b, 1, "d", "t", "B", false), 0);
    assert_int_equal(state_builder_failed(&b, b.last.txn, b.last.rowset, "bad rows"), 0);
    txn_id c = state_builder_load(&b, "d", "t", "C");

    struct state follower;
    assert_int_equal(state_init(&follower), 0);
    state_builder_replay(slice_of(b.log.data, b.log.len), &follower);
    assert_int_equal(state_hash(&follower), state_hash(&b.state));
    struct database *database = catalog_database(&follower.catalog, "d");
    const struct table *t = catalog_table(database, "t");
    assert_int_equal(t->visible, 2);
    assert_int_equal(t->versions[0].txn, a);
    assert_int_equal(t->versions[1].txn, c);
    assert_int_equal(txn_table_find_label(&follower.txns, database->id, "B")->state, TXN_ABORTED);
    assert_int_equal(state_builder_begin(&b, 1, "d", "t", "B", false), 0);
    assert_int_equal(state_builder_begin(&b, 1, "d", "t", "A", false), TG_LABEL_EXISTS);
    assert_int_equal(state_builder_begin(&b, 1, "d", "t", "C", false), TG_LABEL_EXISTS);
    state_close(&follower);
    state_builder_close(&b);
}

/* ---- random histories ---- */

enum { NODES = 4, NAMES = 3, LABELS = 60, STEPS = 8000 };

struct story {
    struct state_builder builder;
    struct random_seeded random;
};

static uint64_t pick(struct story *story, uint64_t below)
{
    return random_below(&story->random.source, below);
}

static txn_id pick_txn(struct story *story)
{
    /* Mostly a recent one, so that most commands find something to do. */
    uint64_t next = story->builder.state.next_txn;
    uint64_t back = pick(story, 20);
    return next > back ? next - back : pick(story, next + 1);
}

static rowset_id pick_rowset(struct story *story, txn_id id)
{
    const struct txn *txn = txn_table_find(&story->builder.state.txns, id);
    if (txn == NULL || txn->load_count == 0)
        return pick(story, 100);
    return txn->loads[pick(story, txn->load_count)].rowset;
}

static void make_things(struct story *story, const char *db, const char *name)
{
    struct state_builder *b = &story->builder;
    switch (pick(story, 9)) {
    case 0:
        state_builder_db(b, db);
        break;
    case 1:
        state_builder_name(b, COMMAND_DROP_DB, db, NULL, true, pick(story, 10) == 0);
        break;
    case 2:
        if (pick(story, 3) == 0)
            state_builder_name(b, COMMAND_DROP_TABLE, db, name, true, false);
        break;
    case 3:
        state_builder_name(b, COMMAND_TRUNCATE_TABLE, db, name, false, false);
        break;
    default:
        state_builder_table(
            b, &(struct state_builder_table){.db = db,
                                             .table = name,
                                             .buckets = (uint32_t)pick(story, 5),
                                             .replication = (uint8_t)(1 + pick(story, 3)),
                                             .write_all = pick(story, 4) == 0,
                                             .occ = pick(story, 4) == 0});
    }
}

static void register_again(struct story *story)
{
    struct state_builder *b = &story->builder;
    node_id node = 1 + (node_id)pick(story, NODES);
    const struct member *member = members_find(&b->state.members, node);
    struct command command = {.type = COMMAND_MEMBER_REGISTER};
    if (member == NULL) { /* it was dropped, and comes with an empty directory */
        state_builder_members(b, node, node);
        return;
    }
    memcpy(command.member.message.node_uuid, member->uuid, UUID_BYTES);
    command.member.message.previous_nonce = member->nonce - (pick(story, 3) == 0);
    command.member.message.new_nonce = b->next_nonce++;
    state_builder_apply(b, &command);
}

static void put_behind(struct story *story)
{
    struct state_builder *b = &story->builder;
    struct command command = {.type = COMMAND_REPLICA_BEHIND};
    command.behind.tablet = pick(story, b->state.next_tablet + 1);
    command.behind.node = 1 + (node_id)pick(story, NODES);
    command.behind.txn = pick_txn(story);
    state_builder_apply(b, &command);
}

static void repair_one(struct story *story)
{
    struct state_builder *b = &story->builder;
    const enum command_type types[] = {COMMAND_REPLICA_LACKS, COMMAND_REPLICA_CATCH,
                                       COMMAND_REPLICA_HEALED};
    struct command command = {.type = types[pick(story, 3)]};
    command.replica.tablet = pick(story, b->state.next_tablet + 1);
    command.replica.node = 1 + (node_id)pick(story, NODES);
    const struct tablet *tablet = catalog_tablet(&b->state.catalog, command.replica.tablet);
    if (tablet != NULL && tablet->touched_count > 0)
        command.replica.version = tablet->touched[pick(story, tablet->touched_count)];
    state_builder_apply(b, &command);
}

/* Replicas move, nodes come and go. */
static void move_one(struct story *story)
{
    struct state_builder *b = &story->builder;
    const enum command_type types[] = {COMMAND_REPLICA_ADD,    COMMAND_REPLICA_ADD,
                                       COMMAND_REPLICA_REMOVE, COMMAND_REPLICA_REMOVE,
                                       COMMAND_REPLICA_REMOVE, COMMAND_NODE_DRAIN};
    struct command command = {.type = types[pick(story, 6)]};
    node_id node = 1 + (node_id)pick(story, NODES);
    if (pick(story, 40) == 0)
        command.type = COMMAND_NODE_DROP;
    if (command.type == COMMAND_NODE_DRAIN || command.type == COMMAND_NODE_DROP) {
        command.node = (struct command_node){node, state_builder_epoch(b, node), false};
        command.node.drain = command.type == COMMAND_NODE_DRAIN && pick(story, 3) == 0;
    } else {
        const struct tablet *tablet = b->state.catalog.tablets;
        for (uint64_t i = pick(story, 8); i > 0 && tablet != NULL; i--)
            tablet = tablet->hh.next != NULL ? tablet->hh.next : tablet;
        command.move.node = node;
        if (tablet != NULL)
            command.move = (struct command_move){
                tablet->id, node, tablet->table->placement_epoch - (pick(story, 8) == 0)};
    }
    state_builder_apply(b, &command);
}

static void give_up(struct story *story)
{
    struct state_builder *b = &story->builder;
    struct command command = {.type = COMMAND_LOAD_FAILED};
    node_id node = 1 + (node_id)pick(story, NODES);
    command.load_failed.key = (struct request_key){node, state_builder_epoch(b, node),
                                                   b->next_request + pick(story, 10) - 5};
    state_builder_apply(b, &command);
}

/* Publishes the oldest ones on the list, as a publisher would, with some replicas missing. */
static void publish_some(struct story *story)
{
    struct state_builder *b = &story->builder;
    txn_id ids[5];
    uint64_t count = 0;
    for (const struct txn *txn = b->state.txns.publishing.first; txn != NULL && count < 5;
         txn = txn->next)
        ids[count++] = txn->id;
    for (uint64_t i = 0; i < count; i++) {
        const struct txn *txn = txn_table_find(&b->state.txns, ids[i]);
        enum command_type type =
            txn->state == TXN_COMMITTED ? COMMAND_TXN_VISIBLE : COMMAND_TXN_CONFIRM;
        state_builder_publish(b, type, ids[i], (uint8_t)(7 - pick(story, 4)));
    }
}

static void step(struct story *story)
{
    struct state_builder *b = &story->builder;
    static const char *const dbs[] = {"d", "e"};
    static const char *const names[NAMES] = {"t", "u", "v"};
    const char *db = dbs[pick(story, 8) == 0];
    const char *name = names[pick(story, NAMES)];
    char label[16];
    snprintf(label, sizeof label, "l%u", (unsigned)pick(story, LABELS));
    node_id node = 1 + (node_id)pick(story, NODES);
    txn_id txn = pick_txn(story);
    static const enum command_type ends[] = {COMMAND_TXN_PRECOMMIT, COMMAND_TXN_COMMIT,
                                             COMMAND_TXN_COMMIT, COMMAND_TXN_ABORT};
    switch (pick(story, 24)) {
    case 0:
        make_things(story, db, name);
        break;
    case 1:
        register_again(story);
        break;
    case 2:
        if (pick(story, 10) == 0)
            put_behind(story);
        else
            repair_one(story);
        repair_one(story);
        move_one(story);
        move_one(story);
        break;
    case 3:
        give_up(story);
        break;
    case 4:
        state_builder_elapse(b, pick(story, 2000));
        break;
    case 5:
        state_builder_forget(b, pick(story, b->state.next_txn + 1));
        break;
    case 6:
    case 7:
        state_builder_begin(b, 0, db, NULL, label, false);
        break;
    case 8:
    case 9:
        state_builder_load_start(b, node, txn, db, name);
        break;
    case 10:
        state_builder_failed(b, txn, pick_rowset(story, txn), "said so");
        break;
    case 11:
    case 12:
        state_builder_finish(b, ends[pick(story, 4)], txn);
        break;
    case 13:
    case 14:
        publish_some(story);
        break;
    case 15:
    case 16:
    case 17:
    case 18:
    case 19:
        state_builder_done(
            b, txn, pick_rowset(story, txn), pick(story, 16),
            (uint8_t)((pick(story, 4) == 0 ? 15 : 7) - (pick(story, 6) == 0 ? pick(story, 8) : 0)));
        break;
    default:
        state_builder_begin(b, node, db, name, label, pick(story, 2) == 0);
    }
}

static void begin_story(struct story *story, uint64_t seed)
{
    random_seeded_init(&story->random, seed);
    state_builder_init(&story->builder);
    story->builder.state.limits.label_keep_ms = 5000;
    state_builder_members(&story->builder, 1, NODES);
    state_builder_db(&story->builder, "d");
    state_builder_db(&story->builder, "e");
}

/* Two states hear the same commands; one is turned into a snapshot and back at random points. A
 * third replays the log at the end. */
static void tell(uint64_t seed, uint64_t *moves)
{
    struct story straight;
    struct story restored;
    begin_story(&straight, seed);
    begin_story(&restored, seed);
    for (int i = 0; i < STEPS; i++) {
        step(&straight);
        step(&restored);
        assert_int_equal(straight.builder.last.err, restored.builder.last.err);
        assert_string_equal(straight.builder.last.msg.text, restored.builder.last.msg.text);
        if (i % 61 == 60)
            state_builder_restore(&restored.builder);
        if (i % 97 == 96) {
            state_builder_check(&straight.builder.state);
            state_builder_check(&restored.builder.state);
            assert_int_equal(state_hash(&straight.builder.state),
                             state_hash(&restored.builder.state));
        }
    }
    struct state replayed;
    assert_int_equal(state_init(&replayed), 0);
    replayed.limits.label_keep_ms = 5000;
    struct slice log = slice_of(straight.builder.log.data, straight.builder.log.len);
    state_builder_replay(log, &replayed);
    assert_int_equal(state_hash(&replayed), state_hash(&straight.builder.state));
    assert_int_equal(replayed.txns.finished_bytes, straight.builder.state.txns.finished_bytes);
    state_close(&replayed);
    /* The story was worth telling. */
    assert_true(straight.builder.state.next_txn > 200);
    *moves += straight.builder.state.catalog.moves;
    state_builder_close(&straight.builder);
    state_builder_close(&restored.builder);
}

static void test_random_histories_are_the_same_with_snapshots_in_between(void **unused)
{
    (void)unused;
    uint64_t moves = 0;
    for (uint64_t seed = 1; seed <= 8; seed++)
        tell(seed, &moves);
    assert_true(moves > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stamp_that_does_not_grow_is_refused),
        cmocka_unit_test(test_times_of_one_batch_are_distinct_and_below_the_next_stamp),
        cmocka_unit_test(test_unknown_commands_are_refused),
        cmocka_unit_test(test_replaying_a_log_with_an_abort_gives_the_same_state),
        cmocka_unit_test(test_random_histories_are_the_same_with_snapshots_in_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
