/* SPDX-License-Identifier: Apache-2.0 */
/* Random trouble for the raft library, and what must hold all the same. */
#include "tests/sim/raft_sim.h"

#include <raft.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "coordinator/consensus/raft_guard.h"
#include "tests/lib/mem_raft_io.h"
#include "tests/lib/sim_world.h"

enum {
    ENTRY_BYTES = 16,
    ENTRIES_MAX = 1 << 16,
    IN_FLIGHT_MAX = 4,
    SNAPSHOT_THRESHOLD = 32,
    SNAPSHOT_TRAILING = 16,
    ELECTION_MS = 300,
    HEARTBEAT_MS = 50,
    QUIET_US_MAX = 60 * 1000 * 1000,
    CLIENT_US_MAX = 10 * 1000,
    NEMESIS_US_MAX = 600 * 1000
};

struct sim;

struct server {
    struct sim *sim;
    unsigned i;
    struct raft_guard guard; /* raft.data */
    struct raft raft;
    struct raft_fsm fsm;
    bool up;            /* raft runs */
    bool booted;        /* its memory is in use */
    uint64_t *sequence; /* ids applied */
    uint64_t count;
    unsigned in_flight;
    bool led;
};

struct request {
    struct raft_apply apply;
    struct server *server;
    uint64_t id;
};

struct sim {
    const struct raft_sim_options *options;
    struct raft_sim_result *result;
    struct sim_world world;
    struct mem_raft *mem;
    struct server servers[MEM_RAFT_SERVERS_MAX];
    uint64_t *agreed; /* the sequence as the first server to get there applied it */
    uint64_t agreed_count;
    bool *acknowledged; /* by id */
    uint64_t next_id;
    bool quiet;
};

static void sim_fail(struct sim *sim, const char *what, uint64_t a, uint64_t b)
{
    if (sim->result->failure[0] == '\0')
        snprintf(sim->result->failure, sizeof sim->result->failure, "%s (%lu, %lu) at %lu us", what,
                 (unsigned long)a, (unsigned long)b, (unsigned long)sim->world.now_us);
}

/* ---- the state machine ---- */

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct server *server = fsm->data;
    struct sim *sim = server->sim;
    uint64_t id;
    memcpy(&id, buf->base, sizeof id);
    *result = NULL;
    TG_CHECK(server->count < ENTRIES_MAX);
    if (server->count == sim->agreed_count)
        sim->agreed[sim->agreed_count++] = id;
    else if (sim->agreed[server->count] != id)
        sim_fail(sim, "servers applied different entries", server->i + 1, server->count);
    server->sequence[server->count++] = id;
    sim_world_trace(&sim->world, "apply server=%u id=%lu", server->i + 1, (unsigned long)id);
    return 0;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    struct server *server = fsm->data;
    if (!server->sim->options->unguarded && !raft_guard_may_snapshot(&server->raft))
        return RAFT_BUSY;
    *bufs = raft_malloc(sizeof **bufs);
    TG_CHECK(*bufs != NULL);
    (*bufs)->len = 8 + server->count * 8;
    (*bufs)->base = raft_malloc((*bufs)->len);
    TG_CHECK((*bufs)->base != NULL);
    memcpy((*bufs)->base, &server->count, 8);
    memcpy((char *)(*bufs)->base + 8, server->sequence, server->count * 8);
    *n_bufs = 1;
    sim_world_trace(&server->sim->world, "snapshot server=%u count=%lu", server->i + 1,
                    (unsigned long)server->count);
    return 0;
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct server *server = fsm->data;
    memcpy(&server->count, buf->base, 8);
    TG_CHECK(buf->len == 8 + server->count * 8);
    memcpy(server->sequence, (char *)buf->base + 8, server->count * 8);
    if (memcmp(server->sequence, server->sim->agreed, server->count * 8) != 0)
        sim_fail(server->sim, "a snapshot differs from what was applied", server->i + 1,
                 server->count);
    sim_world_trace(&server->sim->world, "restore server=%u count=%lu", server->i + 1,
                    (unsigned long)server->count);
    raft_free(buf->base);
    return 0;
}

/* ---- servers ---- */

static void server_on_fatal(void *data, const char *why);

static void server_boot(struct server *server)
{
    struct sim *sim = server->sim;
    TG_CHECK(!server->booted);
    server->booted = true;
    server->up = true;
    server->count = 0;
    server->in_flight = 0;
    memset(&server->raft, 0, sizeof server->raft);
    memset(&server->fsm, 0, sizeof server->fsm);
    server->fsm.version = 1;
    server->fsm.data = server;
    server->fsm.apply = fsm_apply;
    server->fsm.snapshot = fsm_snapshot;
    server->fsm.restore = fsm_restore;
    server->raft.data = &server->guard;
    char address[8];
    snprintf(address, sizeof address, "%u", server->i + 1);
    struct raft_io *io = mem_raft_boot(sim->mem, server->i);
    TG_CHECK(raft_init(&server->raft, io, &server->fsm, server->i + 1, address) == 0);
    raft_set_election_timeout(&server->raft, ELECTION_MS);
    raft_set_heartbeat_timeout(&server->raft, HEARTBEAT_MS);
    raft_set_install_snapshot_timeout(&server->raft, 2000);
    raft_set_pre_vote(&server->raft, true);
    raft_set_snapshot_threshold(&server->raft,
                                sim->options->snapshots ? SNAPSHOT_THRESHOLD : ENTRIES_MAX);
    raft_set_snapshot_trailing(&server->raft, SNAPSHOT_TRAILING);
    server->guard.fatal = server_on_fatal;
    server->guard.fatal_data = server;
    if (!sim->options->unguarded)
        raft_guard_attach(&server->guard, &server->raft);
    if (mem_raft_last_index(sim->mem, server->i) == 0) {
        struct raft_configuration configuration;
        raft_configuration_init(&configuration);
        for (unsigned k = 1; k <= sim->options->servers; k++) {
            snprintf(address, sizeof address, "%u", k);
            TG_CHECK(raft_configuration_add(&configuration, k, address, RAFT_VOTER) == 0);
        }
        TG_CHECK(raft_bootstrap(&server->raft, &configuration) == 0);
        raft_configuration_close(&configuration);
    }
    TG_CHECK(raft_start(&server->raft) == 0);
    sim_world_trace(&sim->world, "boot server=%u", server->i + 1);
}

static void server_on_closed(struct raft *raft)
{
    struct server *server = (struct server *)((char *)raft->data - offsetof(struct server, guard));
    server->booted = false;
}

static void server_crash(struct server *server)
{
    sim_world_trace(&server->sim->world, "crash server=%u", server->i + 1);
    server->up = false;
    mem_raft_crash(server->sim->mem, server->i);
    if (!server->sim->options->unguarded)
        raft_guard_detach(&server->guard);
    raft_close(&server->raft, server_on_closed);
}

/* What the product does is end: here it is seen after the event. */
static void server_on_fatal(void *data, const char *why)
{
    const struct server *server = data;
    sim_world_trace(&server->sim->world, "fatal server=%u %s", server->i + 1, why);
}

static void on_turn(void *data, unsigned i)
{
    struct sim *sim = data;
    struct server *server = &sim->servers[i];
    if (!server->up)
        return;
    if (mem_raft_failed(sim->mem, i)) {
        server_crash(server);
        return;
    }
    if (!sim->options->unguarded)
        raft_guard_turn(&server->guard);
    mem_raft_fire(&server->raft);
    bool leads = raft_state(&server->raft) == RAFT_LEADER;
    if (leads && !server->led)
        sim->result->elections++;
    server->led = leads;
}

/* ---- clients ---- */

static void on_applied(struct raft_apply *apply, int status, void *result)
{
    struct request *request = (struct request *)apply;
    struct sim *sim = request->server->sim;
    (void)result;
    request->server->in_flight--;
    sim_world_trace(&sim->world, "answer id=%lu status=%d", (unsigned long)request->id, status);
    if (status == 0) {
        sim->acknowledged[request->id] = true;
        sim->result->acknowledged++;
    } else {
        sim->result->unknown++;
    }
    free(request);
}

static void server_propose(struct server *server)
{
    struct sim *sim = server->sim;
    struct request *request = calloc(1, sizeof *request);
    struct raft_buffer buffer = {raft_calloc(1, ENTRY_BYTES), ENTRY_BYTES};
    TG_CHECK(request != NULL && buffer.base != NULL && sim->next_id < ENTRIES_MAX);
    request->server = server;
    request->id = sim->next_id++;
    memcpy(buffer.base, &request->id, sizeof request->id);
    server->in_flight++;
    int rc = raft_apply(&server->raft, &request->apply, &buffer, 1, on_applied);
    if (rc != 0) {
        TG_CHECK(rc == RAFT_NOTLEADER);
        server->in_flight--;
        sim->result->refused++;
        raft_free(buffer.base);
        free(request);
    }
    if (mem_raft_failed(sim->mem, server->i))
        server_crash(server);
}

static void on_client(void *data)
{
    struct sim *sim = data;
    for (unsigned i = 0; i < sim->options->servers; i++) {
        struct server *server = &sim->servers[i];
        if (server->up && raft_state(&server->raft) == RAFT_LEADER &&
            server->in_flight < IN_FLIGHT_MAX)
            server_propose(server);
    }
    if (!sim->quiet)
        sim_world_after(&sim->world, sim_world_between(&sim->world, 100, CLIENT_US_MAX), on_client,
                        sim, NULL);
}

/* ---- trouble ---- */

static unsigned sim_up(const struct sim *sim)
{
    unsigned up = 0;
    for (unsigned i = 0; i < sim->options->servers; i++)
        up += sim->servers[i].up;
    return up;
}

static void nemesis_cut(struct sim *sim)
{
    unsigned n = sim->options->servers;
    unsigned victim = (unsigned)sim_world_below(&sim->world, n);
    bool both = sim_world_chance(&sim->world, 500);
    for (unsigned i = 0; i < n; i++) {
        if (i == victim || sim_world_chance(&sim->world, 300))
            continue;
        mem_raft_cut(sim->mem, victim, i, true);
        if (both)
            mem_raft_cut(sim->mem, i, victim, true);
    }
    sim_world_trace(&sim->world, "cut server=%u both=%d", victim + 1, both);
}

static void nemesis_weather(struct sim *sim)
{
    struct mem_raft_options *options = mem_raft_options(sim->mem);
    options->loss_permille = sim_world_chance(&sim->world, 500) ? 0 : 100;
    options->repeat_permille = sim_world_chance(&sim->world, 500) ? 0 : 50;
    options->delay_us_max = sim_world_between(&sim->world, 1000, 60000);
    options->disk_us_max = sim_world_between(&sim->world, 500, 30000);
    options->fault_permille = sim->options->faults ? 1 : 0;
}

static void nemesis_crash(struct sim *sim)
{
    struct server *server = &sim->servers[sim_world_below(&sim->world, sim->options->servers)];
    if (server->up)
        server_crash(server);
    else if (!server->booted)
        server_boot(server);
}

static void on_nemesis(void *data)
{
    struct sim *sim = data;
    if (sim->quiet)
        return;
    switch (sim_world_below(&sim->world, 5)) {
    case 0:
        nemesis_cut(sim);
        break;
    case 1:
        mem_raft_heal(sim->mem);
        break;
    case 2:
        nemesis_weather(sim);
        break;
    default:
        if (sim->options->crashes)
            nemesis_crash(sim);
        break;
    }
    /* With too few servers up nothing happens: bring one back. */
    for (unsigned i = 0; i < sim->options->servers && sim_up(sim) * 2 <= sim->options->servers; i++)
        if (!sim->servers[i].booted)
            server_boot(&sim->servers[i]);
    sim_world_after(&sim->world, sim_world_between(&sim->world, 10000, NEMESIS_US_MAX), on_nemesis,
                    sim, NULL);
}

/* ---- the whole ---- */

static bool sim_agrees(const struct sim *sim)
{
    for (unsigned i = 0; i < sim->options->servers; i++) {
        const struct server *server = &sim->servers[i];
        if (!server->up || server->count != sim->agreed_count || server->in_flight != 0)
            return false;
    }
    return true;
}

static void sim_settle(struct sim *sim)
{
    sim->quiet = true;
    mem_raft_heal(sim->mem);
    mem_raft_options_init(mem_raft_options(sim->mem));
    sim_world_run(&sim->world, 10);
    for (unsigned i = 0; i < sim->options->servers; i++)
        if (!sim->servers[i].up)
            server_boot(&sim->servers[i]);
    /* A leader proves itself with a last entry, which commits what its predecessors left. */
    uint64_t until = sim->world.now_us + QUIET_US_MAX;
    uint64_t before = sim->agreed_count;
    while (sim->world.now_us < until) {
        if (sim->agreed_count == before)
            on_client(sim);
        sim_world_run(&sim->world, 200 * 1000);
        if (sim->agreed_count > before && sim_agrees(sim))
            return;
    }
    sim_fail(sim, "the servers do not agree in quiet time", sim->agreed_count, before);
}

static void sim_check(struct sim *sim)
{
    uint32_t *times = calloc(ENTRIES_MAX, sizeof *times);
    TG_CHECK(times != NULL);
    for (uint64_t k = 0; k < sim->agreed_count; k++)
        times[sim->agreed[k]]++;
    for (uint64_t id = 0; id < sim->next_id; id++) {
        if (times[id] > 1)
            sim_fail(sim, "an entry was applied twice", id, times[id]);
        if (sim->acknowledged[id] && times[id] == 0)
            sim_fail(sim, "an acknowledged entry is lost", id, 0);
    }
    free(times);
    sim->result->applied = sim->agreed_count;
}

void raft_sim_run(const struct raft_sim_options *options, struct raft_sim_result *result)
{
    struct sim sim = {.options = options, .result = result};
    struct mem_raft_options mem;
    memset(result, 0, sizeof *result);
    sim_world_init(&sim.world, options->seed);
    mem_raft_options_init(&mem);
    sim.mem = mem_raft_open(&sim.world, options->servers, &mem);
    mem_raft_set_turn(sim.mem, on_turn, &sim);
    sim.agreed = calloc(ENTRIES_MAX, sizeof *sim.agreed);
    sim.acknowledged = calloc(ENTRIES_MAX, sizeof *sim.acknowledged);
    for (unsigned i = 0; i < options->servers; i++) {
        sim.servers[i].sim = &sim;
        sim.servers[i].i = i;
        sim.servers[i].sequence = calloc(ENTRIES_MAX, sizeof(uint64_t));
        server_boot(&sim.servers[i]);
    }
    sim_world_after(&sim.world, 1, on_client, &sim, NULL);
    sim_world_after(&sim.world, NEMESIS_US_MAX, on_nemesis, &sim, NULL);
    sim_world_run(&sim.world, options->span_us);
    sim_settle(&sim);
    sim_check(&sim);

    for (unsigned i = 0; i < options->servers; i++)
        if (sim.servers[i].up)
            server_crash(&sim.servers[i]);
    sim_world_run(&sim.world, 1000);
    const struct mem_raft_stats *stats = mem_raft_stats(sim.mem);
    result->snapshots = stats->snapshots;
    result->installs = stats->installs;
    result->crashes = stats->crashes - options->servers;
    result->faults = stats->faults;
    result->trace = sim.world.trace;
    sim_world_close(&sim.world);
    mem_raft_close(sim.mem);
    for (unsigned i = 0; i < options->servers; i++)
        free(sim.servers[i].sequence);
    free(sim.agreed);
    free(sim.acknowledged);
}
