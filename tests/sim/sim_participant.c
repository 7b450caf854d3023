/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of a participant. */
#include "tests/sim/sim_participant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/rowset_store.h"
#include "tests/sim/sim_scratch.h"

enum {
    META_MAP_BYTES = 48 << 20,
    BLOCKS_MAP_BYTES = 96 << 20,
    CLONE_CALL_US = 800 * 1000,
    RESTART_US_MAX = 400 * 1000
};

static void on_exit_code(void *data, int code);

void sim_participant_init(struct sim_participant *participant, struct sim_net *net, node_id node,
                          struct sim_participant *all)
{
    char root[SIM_SCRATCH_BYTES];
    memset(participant, 0, sizeof *participant);
    participant->net = net;
    participant->node = node;
    participant->all = all;
    sim_scratch_make(root);
    participant->disk = sim_disk_open(&net->world, node, root);
    sim_disk_set_speed(participant->disk, 50, 1000);
    sim_clock_init(&participant->clock, &net->world);
    fiber_process_init(&participant->process, &net->world, node);
    participant->process.on_exit = on_exit_code;
    participant->process.data = participant;
}

void sim_participant_close(struct sim_participant *participant)
{
    sim_disk_close(participant->disk);
}

/* ---- questions of its cloners to other participants ---- */

struct clone_wait {
    bool over;
    int err;
    struct buf *head, *payload;
};

static void on_clone_answer(void *data, int err, struct slice head, struct slice payload)
{
    struct clone_wait *wait = data;
    wait->err = err;
    wait->over = true;
    buf_append(wait->head, head.data, head.len);
    buf_append(wait->payload, payload.data, payload.len);
    fiber_wake_all(wait);
}

static int clone_call(void *ctx, node_id node, const char *address, uint16_t type, struct buf *head,
                      const atomic_bool *stop, struct buf *reply_head, struct buf *reply_payload,
                      struct tg_errmsg *msg)
{
    struct sim_participant *participant = ctx;
    struct clone_wait wait = {.head = reply_head, .payload = reply_payload};
    struct buf none = BUF_INIT;
    (void)stop;
    TG_CHECK(node >= 1 && node <= SIM_PARTICIPANTS && address[0] != '\0');
    sim_rpc_call(participant->net, sim_node(participant->node - 1), &participant->all[node - 1],
                 type, head, &none, CLONE_CALL_US, on_clone_answer, &wait);
    while (!wait.over)
        fiber_wait(&wait, UINT64_MAX);
    return wait.err == 0 ? 0 : tg_fail(msg, wait.err, "%s", tg_err_sentence(wait.err));
}

/* ---- life ---- */

static int open_parts(struct sim_participant *participant)
{
    struct tg_errmsg msg = {{0}};
    struct store_options options;
    store_options_init(&options);
    options.meta_map_bytes = META_MAP_BYTES;
    options.blocks_map_bytes = BLOCKS_MAP_BYTES;
    options.cache_bytes = 1 << 20;
    int err = store_open(sim_disk_root(participant->disk), &options, &participant->store, &msg);
    if (err == 0)
        err = tablet_set_open(participant->store, &participant->tablets);
    if (err == 0)
        err = store_identity_load(participant->store, &participant->identity);
    if (err == 0)
        err = gc_open(participant->store, participant->tablets, &participant->gc);
    struct cloner_options clone = {.store = participant->store,
                                   .tablets = participant->tablets,
                                   .damage = &participant->damage,
                                   .clock = &participant->clock.clock,
                                   .calls = {.ctx = participant, .call = clone_call}};
    damage_list_init(&participant->damage);
    if (err == 0)
        err = cloner_open(&clone, &participant->cloner);
    if (err == 0)
        err = clone_source_open(participant->store, participant->tablets, &participant->source);
    if (err == TG_CORRUPT || err == TG_INVALID || err == TG_UNSUPPORTED)
        sim_net_fail(participant->net, "participant %u cannot open its store: %s",
                     participant->node, msg.text);
    return err;
}

static void *live(void *data)
{
    struct sim_participant *participant = data;
    int err = open_parts(participant);
    if (err != 0) {
        sim_world_trace(&participant->net->world, "not opened participant=%u err=%s",
                        participant->node, tg_err_name(err));
        fiber_exit_process(1);
    }
    participant->clearing = participant->identity.pending_nonce != 0;
    if (participant->identity.node_uuid[0] == '\0')
        snprintf(participant->identity.node_uuid, sizeof participant->identity.node_uuid,
                 "00000000-0000-4000-8000-%012u", participant->node);
    if (!participant->clearing)
        sim_participant_make_nonce(participant);
    participant->up = true;
    sim_world_trace(&participant->net->world, "up participant=%u", participant->node);
    participant->opened(participant->data, participant->node - 1);
    return NULL;
}

void sim_participant_start(struct sim_participant *participant)
{
    TG_CHECK(!participant->process.alive);
    participant->wanted = true;
    participant->up = false;
    participant->epoch = 0;
    participant->store = NULL;
    participant->tablets = NULL;
    participant->gc = NULL;
    participant->cloner = NULL;
    participant->source = NULL;
    participant->staged_after = 0;
    participant->tablets_after = 0;
    participant->next_request = 1;
    participant->live_count = 0;
    fiber_process_start(&participant->process);
    sim_world_trace(&participant->net->world, "start participant=%u", participant->node);
    fiber_spawn(&participant->process, true, live, participant);
}

/* The process is dead already. */
static void end_life(struct sim_participant *participant, enum sim_disk_loss loss)
{
    participant->up = false;
    participant->epoch = 0;
    sim_rpc_end_from(sim_node(participant->node - 1));
    sim_disk_crash(participant->disk, loss);
    while (participant->questions != NULL)
        sim_question_lost(participant->questions);
    participant->net->result->restarts++;
}

void sim_participant_crash(struct sim_participant *participant, enum sim_disk_loss loss)
{
    if (!participant->process.alive)
        return;
    sim_world_trace(&participant->net->world, "crash participant=%u loss=%d", participant->node,
                    loss);
    fiber_process_kill(&participant->process);
    end_life(participant, loss);
}

static void on_start_again(void *data)
{
    struct sim_participant *participant = data;
    if (participant->wanted && !participant->process.alive)
        sim_participant_start(participant);
}

/* It ended itself: what the kernel had is in doubt after an I/O error. */
static void on_exit_code(void *data, int code)
{
    struct sim_participant *participant = data;
    struct sim_world *world = &participant->net->world;
    sim_world_trace(world, "exit participant=%u code=%d", participant->node, code);
    participant->net->result->exits++;
    end_life(participant, (enum sim_disk_loss)sim_world_below(world, SIM_LOSSES));
    sim_world_after(world, sim_world_between(world, 1000, RESTART_US_MAX), on_start_again,
                    participant, NULL);
}

struct sim_work {
    struct sim_participant *participant;
    void (*work)(struct sim_participant *participant, void *data);
    void *data;
};

static void *run_work(void *data)
{
    struct sim_work work = *(struct sim_work *)data;
    free(data);
    work.work(work.participant, work.data);
    return NULL;
}

void sim_participant_do(struct sim_participant *participant,
                        void (*work)(struct sim_participant *participant, void *data), void *data)
{
    struct sim_work *made = malloc(sizeof *made);
    TG_CHECK(made != NULL);
    *made = (struct sim_work){participant, work, data};
    fiber_spawn(&participant->process, true, run_work, made);
}

/* ---- registration ---- */

static void save(struct sim_participant *participant)
{
    if (store_identity_save(participant->store, &participant->identity) != 0)
        fiber_exit_process(1);
}

void sim_participant_make_nonce(struct sim_participant *participant)
{
    participant->identity.pending_nonce =
        sim_world_between(&participant->net->world, 1, UINT64_MAX / 2);
    save(participant);
}

bool sim_participant_accept(struct sim_participant *participant,
                            const struct msg_register_reply *reply)
{
    struct store_identity *identity = &participant->identity;
    bool earlier = participant->clearing;
    participant->clearing = false;
    identity->nonce = identity->pending_nonce;
    identity->pending_nonce = 0;
    identity->node = reply->node;
    identity->epoch = reply->epoch;
    memcpy(identity->cluster_uuid, reply->cluster_uuid, sizeof identity->cluster_uuid);
    save(participant);
    if (earlier) {
        sim_participant_make_nonce(participant);
        return false;
    }
    if (reply->node != participant->node)
        sim_net_fail(participant->net, "participant %u was given id %u", participant->node,
                     reply->node);
    participant->epoch = reply->epoch;
    return true;
}

void sim_participant_fill_register(const struct sim_participant *participant,
                                   struct msg_register *message)
{
    const struct store_identity *identity = &participant->identity;
    memset(message, 0, sizeof *message);
    message->wanted = participant->node;
    message->previous_nonce = identity->nonce;
    message->new_nonce = identity->pending_nonce;
    memcpy(message->cluster_uuid, identity->cluster_uuid, sizeof message->cluster_uuid);
    memcpy(message->node_uuid, identity->node_uuid, sizeof message->node_uuid);
    snprintf(message->http, sizeof message->http, "127.0.0.1:%u", 8039 + participant->node);
    snprintf(message->rpc, sizeof message->rpc, "127.0.0.1:%u", 9039 + participant->node);
}

/* ---- heartbeats: as participant/participant.c fills and answers them ---- */

void sim_participant_fill_heartbeat(struct sim_participant *participant,
                                    struct msg_heartbeat *message)
{
    memset(message, 0, sizeof *message);
    message->node = participant->node;
    message->epoch = participant->epoch;
    message->request_high = participant->next_request - 1;
    message->live = calloc(participant->live_count + 1, sizeof *message->live);
    message->staged = calloc(HEARTBEAT_STAGED_MAX, sizeof *message->staged);
    message->tablets = calloc(HEARTBEAT_TABLETS_MAX, sizeof *message->tablets);
    TG_CHECK(message->live != NULL && message->staged != NULL && message->tablets != NULL);
    message->live_count = participant->live_count;
    memcpy(message->live, participant->live, participant->live_count * sizeof *message->live);
    TG_CHECK(rowset_drop_list(participant->store, participant->staged_after, message->staged,
                              HEARTBEAT_STAGED_MAX, &message->staged_count) == 0);
    participant->staged_after = message->staged_count == HEARTBEAT_STAGED_MAX
                                    ? message->staged[message->staged_count - 1]
                                    : 0;
    message->tablet_count = tablet_set_list(participant->tablets, participant->tablets_after,
                                            message->tablets, HEARTBEAT_TABLETS_MAX);
    TG_CHECK(damage_list_copy(&participant->damage, &message->damaged, &message->damaged_count) ==
             0);
    TG_CHECK(
        store_disk(participant->store, &message->disk_free_bytes, &message->disk_total_bytes) == 0);
}

void sim_participant_heartbeat_answer(struct sim_participant *participant,
                                      struct msg_heartbeat_reply *reply)
{
    bool leaks = participant->net->options->mutant == MUTANT_LEAKS && participant->node == 1;
    for (uint32_t i = 0; i < reply->stopped_count; i++)
        sim_participant_end_load(participant, reply->stopped[i]);
    for (uint32_t i = 0; i < reply->dead_count && !leaks; i++)
        gc_drop_txn(participant->gc, reply->dead[i]);
    for (uint32_t i = 0; i < reply->dropped_count; i++)
        gc_drop_tablet(participant->gc, reply->dropped[i]);
    if (!leaks)
        rowset_store_set_low_water(participant->store, reply->txn_low_water);
    msg_heartbeat_reply_close(reply);
}

/* ---- loads ---- */

uint64_t sim_participant_begin_load(struct sim_participant *participant)
{
    if (!participant->up || participant->epoch == 0 || participant->live_count == SIM_LIVE_MAX)
        return 0;
    participant->live[participant->live_count++] = participant->next_request;
    return participant->next_request++;
}

void sim_participant_end_load(struct sim_participant *participant, uint64_t request)
{
    for (uint32_t i = 0; i < participant->live_count; i++)
        if (participant->live[i] == request) {
            participant->live[i] = participant->live[--participant->live_count];
            return;
        }
}
