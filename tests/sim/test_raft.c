/* SPDX-License-Identifier: Apache-2.0 */
/* The raft library under cuts, loss, repetition, slow disks, crashes and snapshots: what was
 * acknowledged stays, and all servers apply one sequence. SEEDS=1-1000 runs more; SIM_TRACE=1
 * prints what happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <raft.h>

#include "tests/sim/raft_sim.h"
#include "tests/sim/sim_seeds.h"

enum { SEEDS_DEFAULT = 12, SPAN_US = 10 * 1000 * 1000 };

static void run_seeds(unsigned servers, bool snapshots, bool crashes, bool faults)
{
    struct sim_seeds seeds = sim_seeds_of(SEEDS_DEFAULT);
    uint64_t acknowledged = 0, unknown = 0, taken = 0, installed = 0, crashed = 0, failed = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        struct raft_sim_options options = {.seed = seed,
                                           .servers = servers,
                                           .span_us = SPAN_US,
                                           .snapshots = snapshots,
                                           .crashes = crashes,
                                           .faults = faults};
        struct raft_sim_result result;
        raft_sim_run(&options, &result);
        if (result.failure[0] != '\0')
            fail_msg("SEEDS=%lu-%lu servers=%u: %s", (unsigned long)seed, (unsigned long)seed,
                     servers, result.failure);
        assert_true(result.acknowledged > 0);
        acknowledged += result.acknowledged;
        unknown += result.unknown;
        taken += result.snapshots;
        installed += result.installs;
        crashed += result.crashes;
        failed += result.faults;
    }
    print_message("seeds %lu-%lu: %lu acknowledged, %lu unknown, %lu snapshots, %lu installed, "
                  "%lu crashes, %lu disk faults\n",
                  (unsigned long)seeds.first, (unsigned long)seeds.last,
                  (unsigned long)acknowledged, (unsigned long)unknown, (unsigned long)taken,
                  (unsigned long)installed, (unsigned long)crashed, (unsigned long)failed);
    assert_true(faults ? failed > 0 : failed == 0);
    if (snapshots)
        assert_true(taken > 0);
}

static void test_three_servers_with_cuts_and_latency_agree(void **state)
{
    (void)state;
    run_seeds(3, false, false, false);
}

static void test_three_servers_with_snapshots_and_crashes_agree(void **state)
{
    (void)state;
    run_seeds(3, true, true, false);
}

static void test_five_servers_with_snapshots_and_crashes_agree(void **state)
{
    (void)state;
    run_seeds(5, true, true, false);
}

static void test_disks_that_fail_end_the_process_and_lose_nothing(void **state)
{
    (void)state;
    run_seeds(3, true, true, true);
    run_seeds(5, true, true, true);
}

static void test_the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    struct raft_sim_options options = {.seed = 77,
                                       .servers = 3,
                                       .span_us = 3 * 1000 * 1000,
                                       .snapshots = true,
                                       .crashes = true,
                                       .faults = true};
    struct raft_sim_result first, second, other;
    raft_sim_run(&options, &first);
    raft_sim_run(&options, &second);
    assert_true(first.trace == second.trace);
    options.seed = 78;
    raft_sim_run(&options, &other);
    assert_true(first.trace != other.trace);
}

/* Runs one seed in a process of its own: the library may abort. True if all was well. */
static bool is_well_unguarded(uint64_t seed)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct raft_sim_options options = {.seed = seed,
                                           .servers = 3,
                                           .span_us = SPAN_US,
                                           .snapshots = true,
                                           .crashes = true,
                                           .unguarded = true};
        struct raft_sim_result result;
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(2);
        raft_sim_run(&options, &result);
        _exit(result.failure[0] != '\0');
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* If this fails with a newer raft, the guard may have had its day. */
static void test_the_simulation_sees_what_the_guard_is_for(void **state)
{
    (void)state;
    if (raft_version_number() != 2201)
        skip();
    unsigned failed = 0;
    for (uint64_t seed = 1; seed <= 150 && failed == 0; seed++)
        failed += !is_well_unguarded(seed);
    assert_true(failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_servers_with_cuts_and_latency_agree),
        cmocka_unit_test(test_three_servers_with_snapshots_and_crashes_agree),
        cmocka_unit_test(test_five_servers_with_snapshots_and_crashes_agree),
        cmocka_unit_test(test_disks_that_fail_end_the_process_and_lose_nothing),
        cmocka_unit_test(test_the_same_seed_gives_the_same_run),
        cmocka_unit_test(test_the_simulation_sees_what_the_guard_is_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
