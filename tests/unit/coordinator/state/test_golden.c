/* SPDX-License-Identifier: Apache-2.0 */
/* A log and a snapshot that an earlier build wrote: they open for ever, to the same state. The
 * files are never written anew; a new format version gets new files beside them
 * (TIDEGATE_WRITE_GOLDEN=<folder> makes this program write what it would compare with). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/state_builder.h"

enum { FILE_MAX = 1 << 20, PATH_BYTES = 4096, FORMAT_CHAINS = 5, FORMAT_TODAY = 6 };

/* fresh: what is written where golden files are made anew; NULL: nothing can make it any more. */
static struct slice read_golden(const char *name, const struct buf *fresh, uint8_t *bytes)
{
    char path[PATH_BYTES];
    const char *folder = getenv("TIDEGATE_WRITE_GOLDEN");
    const char *source = getenv("TIDEGATE_SOURCE");
    if (folder != NULL && fresh != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, name);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(fresh->data, 1, fresh->len, file), fresh->len);
        assert_int_equal(fclose(file), 0);
    } else {
        snprintf(path, sizeof path, "%s/tests/golden/%s", source == NULL ? "." : source, name);
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("%s is missing (set TIDEGATE_SOURCE to the top of the tree)", path);
    size_t len = fread(bytes, 1, FILE_MAX, file);
    fclose(file);
    return slice_of(bytes, len);
}

/* Every type of command at least once, and every kind of thing in the snapshot. */
static void tell(struct state_builder *b)
{
    state_builder_init(b);
    state_builder_members(b, 1, 3);
    assert_int_equal(state_builder_db(b, "d"), 0);
    assert_int_equal(state_builder_db(b, "e"), 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 2, .replication = 3};
    assert_int_equal(state_builder_table(b, &table), 0);
    table = (struct state_builder_table){
        .db = "d", .table = "u", .buckets = 1, .replication = 2, .write_all = true, .occ = true};
    assert_int_equal(state_builder_table(b, &table), 0);
    txn_id first = state_builder_load(b, "d", "t", "first");
    assert_int_equal(state_builder_begin(b, 2, "d", "t", "second", true), 0);
    txn_id second = b->last.txn;
    assert_int_equal(state_builder_done(b, second, b->last.rowset, 3, 7), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, second), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, second, 3), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_CONFIRM, second, 4), 0);
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "explicit", false), 0);
    txn_id third = b->last.txn;
    assert_int_equal(state_builder_load_start(b, 1, third, "d", "u"), 0);
    assert_int_equal(state_builder_done(b, third, b->last.rowset, 1, 3), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_PRECOMMIT, third), 0);
    assert_int_equal(state_builder_begin(b, 3, "d", "t", "gone", false), 0);
    assert_int_equal(state_builder_failed(b, b->last.txn, b->last.rowset, "sender is gone"), 0);
    assert_int_equal(state_builder_begin(b, 3, "d", "t", "stopped", false), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, b->last.txn), 0);
    struct command behind = {.type = COMMAND_REPLICA_BEHIND};
    const struct tablet *tablet = state_builder_find(b, "d", "t")->tablets[1];
    behind.behind = (struct command_behind){tablet->id, tablet->replicas[2].node, second};
    assert_int_equal(state_builder_apply(b, &behind), 0);
    struct command fence = {.type = COMMAND_LOAD_FAILED};
    fence.load_failed.key = (struct request_key){1, state_builder_epoch(b, 1), 4711};
    assert_int_equal(state_builder_apply(b, &fence), 0);
    assert_int_equal(state_builder_name(b, COMMAND_TRUNCATE_TABLE, "d", "t", false, false), 0);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "u", false, false), 0);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_DB, "e", NULL, false, false), 0);
    state_builder_elapse(b, UINT64_C(13) * 3600 * 1000);
    assert_int_equal(state_builder_forget(b, first), 0);
}

/* What came with format 2: a replica that lacks something, is written to again, is good. */
static void tell_more(struct state_builder *b)
{
    const enum command_type types[] = {COMMAND_REPLICA_LACKS, COMMAND_REPLICA_CATCH,
                                       COMMAND_REPLICA_HEALED, COMMAND_REPLICA_LACKS,
                                       COMMAND_REPLICA_CATCH};
    tell(b);
    const struct tablet *tablet = state_builder_find(b, "d", "t")->tablets[0];
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct command command = {.type = types[i]};
        command.replica = (struct command_replica){tablet->id, tablet->replicas[1].node,
                                                   types[i] == COMMAND_REPLICA_LACKS    ? 1
                                                   : types[i] == COMMAND_REPLICA_HEALED ? 3
                                                                                        : 0};
        assert_int_equal(state_builder_apply(b, &command), 0);
    }
    assert_int_equal(tablet_catching(tablet), 2);
    assert_int_equal(tablet_behind(state_builder_find(b, "d", "t")->tablets[1]), 4);
}

static void tell_limits(struct state_builder *b)
{
    struct command command = {.type = COMMAND_SET_LIMITS, .limits.limits = {7, 5, 1 << 20}};
    tell_more(b);
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(b->state.limits.running_txns_per_db_max, 7);
}

/* What came with format 3: statements with the keys of their requests. */
static void tell_of_statements(struct state_builder *b)
{
    tell_more(b);
    for (uint64_t i = 1; i <= 2; i++) {
        struct command command = {.type = i == 1 ? COMMAND_CREATE_DB : COMMAND_TRUNCATE_TABLE};
        command.name.key = (struct request_key){.epoch = UINT64_C(1) << 63, .request = i};
        snprintf(command.name.db, sizeof command.name.db, "%s", i == 1 ? "f" : "d");
        snprintf(command.name.table, sizeof command.name.table, "%s", i == 1 ? "" : "t");
        assert_int_equal(state_builder_apply(b, &command), 0);
    }
}

/* What came with format 4: the coordinators, one of each standing there can be. */
static void tell_coordinators(struct state_builder *b)
{
    tell_of_statements(b);
    const struct {
        enum command_type type;
        uint64_t id;
    } told[] = {{COMMAND_COORDINATOR_FOUND, 1}, {COMMAND_COORDINATOR_FOUND, 2},
                {COMMAND_COORDINATOR_ADD, 3},   {COMMAND_COORDINATOR_PROMOTE, 3},
                {COMMAND_COORDINATOR_DROP, 2},  {COMMAND_COORDINATOR_GONE, 2},
                {COMMAND_COORDINATOR_ADD, 5}};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        struct command command = {.type = told[i].type};
        struct command_coordinator *coordinator = &command.coordinator;
        coordinator->id = told[i].id;
        if (told[i].type == COMMAND_COORDINATOR_ADD)
            coordinator->nonce = 4711;
        if (told[i].type == COMMAND_COORDINATOR_FOUND || told[i].type == COMMAND_COORDINATOR_ADD) {
            snprintf(coordinator->raft, ADDRESS_BYTES, "10.0.0.%u:9010", (unsigned)told[i].id);
            snprintf(coordinator->rpc, ADDRESS_BYTES, "10.0.0.%u:9020", (unsigned)told[i].id);
            snprintf(coordinator->http, ADDRESS_BYTES, "10.0.0.%u:8030", (unsigned)told[i].id);
        }
        assert_int_equal(state_builder_apply(b, &command), 0);
    }
    assert_int_equal(b->state.coordinators.count, 3);
}

/* What came with format 5: a replica that proves what it holds, a participant that comes back
 * without its directory, a version of which no copy is left. */
static void tell_of_losses(struct state_builder *b)
{
    tell_coordinators(b);
    struct tablet *tablet = state_builder_find(b, "d", "t")->tablets[0];
    struct command command = {.type = COMMAND_REPLICA_PROVEN};
    command.proven = (struct command_proven){.tablet = tablet->id,
                                             .node = tablet->replicas[1].node,
                                             .bound = 4,
                                             .version = 3,
                                             .chain = tablet->replicas[1].missed_chain};
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_int_equal(tablet_behind(tablet), 0);
    assert_int_equal(state_builder_begin(b, 2, "d", "t", "half lost", false), 0);
    assert_int_equal(state_builder_done(b, b->last.txn, b->last.rowset, 3, 7), 0);
    for (unsigned i = 0; i < 3; i++) {
        command = (struct command){.type = COMMAND_MEMBER_REJOIN};
        struct msg_register *message = &command.member.message;
        message->wanted = tablet->replicas[i].node;
        message->new_nonce = 900 + i;
        snprintf(message->node_uuid, UUID_BYTES, "new-%u", i);
        snprintf(message->rpc, ADDRESS_BYTES, "127.0.0.1:%u", 9000 + i);
        assert_int_equal(state_builder_apply(b, &command), 0);
    }
    assert_int_equal(tablet_behind(tablet), 7);
    command = (struct command){.type = COMMAND_DECLARE_LOST};
    command.lost = (struct command_lost){.tablet = tablet->id, .kept = 4};
    assert_int_equal(state_builder_apply(b, &command), 0);
    assert_true(tablet->table->versions[4].lost);
    command = (struct command){.type = COMMAND_REPLICA_CATCH};
    command.replica = (struct command_replica){.tablet = tablet->id, .node = 1};
    assert_int_equal(state_builder_apply(b, &command), 0);
}

static void move(struct state_builder *b, enum command_type type, const struct tablet *tablet,
                 node_id node)
{
    struct command command = {.type = type};
    command.move = (struct command_move){tablet->id, node, tablet->table->placement_epoch};
    assert_int_equal(state_builder_apply(b, &command), 0);
}

/* What came with format 6: replicas that join and leave, members on their way out and gone. */
static void tell_moves(struct state_builder *b)
{
    tell_of_losses(b);
    state_builder_members(b, 4, 6);
    struct state_builder_table table = {.db = "d", .table = "m", .buckets = 2, .replication = 3};
    assert_int_equal(state_builder_table(b, &table), 0);
    state_builder_load(b, "d", "m", "moved");
    struct tablet *tablet = state_builder_find(b, "d", "m")->tablets[0];
    node_id old = tablet->replicas[1].node;
    node_id next = tablet_slot(tablet, 6) < 0 ? 6 : 5;
    move(b, COMMAND_REPLICA_ADD, tablet, next);
    struct command command = {.type = COMMAND_REPLICA_CATCH};
    command.replica = (struct command_replica){tablet->id, next, 0};
    assert_int_equal(state_builder_apply(b, &command), 0);
    command.type = COMMAND_REPLICA_HEALED;
    command.replica.version = 1;
    assert_int_equal(state_builder_apply(b, &command), 0);
    move(b, COMMAND_REPLICA_REMOVE, tablet, old);
    assert_int_equal(tablet->replicas[1].node, 0);
    move(b, COMMAND_REPLICA_ADD, state_builder_find(b, "d", "m")->tablets[1],
         tablet_slot(state_builder_find(b, "d", "m")->tablets[1], 4) < 0 ? 4 : 1);
    struct command drain = {.type = COMMAND_NODE_DRAIN, .node = {2, 0, true}};
    assert_int_equal(state_builder_apply(b, &drain), 0);
    state_builder_members(b, 7, 7);
    struct command drop = {.type = COMMAND_NODE_DROP,
                           .node = {7, state_builder_epoch(b, 7), false}};
    assert_int_equal(state_builder_apply(b, &drop), 0);
}

static void check_log(void (*told)(struct state_builder *), const char *file)
{
    static uint8_t bytes[FILE_MAX];
    struct state_builder b;
    told(&b);
    struct slice log = read_golden(file, &b.log, bytes);
    assert_true(slice_equal(log, slice_of(b.log.data, b.log.len)));
    struct state state;
    assert_int_equal(state_init(&state), 0);
    state_builder_replay(log, &state);
    assert_int_equal(state_hash(&state), state_hash(&b.state));
    state_close(&state);
    state_builder_close(&b);
}

static void test_an_old_log_gives_the_state_that_it_gave(void **unused)
{
    (void)unused;
    check_log(tell, "commands-v1.bin");
    check_log(tell_more, "commands-v1-repair.bin");
    check_log(tell_limits, "commands-v1-limits.bin");
    check_log(tell_of_statements, "commands-v1-statements.bin");
    check_log(tell_coordinators, "commands-v1-coordinators.bin");
    check_log(tell_of_losses, "commands-v1-losses.bin");
    check_log(tell_moves, "commands-v1-moves.bin");
}

/* Formats before the fifth knew no chains of versions. */
static void forget_chains(struct state *state)
{
    for (struct tablet *tablet = state->catalog.tablets; tablet != NULL; tablet = tablet->hh.next) {
        tablet->chain_known = false;
        for (unsigned i = 0; i < tablet->replica_count; i++)
            tablet->replicas[i].missed_known = false;
    }
}

static void check_snapshot(void (*told)(struct state_builder *), const char *file, int format)
{
    bool writes = format == FORMAT_TODAY;
    static uint8_t bytes[FILE_MAX];
    struct state_builder b;
    told(&b);
    struct buf fresh = BUF_INIT;
    state_encode(&b.state, &fresh);
    struct slice snapshot = read_golden(file, writes ? &fresh : NULL, bytes);
    assert_int_equal(slice_equal(snapshot, slice_of(fresh.data, fresh.len)), writes);
    struct state state;
    struct tg_errmsg msg;
    assert_int_equal(state_init(&state), 0);
    assert_int_equal(state_decode(&state, snapshot, &msg), 0);
    state_builder_check(&state);
    if (format < FORMAT_CHAINS)
        forget_chains(&b.state);
    assert_int_equal(state_hash(&state), state_hash(&b.state));
    state_close(&state);
    buf_close(&fresh);
    state_builder_close(&b);
}

static void test_old_snapshots_open_to_the_same_state(void **unused)
{
    (void)unused;
    check_snapshot(tell, "snapshot-v1.bin", 1);
    check_snapshot(tell_more, "snapshot-v2.bin", 2);
    check_snapshot(tell_of_statements, "snapshot-v3.bin", 3);
    check_snapshot(tell_coordinators, "snapshot-v4.bin", 4);
    check_snapshot(tell_of_losses, "snapshot-v5.bin", 5);
    check_snapshot(tell_moves, "snapshot-v6.bin", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_old_log_gives_the_state_that_it_gave),
        cmocka_unit_test(test_old_snapshots_open_to_the_same_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
