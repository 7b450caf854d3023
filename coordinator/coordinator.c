/* SPDX-License-Identifier: Apache-2.0 */
/* One coordinator: the order of its start.
 *
 *   lock the directory ▶ listen for RPC ▶ (empty directory: is there a cluster already?) ▶ raft
 *   ▶ the parts around it ▶ listen for HTTP
 *
 * Everything runs on one loop; the thread pool serves raft's disk work only. */
#include "coordinator/coordinator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/net/tcp.h"
#include "coordinator/consensus/raft_dir.h"
#include "coordinator/coordinator_parts.h"
#include "coordinator/data_dir.h"

/* ---- parts ---- */

static uint16_t port_of(const char *address)
{
    char host[TCP_HOST_BYTES];
    uint16_t port = 0;

    tcp_split_address(address, host, &port, NULL);
    return port;
}

static int open_rpc(struct coordinator *c, struct tg_errmsg *msg)
{
    struct rpc_server_options options = {
        .host = c->options->host,
        .port = port_of(c->own->rpc),
        .secret = c->options->cluster_secret,
        .connections_max = (unsigned)c->options->rpc_connections_max,
    };

    c->handlers.dispatch = &c->dispatch;
    c->handlers.phase = STATUS_LOOKS;
    int err = rpc_server_open(c->loop, &options, rpc_handlers_call, &c->handlers, &c->rpc, msg);
    return err != 0 ? tg_wrap(msg, err, "rpc port") : 0;
}

static int open_raft(struct coordinator *c, struct tg_errmsg *msg)
{
    struct consensus_observer observer = {.leadership = coordinator_watch_leadership,
                                          .applied = coordinator_watch_applied,
                                          .data = c};
    struct raft_node_options options;
    char listen[OPTION_TEXT_BYTES + 8];

    raft_node_options_init(&options);
    options.id = c->options->coordinator_id;
    options.dir = c->raft_dir;
    snprintf(listen, sizeof listen, "%s:%u", c->options->host, (unsigned)port_of(c->own->raft));
    options.listen_address = listen;
    options.server_count = c->address_count;
    for (uint32_t i = 0; i < c->address_count; i++) {
        options.servers[i].id = c->addresses[i].id;
        memcpy(options.servers[i].address, c->addresses[i].raft, ADDRESS_BYTES);
    }
    options.bootstrap = c->options->bootstrap;
    options.join = c->joins;
    options.cluster_secret = c->options->cluster_secret;
    options.election_timeout_ms = (unsigned)c->options->election_timeout_ms;
    options.heartbeat_ms = (unsigned)c->options->heartbeat_ms;
    options.snapshot_bytes = c->options->snapshot_bytes;
    options.disk_reserve_bytes = c->options->disk_reserve_bytes;
    coordinator_peers_tell(c, &options);
    return raft_node_open(c->loop, &options, clock_system(), &observer, &c->raft, msg);
}

static int open_txns(struct coordinator *c, struct tg_errmsg *msg)
{
    struct consensus *consensus = raft_node_consensus(c->raft);
    struct clock *clock = clock_system();
    struct publish_daemon_options publish = {.publish_wait_ms = c->options->publish_wait_s * 1000,
                                             .rpc_timeout_ms = COORDINATOR_PUBLISH_RPC_MS};
    struct txn_sweeper_options sweep = {
        .precommit_timeout_ms = c->options->precommit_timeout_s * 1000,
        .label_keep_ms = c->options->label_keep_s * 1000,
    };
    struct move_options move = {.replace_dead_ms = c->options->replace_dead_after_s * 1000,
                                .balance = c->options->balance};
    int err;

    health_init(&c->health, c->options->participant_lease_ms, clock_monotonic_ms(clock));
    err = rpc_participants_open(c->loop, c->options->cluster_secret, &c->participants, msg);
    if (err == 0)
        err = txn_manager_open(consensus, clock, &c->txns);
    if (err == 0)
        err = publish_daemon_open(consensus, rpc_participants_calls(c->participants), clock,
                                  &publish, &c->publisher);
    if (err == 0)
        err = sweep_daemon_open(consensus, &c->health, clock, &sweep, &c->sweeper);
    if (err == 0)
        err = repair_daemon_open(consensus, rpc_participants_calls(c->participants), &c->health,
                                 clock, &c->repairer);
    if (err == 0)
        err = move_daemon_open(consensus, &c->health, clock, &move, &c->mover);
    if (err == 0)
        rpc_participants_watch(c->participants, &c->health);
    c->dispatch.consensus = consensus;
    c->dispatch.txns = c->txns;
    c->dispatch.health = &c->health;
    c->dispatch.clock = clock;
    c->dispatch.waits = &c->waits;
    c->dispatch.repairs = c->repairer;
    return err;
}

static int open_api(struct coordinator *c, struct tg_errmsg *msg)
{
    struct api_options options = {
        .root_password = c->options->root_password,
        .strict_expect = c->options->strict_expect,
        .call_timeout_ms = 10000,
        .txn_timeout_ms = 30000,
        .commit_visible_wait_ms = c->options->commit_visible_wait_ms,
        .refresh_metrics = coordinator_watch_metrics,
        .refresh_data = c,
    };
    int err = leader_link_open(&c->link, c->loop, &c->dispatch, c->options->cluster_secret, msg);

    return err != 0 ? err : api_open(&c->link, &options, random_system(), &c->api);
}

static int open_http(struct coordinator *c, struct tg_errmsg *msg)
{
    struct http_server_options options = {
        .host = c->options->host,
        .port = port_of(c->own->http),
        .connections_max = (unsigned)c->options->http_connections_max,
        .head_timeout_ms = 10000,
        .idle_timeout_ms = 60000,
        .drain_timeout_ms = HTTP_DRAIN_MS_MAX,
    };
    struct http_server_handlers handlers = {.on_request = api_handle, .ctx = c->api};
    int err = http_server_open(c->loop, &options, &handlers, &c->http, msg);

    return err != 0 ? tg_wrap(msg, err, "http port") : 0;
}

static int start_timers(struct coordinator *c)
{
    c->tick = loop_timer_open(c->loop, coordinator_watch_tick, c);
    c->sweep = loop_timer_open(c->loop, coordinator_watch_sweep, c);
    if (c->tick == NULL || c->sweep == NULL)
        return TG_NOMEM;
    loop_timer_start(c->tick, COORDINATOR_TICK_MS, COORDINATOR_TICK_MS);
    loop_timer_start(c->sweep, SWEEP_MS, SWEEP_MS);
    return 0;
}

static void fail_start(struct coordinator *c, int err, const char *why)
{
    log_error("coordinator", "cannot_start error=%s why=%s", tg_err_name(err),
              log_quote(why[0] != '\0' ? why : tg_err_sentence(err)));
    coordinator_stop(c, 1);
}

/* The directory is known to be fit: take part. */
static void serve(struct coordinator *c)
{
    struct tg_errmsg msg = {{0}};
    int err = open_raft(c, &msg);

    if (err == 0)
        err = coordinator_peers_open(c, &msg);
    if (err == 0)
        err = open_txns(c, &msg);
    if (err == 0)
        err = open_api(c, &msg);
    if (err == 0)
        err = raft_node_start(c->raft, &msg);
    if (err == 0) {
        c->dispatch.of_cluster = c->handlers.silent || c->joins;
        c->handlers.phase = STATUS_SERVES;
        err = open_http(c, &msg);
    }
    if (err == 0)
        err = start_timers(c);
    if (err != 0) {
        fail_start(c, err, msg.text);
        return;
    }
    log_info("coordinator", "started id=%" PRIu64 " http=%s rpc=%s raft=%s data_dir=%s", c->own->id,
             c->own->http, c->own->rpc, c->own->raft, c->options->data_dir);
}

static void preflight_done(void *data, int err, const char *sentence)
{
    struct coordinator *c = data;

    if (err != 0)
        fail_start(c, err, sentence);
    else
        serve(c);
}

static void join_done(void *data, int err, const char *sentence,
                      const struct coordinator_infos *infos)
{
    struct coordinator *c = data;

    if (err != 0) {
        fail_start(c, err, sentence);
        return;
    }
    log_info("join", "admitted id=%" PRIu64, c->dispatch.self);
    c->joins = true;
    c->known = *infos;
    serve(c);
}

static int start_join(struct coordinator *c, struct tg_errmsg *msg)
{
    int err = join_nonce(c->options->data_dir, c->dispatch.self, random_system(),
                         &c->handlers.nonce, msg);

    if (err != 0)
        return err;
    log_info("join", "begins id=%" PRIu64 " rpc=%s raft=%s", c->own->id, c->own->rpc, c->own->raft);
    c->handlers.phase = STATUS_JOINS;
    return join_start(c->loop, &c->dispatch, c->options->cluster_secret, c->handlers.nonce,
                      join_done, c, &c->join, msg);
}

static int start(struct coordinator *c, struct tg_errmsg *msg)
{
    struct raft_dir dir;
    int err = coordinator_peers_init(c, msg);

    if (err == 0)
        err = data_dir_open(c->options->data_dir, &c->lock, c->raft_dir, msg);
    if (err == 0)
        err = raft_dir_look(c->raft_dir, &dir, msg);
    if (err == 0)
        err = open_rpc(c, msg);
    if (err == 0)
        err = loop_on_stop_signal(c->loop, coordinator_stop_on_signal, c);
    if (err != 0)
        return err;
    bool fresh = dir.kind == RAFT_DIR_EMPTY || dir.kind == RAFT_DIR_HALF;
    c->handlers.silent = !fresh;
    if (dir.kind != RAFT_DIR_COMPLETE && c->options->join)
        return start_join(c, msg);
    if (fresh && c->options->bootstrap && c->dispatch.peer_count > 1)
        return preflight_start(c->loop, &c->dispatch, c->options->cluster_secret,
                               &c->handlers.phase, preflight_done, c, &c->preflight, msg);
    serve(c);
    return 0;
}

int coordinator_run(const struct coordinator_options *options)
{
    static struct coordinator c; /* large; one a process */
    struct tg_errmsg msg = {{0}};
    int err;

    c.options = options;
    c.lock = -1;
    err = loop_open(&c.loop, &msg);
    if (err != 0) {
        log_error("coordinator", "cannot_start error=%s why=%s", tg_err_name(err),
                  log_quote(msg.text));
        return 1;
    }
    err = start(&c, &msg);
    if (err != 0)
        fail_start(&c, err, msg.text);
    loop_run(c.loop);
    loop_close(c.loop);
    if (c.lock >= 0)
        close(c.lock);
    return c.status;
}
