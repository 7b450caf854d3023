/* SPDX-License-Identifier: Apache-2.0 */
/* Trouble. */
#include "tests/sim/sim_nemesis.h"

#include <string.h>

#include "tests/sim/sim_content.h"

enum { TROUBLE_US_MAX = 500 * 1000, SWIZZLE_US_MAX = 150 * 1000, HOUR_MS = 3600 * 1000 };

static struct sim_world *world_of(struct sim_nemesis *nemesis)
{
    return &nemesis->net->world;
}

static bool chance(struct sim_nemesis *nemesis, unsigned permille)
{
    return sim_world_chance(world_of(nemesis), permille);
}

static unsigned below(struct sim_nemesis *nemesis, unsigned bound)
{
    return (unsigned)sim_world_below(world_of(nemesis), bound);
}

/* ---- partitions ---- */

static int leader_node(struct sim_nemesis *nemesis)
{
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        if (sim_coordinator_leads(nemesis->coordinators[i]))
            return (int)i;
    return (int)sim_net_any_coordinator(nemesis->net);
}

static void cut_pair(struct sim_nemesis *nemesis, int a, int b)
{
    sim_net_cut(nemesis->net, a, b, true);
    sim_net_cut(nemesis->net, b, a, true);
}

static void cut_alone(struct sim_nemesis *nemesis, int node)
{
    for (int i = 0; i < SIM_NODES; i++)
        cut_pair(nemesis, node, i);
}

static void cut_halves(struct sim_nemesis *nemesis)
{
    bool side[SIM_NODES];
    for (int i = 0; i < SIM_NODES; i++)
        side[i] = chance(nemesis, 500);
    for (int a = 0; a < SIM_NODES; a++)
        for (int b = 0; b < SIM_NODES; b++)
            sim_net_cut(nemesis->net, a, b, side[a] != side[b]);
}

/* Everybody sees a majority, and no two see the same one. */
static void cut_ring(struct sim_nemesis *nemesis)
{
    int ring[SIM_NODES];
    int count = 0;
    for (int i = 0; i < SIM_NODES; i++)
        if (i >= SIM_COORDINATORS || nemesis->net->present[i])
            ring[count++] = i;
    for (unsigned i = (unsigned)count; i-- > 1;) {
        unsigned k = below(nemesis, i + 1);
        int other = ring[k];
        ring[k] = ring[i];
        ring[i] = other;
    }
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            int distance = (b - a + count) % count;
            sim_net_cut(nemesis->net, ring[a], ring[b], distance > 2 && distance < count - 2);
        }
}

static void cut_one_way(struct sim_nemesis *nemesis)
{
    int node = (int)below(nemesis, SIM_NODES);
    bool out = chance(nemesis, 500);
    for (int i = 0; i < SIM_NODES; i++)
        if (chance(nemesis, 700))
            sim_net_cut(nemesis->net, out ? node : i, out ? i : node, true);
}

static void cut_roles(struct sim_nemesis *nemesis)
{
    for (int c = 0; c < SIM_COORDINATORS; c++)
        for (int p = SIM_COORDINATORS; p < SIM_NODES; p++)
            if (chance(nemesis, 600))
                cut_pair(nemesis, c, p);
}

static void cut_participants(struct sim_nemesis *nemesis)
{
    for (int a = SIM_COORDINATORS; a < SIM_NODES; a++)
        for (int b = SIM_COORDINATORS; b < a; b++)
            if (chance(nemesis, 500))
                cut_pair(nemesis, a, b);
}

static void partition(struct sim_nemesis *nemesis)
{
    unsigned shape = below(nemesis, 7);
    switch (shape) {
    case 0:
        cut_alone(nemesis, (int)below(nemesis, SIM_NODES));
        break;
    case 1:
        cut_halves(nemesis);
        break;
    case 2:
        cut_ring(nemesis);
        break;
    case 3:
        cut_alone(nemesis, leader_node(nemesis));
        break;
    case 4:
        cut_one_way(nemesis);
        break;
    case 5:
        cut_roles(nemesis);
        break;
    default:
        cut_participants(nemesis);
        break;
    }
    nemesis->net->result->partitions++;
    sim_world_trace(world_of(nemesis), "partition shape=%u", shape);
}

static void on_swizzle(void *data)
{
    struct sim_nemesis *nemesis = data;
    if (nemesis->net->quiet)
        return;
    unsigned count = nemesis->swizzle_count;
    if (nemesis->swizzle_at == 2 * count) {
        nemesis->swizzling = false;
        return;
    }
    if (nemesis->swizzle_at == count) /* another order back */
        for (unsigned i = count; i-- > 1;) {
            unsigned k = below(nemesis, i + 1);
            int other = nemesis->swizzled[k];
            nemesis->swizzled[k] = nemesis->swizzled[i];
            nemesis->swizzled[i] = other;
        }
    bool cut = nemesis->swizzle_at < count;
    int node = nemesis->swizzled[nemesis->swizzle_at % count];
    for (int i = 0; i < SIM_NODES; i++) {
        sim_net_cut(nemesis->net, node, i, cut);
        sim_net_cut(nemesis->net, i, node, cut);
    }
    nemesis->swizzle_at++;
    sim_world_after(world_of(nemesis), sim_world_between(world_of(nemesis), 1000, SWIZZLE_US_MAX),
                    on_swizzle, nemesis, NULL);
}

static void swizzle(struct sim_nemesis *nemesis)
{
    if (nemesis->swizzling)
        return;
    nemesis->swizzle_count = 0;
    for (int i = 0; i < SIM_NODES; i++)
        if (chance(nemesis, 500))
            nemesis->swizzled[nemesis->swizzle_count++] = i;
    if (nemesis->swizzle_count == 0)
        return;
    nemesis->swizzling = true;
    nemesis->swizzle_at = 0;
    nemesis->net->result->partitions++;
    sim_world_trace(world_of(nemesis), "swizzle nodes=%u", nemesis->swizzle_count);
    on_swizzle(nemesis);
}

static void weather(struct sim_nemesis *nemesis)
{
    struct sim_world *world = world_of(nemesis);
    struct sim_net *net = nemesis->net;
    struct mem_raft_options *raft = mem_raft_options(net->mem);
    raft->loss_permille = chance(nemesis, 600) ? 0 : 80;
    raft->repeat_permille = chance(nemesis, 600) ? 0 : 50;
    raft->delay_us_max = sim_world_between(world, 1000, 40000);
    raft->disk_us_max = sim_world_between(world, 500, 30000);
    raft->fault_permille = chance(nemesis, 500) ? 0 : 1;
    net->loss_permille = chance(nemesis, 500) ? 0 : 80;
    net->repeat_permille = chance(nemesis, 500) ? 0 : 100;
    net->delay_us_max = sim_world_between(world, 500, 60000);
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        sim_disk_set_speed(nemesis->participants[i].disk, 50,
                           sim_world_between(world, 100, chance(nemesis, 200) ? 40000 : 4000));
}

/* ---- crashes ---- */

static void crash_coordinator(struct sim_nemesis *nemesis, unsigned i)
{
    struct sim_coordinator *coordinator = nemesis->coordinators[i];
    if (sim_coordinator_is_down(coordinator) && nemesis->net->present[i])
        sim_coordinator_boot(coordinator);
    else if (sim_coordinator_is_up(coordinator))
        sim_coordinator_crash(coordinator);
}

static void crash_participant(struct sim_nemesis *nemesis, unsigned i)
{
    struct sim_participant *participant = &nemesis->participants[i];
    if (participant->process.alive) {
        participant->wanted = false;
        sim_participant_crash(participant,
                              (enum sim_disk_loss)sim_world_below(world_of(nemesis), SIM_LOSSES));
    } else {
        sim_participant_start(participant);
    }
}

/* One power supply: all participants, all coordinators, or everybody. */
static void crash_all(struct sim_nemesis *nemesis)
{
    unsigned who = below(nemesis, 3);
    enum sim_disk_loss loss = (enum sim_disk_loss)sim_world_below(world_of(nemesis), SIM_LOSSES);
    sim_world_trace(world_of(nemesis), "crash all who=%u", who);
    for (unsigned i = 0; i < SIM_COORDINATORS && who != 0; i++)
        if (sim_coordinator_is_up(nemesis->coordinators[i]))
            sim_coordinator_crash(nemesis->coordinators[i]);
    for (unsigned i = 0; i < SIM_PARTICIPANTS && who != 1; i++)
        if (nemesis->participants[i].process.alive)
            sim_participant_crash(&nemesis->participants[i], loss);
}

static void revive(struct sim_nemesis *nemesis)
{
    /* In some runs long enough to fall far back. */
    unsigned permille = nemesis->net->options->seed % 3 == 0 ? 70 : 350;
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        if (nemesis->net->present[i] && sim_coordinator_is_down(nemesis->coordinators[i]) &&
            chance(nemesis, permille))
            sim_coordinator_boot(nemesis->coordinators[i]);
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        if (!nemesis->participants[i].process.alive && chance(nemesis, permille))
            sim_participant_start(&nemesis->participants[i]);
}

/* ---- disks and clocks ---- */

static void disk(struct sim_nemesis *nemesis)
{
    struct sim_participant *participant = &nemesis->participants[below(nemesis, SIM_PARTICIPANTS)];
    if (chance(nemesis, 400)) {
        bool full = chance(nemesis, 500);
        nemesis->net->result->fulls += full;
        sim_disk_set_full(participant->disk, full);
        sim_world_trace(world_of(nemesis), "disk participant=%u full=%d", participant->node, full);
        return;
    }
    enum sim_disk_fault fault = (enum sim_disk_fault)(1 + below(nemesis, SIM_FAULTS - 1));
    nemesis->net->result->disk_faults++;
    sim_disk_set_fault(participant->disk, fault, below(nemesis, 20));
    sim_world_trace(world_of(nemesis), "disk participant=%u fault=%d", participant->node, fault);
}

/* Bits of one rowset go wrong, always at the same participant of a run: the others have it. */
static void rot(struct sim_nemesis *nemesis)
{
    unsigned node = 1 + (unsigned)(nemesis->net->options->seed % SIM_PARTICIPANTS);
    struct sim_participant *participant = &nemesis->participants[node - 1];
    tablet_id tablets[SIM_TABLES * SIM_BUCKETS];
    struct version_map map;
    struct version_view view;
    if (!participant->up)
        return;
    uint32_t count = tablet_set_list(participant->tablets, 0, tablets, SIM_TABLES * SIM_BUCKETS);
    if (count == 0)
        return;
    tablet_id tablet = tablets[below(nemesis, count)];
    tablet_set_share(participant->tablets, tablet, &map);
    version_t last = version_map_last(&map);
    if (last > 0 && version_map_between(&map, 0, last, 0, &view) == 0 && view.count > 0) {
        uint64_t id[2] = {tablet, view.rowsets[below(nemesis, view.count)].rowset};
        struct buf head = BUF_INIT;
        buf_append_str(&head, SIM_CONTENT_MAGIC);
        buf_append(&head, id, sizeof id);
        unsigned places = sim_disk_rot(participant->disk, head.data, head.len);
        buf_close(&head);
        nemesis->net->result->rotten += places;
        sim_world_trace(world_of(nemesis), "rot participant=%u tablet=%lu rowset=%lu places=%u",
                        node, (unsigned long)id[0], (unsigned long)id[1], places);
    }
    version_map_close(&map);
}

/* Of minutes either way, most of them small. */
static void jump_clock(struct sim_nemesis *nemesis)
{
    int64_t us = ((int64_t)below(nemesis, 2 * HOUR_MS) - HOUR_MS) * 1000;
    unsigned node = below(nemesis, SIM_NODES);
    if (chance(nemesis, 700))
        us /= 10000;
    if (node < SIM_COORDINATORS)
        sim_coordinator_jump_clock(nemesis->coordinators[node], us);
    else
        nemesis->participants[node - SIM_COORDINATORS].clock.offset_us += us;
    nemesis->net->result->clock_jumps++;
    sim_world_trace(world_of(nemesis), "clock node=%u us=%ld", node, (long)us);
}

/* ---- coordinators come and go ---- */

static struct sim_coordinator *leading(struct sim_nemesis *nemesis)
{
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        if (sim_coordinator_leads(nemesis->coordinators[i]))
            return nemesis->coordinators[i];
    return NULL;
}

/* Somebody new, with an empty disk and an id that nobody had. */
static void order_add(struct sim_nemesis *nemesis, struct sim_coordinator *leader)
{
    const struct coordinators *list = &sim_coordinator_state(leader)->coordinators;
    struct command command = {.type = COMMAND_COORDINATOR_ADD};
    struct coordinator_info info;
    if (list->next_id == 0 || list->next_id > SIM_COORDINATORS || list->count >= 5)
        return;
    sim_coordinator_info((unsigned)list->next_id - 1, &info);
    command.coordinator.id = info.id;
    command.coordinator.nonce = sim_world_between(world_of(nemesis), 1, UINT64_MAX / 2);
    memcpy(command.coordinator.raft, info.raft, sizeof command.coordinator.raft);
    memcpy(command.coordinator.rpc, info.rpc, sizeof command.coordinator.rpc);
    memcpy(command.coordinator.http, info.http, sizeof command.coordinator.http);
    sim_world_trace(world_of(nemesis), "order add coordinator=%lu", (unsigned long)info.id);
    sim_coordinator_order(leader, &command);
}

/* One of the list leaves; it may be dead already. */
static void order_drop(struct sim_nemesis *nemesis, struct sim_coordinator *leader)
{
    const struct coordinators *list = &sim_coordinator_state(leader)->coordinators;
    struct command command = {.type = COMMAND_COORDINATOR_DROP};
    unsigned voters = 0;
    for (uint32_t i = 0; i < list->count; i++)
        voters += list->list[i].standing == COORDINATOR_VOTES;
    if (list->count < 3 || voters < 3)
        return;
    unsigned id = (unsigned)list->list[below(nemesis, list->count)].id;
    command.coordinator.id = id;
    nemesis->leaving = id;
    nemesis->dead = chance(nemesis, 400);
    sim_world_trace(world_of(nemesis), "order drop coordinator=%u dead=%d", id, nemesis->dead);
    sim_coordinator_order(leader, &command);
    if (!nemesis->dead)
        return;
    nemesis->net->present[id - 1] = false;
    if (sim_coordinator_is_up(nemesis->coordinators[id - 1]))
        sim_coordinator_crash(nemesis->coordinators[id - 1]);
}

/* What the list says is done: who is new starts, who is gone is stopped after a while. An order that
 * did not come about is given again. */
static void on_members(struct sim_nemesis *nemesis)
{
    struct sim_coordinator *newest = sim_coordinator_newest(nemesis->coordinators);
    if (newest == NULL)
        return;
    const struct coordinators *list = &sim_coordinator_state(newest)->coordinators;
    for (uint32_t i = 0; i < list->count; i++) {
        unsigned k = (unsigned)list->list[i].id - 1;
        if (!nemesis->net->present[k] && nemesis->leaving != k + 1 &&
            sim_coordinator_is_down(nemesis->coordinators[k])) {
            nemesis->net->present[k] = true;
            nemesis->net->result->joins++;
            sim_world_trace(world_of(nemesis), "joins coordinator=%u", k + 1);
            sim_coordinator_boot(nemesis->coordinators[k]);
        }
    }
    if (nemesis->leaving == 0)
        return;
    const struct coordinator_record *record = coordinators_find(list, nemesis->leaving);
    struct sim_coordinator *leader = leading(nemesis);
    if (record != NULL && record->standing != COORDINATOR_LEAVES && leader != NULL) {
        struct command command = {.type = COMMAND_COORDINATOR_DROP};
        command.coordinator.id = nemesis->leaving;
        sim_coordinator_order(leader, &command);
    }
    if (record != NULL || (!nemesis->net->quiet && !chance(nemesis, 300)))
        return;
    unsigned k = nemesis->leaving - 1;
    sim_world_trace(world_of(nemesis), "gone coordinator=%u", k + 1);
    nemesis->net->present[k] = false;
    nemesis->net->result->leaves++;
    if (sim_coordinator_is_up(nemesis->coordinators[k]))
        sim_coordinator_crash(nemesis->coordinators[k]);
    nemesis->leaving = 0;
}

static void change_members(struct sim_nemesis *nemesis)
{
    struct sim_coordinator *leader = leading(nemesis);
    if (leader == NULL)
        return;
    if (nemesis->net->options->seed % 3 != 1 || chance(nemesis, 300)) {
        sim_world_trace(world_of(nemesis), "transfer");
        nemesis->net->result->transfers++;
        sim_coordinator_transfer(leader);
    } else if (nemesis->leaving == 0) {
        if (chance(nemesis, 500))
            order_add(nemesis, leader);
        else
            order_drop(nemesis, leader);
    }
}

/* ---- in turn ---- */

static void on_trouble(void *data)
{
    struct sim_nemesis *nemesis = data;
    if (nemesis->net->quiet)
        return;
    on_members(nemesis);
    switch (below(nemesis, 18)) {
    case 0:
    case 1:
    case 2:
        partition(nemesis);
        break;
    case 3:
    case 4:
    case 5:
        sim_net_heal(nemesis->net);
        break;
    case 6:
        swizzle(nemesis);
        break;
    case 7:
        weather(nemesis);
        break;
    case 8:
    case 9:
        crash_participant(nemesis, below(nemesis, SIM_PARTICIPANTS));
        break;
    case 10:
        crash_coordinator(nemesis, sim_net_any_coordinator(nemesis->net));
        break;
    case 11:
    case 12:
        crash_coordinator(nemesis, (unsigned)leader_node(nemesis));
        break;
    case 13:
        if (chance(nemesis, 400))
            crash_all(nemesis);
        break;
    case 14:
        if (chance(nemesis, 700))
            disk(nemesis);
        else
            rot(nemesis);
        break;
    case 15:
    case 16:
        change_members(nemesis);
        break;
    default:
        jump_clock(nemesis);
        break;
    }
    revive(nemesis);
    sim_world_after(world_of(nemesis),
                    sim_world_between(world_of(nemesis), 20 * 1000, TROUBLE_US_MAX), on_trouble,
                    nemesis, NULL);
}

void sim_nemesis_init(struct sim_nemesis *nemesis, struct sim_net *net,
                      struct sim_coordinator **coordinators, struct sim_participant *participants)
{
    memset(nemesis, 0, sizeof *nemesis);
    nemesis->net = net;
    nemesis->coordinators = coordinators;
    nemesis->participants = participants;
}

void sim_nemesis_start(struct sim_nemesis *nemesis)
{
    sim_world_after(world_of(nemesis), TROUBLE_US_MAX, on_trouble, nemesis, NULL);
}

void sim_nemesis_end(struct sim_nemesis *nemesis)
{
    struct sim_net *net = nemesis->net;
    sim_net_heal(net);
    mem_raft_options_init(mem_raft_options(net->mem));
    net->loss_permille = 0;
    net->repeat_permille = 0;
    net->delay_us_max = 3000;
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++) {
        struct sim_participant *participant = &nemesis->participants[i];
        sim_disk_set_full(participant->disk, false);
        sim_disk_set_fault(participant->disk, SIM_FAULT_NONE, 0);
        sim_disk_set_speed(participant->disk, 50, 1000);
        if (!participant->process.alive)
            sim_participant_start(participant);
    }
    /* What crashed just now has to close first. */
    sim_world_run(&net->world, 10);
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        if (net->present[i] && sim_coordinator_is_down(nemesis->coordinators[i]))
            sim_coordinator_boot(nemesis->coordinators[i]);
    on_members(nemesis);
}

void sim_nemesis_settle(struct sim_nemesis *nemesis)
{
    on_members(nemesis);
}
