/* SPDX-License-Identifier: Apache-2.0 */
/* One participant: its parts made, introduced to each other, started and closed in order.
 *
 * One loop carries HTTP, RPC and membership. Loads and reads run on threads of their own and talk
 * to the loop by posts. Closing goes from the outside in: no new requests, loads and reads ended,
 * the workers' threads joined (off the loop, which they may still need), then the loop itself, then
 * the store. */
#include "participant/participant.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock_watch.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/random.h"
#include "participant/api/api.h"
#include "participant/api/rpc_handlers.h"
#include "participant/ingest/load_memory.h"
#include "participant/known_coordinators.h"
#include "participant/link/live_requests.h"
#include "participant/link/membership.h"
#include "participant/maintain/gc.h"
#include "participant/maintain/scrubber.h"
#include "participant/store/lmdb_guard.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/rowset_store.h"

enum { EXIT_FENCED = 3, HTTP_GRACE_MS = 4000, RPC_CONNECTIONS_MAX = 1024, CLOCK_LOOK_MS = 1000 };

struct participant {
    const struct participant_options *options;
    struct loop *loop;
    struct store *store;
    struct tablet_set *tablets;
    struct node_identity identity;
    struct live_requests *requests;
    struct coordinator_client *coordinators;
    struct known_coordinators known; /* membership's hooks never run at the same time */
    struct peer_clients *peers;
    struct membership *membership;
    struct gc *gc;
    struct damage_list damage;
    struct cloner *cloner;
    struct clone_source *source;
    struct scrubber *scrubber;
    struct tablet_reader_pool *readers;
    struct rpc_handlers handlers;
    struct rpc_server *rpc;
    struct http_server *http;
    struct api api;
    struct clock_watch clock_watch;
    struct loop_timer *clock_timer;
    uint32_t staged; /* transactions in the last heartbeat's list */
    struct loop_work closing;
    bool stopping;
    int status;
    atomic_uint_fast64_t heartbeat_ms; /* when the last heartbeat was begun */
    txn_id staged_after;               /* where the next heartbeat's list goes on */
    tablet_id tablets_after;
};

/* ---- membership's hooks ---- */

static int save_identity(void *data, const struct membership_record *record)
{
    struct participant *p = data;
    struct store_identity identity = {
        .node = record->node,
        .nonce = record->nonce,
        .pending_nonce = record->pending_nonce,
        .epoch = record->epoch,
    };

    memcpy(identity.node_uuid, record->node_uuid, sizeof identity.node_uuid);
    memcpy(identity.cluster_uuid, record->cluster_uuid, sizeof identity.cluster_uuid);
    return store_identity_save(p->store, &identity);
}

static void joined(void *data)
{
    struct participant *p = data;

    /* The answer to a registration may come while this node ends: its servers are gone then. */
    if (p->stopping)
        return;
    p->api.joined = true;
    log_info("participant", "serving node=%u http=%s:%u rpc=%s:%u", atomic_load(&p->identity.node),
             p->options->host, http_server_port(p->http), p->options->host,
             rpc_server_port(p->rpc));
}

static int fill_heartbeat(void *data, struct msg_heartbeat *message)
{
    struct participant *p = data;

    if (known_coordinators_save(&p->known, p->options->data_dir) != 0)
        log_warn("participant", "coordinators_not_saved");
    atomic_store(&p->heartbeat_ms, clock_monotonic_ms(clock_system()));
    int err = live_requests_list(p->requests, &message->request_high, &message->live,
                                 &message->live_count);

    if (err != 0)
        return err;
    message->staged = calloc(HEARTBEAT_STAGED_MAX, sizeof *message->staged);
    message->tablets = calloc(HEARTBEAT_TABLETS_MAX, sizeof *message->tablets);
    if (message->staged == NULL || message->tablets == NULL)
        return TG_NOMEM;
    err = rowset_drop_list(p->store, p->staged_after, message->staged, HEARTBEAT_STAGED_MAX,
                           &message->staged_count);
    if (err != 0)
        return err;
    p->staged = message->staged_count;
    p->staged_after = message->staged_count == HEARTBEAT_STAGED_MAX
                          ? message->staged[message->staged_count - 1]
                          : 0;
    message->tablet_count =
        tablet_set_list(p->tablets, p->tablets_after, message->tablets, HEARTBEAT_TABLETS_MAX);
    p->tablets_after = message->tablet_count == HEARTBEAT_TABLETS_MAX
                           ? message->tablets[message->tablet_count - 1]
                           : 0;
    err = damage_list_copy(&p->damage, &message->damaged, &message->damaged_count);
    if (err != 0)
        return err;
    return store_disk(p->store, &message->disk_free_bytes, &message->disk_total_bytes);
}

static void heartbeat_answered(void *data, struct msg_heartbeat_reply *reply)
{
    struct participant *p = data;

    for (uint32_t i = 0; i < reply->stopped_count; i++)
        live_requests_stop(p->requests, reply->stopped[i]);
    /* Heartbeats go on until the loads have ended; the collector ends with the other workers. */
    for (uint32_t i = 0; i < reply->dead_count && !p->stopping; i++)
        gc_drop_txn(p->gc, reply->dead[i]);
    /* A tablet that moved away may have been ordered back since the leader said so. */
    for (uint32_t i = 0; i < reply->dropped_count && !p->stopping; i++)
        if (!cloner_ordered_since(p->cloner, reply->dropped[i], atomic_load(&p->heartbeat_ms)))
            gc_drop_tablet(p->gc, reply->dropped[i]);
    rowset_store_set_low_water(p->store, reply->txn_low_water);
    if (reply->coordinator_count > 0)
        known_coordinators_set(&p->known, reply->coordinators, reply->coordinator_count);
    msg_heartbeat_reply_close(reply);
}

static void stop(void *data);

static void fenced(void *data, int err, const char *sentence)
{
    struct participant *p = data;

    log_error("participant", "fenced err=%s reason=%s", tg_err_name(err), log_quote(sentence));
    p->status = EXIT_FENCED;
    p->api.joined = false;
    stop(p);
}

/* Nothing here depends on the wall clock but what people read: they are told when it jumps. */
static void look_at_clock(void *data)
{
    struct participant *p = data;
    struct clock *clock = clock_system();
    int64_t jump =
        clock_watch_look(&p->clock_watch, clock_wall_us(clock), clock_monotonic_us(clock));

    if (jump != 0)
        log_warn("participant", "clock jumped ms=%" PRId64, jump / 1000);
}

/* ---- opening ---- */

static int open_store(struct participant *p, struct tg_errmsg *msg)
{
    struct store_options options;

    store_options_init(&options);
    options.meta_map_bytes = p->options->meta_map_bytes;
    options.blocks_map_bytes = p->options->blocks_map_bytes;
    options.disk_reserve_bytes = p->options->disk_reserve_bytes;
    options.cache_bytes = p->options->cache_bytes;
    int err = store_open(p->options->data_dir, &options, &p->store, msg);
    if (err == 0) {
        err = tablet_set_open(p->store, &p->tablets);
        if (err != 0)
            tg_fail(msg, err, "the tablets' versions cannot be read: %s", tg_err_sentence(err));
    }
    if (err == TG_CORRUPT) {
        struct tg_errmsg why = *msg;
        tg_fail(msg, err, "%s (%s)", lmdb_guard_advice, why.text);
    }
    return err != 0 ? tg_wrap(msg, err, "%s", p->options->data_dir) : 0;
}

static int open_links(struct participant *p, struct tg_errmsg *msg)
{
    int err = coordinator_client_open(p->loop, p->options->coordinators, p->options->cluster_secret,
                                      &p->coordinators, msg);

    if (err == 0)
        err = peer_clients_open(p->loop, p->options->cluster_secret, &p->peers, msg);
    if (err == 0 && (p->requests = live_requests_open()) == NULL)
        err = TG_NOMEM;
    return err;
}

static int open_clones(struct participant *p)
{
    struct cloner_options options = {.store = p->store,
                                     .tablets = p->tablets,
                                     .damage = &p->damage,
                                     .clock = clock_system(),
                                     .bytes_per_s = p->options->clone_bytes_per_s};

    damage_list_init(&p->damage);
    clone_calls_init(&options.calls, p->peers);
    struct scrubber_options scrub = {.store = p->store,
                                     .tablets = p->tablets,
                                     .damage = &p->damage,
                                     .clock = clock_system(),
                                     .bytes_per_s = p->options->scrub_bytes_per_s,
                                     .interval_ms = p->options->scrub_interval_s * 1000};
    int err = cloner_open(&options, &p->cloner);
    if (err == 0)
        err = clone_source_open(p->store, p->tablets, &p->source);
    return err != 0 ? err : scrubber_open(&scrub, &p->scrubber);
}

static int open_workers(struct participant *p, struct tg_errmsg *msg)
{
    struct table_reader_context context = {
        .store = p->store, .tablets = p->tablets, .peers = p->peers, .identity = &p->identity};
    int err = gc_open(p->store, p->tablets, &p->gc);

    if (err == 0)
        err = open_clones(p);
    if (err == 0 && (p->api.rowsets = api_rowsets_open(p->loop, p->store)) == NULL)
        err = TG_NOMEM;
    if (err == 0)
        err = tablet_reader_pool_open(p->store, p->tablets, &p->readers);
    if (err == 0)
        err = api_read_open(p->loop, p->coordinators, &context, (unsigned)p->options->scans_max,
                            &p->api.read);
    if (err != 0)
        tg_fail(msg, err, "the worker threads cannot be started: %s", tg_err_sentence(err));
    return err;
}

static int open_load(struct participant *p, struct tg_errmsg *msg)
{
    char dir[OPTION_PATH_BYTES + 16];
    struct api_load_options options = {
        .loop = p->loop,
        .clock = clock_system(),
        .random = random_system(),
        .coordinators = p->coordinators,
        .peers = p->peers,
        .store = p->store,
        .requests = p->requests,
        .identity = &p->identity,
        .root_password = p->options->root_password,
        .error_log_dir = dir,
        .loads_max = p->options->loads_max,
        .load_memory_bytes = p->options->load_memory_bytes,
        .loads_memory_bytes = p->options->loads_memory_bytes,
        .body_bytes_max = p->options->streaming_load_max_mb << 20,
        .json_body_bytes_max = p->options->streaming_load_json_max_mb << 20,
        .publish_timeout_ms = p->options->publish_timeout_ms,
        .commit_visible_wait_ms = p->options->commit_visible_wait_ms,
    };

    snprintf(dir, sizeof dir, "%s/error_log", p->options->data_dir);
    return api_load_open(&options, &p->api.load, msg);
}

/* Before GET /metrics prints. On the loop, so nothing here may wait. */
static void refresh_metrics(void *data)
{
    struct participant *p = data;

    metric_set(metric_gauge("tidegate_http_connections", "open HTTP connections", NULL, 0),
               (int64_t)http_server_connections(p->http));
    metric_set_count(metric_counter("tidegate_rpc_bad_frames", "frames refused", NULL, 0),
                     rpc_server_bad_frames(p->rpc));
    metric_set_count(metric_counter("tidegate_clone_rounds", "clones that ended well", NULL, 0),
                     cloner_rounds(p->cloner));
    metric_set_count(metric_counter("tidegate_clone_bytes", "bytes fetched by clones", NULL, 0),
                     cloner_bytes(p->cloner));
    struct load_memory *memory = api_load_memory(p->api.load);
    metric_set(metric_gauge("tidegate_loads_memory_bytes", "memory that loads hold", NULL, 0),
               (int64_t)atomic_load(&memory->used));
    metric_set_count(metric_counter("tidegate_loads_memory_refused_total",
                                    "loads refused because their memory was used up", NULL, 0),
                     atomic_load(&memory->refused));
    uint64_t open_rowsets;
    uint64_t open_bytes;
    rowset_store_open_count(p->store, &open_rowsets, &open_bytes);
    metric_set(metric_gauge("tidegate_rowsets_open", "rowsets being written", NULL, 0),
               (int64_t)open_rowsets);
    metric_set(metric_gauge("tidegate_staged_transactions",
                            "transactions with staged rowsets, in the last heartbeat", NULL, 0),
               p->staged);
    metric_set_count(
        metric_counter("tidegate_clock_jumps_total", "jumps of this machine's wall clock", NULL, 0),
        p->clock_watch.jumps);
    struct scrubber_state scrub;
    scrubber_look(p->scrubber, &scrub);
    metric_set_count(metric_counter("tidegate_scrub_passes", "passes over all data", NULL, 0),
                     scrub.passes);
    metric_set_count(metric_counter("tidegate_scrub_bytes", "bytes read by them", NULL, 0),
                     scrub.bytes);
    metric_set_count(
        metric_counter("tidegate_scrub_damaged", "tablets found damaged by them", NULL, 0),
        scrub.damaged);
    metric_set(
        metric_gauge("tidegate_scrub_tablet", "being read; 0: no pass is under way", NULL, 0),
        (int64_t)scrub.tablet);
    metric_set(metric_gauge("tidegate_joined", "1 while this node serves its cluster", NULL, 0),
               p->api.joined);
}

static int open_servers(struct participant *p, struct tg_errmsg *msg)
{
    struct rpc_server_options rpc = {
        .host = p->options->host,
        .port = (uint16_t)p->options->rpc_port,
        .secret = p->options->cluster_secret,
        .connections_max = RPC_CONNECTIONS_MAX,
    };
    struct http_server_options http = {
        .host = p->options->host,
        .port = (uint16_t)p->options->http_port,
        .connections_max = (unsigned)p->options->http_connections_max,
    };
    struct http_server_handlers handlers = {.on_request = api_on_request, .ctx = &p->api};

    p->handlers = (struct rpc_handlers){
        .loop = p->loop,
        .clock = clock_system(),
        .store = p->store,
        .tablets = p->tablets,
        .readers = p->readers,
        .cloner = p->cloner,
        .source = p->source,
        .gc = p->gc,
        .identity = &p->identity,
    };
    p->api.refresh_metrics = refresh_metrics;
    p->api.refresh_data = p;
    int err = rpc_server_open(p->loop, &rpc, rpc_handlers_dispatch, &p->handlers, &p->rpc, msg);
    if (err != 0)
        return tg_wrap(msg, err, "rpc port %u", rpc.port);
    err = http_server_open(p->loop, &http, &handlers, &p->http, msg);
    return err != 0 ? tg_wrap(msg, err, "http port %u", http.port) : 0;
}

static int open_membership(struct participant *p, struct tg_errmsg *msg)
{
    const char *host =
        p->options->advertise_host[0] != 0 ? p->options->advertise_host : p->options->host;
    struct membership_options options = {.wanted = (node_id)p->options->participant_id,
                                         .heartbeat_ms = p->options->heartbeat_ms,
                                         .rejoin = p->options->rejoin};
    struct membership_hooks hooks = {.save = save_identity,
                                     .joined = joined,
                                     .fill = fill_heartbeat,
                                     .answered = heartbeat_answered,
                                     .fenced = fenced,
                                     .data = p};
    struct membership_record record = {0};
    struct store_identity identity;
    int err = store_identity_load(p->store, &identity);

    if (err != 0)
        return tg_fail(msg, err, "the node's identity cannot be read");
    known_coordinators_load(&p->known, p->options->data_dir);
    coordinator_client_learn(p->coordinators, p->known.list, p->known.count);
    if (snprintf(options.http, sizeof options.http, "%s:%u", host, http_server_port(p->http)) >=
            (int)sizeof options.http ||
        snprintf(options.rpc, sizeof options.rpc, "%s:%u", host, rpc_server_port(p->rpc)) >=
            (int)sizeof options.rpc)
        return tg_fail(msg, TG_INVALID, "the host name is too long");
    api_load_set_address(p->api.load, options.http);
    memcpy(record.node_uuid, identity.node_uuid, sizeof record.node_uuid);
    memcpy(record.cluster_uuid, identity.cluster_uuid, sizeof record.cluster_uuid);
    record.node = identity.node;
    record.nonce = identity.nonce;
    record.pending_nonce = identity.pending_nonce;
    record.epoch = identity.epoch;
    return membership_open(p->loop, p->coordinators, &options, &record, &hooks, random_system(),
                           &p->identity, &p->membership);
}

/* ---- closing ---- */

static void left_cluster(void *data)
{
    struct participant *p = data;

    p->membership = NULL;
    loop_stop(p->loop);
}

static void rpc_closed(void *data)
{
    struct participant *p = data;

    p->rpc = NULL;
    membership_close(p->membership, left_cluster, p);
    coordinator_client_close(p->coordinators); /* ends what membership waits for */
    p->coordinators = NULL;
}

/* Off the loop: joins threads that may still wait for it. */
static void close_workers(struct loop_work *work)
{
    struct participant *p = work->data;

    api_load_close(p->api.load);
    api_read_close(p->api.read);
    api_rowsets_close(p->api.rowsets);
    scrubber_close(p->scrubber);
    cloner_close(p->cloner);
    clone_source_close(p->source);
    tablet_reader_pool_close(p->readers);
    gc_close(p->gc);
}

static void workers_closed(struct loop_work *work)
{
    struct participant *p = work->data;

    rpc_server_close(p->rpc, rpc_closed, p);
}

static void http_closed(void *data)
{
    struct participant *p = data;

    p->http = NULL;
    p->handlers.readers = NULL; /* peers go elsewhere from now on */
    p->handlers.cloner = NULL;
    p->handlers.source = NULL;
    p->handlers.gc = NULL;
    p->closing = (struct loop_work){.work = close_workers, .done = workers_closed, .data = p};
    if (loop_work_start(p->loop, &p->closing) != 0)
        loop_stop(p->loop);
}

static void stop(void *data)
{
    struct participant *p = data;

    if (p->stopping)
        return;
    p->stopping = true;
    if (p->clock_timer != NULL)
        loop_timer_close(p->clock_timer);
    p->clock_timer = NULL;
    log_info("participant", "stopping");
    live_requests_stop_all(p->requests);
    http_server_close(p->http, HTTP_GRACE_MS, http_closed, p);
}

/* What a failed start leaves, or what is left after the loop has ended. The store goes before what
 * its writers' answers touch: calls of other nodes may still be on their way through it, whose
 * bindings are shown in the tablets and whose answers are posted to the loop. */
static void close_rest(struct participant *p)
{
    peer_clients_close(p->peers);
    if (p->coordinators != NULL)
        coordinator_client_close(p->coordinators);
    store_close(p->store);
    loop_close(p->loop);
    live_requests_close(p->requests);
    tablet_set_close(p->tablets);
}

int participant_run(const struct participant_options *options)
{
    static struct participant p;
    struct tg_errmsg msg = {{0}};
    int err;

    /* Big blocks are used again and again: giving them back to the kernel each time costs page
     * faults. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
    p.options = options;
    p.api.root_password = options->root_password;
    err = loop_open(&p.loop, &msg);
    if (err == 0)
        err = open_store(&p, &msg);
    if (err == 0)
        err = open_links(&p, &msg);
    if (err == 0)
        err = open_workers(&p, &msg);
    if (err == 0)
        err = open_load(&p, &msg);
    p.api.coordinators = p.coordinators;
    p.api.tablets = p.tablets;
    p.api.scrubber = p.scrubber;
    if (err == 0)
        err = open_servers(&p, &msg);
    if (err == 0)
        err = open_membership(&p, &msg);
    if (err == 0)
        err = loop_on_stop_signal(p.loop, stop, &p);
    if (err != 0) {
        log_error("participant", "cannot_start err=%s reason=%s", tg_err_name(err),
                  log_quote(msg.text));
        return 1; /* the process ends: nothing was served, nothing is half-written */
    }
    p.clock_timer = loop_timer_open(p.loop, look_at_clock, &p);
    if (p.clock_timer != NULL)
        loop_timer_start(p.clock_timer, CLOCK_LOOK_MS, CLOCK_LOOK_MS);
    membership_start(p.membership);
    loop_run(p.loop);
    close_rest(&p);
    log_info("participant", "stopped");
    return p.status;
}
