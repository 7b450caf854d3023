/* SPDX-License-Identifier: Apache-2.0 */
/* One coordinator of a simulated cluster. */
#include "tests/sim/sim_coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "coordinator/cluster/health.h"
#include "coordinator/cluster/participants.h"
#include "coordinator/consensus/raft_core.h"
#include "coordinator/txn/publish_daemon.h"
#include "coordinator/txn/repair_daemon.h"
#include "coordinator/txn/sweep_daemon.h"
#include "coordinator/txn/txn_manager.h"
#include "tests/sim/sim_clone.h"

enum {
    PUBLISH_US = 50 * 1000,
    LEASE_MS = 2000,
    PUBLISH_TIMEOUT_US = 400 * 1000,
    SNAPSHOT_BYTES = 6 * 1024
};

struct sim_publish;

struct sim_coordinator {
    struct participants seam; /* first: what the publisher calls */
    struct sim_net *net;
    unsigned i;
    struct sim_participant *participants;
    struct sim_clock clock;
    bool up, down;
    uint64_t life;
    bool wake;
    struct raft_core core;
    struct health health;
    struct publish_daemon *publisher;
    struct sweep_daemon *sweeper;
    struct repair_daemon *repairer;
    struct txn_manager *manager;
    struct sim_publish *publishes; /* calls in the air */
    void (*applied)(void *data, unsigned i);
    void *applied_data;
};

/* ---- the publisher's calls to participants ---- */

struct sim_publish {
    struct sim_coordinator *coordinator; /* NULL once it was answered */
    struct sim_publish *prev, *next;
    struct sim_net *net;
    unsigned from;
    struct sim_participant *to;
    struct msg_publish message; /* decoded copy, as after the wire */
    int err;
    struct msg_publish_reply reply;
    unsigned references; /* events that hold it */
    participants_publish_done *done;
    void *data;
};

static void sim_publish_release(void *data)
{
    struct sim_publish *call = data;
    if (--call->references > 0)
        return;
    msg_publish_close(&call->message);
    msg_publish_reply_close(&call->reply);
    free(call);
}

static void sim_publish_end(struct sim_publish *call, int err)
{
    struct sim_coordinator *coordinator = call->coordinator;
    if (coordinator == NULL)
        return;
    call->coordinator = NULL;
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        coordinator->publishes = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    call->done(call->data, err, err == 0 ? &call->reply : NULL);
    sim_coordinator_turn(coordinator);
}

static void sim_publish_on_late(void *data)
{
    sim_publish_end(data, TG_TIMEOUT);
    sim_publish_release(data);
}

static void sim_publish_on_answer(void *data)
{
    struct sim_publish *call = data;
    sim_publish_end(call, call->err);
    sim_publish_release(call);
}

static void sim_publish_on_arrival(void *data)
{
    struct sim_publish *call = data;
    /* Whoever sent it may be gone: it is bound all the same. */
    if (!call->to->up || call->net->cut[call->from][call->to->node - 1]) {
        sim_publish_release(call);
        return;
    }
    call->err = sim_participant_publish(call->to, &call->message, &call->reply);
    sim_net_send(call->net, sim_publish_on_answer, call, sim_publish_release);
}

static void sim_publish_start(struct participants *participants, node_id node, const char *address,
                              const struct msg_publish *message, uint64_t timeout_ms,
                              participants_publish_done *done, void *data)
{
    struct sim_coordinator *coordinator = (struct sim_coordinator *)participants;
    struct sim_publish *call = calloc(1, sizeof *call);
    struct buf head = BUF_INIT;
    (void)timeout_ms;
    TG_CHECK(call != NULL && address[0] != '\0');
    msg_publish_encode(message, &head);
    TG_CHECK(msg_publish_decode(slice_of(head.data, head.len), &call->message) == 0);
    buf_close(&head);
    call->coordinator = coordinator;
    call->net = coordinator->net;
    call->from = coordinator->i;
    call->to = &coordinator->participants[node - 1];
    call->done = done;
    call->data = data;
    call->next = coordinator->publishes;
    if (call->next != NULL)
        call->next->prev = call;
    coordinator->publishes = call;
    call->references = 2;
    sim_world_after(&coordinator->net->world, PUBLISH_TIMEOUT_US, sim_publish_on_late, call,
                    sim_publish_release);
    sim_net_send(coordinator->net, sim_publish_on_arrival, call, sim_publish_release);
}

static void sim_order_clone(struct participants *participants, node_id node, const char *address,
                            const struct msg_clone *message, uint64_t timeout_ms,
                            participants_clone_done *done, void *data)
{
    struct sim_coordinator *coordinator = (struct sim_coordinator *)participants;
    (void)timeout_ms;
    TG_CHECK(node == message->node && address[0] != '\0' && message->address[0] != '\0');
    sim_clone_start(coordinator->net, coordinator->i, coordinator->participants, message, done,
                    data);
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

static void on_applied(void *data)
{
    struct sim_coordinator *coordinator = data;
    if (!coordinator->up)
        return;
    coordinator->applied(coordinator->applied_data, coordinator->i);
    txn_manager_run(coordinator->manager);
    publish_daemon_run(coordinator->publisher);
}

void sim_coordinator_turn(struct sim_coordinator *coordinator)
{
    if (!coordinator->up)
        return;
    mem_raft_fire(&coordinator->core.raft);
    for (int i = 0; i < 1000 && (coordinator->wake || i == 0); i++) {
        coordinator->wake = false;
        raft_core_turn(&coordinator->core);
        mem_raft_fire(&coordinator->core.raft);
    }
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

static void on_publish_timer(void *data)
{
    struct sim_coordinator *coordinator = sim_timer_take(data);
    if (coordinator == NULL)
        return;
    sim_start_timer(coordinator, PUBLISH_US, on_publish_timer);
    publish_daemon_run(coordinator->publisher);
    repair_daemon_run(coordinator->repairer);
    txn_manager_run(coordinator->manager);
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

static void sim_bootstrap(struct sim_coordinator *coordinator)
{
    struct raft_configuration configuration;
    raft_configuration_init(&configuration);
    for (unsigned k = 1; k <= SIM_COORDINATORS; k++) {
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
    coordinator->life++;
    TG_CHECK(raft_core_init(&coordinator->core, &options) == 0);
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
    TG_CHECK(raft_core_attach(&coordinator->core, mem_raft_boot(net->mem, coordinator->i), NULL) ==
             0);
    if (mem_raft_last_index(net->mem, coordinator->i) == 0)
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
    publish_daemon_close(coordinator->publisher);
    sweep_daemon_close(coordinator->sweeper);
    repair_daemon_close(coordinator->repairer);
    while (coordinator->publishes != NULL)
        sim_publish_end(coordinator->publishes, TG_CLOSED);
    health_close(&coordinator->health);
    raft_core_shut(&coordinator->core, on_raft_closed);
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
    sim_coordinator_done *done;
    void *data;
    bool is_register;
    struct sim_coordinator *coordinator;
    struct consensus_request request;
};

static struct sim_answer *sim_answer_open(struct sim_coordinator *coordinator,
                                          sim_coordinator_done *done, void *data)
{
    struct sim_answer *answer = calloc(1, sizeof *answer);
    TG_CHECK(answer != NULL);
    answer->done = done;
    answer->data = data;
    answer->coordinator = coordinator;
    return answer;
}

static void sim_answer_end(void *data, int err, const char *sentence, struct slice head)
{
    struct sim_answer *answer = data;
    (void)sentence;
    answer->done(answer->data, err, head);
    free(answer);
}

static bool sim_refuses(struct sim_coordinator *coordinator, sim_coordinator_done *done, void *data)
{
    if (sim_coordinator_leads(coordinator))
        return false;
    done(data, TG_NOT_LEADER, slice_of(NULL, 0));
    return true;
}

void sim_coordinator_begin(struct sim_coordinator *coordinator, const struct msg_txn_begin *message,
                           sim_coordinator_done *done, void *data)
{
    if (sim_refuses(coordinator, done, data))
        return;
    txn_manager_begin(coordinator->manager, message, sim_answer_end,
                      sim_answer_open(coordinator, done, data));
    sim_coordinator_turn(coordinator);
}

void sim_coordinator_load_done(struct sim_coordinator *coordinator,
                               const struct msg_load_done *message, sim_coordinator_done *done,
                               void *data)
{
    if (sim_refuses(coordinator, done, data))
        return;
    if (coordinator->net->options->mutant == MUTANT_TELLS_TOO_EARLY &&
        message->finish == LOAD_FINISH_COMMIT && sim_world_chance(&coordinator->net->world, 50)) {
        struct msg_txn_reply reply = {.txn = message->txn, .state = TXN_COMMITTED};
        struct buf head = BUF_INIT;
        msg_txn_reply_encode(&reply, &head);
        done(data, 0, slice_of(head.data, head.len));
        buf_close(&head);
        return;
    }
    txn_manager_load_done(coordinator->manager, message, sim_answer_end,
                          sim_answer_open(coordinator, done, data));
    sim_coordinator_turn(coordinator);
}

void sim_coordinator_load_failed(struct sim_coordinator *coordinator,
                                 const struct msg_load_failed *message, sim_coordinator_done *done,
                                 void *data)
{
    if (sim_refuses(coordinator, done, data))
        return;
    txn_manager_load_failed(coordinator->manager, message, sim_answer_end,
                            sim_answer_open(coordinator, done, data));
    sim_coordinator_turn(coordinator);
}

void sim_coordinator_2pc(struct sim_coordinator *coordinator, const struct msg_txn_2pc *message,
                         sim_coordinator_done *done, void *data)
{
    if (sim_refuses(coordinator, done, data))
        return;
    if (coordinator->net->options->mutant == MUTANT_LOSES_AN_ABORT &&
        strcmp(message->operation, "abort") == 0) {
        struct msg_txn_2pc_reply reply = {.status = "Success", .state = TXN_ABORTED};
        struct buf head = BUF_INIT;
        msg_txn_2pc_reply_encode(&reply, &head);
        done(data, 0, slice_of(head.data, head.len));
        buf_close(&head);
        return;
    }
    txn_manager_2pc(coordinator->manager, message, sim_answer_end,
                    sim_answer_open(coordinator, done, data));
    sim_coordinator_turn(coordinator);
}

static void sim_on_command(struct consensus_request *request, int err,
                           const struct apply_result *result)
{
    struct sim_answer *answer = request->data;
    struct buf head = BUF_INIT;
    if (err == 0)
        err = result->err;
    if (err == 0 && answer->is_register) {
        struct msg_register_reply reply = {.node = result->node, .epoch = result->epoch};
        memcpy(reply.cluster_uuid, answer->coordinator->core.state.cluster_uuid,
               sizeof reply.cluster_uuid);
        msg_register_reply_encode(&reply, &head);
    }
    /* A crash has ended the conversation. */
    answer->done(answer->data, answer->coordinator->up ? err : TG_UNKNOWN_OUTCOME,
                 slice_of(head.data, head.len));
    buf_close(&head);
    free(answer);
}

void sim_coordinator_command(struct sim_coordinator *coordinator, const struct command *command,
                             sim_coordinator_done *done, void *data)
{
    if (sim_refuses(coordinator, done, data))
        return;
    struct sim_answer *answer = sim_answer_open(coordinator, done, data);
    answer->is_register = command->type == COMMAND_MEMBER_REGISTER;
    answer->request.done = sim_on_command;
    answer->request.data = answer;
    consensus_propose(&coordinator->core.consensus, command, &answer->request);
    sim_coordinator_turn(coordinator);
}

bool sim_coordinator_heartbeat(struct sim_coordinator *coordinator, struct msg_heartbeat *message,
                               struct msg_heartbeat_reply *reply)
{
    if (!sim_coordinator_leads(coordinator) ||
        !members_is_current(&coordinator->core.state.members, message->node, message->epoch))
        return false;
    memset(reply, 0, sizeof *reply);
    TG_CHECK(health_answer(&coordinator->core.state, message, reply) == 0);
    TG_CHECK(health_heard(&coordinator->health, message,
                          clock_monotonic_ms(&coordinator->clock.clock)) == 0);
    return true;
}
