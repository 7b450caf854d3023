/* SPDX-License-Identifier: Apache-2.0 */
/* One coordinator of a simulated cluster. */
#include "tests/sim/sim_coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/proto/message.h"
#include "common/proto/msg_txn.h"
#include "coordinator/cluster/health.h"
#include "coordinator/cluster/participants.h"
#include "coordinator/consensus/raft_core.h"
#include "coordinator/dispatch/dispatch.h"
#include "coordinator/members/members_daemon.h"
#include "coordinator/txn/publish_daemon.h"
#include "coordinator/txn/repair_daemon.h"
#include "coordinator/txn/sweep_daemon.h"
#include "coordinator/txn/txn_manager.h"
#include "tests/sim/sim_rpc.h"

enum {
    PUBLISH_US = 50 * 1000,
    LEASE_MS = 2000,
    PUBLISH_TIMEOUT_US = 400 * 1000,
    SNAPSHOT_BYTES = 6 * 1024,
    SNAPSHOT_TRAILING = 12
};

struct sim_coordinator {
    struct participants seam; /* first: what the publisher calls */
    struct sim_net *net;
    unsigned i;
    struct sim_participant *participants;
    struct sim_clock clock;
    bool up, down;
    uint64_t life;
    bool wake;
    bool dying; /* its disk has failed */
    struct raft_core core;
    struct health health;
    struct publish_daemon *publisher;
    struct sweep_daemon *sweeper;
    struct repair_daemon *repairer;
    struct txn_manager *manager;
    struct members_daemon *members;
    struct query_waits waits;
    struct dispatch dispatch;
    void (*applied)(void *data, unsigned i);
    void *applied_data;
};

/* ---- the daemons' calls to participants ---- */

struct sim_order {
    struct sim_coordinator *coordinator;
    participants_publish_done *published;
    participants_clone_done *cloned;
    void *data;
};

static void on_order_answered(void *data, int err, struct slice head, struct slice payload)
{
    struct sim_order order = *(struct sim_order *)data;
    (void)payload;
    free(data);
    if (order.published != NULL) {
        struct msg_publish_reply reply = {0};
        if (err == 0)
            err = msg_publish_reply_decode(head, &reply);
        order.published(order.data, err, err == 0 ? &reply : NULL);
        msg_publish_reply_close(&reply);
    } else {
        struct msg_clone_reply reply;
        if (err == 0)
            err = msg_clone_reply_decode(head, &reply);
        order.cloned(order.data, err, err == 0 ? &reply : NULL);
    }
    sim_coordinator_turn(order.coordinator);
}

static void sim_order_send(struct sim_order order, node_id node, uint16_t type, struct buf *head,
                           uint64_t timeout_us)
{
    struct sim_coordinator *coordinator = order.coordinator;
    struct sim_order *kept = malloc(sizeof *kept);
    struct buf none = BUF_INIT;
    TG_CHECK(kept != NULL && node >= 1 && node <= SIM_PARTICIPANTS);
    *kept = order;
    sim_rpc_call(coordinator->net, (int)coordinator->i, &coordinator->participants[node - 1], type,
                 head, &none, timeout_us, on_order_answered, kept);
}

static void sim_publish_start(struct participants *participants, node_id node, const char *address,
                              const struct msg_publish *message, uint64_t timeout_ms,
                              participants_publish_done *done, void *data)
{
    struct buf head = BUF_INIT;
    (void)timeout_ms;
    TG_CHECK(address[0] != '\0');
    msg_publish_encode(message, &head);
    sim_order_send((struct sim_order){(struct sim_coordinator *)participants, done, NULL, data},
                   node, MSG_PUBLISH, &head, PUBLISH_TIMEOUT_US);
}

static void sim_order_clone(struct participants *participants, node_id node, const char *address,
                            const struct msg_clone *message, uint64_t timeout_ms,
                            participants_clone_done *done, void *data)
{
    struct buf head = BUF_INIT;
    (void)timeout_ms;
    TG_CHECK(node == message->node && address[0] != '\0' && message->address[0] != '\0');
    msg_clone_encode(message, &head);
    sim_order_send((struct sim_order){(struct sim_coordinator *)participants, NULL, done, data},
                   node, MSG_CLONE, &head, PUBLISH_TIMEOUT_US);
}

static const struct participants_ops sim_participants_ops = {.publish = sim_publish_start,
                                                             .clone = sim_order_clone};

/* ---- consensus' callbacks ---- */

static void on_wake(void *data)
{
    ((struct sim_coordinator *)data)->wake = true;
}

static void on_fatal(void *data, const char *why)
{
    struct sim_coordinator *coordinator = data;
    /* After a disk fault its process ends, with the next look at it; nothing else may do that. */
    if (!mem_raft_failed(coordinator->net->mem, coordinator->i))
        sim_net_fail(coordinator->net, "coordinator %u: %s", coordinator->i + 1, why);
}

static void on_init_done(struct consensus_request *request, int err,
                         const struct apply_result *result)
{
    (void)err;
    (void)result;
    free(request);
}

static void on_leadership(void *data, bool leads)
{
    struct sim_coordinator *coordinator = data;
    sim_world_trace(&coordinator->net->world, "leadership coordinator=%u leads=%d",
                    coordinator->i + 1, leads);
    if (!coordinator->up)
        return;
    publish_daemon_reset(coordinator->publisher);
    repair_daemon_reset(coordinator->repairer);
    if (!leads) {
        txn_manager_lost(coordinator->manager);
        query_waits_end(&coordinator->waits);
        return;
    }
    coordinator->net->result->leaders++;
    health_reset(&coordinator->health, clock_monotonic_ms(&coordinator->clock.clock));
    if (coordinator->core.state.cluster_uuid[0] == '\0') {
        struct command command = {.type = COMMAND_CLUSTER_INIT};
        struct consensus_request *request = calloc(1, sizeof *request);
        TG_CHECK(request != NULL);
        request->done = on_init_done;
        snprintf(command.cluster_init.uuid, sizeof command.cluster_init.uuid,
                 "11111111-1111-4111-8111-%012u", coordinator->i + 1);
        consensus_propose(&coordinator->core.consensus, &command, request);
    }
}

static void run_waits(struct sim_coordinator *coordinator)
{
    query_waits_run(&coordinator->waits, &coordinator->core.state,
                    clock_monotonic_ms(&coordinator->clock.clock));
}

static void on_applied(void *data)
{
    struct sim_coordinator *coordinator = data;
    if (!coordinator->up)
        return;
    coordinator->applied(coordinator->applied_data, coordinator->i);
    txn_manager_run(coordinator->manager);
    publish_daemon_run(coordinator->publisher);
    run_waits(coordinator);
}

/* ---- timers ---- */

struct sim_timer {
    struct sim_coordinator *coordinator;
    uint64_t life;
};

static void sim_start_timer(struct sim_coordinator *coordinator, uint64_t us,
                            void (*run)(void *data))
{
    struct sim_timer *timer = malloc(sizeof *timer);
    TG_CHECK(timer != NULL);
    *timer = (struct sim_timer){coordinator, coordinator->life};
    sim_world_after(&coordinator->net->world, us, run, timer, free);
}

static struct sim_coordinator *sim_timer_take(void *data)
{
    struct sim_timer *timer = data;
    struct sim_coordinator *coordinator = timer->coordinator;
    bool current = coordinator->up && coordinator->life == timer->life;
    free(timer);
    return current ? coordinator : NULL;
}

static void on_dead(void *data)
{
    struct sim_coordinator *coordinator = sim_timer_take(data);
    if (coordinator != NULL)
        sim_coordinator_crash(coordinator);
}

void sim_coordinator_turn(struct sim_coordinator *coordinator)
{
    if (!coordinator->up || coordinator->dying)
        return;
    if (mem_raft_failed(coordinator->net->mem, coordinator->i)) {
        coordinator->dying = true;
        sim_start_timer(coordinator, 0, on_dead);
        return;
    }
    mem_raft_fire(&coordinator->core.raft);
    for (int i = 0; i < 1000 && (coordinator->wake || i == 0); i++) {
        coordinator->wake = false;
        raft_core_turn(&coordinator->core);
        mem_raft_fire(&coordinator->core.raft);
    }
}

static void on_publish_timer(void *data)
{
    struct sim_coordinator *coordinator = sim_timer_take(data);
    if (coordinator == NULL)
        return;
    sim_start_timer(coordinator, PUBLISH_US, on_publish_timer);
    publish_daemon_run(coordinator->publisher);
    repair_daemon_run(coordinator->repairer);
    txn_manager_run(coordinator->manager);
    run_waits(coordinator);
    members_daemon_run(coordinator->members);
    sim_coordinator_turn(coordinator);
}

static void on_sweep_timer(void *data)
{
    struct sim_coordinator *coordinator = sim_timer_take(data);
    if (coordinator == NULL)
        return;
    sim_start_timer(coordinator, SWEEP_MS * 1000, on_sweep_timer);
    sweep_daemon_run(coordinator->sweeper);
    sim_coordinator_turn(coordinator);
}

/* ---- life ---- */

struct sim_coordinator *sim_coordinator_open(struct sim_net *net, unsigned i,
                                             struct sim_participant *participants)
{
    struct sim_coordinator *coordinator = calloc(1, sizeof *coordinator);
    TG_CHECK(coordinator != NULL);
    coordinator->seam.ops = &sim_participants_ops;
    coordinator->net = net;
    coordinator->i = i;
    coordinator->participants = participants;
    coordinator->down = true;
    sim_clock_init(&coordinator->clock, &net->world);
    return coordinator;
}

void sim_coordinator_close(struct sim_coordinator *coordinator)
{
    TG_CHECK(coordinator->down);
    free(coordinator);
}

/* With little of the log kept behind a snapshot, who falls back is sent the snapshot. */
static int (*snapshot_of_core)(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs);

static int snapshot_with_little_log(struct raft_fsm *fsm, struct raft_buffer *bufs[],
                                    unsigned *n_bufs)
{
    struct raft_fsm_shell *shell = fsm->data;
    int rc = snapshot_of_core(fsm, bufs, n_bufs);
    if (rc == 0)
        raft_set_snapshot_trailing(shell->raft, SNAPSHOT_TRAILING);
    return rc;
}

void sim_coordinator_info(unsigned i, struct coordinator_info *info)
{
    memset(info, 0, sizeof *info);
    info->id = i + 1;
    snprintf(info->raft, sizeof info->raft, "%u", i + 1);
    snprintf(info->rpc, sizeof info->rpc, "127.0.0.1:%u", 9010 + i);
    snprintf(info->http, sizeof info->http, "127.0.0.1:%u", 8030 + i);
}

static void sim_bootstrap(struct sim_coordinator *coordinator)
{
    struct raft_configuration configuration;
    raft_configuration_init(&configuration);
    for (unsigned k = 1; k <= SIM_FOUNDERS; k++) {
        char address[8];
        snprintf(address, sizeof address, "%u", k);
        TG_CHECK(raft_configuration_add(&configuration, k, address, RAFT_VOTER) == 0);
    }
    TG_CHECK(raft_bootstrap(&coordinator->core.raft, &configuration) == 0);
    raft_configuration_close(&configuration);
}

void sim_coordinator_boot(struct sim_coordinator *coordinator)
{
    struct sim_net *net = coordinator->net;
    struct clock *clock = &coordinator->clock.clock;
    char address[8];
    TG_CHECK(coordinator->down);
    snprintf(address, sizeof address, "%u", coordinator->i + 1);
    struct raft_core_options options = {
        .id = coordinator->i + 1,
        .address = address,
        .window = net->options->seed % 3 == 0 ? 2 : 1,
        .election_timeout_ms = 600,
        .heartbeat_ms = 60,
        .install_snapshot_timeout_ms = 3000,
        .snapshot_bytes = SNAPSHOT_BYTES,
        .clock = clock,
        .observer = {on_leadership, on_applied, coordinator},
        .wake = on_wake,
        .fatal = on_fatal,
        .data = coordinator,
    };
    coordinator->down = false;
    coordinator->dying = false;
    coordinator->life++;
    TG_CHECK(raft_core_init(&coordinator->core, &options) == 0);
    if (net->options->seed % 2 == 0) {
        snapshot_of_core = coordinator->core.shell.fsm.snapshot;
        coordinator->core.shell.fsm.snapshot = snapshot_with_little_log;
    }
    health_init(&coordinator->health, LEASE_MS, clock_monotonic_ms(clock));
    struct consensus *consensus = &coordinator->core.consensus;
    struct publish_daemon_options publish = {.publish_wait_ms = 300000, .rpc_timeout_ms = 400};
    struct txn_sweeper_options sweep = {.precommit_timeout_ms = 3000, .label_keep_ms = 43200000};
    TG_CHECK(publish_daemon_open(consensus, &coordinator->seam, clock, &publish,
                                 &coordinator->publisher) == 0);
    TG_CHECK(sweep_daemon_open(consensus, &coordinator->health, clock, &sweep,
                               &coordinator->sweeper) == 0);
    TG_CHECK(repair_daemon_open(consensus, &coordinator->seam, &coordinator->health, clock,
                                &coordinator->repairer) == 0);
    TG_CHECK(txn_manager_open(consensus, clock, &coordinator->manager) == 0);
    struct coordinator_infos founders = {0};
    for (unsigned k = 0; k < SIM_FOUNDERS; k++)
        sim_coordinator_info(k, &founders.list[founders.count++]);
    TG_CHECK(members_daemon_open(consensus, clock, coordinator->i + 1, &founders,
                                 &coordinator->members) == 0);
    memset(&coordinator->waits, 0, sizeof coordinator->waits);
    coordinator->dispatch = (struct dispatch){.consensus = consensus,
                                              .txns = coordinator->manager,
                                              .health = &coordinator->health,
                                              .clock = clock,
                                              .waits = &coordinator->waits,
                                              .self = coordinator->i + 1};
    TG_CHECK(raft_core_attach(&coordinator->core, mem_raft_boot(net->mem, coordinator->i), NULL) ==
             0);
    if (coordinator->i < SIM_FOUNDERS && mem_raft_last_index(net->mem, coordinator->i) == 0)
        sim_bootstrap(coordinator);
    coordinator->up = true;
    TG_CHECK(raft_core_start(&coordinator->core, NULL) == 0);
    sim_start_timer(coordinator, sim_world_between(&net->world, 1, PUBLISH_US), on_publish_timer);
    sim_start_timer(coordinator, sim_world_between(&net->world, 1, SWEEP_MS * 1000),
                    on_sweep_timer);
    sim_world_trace(&net->world, "boot coordinator=%u", coordinator->i + 1);
}

static void on_raft_closed(struct raft *raft)
{
    struct raft_core *core = raft_core_of(raft);
    struct sim_coordinator *coordinator = core->options.data;
    raft_core_close(core);
    coordinator->down = true;
}

void sim_coordinator_crash(struct sim_coordinator *coordinator)
{
    TG_CHECK(coordinator->up);
    sim_world_trace(&coordinator->net->world, "crash coordinator=%u", coordinator->i + 1);
    coordinator->up = false;
    coordinator->net->result->crashes++;
    mem_raft_crash(coordinator->net->mem, coordinator->i);
    txn_manager_close(coordinator->manager);
    members_daemon_close(coordinator->members);
    publish_daemon_close(coordinator->publisher);
    sweep_daemon_close(coordinator->sweeper);
    repair_daemon_close(coordinator->repairer);
    sim_rpc_end_from((int)coordinator->i);
    query_waits_end(&coordinator->waits);
    health_close(&coordinator->health);
    raft_core_shut(&coordinator->core, on_raft_closed);
}

static void on_ordered(struct consensus_request *request, int err,
                       const struct apply_result *result)
{
    struct sim_coordinator *coordinator = request->data;
    sim_world_trace(&coordinator->net->world, "ordered err=%d result=%d", err,
                    err == 0 ? result->err : 0);
    free(request);
}

void sim_coordinator_order(struct sim_coordinator *coordinator, const struct command *command)
{
    struct consensus_request *request = calloc(1, sizeof *request);
    TG_CHECK(request != NULL);
    request->done = on_ordered;
    request->data = coordinator;
    consensus_propose(&coordinator->core.consensus, command, request);
    sim_coordinator_turn(coordinator);
}

void sim_coordinator_transfer(struct sim_coordinator *coordinator)
{
    raft_core_transfer(&coordinator->core, 0, NULL, NULL);
    sim_coordinator_turn(coordinator);
}

void sim_coordinator_servers(const struct sim_coordinator *coordinator,
                             struct consensus_servers *servers)
{
    raft_members_servers(&coordinator->core.consensus, servers);
}

struct sim_coordinator *sim_coordinator_newest(struct sim_coordinator **coordinators)
{
    struct sim_coordinator *newest = NULL;
    for (unsigned i = 0; i < SIM_COORDINATORS; i++)
        if (coordinators[i]->up && (newest == NULL || sim_coordinator_applied(coordinators[i]) >
                                                          sim_coordinator_applied(newest)))
            newest = coordinators[i];
    return newest;
}

bool sim_coordinator_is_up(const struct sim_coordinator *coordinator)
{
    return coordinator->up;
}

bool sim_coordinator_is_down(const struct sim_coordinator *coordinator)
{
    return coordinator->down;
}

bool sim_coordinator_leads(const struct sim_coordinator *coordinator)
{
    return coordinator->up && consensus_is_leader(&coordinator->core.consensus);
}

uint64_t sim_coordinator_applied(const struct sim_coordinator *coordinator)
{
    return coordinator->core.raft.last_applied;
}

const struct state *sim_coordinator_state(const struct sim_coordinator *coordinator)
{
    return coordinator->up ? &coordinator->core.state : NULL;
}

void sim_coordinator_jump_clock(struct sim_coordinator *coordinator, int64_t us)
{
    coordinator->clock.offset_us += us;
}

void sim_coordinator_on_applied(struct sim_coordinator *coordinator,
                                void (*applied)(void *data, unsigned i), void *data)
{
    coordinator->applied = applied;
    coordinator->applied_data = data;
}

/* ---- what comes in ---- */

struct sim_answer {
    struct sim_coordinator *coordinator;
    uint64_t life;
    sim_coordinator_done *done;
    void *data;
};

static void sim_answer_end(void *data, int err, const char *sentence, struct slice head)
{
    struct sim_answer answer = *(struct sim_answer *)data;
    (void)sentence;
    free(data);
    /* A crash has ended the conversation. */
    if (!answer.coordinator->up || answer.coordinator->life != answer.life)
        answer.done(answer.data, TG_UNKNOWN_OUTCOME, slice_of(NULL, 0));
    else
        answer.done(answer.data, err, head);
}

/* Planted faults: answers without the log. True if it was answered. */
static bool planted_answer(struct sim_coordinator *coordinator, uint16_t type, struct slice message,
                           sim_coordinator_done *done, void *data)
{
    unsigned mutant = coordinator->net->options->mutant;
    struct buf head = BUF_INIT;
    bool answers = false;
    if (mutant == MUTANT_TELLS_TOO_EARLY && type == MSG_LOAD_DONE &&
        sim_world_chance(&coordinator->net->world, 50)) {
        struct msg_load_done load;
        TG_CHECK(msg_load_done_decode(message, &load) == 0);
        struct msg_txn_reply reply = {.txn = load.txn, .state = TXN_COMMITTED};
        answers = load.finish == LOAD_FINISH_COMMIT;
        msg_txn_reply_encode(&reply, &head);
        msg_load_done_close(&load);
    } else if (mutant == MUTANT_LOSES_AN_ABORT && type == MSG_TXN_2PC) {
        struct msg_txn_2pc request;
        struct msg_txn_2pc_reply reply = {.status = "Success", .state = TXN_ABORTED};
        TG_CHECK(msg_txn_2pc_decode(message, &request) == 0);
        answers = strcmp(request.operation, "abort") == 0;
        msg_txn_2pc_reply_encode(&reply, &head);
    }
    if (answers)
        done(data, 0, slice_of(head.data, head.len));
    buf_close(&head);
    return answers;
}

void sim_coordinator_call(struct sim_coordinator *coordinator, uint16_t type, struct slice head,
                          sim_coordinator_done *done, void *data)
{
    if (sim_coordinator_leads(coordinator) && planted_answer(coordinator, type, head, done, data))
        return;
    struct sim_answer *answer = malloc(sizeof *answer);
    TG_CHECK(answer != NULL);
    *answer = (struct sim_answer){coordinator, coordinator->life, done, data};
    dispatch_call(&coordinator->dispatch, type, head, sim_answer_end, answer);
    sim_coordinator_turn(coordinator);
}
