/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from leadership, from applied batches and from time. */
#include <inttypes.h>
#include <string.h>

#include "common/base/clock_watch.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/random.h"
#include "common/base/uuid.h"
#include "coordinator/coordinator_parts.h"

/* ---- leadership ---- */

static void init_ended(struct consensus_request *request, int err,
                       const struct apply_result *result)
{
    struct coordinator *c = request->data;

    c->init_under_way = false;
    if (err == 0 && result->err == 0)
        log_info("coordinator", "cluster_formed uuid=%s",
                 consensus_state(c->dispatch.consensus)->cluster_uuid);
}

/* The first leader of a new cluster gives it its identity. */
static void form_cluster(struct coordinator *c)
{
    struct command command = {.type = COMMAND_CLUSTER_INIT};
    uint8_t bytes[16];
    struct uuid uuid;

    if (c->init_under_way || consensus_state(c->dispatch.consensus)->cluster_uuid[0] != '\0')
        return;
    random_fill(random_system(), bytes, sizeof bytes);
    uuid = uuid_v4(bytes);
    uuid_print(&uuid, command.cluster_init.uuid);
    c->init_under_way = true;
    c->init.done = init_ended;
    c->init.data = c;
    consensus_propose(c->dispatch.consensus, &command, &c->init);
}

static void limits_ended(struct consensus_request *request, int err,
                         const struct apply_result *result)
{
    struct coordinator *c = request->data;

    (void)err;
    (void)result;
    c->limits_under_way = false;
}

/* What the leader's options say and the state does not. */
static void set_limits(struct coordinator *c)
{
    const struct state_limits *now = &consensus_state(c->dispatch.consensus)->limits;
    struct command command = {
        .type = COMMAND_SET_LIMITS,
        .limits.limits = {
            .running_txns_per_db_max = (uint32_t)c->options->max_running_txn_num_per_db,
            .unpublished_per_table_max = (uint32_t)c->options->max_unpublished_per_table,
            .label_memory_max = c->options->label_memory_max}};
    const struct limits *wanted = &command.limits.limits;

    if (c->limits_under_way ||
        (now->running_txns_per_db_max == wanted->running_txns_per_db_max &&
         now->unpublished_per_table_max == wanted->unpublished_per_table_max &&
         now->label_memory_max == wanted->label_memory_max))
        return;
    log_info("coordinator",
             "limits max_running_txn_num_per_db=%u max_unpublished_per_table=%u "
             "label_memory_max=%" PRIu64,
             wanted->running_txns_per_db_max, wanted->unpublished_per_table_max,
             wanted->label_memory_max);
    c->limits_under_way = true;
    c->limits.done = limits_ended;
    c->limits.data = c;
    consensus_propose(c->dispatch.consensus, &command, &c->limits);
}

void coordinator_watch_leadership(void *data, bool leads)
{
    struct coordinator *c = data;
    const struct consensus *consensus = c->dispatch.consensus;

    if (c->txns == NULL) /* the parts are closed already */
        return;
    log_info("coordinator", "%s term=%" PRIu64, leads ? "leads" : "leads_no_more",
             consensus->ops->term(consensus));
    publish_daemon_reset(c->publisher);
    repair_daemon_reset(c->repairer);
    move_daemon_reset(c->mover);
    if (leads) {
        health_reset(&c->health, clock_monotonic_ms(c->dispatch.clock));
        c->alive_seen = UINT64_MAX;
        form_cluster(c);
        set_limits(c);
        publish_daemon_run(c->publisher);
        return;
    }
    txn_manager_lost(c->txns);
    query_waits_end(&c->waits);
}

void coordinator_watch_applied(void *data)
{
    struct coordinator *c = data;

    if (c->txns == NULL)
        return;
    coordinator_peers_refresh(c);
    publish_daemon_run(c->publisher);
    members_daemon_run(c->members);
    txn_manager_run(c->txns);
    query_waits_run(&c->waits, consensus_state(c->dispatch.consensus),
                    clock_monotonic_ms(c->dispatch.clock));
}

/* ---- time ---- */

static void log_leader(struct coordinator *c)
{
    const struct consensus *consensus = c->dispatch.consensus;
    uint64_t leader = consensus->ops->leader(consensus);

    if (leader == c->leader_seen)
        return;
    c->leader_seen = leader;
    if (leader == 0)
        log_warn("coordinator", "no_leader term=%" PRIu64, consensus->ops->term(consensus));
    else
        log_info("coordinator", "leader id=%" PRIu64 " term=%" PRIu64, leader,
                 consensus->ops->term(consensus));
}

/* The leader says who of the participants came and went. */
static void log_participants(struct coordinator *c)
{
    const struct members *members = &consensus_state(c->dispatch.consensus)->members;
    uint64_t now = clock_monotonic_ms(c->dispatch.clock);

    for (uint32_t i = 0; i < members->count; i++) {
        uint64_t bit = UINT64_C(1) << i;
        bool alive = health_is_alive(&c->health, members->list[i].node, now);

        if (alive == ((c->alive_seen & bit) != 0))
            continue;
        c->alive_seen ^= bit;
        if (alive)
            log_info("participants", "alive node=%u http=%s", members->list[i].node,
                     members->list[i].http);
        else
            log_warn("participants", "silent node=%u http=%s lease_ms=%" PRIu64,
                     members->list[i].node, members->list[i].http, c->health.lease_ms);
    }
}

void coordinator_watch_tick(void *data)
{
    struct coordinator *c = data;

    coordinator_watch_applied(c);
    if (c->repairer != NULL)
        repair_daemon_run(c->repairer);
    if (c->mover != NULL)
        move_daemon_run(c->mover);
    log_leader(c);
    if (c->raft != NULL) {
        struct raft_node_stats raft;

        raft_node_stats(c->raft, &raft);
        c->dispatch.disk_free_bytes = raft.disk_free_bytes;
        c->dispatch.room = (enum status_room)raft.room;
    }
}

static void look_at_clock(struct coordinator *c)
{
    int64_t jump = clock_watch_look(&c->clock_watch, clock_wall_us(c->dispatch.clock),
                                    clock_monotonic_us(c->dispatch.clock));

    if (jump != 0)
        log_warn("coordinator", "clock jumped ms=%" PRId64, jump / 1000);
}

void coordinator_watch_sweep(void *data)
{
    struct coordinator *c = data;

    if (c->dispatch.clock != NULL)
        look_at_clock(c);
    if (!consensus_is_leader(c->dispatch.consensus))
        return;
    sweep_daemon_run(c->sweeper);
    log_participants(c);
    form_cluster(c);
    set_limits(c);
}

/* ---- metrics ---- */

static void set(const char *name, const char *help, uint64_t value)
{
    metric_set(metric_gauge(name, help, NULL, 0), (int64_t)value);
}

static void set_count(const char *name, const char *help, uint64_t value)
{
    metric_set_count(metric_counter(name, help, NULL, 0), value);
}

void coordinator_watch_metrics(void *data)
{
    struct coordinator *c = data;
    const struct state *state = consensus_state(c->dispatch.consensus);
    struct raft_node_stats raft;

    raft_node_stats(c->raft, &raft);
    set("tidegate_raft_is_leader", "1 on the leading coordinator", raft.is_leader);
    set("tidegate_raft_leader", "raft id of the leader, 0 if unknown", raft.leader);
    set("tidegate_raft_term", "raft term", raft.term);
    set("tidegate_raft_applied_index", "last applied entry", raft.applied_index);
    set("tidegate_raft_last_index", "last entry of the log", raft.last_index);
    set_count("tidegate_raft_times_led", "leaderships since the start", raft.times_led);
    set_count("tidegate_raft_batches_proposed", "entries proposed since the start",
              raft.batches_proposed);
    set_count("tidegate_raft_commands_proposed", "commands proposed since the start",
              raft.commands_proposed);
    set_count("tidegate_raft_bytes_proposed", "bytes proposed since the start",
              raft.bytes_proposed);
    set_count("tidegate_raft_snapshots_taken", "snapshots since the start", raft.snapshots_taken);
    set_count("tidegate_raft_links_refused", "links refused since the start", raft.links_refused);
    set_count("tidegate_raft_stalls", "turns of the loop later than a heartbeat", raft.stalls);
    set("tidegate_raft_append_ms", "how long the oldest write to the own log has been under way",
        raft.append_ms);
    set("tidegate_disk_free_bytes", "free space for the log", raft.disk_free_bytes);
    set("tidegate_transactions_open", "PREPARE and PRECOMMITTED transactions",
        state->txns.open.count);
    set("tidegate_transactions_publishing", "transactions that some replica has yet to bind",
        state->txns.publishing.count);
    set("tidegate_transactions_finished", "finished transactions whose labels are kept",
        state->txns.finished.count);
    set("tidegate_labels_bytes", "memory that finished transactions count for",
        state->txns.finished_bytes);
    set("tidegate_replicas_behind", "replicas that are being repaired, or cannot be yet",
        state->catalog.behind_count);
    set("tidegate_clones", "clones ordered and not ended, on the leader",
        c->repairer != NULL ? repair_daemon_active(c->repairer) : 0);
    set_count("tidegate_clock_jumps_total", "jumps of this machine's wall clock",
              c->clock_watch.jumps);
    uint64_t wall = clock_wall_us(c->dispatch.clock);
    set("tidegate_clock_behind_us", "by how much the last stamp is later than the wall clock",
        state->stamp_us > wall ? state->stamp_us - wall : 0);
    set("tidegate_participants", "registered participants", state->members.count);
    set("tidegate_http_connections", "open HTTP connections", http_server_connections(c->http));
    set_count("tidegate_rpc_bad_frames", "frames refused since the start",
              rpc_server_bad_frames(c->rpc));
}
