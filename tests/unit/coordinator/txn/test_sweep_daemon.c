/* SPDX-License-Identifier: Apache-2.0 */
/* The sweeper at work on a log. */
#include "coordinator/txn/sweep_daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/coordinator_scene.h"

struct fixture {
    struct coordinator_scene scene;
    struct health health;
    struct sweep_daemon *daemon;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct txn_sweeper_options options = {.precommit_timeout_ms = 3600000};

    coordinator_scene_open(&f->scene);
    health_init(&f->health, 5000, clock_monotonic_ms(&f->scene.clock.clock));
    assert_int_equal(sweep_daemon_open(f->scene.consensus, &f->health, &f->scene.clock.clock,
                                       &options, &f->daemon),
                     0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    sweep_daemon_close(f->daemon);
    health_close(&f->health);
    coordinator_scene_close(&f->scene);
    free(f);
    return 0;
}

static void test_a_precommit_that_nobody_commits_is_aborted(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);

    sweep_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(coordinator_scene_txn(&f->scene, txn)->state, TXN_PRECOMMITTED);
    fake_clock_advance_ms(&f->scene.clock, 3600000);
    sweep_daemon_run(f->daemon);
    sweep_daemon_run(f->daemon); /* the round is under way: not proposed twice */
    assert_int_equal(fake_consensus_run(f->scene.fake), 1);
    assert_int_equal(coordinator_scene_txn(&f->scene, txn)->state, TXN_ABORTED);
}

static void test_a_jump_of_the_wall_clock_ages_nothing(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);

    fake_clock_jump_wall(&f->scene.clock, INT64_C(86400) * 1000000);
    sweep_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(coordinator_scene_txn(&f->scene, txn)->state, TXN_PRECOMMITTED);
}

static void test_a_follower_sweeps_nothing(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);

    fake_consensus_set_leader(f->scene.fake, false);
    fake_clock_advance_ms(&f->scene.clock, 7200000);
    sweep_daemon_run(f->daemon);
    /* Time without a leader does not count (rule 9). */
    fake_consensus_set_leader(f->scene.fake, true);
    sweep_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(coordinator_scene_txn(&f->scene, txn)->state, TXN_PRECOMMITTED);
}

static void test_a_lost_round_is_planned_again(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);

    fake_clock_advance_ms(&f->scene.clock, 3600000);
    sweep_daemon_run(f->daemon);
    fake_consensus_lose(f->scene.fake, false);
    fake_consensus_set_leader(f->scene.fake, true);
    fake_clock_advance_ms(&f->scene.clock, 3600000);
    sweep_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(coordinator_scene_txn(&f->scene, txn)->state, TXN_ABORTED);
}

static void test_closing_leaves_a_round_to_end_alone(void **state)
{
    struct fixture *f = *state;

    coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);
    fake_clock_advance_ms(&f->scene.clock, 3600000);
    sweep_daemon_run(f->daemon);
    sweep_daemon_close(f->daemon);
    f->daemon = NULL;
    assert_int_equal(fake_consensus_run(f->scene.fake), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_precommit_that_nobody_commits_is_aborted),
        TEST(test_a_jump_of_the_wall_clock_ages_nothing),
        TEST(test_a_follower_sweeps_nothing),
        TEST(test_a_lost_round_is_planned_again),
        TEST(test_closing_leaves_a_round_to_end_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
