/* SPDX-License-Identifier: Apache-2.0 */
/* The whole: three coordinators, three participants, clients, trouble, and the checks. */
#include "tests/sim/cluster_sim.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "tests/sim/fiber.h"
#include "tests/sim/fiber_pthread.h"
#include "tests/sim/sim_check.h"
#include "tests/sim/sim_check_end.h"
#include "tests/sim/sim_client.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_disk_calls.h"
#include "tests/sim/sim_nemesis.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"
#include "tests/sim/sim_reader.h"
#include "tests/sim/sim_rpc.h"
#include "tests/sim/sim_setup.h"

enum {
    LOAD_US_MAX = 120 * 1000,
    READ_US_MAX = 120 * 1000,
    STATEMENT_US_MAX = 5 * 1000 * 1000,
    REST_US_MAX = 60 * 1000 * 1000,
    REST_STEP_US = 200 * 1000,
    COLLECT_US = 5 * 1000 * 1000, /* after which nothing may be left over */
    WORK_STEP_US = 50 * 1000
};

struct cluster {
    struct sim_net net;
    struct sim_coordinator *coordinators[SIM_COORDINATORS];
    struct sim_participant participants[SIM_PARTICIPANTS];
    struct sim_setup setup;
    struct sim_nemesis nemesis;
    struct sim_clients *clients;
    struct sim_readers *readers;
    struct sim_check *check;
};

const char *cluster_sim_mutant_name(unsigned mutant)
{
    static const char *const names[MUTANTS] = {"none",
                                               "forgets a tablet",
                                               "tells too early",
                                               "loses an abort",
                                               "clones a part",
                                               "lies about sync",
                                               "acknowledges before the sync",
                                               "leaks",
                                               "reads old",
                                               "rots",
                                               "reads early",
                                               "pull skips",
                                               "pull repeats",
                                               "as of now",
                                               "labels twice"};
    return mutant < MUTANTS ? names[mutant] : "?";
}

static void on_raft_event(void *data, unsigned i)
{
    struct cluster *cluster = data;
    sim_coordinator_turn(cluster->coordinators[i]);
}

static void on_applied(void *data, unsigned i)
{
    struct cluster *cluster = data;
    sim_check_applied(cluster->check, i);
}

/* ---- what goes on ---- */

static void on_load_timer(void *data)
{
    struct cluster *cluster = data;
    if (cluster->net.quiet)
        return;
    cluster->net.result->operations++;
    sim_clients_load(cluster->clients);
    sim_world_after(&cluster->net.world, sim_world_between(&cluster->net.world, 1000, LOAD_US_MAX),
                    on_load_timer, cluster, NULL);
}

static void on_read_timer(void *data)
{
    struct cluster *cluster = data;
    if (cluster->net.quiet)
        return;
    cluster->net.result->operations++;
    sim_readers_read(cluster->readers);
    sim_world_after(&cluster->net.world, sim_world_between(&cluster->net.world, 1000, READ_US_MAX),
                    on_read_timer, cluster, NULL);
}

static void on_statement_timer(void *data)
{
    struct cluster *cluster = data;
    if (cluster->net.quiet)
        return;
    cluster->net.result->operations++;
    sim_readers_statement(cluster->readers);
    sim_world_after(&cluster->net.world,
                    sim_world_between(&cluster->net.world, 1000, STATEMENT_US_MAX),
                    on_statement_timer, cluster, NULL);
}

/* ---- the whole ---- */

static void cluster_open(struct cluster *cluster, const struct cluster_sim_options *options,
                         struct cluster_sim_result *result)
{
    struct mem_raft_options raft;
    memset(cluster, 0, sizeof *cluster);
    memset(result, 0, sizeof *result);
    cluster->net.options = options;
    cluster->net.result = result;
    cluster->net.delay_us_max = 3000;
    sim_world_init(&cluster->net.world, options->seed);
    mem_raft_options_init(&raft);
    cluster->net.mem = mem_raft_open(&cluster->net.world, SIM_COORDINATORS, &raft);
    mem_raft_set_turn(cluster->net.mem, on_raft_event, cluster);
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++) {
        sim_participant_init(&cluster->participants[i], &cluster->net, i + 1,
                             cluster->participants);
        sim_disk_set_lying(cluster->participants[i].disk,
                           options->mutant == MUTANT_LIES_ABOUT_SYNC);
    }
    for (unsigned i = 0; i < SIM_COORDINATORS; i++) {
        cluster->coordinators[i] = sim_coordinator_open(&cluster->net, i, cluster->participants);
        sim_coordinator_on_applied(cluster->coordinators[i], on_applied, cluster);
    }
    cluster->check = sim_check_open(&cluster->net, cluster->coordinators, cluster->participants);
    cluster->clients = sim_clients_open(&cluster->net, cluster->coordinators, cluster->participants,
                                        cluster->check);
    cluster->readers = sim_readers_open(&cluster->net, cluster->coordinators, cluster->participants,
                                        cluster->check);
    sim_setup_init(&cluster->setup, &cluster->net, cluster->coordinators, cluster->participants);
    sim_nemesis_init(&cluster->nemesis, &cluster->net, cluster->coordinators,
                     cluster->participants);
    for (unsigned i = 0; i < SIM_FOUNDERS; i++) {
        cluster->net.present[i] = true;
        sim_coordinator_boot(cluster->coordinators[i]);
    }
}

static void cluster_work(struct cluster *cluster)
{
    const struct cluster_sim_options *options = cluster->net.options;
    struct sim_world *world = &cluster->net.world;
    sim_world_after(world, 1, on_load_timer, cluster, NULL);
    sim_world_after(world, 1, on_read_timer, cluster, NULL);
    sim_world_after(world, STATEMENT_US_MAX / 4, on_statement_timer, cluster, NULL);
    if (options->trouble)
        sim_nemesis_start(&cluster->nemesis);
    uint64_t until = world->now_us + options->span_us;
    while (world->now_us < until && cluster->net.result->operations < options->operations &&
           cluster->net.result->failure[0] == '\0')
        sim_world_run(world, WORK_STEP_US);
}

static bool cluster_has_joined(const struct cluster *cluster)
{
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        if (!cluster->participants[i].up || cluster->participants[i].epoch == 0)
            return false;
    return true;
}

static void cluster_settle(struct cluster *cluster)
{
    struct sim_world *world = &cluster->net.world;
    cluster->net.quiet = true;
    sim_nemesis_end(&cluster->nemesis);
    uint64_t until = world->now_us + REST_US_MAX;
    while (world->now_us < until) {
        sim_world_run(world, REST_STEP_US);
        sim_nemesis_settle(&cluster->nemesis);
        if (sim_clients_under_way(cluster->clients) == 0 &&
            sim_readers_under_way(cluster->readers) == 0 && cluster_has_joined(cluster) &&
            sim_check_is_at_rest(cluster->check))
            break;
    }
}

static bool cluster_is_damaged(const struct cluster *cluster)
{
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        if (cluster->participants[i].damage.count > 0)
            return true;
    return false;
}

/* Reads all there is, and waits. */
static void cluster_read_all(struct cluster *cluster, bool strict)
{
    struct sim_world *world = &cluster->net.world;
    sim_readers_finish(cluster->readers, strict);
    uint64_t until = world->now_us + REST_US_MAX;
    while (world->now_us < until && sim_readers_under_way(cluster->readers) > 0)
        sim_world_run(world, REST_STEP_US);
    if (sim_readers_under_way(cluster->readers) > 0)
        sim_net_fail(&cluster->net, "the last reads do not end");
}

static void cluster_finish(struct cluster *cluster)
{
    struct sim_world *world = &cluster->net.world;
    if (cluster->net.result->failure[0] == '\0')
        sim_check_end(cluster->check, cluster->clients);
    if (cluster->net.result->failure[0] != '\0')
        return;
    /* Damage is noticed, told and repaired. */
    cluster_read_all(cluster, false);
    uint64_t until = world->now_us + REST_US_MAX;
    sim_world_run(world, COLLECT_US);
    while (world->now_us < until &&
           (cluster_is_damaged(cluster) || !sim_check_is_at_rest(cluster->check)))
        sim_world_run(world, REST_STEP_US);
    cluster_read_all(cluster, true);
    sim_check_leaks(cluster->check);
}

static void cluster_close(struct cluster *cluster)
{
    struct cluster_sim_result *result = cluster->net.result;
    uint64_t crashes = result->crashes;
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        if (sim_coordinator_is_up(cluster->coordinators[i]))
            sim_coordinator_crash(cluster->coordinators[i]);
    sim_world_run(&cluster->net.world, 1000);
    const struct mem_raft_stats *raft = mem_raft_stats(cluster->net.mem);
    result->snapshots = raft->snapshots;
    result->installs = raft->installs;
    result->crashes = crashes;
    result->trace = cluster->net.world.trace;
    result->events = cluster->net.world.events;
    fiber_forget_all();
    sim_world_close(&cluster->net.world);
    sim_rpc_clear();
    sim_clients_close(cluster->clients);
    sim_readers_close(cluster->readers);
    sim_check_close(cluster->check);
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        sim_coordinator_close(cluster->coordinators[i]);
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++) {
        const struct sim_disk_stats *disk = sim_disk_stats(cluster->participants[i].disk);
        result->lost_sectors += disk->sectors_lost;
        result->syncs += disk->syncs;
        sim_participant_close(&cluster->participants[i]);
    }
    mem_raft_close(cluster->net.mem);
}

void cluster_sim_run(const struct cluster_sim_options *options, struct cluster_sim_result *result)
{
    struct cluster *cluster = malloc(sizeof *cluster);
    TG_CHECK(cluster != NULL);
    fiber_pthread_use();
    sim_disk_calls_use();
    cluster_open(cluster, options, result);
    if (!sim_setup_prepare(&cluster->setup)) {
        sim_net_fail(&cluster->net, "the cluster does not form");
    } else {
        cluster_work(cluster);
        cluster_settle(cluster);
        cluster_finish(cluster);
    }
    cluster_close(cluster);
    free(cluster);
}
