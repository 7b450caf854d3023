/* SPDX-License-Identifier: Apache-2.0 */
/* Moves are proposed by the leader, one of a table at a time, and never twice. */
#include "coordinator/txn/move_daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "coordinator/state/move.h"
#include "tests/lib/coordinator_scene.h"

enum { LEASE_MS = 2000, BUCKETS = 6 };

struct fixture {
    struct coordinator_scene scene;
    struct health health;
    struct move_daemon *daemon;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct move_options options = {.replace_dead_ms = 60000, .balance = true};
    struct state_builder_table table = {
        .db = "d", .table = "t", .buckets = BUCKETS, .replication = 3};
    struct state_builder builder;

    state_builder_init(&builder);
    state_builder_members(&builder, 1, 3);
    assert_int_equal(state_builder_db(&builder, "d"), 0);
    assert_int_equal(state_builder_table(&builder, &table), 0);
    state_builder_members(&builder, 4, 4);
    coordinator_scene_open_with(&f->scene, &builder);
    health_init(&f->health, LEASE_MS, clock_monotonic_ms(&f->scene.clock.clock));
    assert_int_equal(move_daemon_open(f->scene.consensus, &f->health, &f->scene.clock.clock,
                                      &options, &f->daemon),
                     0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    move_daemon_close(f->daemon);
    fake_consensus_run(f->scene.fake); /* late outcomes find nobody */
    health_close(&f->health);
    coordinator_scene_close(&f->scene);
    free(f);
    return 0;
}

static uint32_t joining(struct fixture *f)
{
    const struct table *table = coordinator_scene_table(&f->scene, "t");
    uint32_t count = 0;

    for (uint32_t i = 0; i < table->bucket_count; i++)
        count += tablet_joining(table->tablets[i]) != 0;
    return count;
}

static void heal(struct fixture *f, node_id node)
{
    const struct table *table = coordinator_scene_table(&f->scene, "t");

    for (uint32_t i = 0; i < table->bucket_count; i++) {
        if (tablet_joining(table->tablets[i]) == 0)
            continue;
        struct command command = {.type = COMMAND_REPLICA_CATCH,
                                  .replica = {table->tablets[i]->id, node, 0}};
        assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
        command.type = COMMAND_REPLICA_HEALED;
        assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
    }
}

static void test_one_command_of_a_table_is_under_way_at_a_time(void **state)
{
    struct fixture *f = *state;

    move_daemon_run(f->daemon);
    move_daemon_run(f->daemon); /* waits for the first */
    fake_consensus_run(f->scene.fake);
    assert_int_equal(joining(f), 1);
    move_daemon_run(f->daemon); /* the state has changed: no pause */
    fake_consensus_run(f->scene.fake);
    assert_int_equal(joining(f), 2);
}

static void test_a_new_participant_gets_its_share_in_the_end(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 40; i++) {
        struct msg_heartbeat message = {.epoch = 1};
        for (message.node = 1; message.node <= 4; message.node++)
            assert_int_equal(
                health_heard(&f->health, &message, clock_monotonic_ms(&f->scene.clock.clock)), 0);
        move_daemon_run(f->daemon);
        fake_consensus_run(f->scene.fake);
        heal(f, 4);
        fake_clock_advance_ms(&f->scene.clock, MOVE_LOOK_MS);
    }
    assert_in_range(move_replicas(coordinator_scene_state(&f->scene), 4), 4, 5);
    assert_int_equal(coordinator_scene_state(&f->scene)->catalog.behind_count, 0);
}

static void test_a_follower_moves_nothing(void **state)
{
    struct fixture *f = *state;

    fake_consensus_set_leader(f->scene.fake, false);
    move_daemon_run(f->daemon);
    assert_int_equal(fake_consensus_run(f->scene.fake), 0);
}

static void test_what_was_proposed_before_leadership_was_lost_is_forgotten(void **state)
{
    struct fixture *f = *state;

    move_daemon_run(f->daemon);
    fake_consensus_lose(f->scene.fake, true);
    move_daemon_reset(f->daemon);
    assert_int_equal(joining(f), 1);
    fake_consensus_set_leader(f->scene.fake, true);
    move_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(joining(f), 2);
}

static void test_a_dropped_node_leaves_room_for_others(void **state)
{
    struct fixture *f = *state;
    struct msg_heartbeat message = {.node = 77, .epoch = 1};

    assert_int_equal(health_heard(&f->health, &message, 0), 0);
    move_daemon_run(f->daemon);
    assert_null(health_find(&f->health, 77));
}

int main(void)
{
#define STORY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        STORY(test_one_command_of_a_table_is_under_way_at_a_time),
        STORY(test_a_new_participant_gets_its_share_in_the_end),
        STORY(test_a_follower_moves_nothing),
        STORY(test_what_was_proposed_before_leadership_was_lost_is_forgotten),
        STORY(test_a_dropped_node_leaves_room_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
