/* SPDX-License-Identifier: Apache-2.0 */
/* raft_core on the libuv backend, with what surrounds it in a process. */
#include "coordinator/consensus/raft_node.h"

#include <raft.h>
#include <raft/uv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "coordinator/consensus/raft_core.h"
#include "coordinator/consensus/raft_dir.h"
#include "coordinator/consensus/raft_err.h"
#include "coordinator/consensus/raft_memory.h"
#include "coordinator/consensus/raft_sync.h"
#include "coordinator/consensus/raft_transport.h"

enum {
    NODE_CONNECT_RETRY_MS = 100,
    NODE_INSTALL_SNAPSHOT_MS = 120 * 1000,
    NODE_INIT_TRIES = 5,  /* the probe for asynchronous disk access fails now and then */
    NODE_WATCH_MS = 1000, /* between looks at disk and entries in flight */
    NODE_FLIGHT_WARN_MS = 2000,
    NODE_UNPREPARED_MS_MAX = 15 * 1000, /* for a segment to be made on a disk that has room */
    NODE_STALL_MS_MIN = 100,            /* later turns than this (or a heartbeat) are stalls */
    /* A write to the own log that takes longer than this (and two election timeouts) makes a leader
     * give up … */
    NODE_APPEND_SHED_MS = 1200,
    /* … and longer than this, with room on the disk, ends the process: its disk is no good. */
    NODE_APPEND_FATAL_MS = 20000,
    NODE_EXIT_STATUS = RAFT_SYNC_EXIT_STATUS,
    NODE_SEGMENT_BYTES_MIN = 512 * 1024,
    /* raft counts the room of three in 64 Ki units of 1 KiB. */
    NODE_SEGMENT_BYTES_MAX = 16 * 1024 * 1024
};

struct raft_node {
    struct raft_core core;
    struct raft_io io;
    struct loop *loop;
    struct raft_node_options options;
    char *dir;
    struct raft_transport *transport;
    struct loop_turn_hook hook;
    struct loop_timer *watch; /* disk and flight */
    struct loop_timer *pulse; /* notices that the loop is late */
    struct loop_timer *due;   /* for reads that wait for their time */
    uint64_t pulse_ms;        /* when it beat last */
    uint64_t stalls;
    uint64_t disk_free_bytes;
    uint64_t unprepared_ms; /* since when raft has no segment to write to; 0: it has */
    enum proposer_room own_room;
    bool io_ready;
    bool closing;
    void (*closed)(void *data);
    void *closed_data;
};

void raft_node_options_init(struct raft_node_options *options)
{
    memset(options, 0, sizeof *options);
    options->election_timeout_ms = 600;
    options->heartbeat_ms = 60;
    options->window = 1;
    options->snapshot_bytes = 32 * 1024 * 1024;
    options->segment_bytes = 8 * 1024 * 1024;
    options->disk_reserve_bytes = 256 * 1024 * 1024;
}

static void node_fatal(void *data, const char *why)
{
    struct raft_node *node = data;
    if (node->options.fatal != NULL) {
        node->options.fatal(node->options.fatal_data, why);
        return;
    }
    log_error("raft", "the process ends: %s", why);
    _exit(NODE_EXIT_STATUS);
}

static void node_wake(void *data)
{
    struct raft_node *node = data;
    loop_turn_hook_arm(node->loop, &node->hook);
}

/* ---- turns ---- */

static void node_set_due(struct raft_node *node)
{
    uint64_t due_us = raft_core_due_us(&node->core);
    if (due_us == 0)
        return;
    uint64_t now_us = clock_monotonic_us(node->core.options.clock);
    uint64_t after_us = due_us > now_us ? due_us - now_us : 0;
    loop_timer_start(node->due, after_us / 1000 + 1, 0);
}

static void node_shut(struct raft_node *node);

static void node_turn(struct loop_turn_hook *hook)
{
    struct raft_node *node = hook->data;
    if (node->closing) {
        node_shut(node);
        return;
    }
    raft_core_turn(&node->core);
    if (!node->closing)
        node_set_due(node);
}

static void node_on_due(void *data)
{
    node_wake(data);
}

/* ---- watching ---- */

/* What the log may take: as much as the own disk lets it, and nothing new while another voter's is
 * under its reserve (rule 19). */
static void node_set_room(struct raft_node *node)
{
    enum proposer_room room = node->own_room;
    if (room == PROPOSER_ROOM_FREE && node->options.others_have_room != NULL &&
        !node->options.others_have_room(node->options.peers_data))
        room = PROPOSER_ROOM_RESERVE;
    if (room != node->core.proposer.room && room == PROPOSER_ROOM_RESERVE &&
        node->own_room == PROPOSER_ROOM_FREE)
        log_warn("raft", "no new work is begun why=%s",
                 log_quote("another coordinator's disk is under its reserve"));
    raft_core_set_room(&node->core, room);
}

/* A disk that takes nothing any more, whether it hangs or fails: another one must lead. A full one
 * may get room again; one that has room and takes nothing is broken. */
static void node_watch_append(struct raft_node *node)
{
    uint64_t age_ms = raft_guard_append_ms(&node->core.guard);
    uint64_t limit_ms = 2 * (uint64_t)node->options.election_timeout_ms;
    if (limit_ms < NODE_APPEND_SHED_MS)
        limit_ms = NODE_APPEND_SHED_MS;
    if (age_ms > limit_ms)
        raft_core_shed(&node->core, "the disk does not take the log");
    if (age_ms > NODE_APPEND_FATAL_MS && node->own_room == PROPOSER_ROOM_FREE)
        node_fatal(node, "the disk has not taken the log for 20 s, although it has room");
}

static void node_watch_disk(struct raft_node *node)
{
    uint64_t reserve = node->options.disk_reserve_bytes;
    uint64_t free_bytes = raft_dir_free_bytes(node->dir);
    enum proposer_room room = PROPOSER_ROOM_FREE;
    if (free_bytes < reserve / 4)
        room = PROPOSER_ROOM_NONE;
    else if (free_bytes < reserve)
        room = PROPOSER_ROOM_RESERVE;
    if (room != node->own_room)
        log_warn("raft", "disk %s dir=%s free=%lu reserve=%lu",
                 room == PROPOSER_ROOM_FREE      ? "has room again"
                 : room == PROPOSER_ROOM_RESERVE ? "is under its reserve"
                                                 : "is full",
                 node->dir, (unsigned long)free_bytes, (unsigned long)reserve);
    node->disk_free_bytes = free_bytes;
    node->own_room = room;
    node_set_room(node);
    if (room != PROPOSER_ROOM_FREE && node->options.someone_has_room != NULL &&
        node->options.someone_has_room(node->options.peers_data))
        raft_core_shed(&node->core, "the disk is short of room, and another one's is not");
}

/* raft makes its segments ahead. If one was made and could not be made durable, it stumbles over
 * that file for ever; a restart clears it away. */
static void node_watch_segments(struct raft_node *node, uint64_t now_ms)
{
    if (node->io.capacity > 0 || node->own_room != PROPOSER_ROOM_FREE) {
        node->unprepared_ms = 0;
        return;
    }
    if (node->unprepared_ms == 0)
        node->unprepared_ms = now_ms;
    if (now_ms - node->unprepared_ms > NODE_UNPREPARED_MS_MAX)
        node_fatal(node, "raft cannot make a file for its log, although the disk has room");
}

static void node_on_watch(void *data)
{
    struct raft_node *node = data;
    node_watch_disk(node);
    node_watch_segments(node, clock_monotonic_ms(node->core.options.clock));
    uint64_t flight_ms = raft_core_flight_us(&node->core) / 1000;
    if (flight_ms > NODE_FLIGHT_WARN_MS)
        log_warn("raft", "an entry is long under way ms=%lu", (unsigned long)flight_ms);
    node_wake(node);
}

/* A loop that is held up beyond a heartbeat risks elections. */
static void node_on_pulse(void *data)
{
    struct raft_node *node = data;
    uint64_t now = clock_monotonic_ms(node->core.options.clock);
    uint64_t late = now - node->pulse_ms;
    uint64_t limit = 2 * (uint64_t)node->options.heartbeat_ms;
    node->pulse_ms = now;
    node_watch_append(node);
    if (late > limit && late > NODE_STALL_MS_MIN) {
        node->stalls++;
        log_warn("raft", "the loop was held up ms=%lu heartbeat=%u", (unsigned long)late,
                 node->options.heartbeat_ms);
    }
}

/* ---- opening ---- */

static int node_check_options(const struct raft_node_options *options, struct tg_errmsg *msg)
{
    if (options->server_count == 0 || options->server_count > RAFT_NODE_SERVERS_MAX)
        return tg_fail(msg, TG_INVALID, "%u coordinators are configured, 1 to %d can be",
                       options->server_count, RAFT_NODE_SERVERS_MAX);
    bool found = false;
    for (uint32_t i = 0; i < options->server_count; i++) {
        found = found || options->servers[i].id == options->id;
        for (uint32_t j = 0; j < i; j++)
            if (options->servers[i].id == options->servers[j].id ||
                strcmp(options->servers[i].address, options->servers[j].address) == 0)
                return tg_fail(msg, TG_INVALID, "two coordinators have one id or address: %lu, %s",
                               (unsigned long)options->servers[i].id, options->servers[i].address);
    }
    if (!found || options->id == 0)
        return tg_fail(msg, TG_INVALID, "coordinator id %lu is not among the coordinators",
                       (unsigned long)options->id);
    if (options->segment_bytes < NODE_SEGMENT_BYTES_MIN ||
        options->segment_bytes > NODE_SEGMENT_BYTES_MAX)
        return tg_fail(msg, TG_INVALID, "a log file of %lu bytes is not between %d and %d",
                       (unsigned long)options->segment_bytes, NODE_SEGMENT_BYTES_MIN,
                       NODE_SEGMENT_BYTES_MAX);
    if (options->heartbeat_ms == 0 || options->heartbeat_ms * 2 > options->election_timeout_ms)
        return tg_fail(msg, TG_INVALID,
                       "the election timeout (%u ms) must be at least twice the heartbeat (%u ms)",
                       options->election_timeout_ms, options->heartbeat_ms);
    return 0;
}

static const char *node_own_address(const struct raft_node_options *options)
{
    for (uint32_t i = 0; i < options->server_count; i++)
        if (options->servers[i].id == options->id)
            return options->servers[i].address;
    return NULL;
}

static int node_open_transport(struct raft_node *node, struct tg_errmsg *msg)
{
    const struct raft_node_options *options = &node->options;
    struct raft_transport_options transport = {
        .secret = options->cluster_secret,
        .listen_address =
            options->listen_address != NULL ? options->listen_address : node_own_address(options),
        .own_address = node_own_address(options),
    };
    int err = raft_transport_open(node->loop, &transport, &node->transport, msg);
    if (err == 0)
        raft_node_set_servers(node, options->servers, options->server_count, 0);
    return err;
}

void raft_node_set_servers(struct raft_node *node, const struct raft_node_server *servers,
                           uint32_t count, uint64_t next_id)
{
    struct raft_transport_server list[RAFT_TRANSPORT_SERVERS_MAX];
    TG_CHECK(count <= RAFT_TRANSPORT_SERVERS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        list[i].id = servers[i].id;
        memcpy(list[i].address, servers[i].address, ADDRESS_BYTES);
    }
    raft_transport_set_servers(node->transport, list, count, next_id);
}

/* raft_init on a fresh backend, a few times: its probe of the disk can fail by chance. */
static int node_attach(struct raft_node *node, struct tg_errmsg *msg)
{
    int err = 0;
    for (int i = 0; i < NODE_INIT_TRIES; i++) {
        memset(&node->io, 0, sizeof node->io);
        int rc = raft_uv_init(&node->io, loop_uv(node->loop), node->dir,
                              raft_transport_uv(node->transport));
        if (rc != 0)
            return tg_fail(msg, raft_err(rc), "raft cannot use %s: %s (%s)", node->dir,
                           node->io.errmsg, raft_err_name(rc));
        raft_uv_set_auto_recovery(&node->io, false);
        raft_uv_set_connect_retry_delay(&node->io, NODE_CONNECT_RETRY_MS);
        raft_uv_set_segment_size(&node->io, (size_t)node->options.segment_bytes);
        err = raft_core_attach(&node->core, &node->io, msg);
        if (err == 0) {
            /* raft refuses entries while a majority has less ready on its disks. */
            raft_set_capacity_threshold(&node->core.raft,
                                        (unsigned short)(node->options.segment_bytes / 2048));
            return 0;
        }
        raft_uv_close(&node->io);
    }
    return err;
}

static int node_bootstrap(struct raft_node *node, struct tg_errmsg *msg)
{
    struct raft_configuration configuration;
    int rc = 0;
    raft_configuration_init(&configuration);
    /* In the order of ids, so that all write the same first entry. */
    uint64_t below = 0;
    for (uint32_t n = 0; n < node->options.server_count && rc == 0; n++) {
        const struct raft_node_server *next = NULL;
        for (uint32_t i = 0; i < node->options.server_count; i++) {
            const struct raft_node_server *server = &node->options.servers[i];
            if (server->id > below && (next == NULL || server->id < next->id))
                next = server;
        }
        TG_CHECK(next != NULL);
        below = next->id;
        rc = raft_configuration_add(&configuration, next->id, next->address, RAFT_VOTER);
    }
    if (rc == 0)
        rc = raft_bootstrap(&node->core.raft, &configuration);
    raft_configuration_close(&configuration);
    if (rc != 0)
        return tg_fail(msg, raft_err(rc), "raft cannot bootstrap %s: %s (%s)", node->dir,
                       raft_errmsg(&node->core.raft), raft_err_name(rc));
    log_info("raft", "bootstrapped servers=%u dir=%s", node->options.server_count, node->dir);
    return 0;
}

static int node_open_timers(struct raft_node *node, struct tg_errmsg *msg)
{
    node->watch = loop_timer_open(node->loop, node_on_watch, node);
    node->pulse = loop_timer_open(node->loop, node_on_pulse, node);
    node->due = loop_timer_open(node->loop, node_on_due, node);
    if (node->watch == NULL || node->pulse == NULL || node->due == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for timers");
    return 0;
}

static void node_free(struct raft_node *node)
{
    raft_core_close(&node->core);
    raft_transport_close(node->transport);
    loop_timer_close(node->watch);
    loop_timer_close(node->pulse);
    loop_timer_close(node->due);
    loop_turn_hook_remove(node->loop, &node->hook);
    free(node->dir);
    free(node);
}

static enum consensus_clock node_clock_state(void *data, struct proposer_time now)
{
    struct raft_node *node = data;
    return node->options.clock_state == NULL
               ? CONSENSUS_CLOCK_GOOD
               : node->options.clock_state(node->options.peers_data, now.wall_us, now.monotonic_us);
}

static bool node_fit(void *data, uint64_t id)
{
    struct raft_node *node = data;
    return node->options.fit == NULL || node->options.fit(node->options.peers_data, id);
}

static int node_open_core(struct raft_node *node, struct clock *clock,
                          const struct consensus_observer *observer)
{
    const struct raft_node_options *options = &node->options;
    struct raft_core_options core = {
        .id = options->id,
        .address = node_own_address(options),
        .window = options->window,
        .election_timeout_ms = options->election_timeout_ms,
        .heartbeat_ms = options->heartbeat_ms,
        .install_snapshot_timeout_ms = NODE_INSTALL_SNAPSHOT_MS,
        .snapshot_bytes = options->snapshot_bytes,
        .snapshot_entries = options->snapshot_entries,
        .clock = clock,
        .clock_state = node_clock_state,
        .fit = node_fit,
        .wake = node_wake,
        .fatal = node_fatal,
        .data = node,
    };
    if (observer != NULL)
        core.observer = *observer;
    return raft_core_init(&node->core, &core);
}

static void node_on_raft_closed(struct raft *raft);

int raft_node_open(struct loop *loop, const struct raft_node_options *options, struct clock *clock,
                   const struct consensus_observer *observer, struct raft_node **out,
                   struct tg_errmsg *msg)
{
    int err = node_check_options(options, msg);
    if (err != 0)
        return err;
    raft_memory_set();
    struct raft_node *node = calloc(1, sizeof *node);
    char *dir = strdup(options->dir);
    if (node == NULL || dir == NULL) {
        free(node);
        free(dir);
        return tg_fail(msg, TG_NOMEM, "no memory for raft");
    }
    node->loop = loop;
    node->options = *options;
    node->dir = dir;
    node->hook.run = node_turn;
    node->hook.data = node;
    loop_turn_hook_add(loop, &node->hook);
    err = node_open_core(node, clock, observer);
    if (err != 0) {
        loop_turn_hook_remove(loop, &node->hook);
        free(dir);
        free(node);
        return tg_fail(msg, err, "no memory for raft");
    }
    bool bootstrap = false;
    if (!raft_sync_is_watched())
        log_debug("raft", "this program is not linked to end when a sync fails");
    err = raft_dir_prepare(dir, msg);
    if (err == 0)
        err = options->join ? 0 : raft_dir_admit(dir, options->bootstrap, &bootstrap, msg);
    if (err == 0)
        err = node_open_timers(node, msg);
    if (err == 0)
        err = node_open_transport(node, msg);
    if (err == 0)
        err = node_attach(node, msg);
    if (err == 0 && bootstrap)
        err = node_bootstrap(node, msg);
    if (err != 0) {
        raft_node_close(node, NULL, NULL);
        return err;
    }
    *out = node;
    return 0;
}

int raft_node_start(struct raft_node *node, struct tg_errmsg *msg)
{
    node_watch_disk(node);
    int err = raft_core_start(&node->core, msg);
    if (err != 0)
        return err;
    node->pulse_ms = clock_monotonic_ms(node->core.options.clock);
    loop_timer_start(node->watch, NODE_WATCH_MS, NODE_WATCH_MS);
    loop_timer_start(node->pulse, node->options.heartbeat_ms, node->options.heartbeat_ms);
    return 0;
}

struct consensus *raft_node_consensus(struct raft_node *node)
{
    return &node->core.consensus;
}

/* ---- handing over ---- */

void raft_node_transfer(struct raft_node *node, void (*done)(void *data, int err), void *data)
{
    if (node->closing)
        done(data, TG_NOT_LEADER);
    else
        raft_core_transfer(&node->core, 0, done, data);
}

/* ---- closing ---- */

static void node_tell_closed(struct raft_node *node)
{
    void (*closed)(void *data) = node->closed;
    void *data = node->closed_data;
    node_free(node);
    if (closed != NULL)
        closed(data);
}

static void node_on_raft_closed(struct raft *raft)
{
    struct raft_node *node = (struct raft_node *)raft_core_of(raft);
    raft_uv_close(&node->io);
    node_tell_closed(node);
}

static void node_shut(struct raft_node *node)
{
    if (node->core.closed)
        return;
    loop_timer_stop(node->watch);
    loop_timer_stop(node->pulse);
    loop_timer_stop(node->due);
    raft_core_shut(&node->core, node_on_raft_closed);
}

void raft_node_close(struct raft_node *node, void (*closed)(void *data), void *data)
{
    if (node == NULL || node->closing)
        return;
    node->closing = true;
    node->closed = closed;
    node->closed_data = data;
    /* raft is never closed from inside one of its callbacks: the end of this turn does it. */
    if (node->core.attached)
        loop_turn_hook_arm(node->loop, &node->hook);
    else
        node_tell_closed(node);
}

void raft_node_stats(const struct raft_node *node, struct raft_node_stats *stats)
{
    const struct raft_core *core = &node->core;
    const struct raft_transport_stats *links = raft_transport_stats(node->transport);
    struct consensus *consensus = (struct consensus *)(uintptr_t)&core->consensus;
    memset(stats, 0, sizeof *stats);
    stats->term = consensus->ops->term(consensus);
    stats->leader = consensus->ops->leader(consensus);
    stats->applied_index = core->raft.last_applied;
    stats->last_index = core->closed ? 0 : raft_last_index((struct raft *)(uintptr_t)&core->raft);
    stats->is_leader = core->role == CORE_LEADS;
    stats->times_led = core->times_led;
    stats->batches_proposed = core->proposer.batches_proposed;
    stats->commands_proposed = core->proposer.commands_proposed;
    stats->bytes_proposed = core->proposer.bytes_proposed;
    stats->entries_applied = core->shell.entries_applied;
    stats->bytes_applied = core->shell.bytes_applied;
    stats->snapshots_taken = core->shell.snapshots_taken;
    stats->snapshots_restored = core->shell.snapshots_restored;
    stats->links_accepted = links->accepted;
    stats->links_connected = links->connected;
    stats->links_refused = links->refused_garbage + links->refused_proof + links->refused_identity +
                           links->refused_late + links->refused_crowd;
    stats->append_ms = core->closed ? 0 : raft_guard_append_ms(&core->guard);
    stats->room = node->own_room;
    stats->stalls = node->stalls;
    stats->disk_free_bytes = node->disk_free_bytes;
}
