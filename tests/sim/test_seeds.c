/* SPDX-License-Identifier: Apache-2.0 */
/* Many seeds of the simulated cluster: SEEDS=1000 or SEEDS=501-700 (default: 60, as in continuous
 * integration), OPERATIONS of clients in each (default: 200). Says what it did; ends with 1 if a
 * seed broke a promise, and names it: SEEDS=n-n runs it again, SIM_TRACE=1 prints what happens.
 *
 * A process of its own runs a few seeds after one another, so that a seed that ends its process, or
 * never ends, is found as well. */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/check.h"
#include "tests/sim/cluster_sim.h"
#include "tests/sim/sim_scratch.h"
#include "tests/sim/sim_seeds.h"

enum {
    SEEDS_DEFAULT = 60,
    OPERATIONS_DEFAULT = 200,
    BATCH = 20,
    SPAN_US = 120 * 1000 * 1000,
    SEED_SECONDS_MAX = 120,
    SHOWN_MAX = 20
};

struct report {
    uint64_t seed;
    struct cluster_sim_result result;
};

struct sum {
    uint64_t seeds, failed;
    struct cluster_sim_result all;
};

static unsigned operations(void)
{
    const char *text = getenv("OPERATIONS");
    return text == NULL ? OPERATIONS_DEFAULT : (unsigned)strtoul(text, NULL, 10);
}

_Noreturn static void run_batch(uint64_t first, uint64_t last, int out)
{
    for (uint64_t seed = first; seed <= last; seed++) {
        struct cluster_sim_options options = {
            .seed = seed, .span_us = SPAN_US, .operations = operations(), .trouble = true};
        struct report report = {.seed = seed};
        cluster_sim_run(&options, &report.result);
        TG_CHECK(write(out, &report, sizeof report) == (ssize_t)sizeof report);
    }
    exit(0);
}

static void add(struct sum *sum, const struct report *report)
{
    const struct cluster_sim_result *one = &report->result;
    struct cluster_sim_result *all = &sum->all;
    sum->seeds++;
    all->events += one->events;
    all->operations += one->operations;
    all->loads += one->loads;
    all->committed += one->committed;
    all->aborted += one->aborted;
    all->unknown += one->unknown;
    all->refused += one->refused;
    all->left += one->left;
    all->visible += one->visible;
    all->leaders += one->leaders;
    all->crashes += one->crashes;
    all->restarts += one->restarts;
    all->exits += one->exits;
    all->partitions += one->partitions;
    all->clock_jumps += one->clock_jumps;
    all->disk_faults += one->disk_faults;
    all->fulls += one->fulls;
    all->rotten += one->rotten;
    all->snapshots += one->snapshots;
    all->installs += one->installs;
    all->transfers += one->transfers;
    all->joins += one->joins;
    all->leaves += one->leaves;
    all->reads += one->reads;
    all->refused_reads += one->refused_reads;
    all->as_of += one->as_of;
    all->pulls += one->pulls;
    all->statements += one->statements;
    all->clones += one->clones;
    all->lost_sectors += one->lost_sectors;
    all->syncs += one->syncs;
    if (one->failure[0] == '\0')
        return;
    if (sum->failed++ < SHOWN_MAX)
        printf("SEEDS=%lu-%lu: %s\n", (unsigned long)report->seed, (unsigned long)report->seed,
               one->failure);
    fflush(stdout);
}

static void add_lost(struct sum *sum, uint64_t seed, int status)
{
    struct report report = {.seed = seed};
    snprintf(report.result.failure, sizeof report.result.failure, "the process ended with %s %d",
             WIFSIGNALED(status) ? "signal" : "code",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    add(sum, &report);
}

/* Returns the seed to go on with. */
static uint64_t run_some(struct sum *sum, uint64_t first, uint64_t last)
{
    int ends[2];
    TG_CHECK(pipe(ends) == 0);
    pid_t child = fork();
    TG_CHECK(child >= 0);
    if (child == 0) {
        close(ends[0]);
        run_batch(first, last, ends[1]);
    }
    close(ends[1]);
    uint64_t next = first;
    struct report report;
    struct pollfd poll_ = {.fd = ends[0], .events = POLLIN};
    while (poll(&poll_, 1, SEED_SECONDS_MAX * 1000) > 0 &&
           read(ends[0], &report, sizeof report) == (ssize_t)sizeof report) {
        add(sum, &report);
        next = report.seed + 1;
    }
    close(ends[0]);
    int status = 0;
    if (next <= last)
        kill(child, SIGABRT);
    TG_CHECK(waitpid(child, &status, 0) == child);
    sim_scratch_clear_of(child);
    if (next <= last || status != 0) {
        add_lost(sum, next <= last ? next : last, status);
        next++;
    }
    return next;
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void print_sum(const struct sum *sum, double seconds)
{
    const struct cluster_sim_result *all = &sum->all;
    printf("seeds %lu in %.1f s: %.0f a minute, %lu operations, %lu events\n", sum->seeds, seconds,
           (double)sum->seeds * 60 / seconds, all->operations, all->events);
    printf(
        "trouble: %lu partitions, %lu coordinator crashes, %lu participant crashes (%lu by "
        "itself), %lu disk faults, %lu disks full, %lu clock jumps, %lu sectors lost, %lu rotten\n",
        all->partitions, all->crashes, all->restarts, all->exits, all->disk_faults, all->fulls,
        all->clock_jumps, all->lost_sectors, all->rotten);
    printf("work: %lu loads (told: %lu committed, %lu aborted, %lu refused, %lu nothing; %lu left "
           "alone), %lu visible, %lu "
           "reads (%lu as of a time, %lu of changes; %lu refused), %lu statements\n",
           all->loads, all->committed, all->aborted, all->refused, all->unknown, all->left,
           all->visible, all->reads, all->as_of, all->pulls, all->refused_reads, all->statements);
    printf(
        "inside: %lu leaderships (%lu transfers ordered), %lu coordinators joined, %lu left, %lu "
        "snapshots (%lu installed), %lu clones, %lu syncs\n",
        all->leaders, all->transfers, all->joins, all->leaves, all->snapshots, all->installs,
        all->clones, all->syncs);
    printf("violations: %lu\n", sum->failed);
}

int main(void)
{
    struct sim_seeds seeds = sim_seeds_of(SEEDS_DEFAULT);
    struct sum sum = {0};
    double begun = now_s();
    sim_log_init();
    for (uint64_t seed = seeds.first; seed <= seeds.last;)
        seed = run_some(&sum, seed, seed + BATCH - 1 < seeds.last ? seed + BATCH - 1 : seeds.last);
    print_sum(&sum, now_s() - begun);
    bool worked = sum.all.committed > 0 && sum.all.aborted > 0 && sum.all.reads > 0;
    if (!worked)
        printf("nothing was done: that proves nothing\n");
    return sum.failed > 0 || !worked;
}
