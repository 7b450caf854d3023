/* SPDX-License-Identifier: Apache-2.0 */
/* The whole: three coordinators, three participants, clients, trouble, and the checks. */
#include "tests/sim/cluster_sim.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "tests/sim/sim_check.h"
#include "tests/sim/sim_client.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

enum {
    LOAD_US_MAX = 120 * 1000,
    READ_US = 30 * 1000,
    TROUBLE_US_MAX = 500 * 1000,
    REST_US_MAX = 60 * 1000 * 1000,
    REST_STEP_US = 200 * 1000
};

struct cluster {
    struct sim_net net;
    struct sim_coordinator *coordinators[SIM_COORDINATORS];
    struct sim_participant participants[SIM_PARTICIPANTS];
    struct sim_clients *clients;
    struct sim_check *check;
};

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
    sim_clients_load(cluster->clients);
    sim_world_after(&cluster->net.world, sim_world_between(&cluster->net.world, 1000, LOAD_US_MAX),
                    on_load_timer, cluster, NULL);
}

static void on_read_timer(void *data)
{
    struct cluster *cluster = data;
    if (cluster->net.quiet)
        return;
    sim_check_read(cluster->check);
    sim_world_after(&cluster->net.world, READ_US, on_read_timer, cluster, NULL);
}

/* ---- trouble ---- */

static void trouble_cut_coordinator(struct cluster *cluster)
{
    struct sim_world *world = &cluster->net.world;
    unsigned victim = (unsigned)sim_world_below(world, SIM_COORDINATORS);
    bool both = sim_world_chance(world, 600);
    for (unsigned i = 0; i < SIM_COORDINATORS; i++) {
        if (i == victim || sim_world_chance(world, 200))
            continue;
        mem_raft_cut(cluster->net.mem, victim, i, true);
        if (both)
            mem_raft_cut(cluster->net.mem, i, victim, true);
    }
    sim_world_trace(world, "cut coordinator=%u both=%d", victim + 1, both);
}

static void trouble_cut_participant(struct cluster *cluster)
{
    struct sim_world *world = &cluster->net.world;
    unsigned participant = (unsigned)sim_world_below(world, SIM_PARTICIPANTS);
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        cluster->net.cut[i][participant] = sim_world_chance(world, 600);
    sim_world_trace(world, "cut participant=%u", participant + 1);
}

static void trouble_heal(struct cluster *cluster)
{
    mem_raft_heal(cluster->net.mem);
    memset(cluster->net.cut, 0, sizeof cluster->net.cut);
    sim_world_trace(&cluster->net.world, "heal");
}

static void trouble_weather(struct cluster *cluster)
{
    struct sim_world *world = &cluster->net.world;
    struct mem_raft_options *raft = mem_raft_options(cluster->net.mem);
    raft->loss_permille = sim_world_chance(world, 600) ? 0 : 80;
    raft->repeat_permille = sim_world_chance(world, 600) ? 0 : 50;
    raft->delay_us_max = sim_world_between(world, 1000, 40000);
    raft->disk_us_max = sim_world_between(world, 500, 30000);
    cluster->net.loss_permille = sim_world_chance(world, 500) ? 0 : 80;
    cluster->net.delay_us_max = sim_world_between(world, 500, 60000);
}

static unsigned cluster_up(const struct cluster *cluster)
{
    unsigned up = 0;
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        up += sim_coordinator_is_up(cluster->coordinators[i]);
    return up;
}

static void trouble_coordinator(struct cluster *cluster)
{
    struct sim_world *world = &cluster->net.world;
    unsigned i = (unsigned)sim_world_below(world, SIM_COORDINATORS);
    /* The leader more often than others. */
    for (unsigned k = 0; k < SIM_COORDINATORS && sim_world_chance(world, 500); k++)
        if (sim_coordinator_leads(cluster->coordinators[k]))
            i = k;
    struct sim_coordinator *coordinator = cluster->coordinators[i];
    if (sim_coordinator_is_down(coordinator))
        sim_coordinator_boot(coordinator);
    else if (sim_coordinator_is_up(coordinator) && cluster_up(cluster) > 1)
        sim_coordinator_crash(coordinator);
}

static void participant_restart(struct cluster *cluster, unsigned i)
{
    struct sim_participant *participant = &cluster->participants[i];
    if (participant->up) {
        sim_participant_stop(participant);
        return;
    }
    sim_participant_start(participant);
    sim_clients_register(cluster->clients, i);
    cluster->net.result->restarts++;
}

static void trouble_clock(struct cluster *cluster)
{
    struct sim_world *world = &cluster->net.world;
    unsigned i = (unsigned)sim_world_below(world, SIM_COORDINATORS);
    int64_t us = (int64_t)sim_world_below(world, 7200ULL * 1000000) - 3600LL * 1000000;
    if (sim_world_chance(world, 700))
        us /= 10000;
    sim_coordinator_jump_clock(cluster->coordinators[i], us);
    sim_world_trace(world, "clock coordinator=%u us=%ld", i + 1, (long)us);
}

static void on_trouble(void *data)
{
    struct cluster *cluster = data;
    struct sim_world *world = &cluster->net.world;
    if (cluster->net.quiet)
        return;
    switch (sim_world_below(world, 9)) {
    case 0:
        trouble_cut_coordinator(cluster);
        break;
    case 1:
        trouble_cut_participant(cluster);
        break;
    case 2:
    case 3:
        trouble_heal(cluster);
        break;
    case 4:
        trouble_weather(cluster);
        break;
    case 5:
        participant_restart(cluster, (unsigned)sim_world_below(world, SIM_PARTICIPANTS));
        break;
    case 6:
        trouble_clock(cluster);
        break;
    default:
        trouble_coordinator(cluster);
        break;
    }
    if (cluster_up(cluster) < 2)
        for (unsigned i = 0; i < SIM_COORDINATORS; i++)
            if (sim_coordinator_is_down(cluster->coordinators[i]) && sim_world_chance(world, 700))
                sim_coordinator_boot(cluster->coordinators[i]);
    sim_world_after(world, sim_world_between(world, 20 * 1000, TROUBLE_US_MAX), on_trouble, cluster,
                    NULL);
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
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        sim_participant_init(&cluster->participants[i], &cluster->net, i + 1);
    for (unsigned i = 0; i < SIM_COORDINATORS; i++) {
        cluster->coordinators[i] = sim_coordinator_open(&cluster->net, i, cluster->participants);
        sim_coordinator_on_applied(cluster->coordinators[i], on_applied, cluster);
    }
    cluster->check = sim_check_open(&cluster->net, cluster->coordinators, cluster->participants);
    cluster->clients =
        sim_clients_open(&cluster->net, cluster->coordinators, cluster->participants);
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        sim_coordinator_boot(cluster->coordinators[i]);
}

static void cluster_settle(struct cluster *cluster)
{
    cluster->net.quiet = true;
    trouble_heal(cluster);
    mem_raft_options_init(mem_raft_options(cluster->net.mem));
    cluster->net.loss_permille = 0;
    cluster->net.delay_us_max = 3000;
    sim_world_run(&cluster->net.world, 10);
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        if (!sim_coordinator_is_up(cluster->coordinators[i]))
            sim_coordinator_boot(cluster->coordinators[i]);
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        if (!cluster->participants[i].up)
            participant_restart(cluster, i);
    uint64_t until = cluster->net.world.now_us + REST_US_MAX;
    while (cluster->net.world.now_us < until) {
        sim_world_run(&cluster->net.world, REST_STEP_US);
        if (sim_clients_under_way(cluster->clients) == 0 && sim_check_is_at_rest(cluster->check) &&
            cluster->participants[0].epoch != 0 && cluster->participants[1].epoch != 0 &&
            cluster->participants[2].epoch != 0)
            break;
    }
}

static void cluster_close(struct cluster *cluster)
{
    struct cluster_sim_result *result = cluster->net.result;
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        if (sim_coordinator_is_up(cluster->coordinators[i]))
            sim_coordinator_crash(cluster->coordinators[i]);
    sim_world_run(&cluster->net.world, 1000);
    const struct mem_raft_stats *raft = mem_raft_stats(cluster->net.mem);
    result->snapshots = raft->snapshots;
    result->installs = raft->installs;
    result->crashes -= SIM_COORDINATORS;
    result->trace = cluster->net.world.trace;
    sim_world_close(&cluster->net.world);
    sim_clients_close(cluster->clients);
    sim_check_close(cluster->check);
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        sim_coordinator_close(cluster->coordinators[i]);
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        sim_participant_close(&cluster->participants[i]);
    mem_raft_close(cluster->net.mem);
}

void cluster_sim_run(const struct cluster_sim_options *options, struct cluster_sim_result *result)
{
    struct cluster *cluster = malloc(sizeof *cluster);
    TG_CHECK(cluster != NULL);
    cluster_open(cluster, options, result);
    if (!sim_clients_prepare(cluster->clients)) {
        sim_net_fail(&cluster->net, "the cluster does not form");
    } else {
        sim_world_after(&cluster->net.world, 1, on_load_timer, cluster, NULL);
        sim_world_after(&cluster->net.world, 1, on_read_timer, cluster, NULL);
        if (options->trouble)
            sim_world_after(&cluster->net.world, TROUBLE_US_MAX, on_trouble, cluster, NULL);
        sim_world_run(&cluster->net.world, options->span_us);
        cluster_settle(cluster);
        sim_check_end(cluster->check, cluster->clients);
    }
    cluster_close(cluster);
    free(cluster);
}
