/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster on fake time: no acknowledged commit lost, no aborted row visible, all tablets and
 * tables of a transaction together, versions contiguous, coordinators equal. SEEDS=1-1000 runs
 * more; SIM_TRACE=1 prints what happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/sim/cluster_sim.h"
#include "tests/sim/sim_seeds.h"

enum { SEEDS_DEFAULT = 10, SPAN_US = 60 * 1000 * 1000, OPERATIONS = 200 };

static void test_a_quiet_cluster_commits_everything_that_is_asked(void **state)
{
    (void)state;
    struct cluster_sim_options options = {.seed = 1, .span_us = SPAN_US, .operations = OPERATIONS};
    struct cluster_sim_result result;
    cluster_sim_run(&options, &result);
    if (result.failure[0] != '\0')
        fail_msg("%s", result.failure);
    assert_true(result.committed > 10);
    assert_true(result.aborted > 5);
    assert_int_equal(result.leaders, 1);
}

static void test_nothing_acknowledged_is_lost_in_trouble(void **state)
{
    (void)state;
    struct sim_seeds seeds = sim_seeds_of(SEEDS_DEFAULT);
    struct cluster_sim_result sum = {0};
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        struct cluster_sim_options options = {
            .seed = seed, .span_us = SPAN_US, .operations = OPERATIONS, .trouble = true};
        struct cluster_sim_result result;
        cluster_sim_run(&options, &result);
        if (result.failure[0] != '\0')
            fail_msg("SEEDS=%lu-%lu %s", (unsigned long)seed, (unsigned long)seed, result.failure);
        sum.loads += result.loads;
        sum.committed += result.committed;
        sum.aborted += result.aborted;
        sum.unknown += result.unknown;
        sum.visible += result.visible;
        sum.leaders += result.leaders;
        sum.crashes += result.crashes;
        sum.restarts += result.restarts;
        sum.snapshots += result.snapshots;
        sum.installs += result.installs;
        sum.reads += result.reads;
        sum.refused_reads += result.refused_reads;
        sum.clones += result.clones;
    }
    print_message(
        "seeds %lu-%lu: %lu loads, told %lu committed %lu aborted %lu nothing, %lu "
        "visible; %lu leaderships, %lu + %lu crashes, %lu snapshots, %lu installed, %lu "
        "reads, %lu refused, %lu clones\n",
        (unsigned long)seeds.first, (unsigned long)seeds.last, (unsigned long)sum.loads,
        (unsigned long)sum.committed, (unsigned long)sum.aborted, (unsigned long)sum.unknown,
        (unsigned long)sum.visible, (unsigned long)sum.leaders, (unsigned long)sum.crashes,
        (unsigned long)sum.restarts, (unsigned long)sum.snapshots, (unsigned long)sum.installs,
        (unsigned long)sum.reads, (unsigned long)sum.refused_reads, (unsigned long)sum.clones);
    assert_true(sum.clones > 0);
    assert_true(sum.committed > 0 && sum.aborted > 0 && sum.reads > 0);
    assert_true(sum.leaders > seeds.last - seeds.first + 1);
}

static void test_the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    struct cluster_sim_options options = {
        .seed = 5, .span_us = SPAN_US, .operations = 60, .trouble = true};
    struct cluster_sim_result first, second, other;
    cluster_sim_run(&options, &first);
    cluster_sim_run(&options, &second);
    assert_true(first.trace == second.trace);
    options.seed = 6;
    cluster_sim_run(&options, &other);
    assert_true(first.trace != other.trace);
}

/* A check that finds nothing proves nothing: each planted fault must be found within a few seeds.
 */
static void test_planted_faults_are_found(void **state)
{
    (void)state;
    for (unsigned mutant = 1; mutant < MUTANTS; mutant++) {
        bool found = false;
        for (uint64_t seed = 1; seed <= 30 && !found; seed++) {
            struct cluster_sim_options options = {.seed = seed,
                                                  .span_us = SPAN_US,
                                                  .operations = OPERATIONS,
                                                  .trouble = true,
                                                  .mutant = mutant};
            struct cluster_sim_result result;
            cluster_sim_run(&options, &result);
            found = result.failure[0] != '\0';
            if (found)
                print_message("fault %u, seed %lu: %s\n", mutant, (unsigned long)seed,
                              result.failure);
        }
        if (!found)
            fail_msg("fault %u was not found", mutant);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_quiet_cluster_commits_everything_that_is_asked),
        cmocka_unit_test(test_nothing_acknowledged_is_lost_in_trouble),
        cmocka_unit_test(test_the_same_seed_gives_the_same_run),
        cmocka_unit_test(test_planted_faults_are_found),
    };
    sim_log_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
