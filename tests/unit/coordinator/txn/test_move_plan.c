/* SPDX-License-Identifier: Apache-2.0 */
/* Where replicas should be: told by the plan alone, carried out by the test at once. */
#include "coordinator/txn/move_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/state/move.h"
#include "tests/lib/state_builder.h"

enum { NOW_MS = 1000000, LEASE_MS = 5000, REPLACE_MS = 60000, ROUNDS = 2000 };

struct fixture {
    struct state_builder b;
    struct health health;
    struct move_options options;
    uint64_t now_ms;
    struct move_step steps[MOVE_STEPS_MAX];
    uint32_t count;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    state_builder_init(&f->b);
    state_builder_members(&f->b, 1, 3);
    assert_int_equal(state_builder_db(&f->b, "d"), 0);
    f->now_ms = NOW_MS;
    f->options = (struct move_options){.replace_dead_ms = REPLACE_MS, .balance = true};
    health_init(&f->health, LEASE_MS, f->now_ms);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    state_builder_check(&f->b.state);
    health_close(&f->health);
    state_builder_close(&f->b);
    free(f);
    return 0;
}

static void table(struct fixture *f, const char *name, uint32_t buckets, uint8_t replication)
{
    struct state_builder_table table = {
        .db = "d", .table = name, .buckets = buckets, .replication = replication};

    assert_int_equal(state_builder_table(&f->b, &table), 0);
}

static void look(struct fixture *f)
{
    f->count = move_plan(&f->b.state, &f->health, &f->options, f->now_ms, f->steps);
}

/* All are heard but `silent`. */
static void pass(struct fixture *f, uint64_t ms, node_id silent)
{
    f->now_ms += ms;
    for (uint32_t i = 0; i < f->b.state.members.count; i++) {
        struct msg_heartbeat message = {.node = f->b.state.members.list[i].node, .epoch = 1};

        if (message.node != silent)
            assert_int_equal(health_heard(&f->health, &message, f->now_ms), 0);
    }
}

static void apply_replica(struct fixture *f, enum command_type type, tablet_id tablet, node_id node)
{
    struct command command = {.type = type, .replica = {tablet, node, 0}};

    assert_int_equal(state_builder_apply(&f->b, &command), 0);
}

/* One step, and for a new replica its whole repair. */
static int carry_out(struct fixture *f, const struct move_step *step)
{
    struct command command = {
        .type = step->act == MOVE_ADD ? COMMAND_REPLICA_ADD : COMMAND_REPLICA_REMOVE,
        .move = {step->tablet->id, step->node, step->tablet->table->placement_epoch}};
    tablet_id tablet = step->tablet->id;
    int err = state_builder_apply(&f->b, &command);

    if (err == 0 && step->act == MOVE_ADD) {
        apply_replica(f, COMMAND_REPLICA_CATCH, tablet, step->node);
        apply_replica(f, COMMAND_REPLICA_HEALED, tablet, step->node);
    }
    return err;
}

static void drain(struct fixture *f, node_id node, bool on)
{
    struct command command = {.type = COMMAND_NODE_DRAIN, .node = {node, 0, on}};

    assert_int_equal(state_builder_apply(&f->b, &command), 0);
}

/* Until nothing is left to do; how many steps that took. Never are there fewer good replicas than
 * asked for. */
static unsigned settle(struct fixture *f, node_id silent)
{
    unsigned steps = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        pass(f, 100, silent);
        look(f);
        if (f->count == 0)
            return steps;
        for (uint32_t i = 0; i < f->count; i++) {
            assert_int_equal(carry_out(f, &f->steps[i]), 0);
            steps++;
            const struct tablet *tablet = f->steps[i].tablet;
            assert_true(f->steps[i].reason == MOVE_MISSING ||
                        __builtin_popcount(tablet_good(tablet)) >= tablet->table->replication);
        }
    }
    fail_msg("it never settles");
    return 0;
}

static uint32_t replicas(struct fixture *f, const char *name, node_id node)
{
    const struct table *t = state_builder_find(&f->b, "d", name);
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->bucket_count; i++)
        count += tablet_slot(t->tablets[i], node) >= 0;
    return count;
}

static void test_what_is_even_stays(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 7, 3);
    table(f, "u", 5, 1);
    assert_int_equal(settle(f, 0), 0);
}

static void test_new_participants_get_their_share_of_each_table(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 20, 3);
    table(f, "u", 7, 1);
    table(f, "v", 1, 2);
    table(f, "w", 1, 2);
    state_builder_members(&f->b, 4, 5);
    assert_true(settle(f, 0) > 0);
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;
    for (node_id node = 1; node <= 5; node++) {
        assert_int_equal(replicas(f, "t", node), 12);
        assert_in_range(replicas(f, "u", node), 1, 2);
        uint32_t all = move_replicas(&f->b.state, node);
        least = all < least ? all : least;
        most = all > most ? all : most;
    }
    assert_true(most - least <= 1);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(
            __builtin_popcount(tablet_all(state_builder_find(&f->b, "d", "t")->tablets[i])), 3);
}

static void test_no_more_moves_at_once_than_allowed(void **state)
{
    struct fixture *f = *state;
    uint32_t into[6] = {0};

    table(f, "t", 60, 3);
    state_builder_members(&f->b, 4, 5);
    pass(f, 100, 0);
    look(f);
    assert_true(f->count <= MOVES_MAX);
    for (uint32_t i = 0; i < f->count; i++) {
        assert_int_equal(f->steps[i].act, MOVE_ADD);
        assert_true(++into[f->steps[i].node] <= MOVES_PER_NODE);
        struct command command = {.type = COMMAND_REPLICA_ADD,
                                  .move = {f->steps[i].tablet->id, f->steps[i].node,
                                           f->steps[i].tablet->table->placement_epoch}};
        assert_int_equal(state_builder_apply(&f->b, &command), 0);
    }
    assert_true(into[4] > 0 && into[5] > 0);
    look(f); /* they are under way */
    assert_int_equal(f->count, 0);
}

static void test_balance_can_be_off(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 20, 3);
    state_builder_members(&f->b, 4, 5);
    f->options.balance = false;
    assert_int_equal(settle(f, 0), 0);
}

static void test_a_draining_node_loses_all_and_gets_nothing(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 12, 3);
    table(f, "u", 3, 1);
    state_builder_members(&f->b, 4, 4);
    drain(f, 2, true);
    assert_true(settle(f, 0) > 0);
    assert_int_equal(move_replicas(&f->b.state, 2), 0);
    for (node_id node = 1; node <= 4; node++)
        assert_int_equal(replicas(f, "t", node), node == 2 ? 0 : 12);
    assert_int_equal(settle(f, 0), 0);
    drain(f, 2, false);
    assert_true(settle(f, 0) > 0);
    assert_int_equal(replicas(f, "t", 2), 9);
}

/* Three of three nodes hold everything: there is nowhere to go, and nothing is taken away. */
static void test_without_a_place_to_go_nothing_moves(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 4, 2);
    drain(f, 3, true);
    settle(f, 0);
    assert_int_equal(move_replicas(&f->b.state, 3), 0);
    struct member *member = (struct member *)members_find(&f->b.state.members, 2);
    member->draining = true; /* the command would be refused */
    pass(f, 100, 0);
    look(f);
    assert_int_equal(f->count, 0);
    member->draining = false;
}

static void test_a_dead_node_is_replaced_after_a_while(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 6, 3);
    state_builder_members(&f->b, 4, 4);
    f->options.balance = false;
    pass(f, LEASE_MS + 1, 1);
    look(f);
    assert_int_equal(f->count, 0); /* it may come back */
    f->options.replace_dead_ms = 0;
    for (int i = 0; i < 20; i++)
        pass(f, LEASE_MS, 1);
    look(f);
    assert_int_equal(f->count, 0); /* never */
    f->options.replace_dead_ms = REPLACE_MS;
    assert_int_equal(settle(f, 1), 12);
    assert_int_equal(move_replicas(&f->b.state, 1), 0);
    assert_int_equal(replicas(f, "t", 4), 6);
}

static void test_what_a_dropped_node_left_is_made_anew(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 6, 3);
    struct command drop = {.type = COMMAND_NODE_DROP,
                           .node = {2, state_builder_epoch(&f->b, 2), false}};
    assert_int_equal(state_builder_apply(&f->b, &drop), 0);
    assert_int_equal(settle(f, 0), 0); /* too few are left: they stay missing */
    state_builder_members(&f->b, 4, 4);
    assert_int_equal(settle(f, 0), 6);
    assert_int_equal(replicas(f, "t", 4), 6);
}

static void test_a_new_replica_whose_node_goes_is_given_up(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 1, 1);
    state_builder_members(&f->b, 4, 4);
    struct tablet *tablet = state_builder_find(&f->b, "d", "t")->tablets[0];
    struct command add = {.type = COMMAND_REPLICA_ADD,
                          .move = {tablet->id, 4, tablet->table->placement_epoch}};
    assert_int_equal(state_builder_apply(&f->b, &add), 0);
    pass(f, LEASE_MS * 2, 4);
    look(f);
    assert_int_equal(f->count, 0);
    pass(f, MOVE_GIVE_UP_MS, 4);
    look(f);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->steps[0].act, MOVE_REMOVE);
    assert_int_equal(f->steps[0].reason, MOVE_GAVE_UP);
    assert_int_equal(f->steps[0].node, 4);
    pass(f, 100, 0);
    drain(f, 4, true);
    look(f);
    assert_int_equal(f->steps[0].reason, MOVE_GAVE_UP);
}

/* Rule 17: a transaction of an older placement holds the old replica, and only this one. */
static void test_an_old_transaction_holds_the_end_of_a_move(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 1, 3);
    table(f, "u", 1, 3);
    state_builder_members(&f->b, 4, 4);
    assert_int_equal(state_builder_begin(&f->b, 1, "d", "t", "old", true), 0);
    txn_id txn = f->b.last.txn;
    drain(f, 2, true);
    settle(f, 0);
    assert_int_equal(replicas(f, "t", 2), 1);
    assert_int_equal(replicas(f, "t", 4), 1);
    assert_int_equal(replicas(f, "u", 2), 0);
    assert_int_equal(state_builder_finish(&f->b, COMMAND_TXN_ABORT, txn), 0);
    assert_int_equal(settle(f, 0), 1);
    assert_int_equal(move_replicas(&f->b.state, 2), 0);
}

static void test_a_full_disk_gets_nothing_more(void **state)
{
    struct fixture *f = *state;

    table(f, "t", 4, 3);
    state_builder_members(&f->b, 4, 4);
    drain(f, 1, true);
    pass(f, 100, 0);
    struct msg_heartbeat full = {
        .node = 4, .epoch = 1, .disk_free_bytes = 5, .disk_total_bytes = 100};
    assert_int_equal(health_heard(&f->health, &full, f->now_ms), 0);
    look(f);
    assert_int_equal(f->count, 0);
}

int main(void)
{
#define STORY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        STORY(test_what_is_even_stays),
        STORY(test_new_participants_get_their_share_of_each_table),
        STORY(test_no_more_moves_at_once_than_allowed),
        STORY(test_balance_can_be_off),
        STORY(test_a_draining_node_loses_all_and_gets_nothing),
        STORY(test_without_a_place_to_go_nothing_moves),
        STORY(test_a_dead_node_is_replaced_after_a_while),
        STORY(test_what_a_dropped_node_left_is_made_anew),
        STORY(test_a_new_replica_whose_node_goes_is_given_up),
        STORY(test_an_old_transaction_holds_the_end_of_a_move),
        STORY(test_a_full_disk_gets_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
