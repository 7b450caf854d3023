/* SPDX-License-Identifier: Apache-2.0 */
/* Loads as small programs of calls. */
#include "tests/sim/sim_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/proto/message.h"
#include "common/proto/msg_txn.h"
#include "tests/sim/sim_call.h"
#include "tests/sim/sim_content.h"
#include "tests/sim/sim_load.h"
#include "tests/sim/sim_rpc.h"

enum {
    SIM_TXN_TIMEOUT_MS = 4000,
    SIM_WAIT_VISIBLE_MS = 1500,
    SIM_THINK_US_MAX = 500 * 1000,
    SIM_SPREAD_US_MAX = 4 * 1000,
    SIM_WRITE_US_MAX = 600 * 1000,
    SIM_MISSED_PERMILLE = 10, /* of the writes */
    SIM_RETRY_PERMILLE = 600
};

static void load_begin(struct sim_load *load);
static void load_finish(struct sim_load *load);

/* ---- life of a load ---- */

static bool load_is_plain(const struct sim_load *load)
{
    return load->history->kind == SIM_PLAIN || load->history->kind == SIM_TWIN;
}

static struct sim_participant *load_participant(const struct sim_load *load)
{
    return &load->clients->participants[load->ingest];
}

/* The ingest process is the one that began. */
static bool load_is_alive(const struct sim_load *load)
{
    const struct sim_participant *participant = load_participant(load);
    return participant->up && participant->epoch == load->epoch;
}

static void load_drop_plan(struct sim_load *load)
{
    if (load->planned)
        msg_txn_begin_reply_close(&load->plan);
    load->planned = false;
}

static void load_leave_participant(struct sim_load *load)
{
    if (load->request != 0 && load_is_alive(load))
        sim_participant_end_load(load_participant(load), load->request);
    load->request = 0;
}

/* A client that does not know how its load ended sends it again, under the same label. */
struct sim_retry {
    struct sim_clients *clients;
    uint32_t label;
    unsigned table;
};

static void on_retry(void *data);

static void load_retry(struct sim_load *load)
{
    struct sim_clients *clients = load->clients;
    struct sim_world *world = &clients->net->world;
    struct sim_retry *retry = malloc(sizeof *retry);
    TG_CHECK(retry != NULL);
    *retry = (struct sim_retry){clients, load->history->label_number, load->table};
    clients->under_way++;
    sim_world_after(world, sim_world_below(world, SIM_THINK_US_MAX), on_retry, retry, free);
}

static void load_end(struct sim_load *load)
{
    struct sim_clients *clients = load->clients;
    if (load->history->kind == SIM_PLAIN && load->history->told == TOLD_NOTHING &&
        !clients->net->quiet && sim_world_chance(&clients->net->world, SIM_RETRY_PERMILLE))
        load_retry(load);
    load_leave_participant(load);
    load_drop_plan(load);
    if (load->prev != NULL)
        load->prev->next = load->next;
    else
        clients->loads = load->next;
    if (load->next != NULL)
        load->next->prev = load->prev;
    clients->under_way--;
    free(load);
}

static void load_tell(struct sim_load *load, enum sim_told told)
{
    load->history->told |= (unsigned)told;
    sim_world_trace(&load->clients->net->world, "told label=%s txn=%lu told=%d",
                    load->history->label, (unsigned long)load->history->txn, told);
}

static void load_call(struct sim_load *load, int from, uint16_t type, struct buf *head,
                      sim_call_done *done)
{
    sim_call_start(load->clients->net, load->clients->coordinators, from, type, head, done, load);
}

/* A commit is about to be asked for. */
static void load_note_commit(struct sim_load *load)
{
    if (load->history->commit_us != 0)
        return;
    load->history->commit_us = load->clients->net->world.now_us;
    sim_check_floors(load->clients->check, &load->history->floors);
}

static void load_tell_committed(struct sim_load *load, enum txn_state state)
{
    load_tell(load, TOLD_COMMITTED);
    if (state == TXN_VISIBLE)
        sim_check_acknowledged(load->clients->check, load->history->txn);
}

/* ---- giving up ---- */

static void on_failed(void *data, int err, struct slice head)
{
    struct sim_load *load = data;
    struct msg_txn_reply reply;
    /* Fail is said only after ABORTED was read from the log (rule 11). */
    if (err == 0 && msg_txn_reply_decode(head, &reply) == 0 && reply.state == TXN_ABORTED)
        load_tell(load, TOLD_ABORTED);
    load_end(load);
}

static void load_fail(struct sim_load *load)
{
    struct msg_load_failed message = {.node = load->ingest + 1,
                                      .epoch = load->epoch,
                                      .request_id = load->request,
                                      .txn = load->history->txn,
                                      .rowset = load->planned ? load->plan.rowset : 0,
                                      .reason = "the simulation wants it"};
    struct buf head = BUF_INIT;
    msg_load_failed_encode(&message, &head);
    load_call(load, sim_node(load->ingest), MSG_LOAD_FAILED, &head, on_failed);
}

/* ---- begin, stage, done ---- */

static void on_load_done(void *data, int err, struct slice head)
{
    struct sim_load *load = data;
    struct msg_txn_reply reply;
    if (!load_is_alive(load)) {
        load_end(load);
        return;
    }
    if (err == TG_TIMEOUT) {
        load_end(load);
        return;
    }
    if (err != 0) {
        if (err != TG_TXN_ABORTED) {
            load_fail(load);
            return;
        }
        load_tell(load, TOLD_ABORTED);
        load_end(load);
        return;
    }
    TG_CHECK(msg_txn_reply_decode(head, &reply) == 0);
    load_leave_participant(load);
    if (load_is_plain(load)) {
        if (reply.state == TXN_COMMITTED || reply.state == TXN_VISIBLE)
            load_tell_committed(load, reply.state);
        else
            sim_net_fail(load->clients->net, "load %s ended well in state %s", load->history->label,
                         txn_state_name(reply.state));
        load_end(load);
    } else if (load->history->kind == SIM_MULTI && load->table + 1 < SIM_TABLES) {
        load_drop_plan(load);
        load->table++;
        load_begin(load);
    } else {
        load_finish(load);
    }
}

static void load_report(struct sim_load *load)
{
    struct load_report_tablet tablets[SIM_BUCKETS];
    struct msg_load_done message = {.node = load->ingest + 1,
                                    .epoch = load->epoch,
                                    .request_id = load->request,
                                    .txn = load->plan.txn,
                                    .rowset = load->plan.rowset,
                                    .placement_epoch = load->plan.placement_epoch,
                                    .wait_visible_ms = SIM_WAIT_VISIBLE_MS,
                                    .rows = SIM_BUCKETS,
                                    .bytes = 100,
                                    .tablet_count = SIM_BUCKETS,
                                    .tablets = tablets};
    message.finish = load_is_plain(load)                ? LOAD_FINISH_COMMIT
                     : load->history->kind == SIM_MULTI ? LOAD_FINISH_NONE
                                                        : LOAD_FINISH_PRECOMMIT;
    for (unsigned i = 0; i < SIM_BUCKETS; i++)
        tablets[i] = (struct load_report_tablet){
            .tablet = load->plan.tablets[i].tablet,
            .sealed = load->sealed[i],
            .rows = 1,
            .bytes = sim_content_bytes(load->plan.rowset),
            .digest = sim_content_digest(load->plan.tablets[i].tablet, load->plan.rowset)};
    struct buf head = BUF_INIT;
    msg_load_done_encode(&message, &head);
    if (load_is_plain(load))
        load_note_commit(load);
    load_call(load, sim_node(load->ingest), MSG_LOAD_DONE, &head, on_load_done);
}

/* One replica's copy of one tablet: pieces one after the other, the seal with the last. */
struct sim_write {
    struct sim_load *load;
    unsigned bucket, slot;
    uint32_t sent;
    struct buf content;
};

static void load_on_staged(struct sim_load *load)
{
    if (!load_is_alive(load)) {
        load_end(load);
        return;
    }
    if (load->history->kind == SIM_FAILS)
        load_fail(load);
    else
        load_report(load);
}

static void write_next(struct sim_write *write);

static void write_end(struct sim_write *write, bool sealed)
{
    struct sim_load *load = write->load;
    if (sealed)
        load->sealed[write->bucket] |= (uint8_t)(1u << write->slot);
    buf_close(&write->content);
    free(write);
    if (--load->staging == 0)
        load_on_staged(load);
}

static void on_written(void *data, int err, struct slice head, struct slice payload)
{
    struct sim_write *write = data;
    (void)head;
    (void)payload;
    if (err != 0 || !load_is_alive(write->load))
        write_end(write, false);
    else if (write->sent == write->content.len)
        write_end(write, true);
    else
        write_next(write);
}

static void write_next(struct sim_write *write)
{
    struct sim_load *load = write->load;
    struct sim_clients *clients = load->clients;
    const struct load_plan_tablet *tablet = &load->plan.tablets[write->bucket];
    struct sim_participant *target = &clients->participants[tablet->replicas[write->slot] - 1];
    struct msg_replicate message = {.sender = load->ingest + 1,
                                    .sender_epoch = load->epoch,
                                    .receiver = target->node,
                                    .txn = load->plan.txn,
                                    .rowset = load->plan.rowset,
                                    .table = load->plan.table};
    struct buf head = BUF_INIT;
    struct buf payload = BUF_INIT;
    write->sent +=
        sim_content_piece(&message, tablet->tablet, &write->content, write->sent, &head, &payload);
    sim_rpc_call(clients->net, sim_node(load->ingest), target, MSG_REPLICATE, &head, &payload,
                 SIM_WRITE_US_MAX, on_written, write);
}

static void on_write(void *data)
{
    struct sim_write *write = data;
    struct sim_net *net = write->load->clients->net;
    if (!load_is_alive(write->load) ||
        (!net->quiet && sim_world_chance(&net->world, SIM_MISSED_PERMILLE)))
        write_end(write, false);
    else
        write_next(write);
}

static void load_stage(struct sim_load *load)
{
    TG_CHECK(load->plan.bucket_count == SIM_BUCKETS);
    load->staging = 0;
    for (unsigned bucket = 0; bucket < SIM_BUCKETS; bucket++) {
        load->sealed[bucket] = 0;
        const struct load_plan_tablet *tablet = &load->plan.tablets[bucket];
        for (unsigned slot = 0; slot < tablet->replica_count; slot++) {
            if (((tablet->behind & ~tablet->catching) >> slot & 1) != 0)
                continue; /* behind: not sent to */
            struct sim_write *write = calloc(1, sizeof *write);
            TG_CHECK(write != NULL);
            write->load = load;
            write->bucket = bucket;
            write->slot = slot;
            sim_content_make(tablet->tablet, load->plan.rowset, &write->content);
            load->staging++;
            sim_world_after(&load->clients->net->world,
                            sim_world_between(&load->clients->net->world, 1, SIM_SPREAD_US_MAX),
                            on_write, write, NULL);
        }
    }
}

/* "Label already exists": if that one is finished, this client has what it wants. */
static void load_take_label(struct sim_load *load, struct slice head)
{
    struct msg_txn_begin_reply reply;
    msg_txn_begin_reply_init(&reply);
    if (msg_txn_begin_reply_decode(head, &reply) == 0 &&
        (reply.state == TXN_COMMITTED || reply.state == TXN_VISIBLE)) {
        load->history->txn = reply.txn;
        load->history->borrowed = true;
        load_tell_committed(load, reply.state);
    }
    msg_txn_begin_reply_close(&reply);
}

static void on_begun(void *data, int err, struct slice head)
{
    struct sim_load *load = data;
    if (!load_is_alive(load)) {
        load_end(load);
        return;
    }
    if (err == TG_TIMEOUT) {
        load_fail(load);
        return;
    }
    if (err == TG_LABEL_EXISTS)
        load_take_label(load, head);
    if (err != 0) {
        load_tell(load, TOLD_REFUSED);
        load_end(load);
        return;
    }
    msg_txn_begin_reply_init(&load->plan);
    TG_CHECK(msg_txn_begin_reply_decode(head, &load->plan) == 0);
    load->planned = true;
    load->history->txn = load->plan.txn;
    load_stage(load);
}

static void load_begin(struct sim_load *load)
{
    struct msg_txn_begin message = {.node = load->ingest + 1,
                                    .epoch = load->epoch,
                                    .join =
                                        load->history->kind == SIM_MULTI ? load->history->txn : 0,
                                    .two_phase = !load_is_plain(load),
                                    .timeout_ms = SIM_TXN_TIMEOUT_MS};
    load->request = load_is_alive(load) ? sim_participant_begin_load(load_participant(load)) : 0;
    if (load->request == 0) {
        load_end(load);
        return;
    }
    message.request_id = load->request;
    snprintf(message.db, sizeof message.db, "db");
    snprintf(message.table, sizeof message.table, "t%u", load->table);
    snprintf(message.user, sizeof message.user, "root");
    if (message.join == 0)
        snprintf(message.label, sizeof message.label, "%s%s", load->history->label,
                 load->renamed ? "_twin" : "");
    struct buf head = BUF_INIT;
    msg_txn_begin_encode(&message, &head);
    load_call(load, sim_node(load->ingest), MSG_TXN_BEGIN, &head, on_begun);
}

/* ---- the client's own requests ---- */

static void load_2pc(struct sim_load *load, const char *operation, sim_call_done *done)
{
    struct msg_txn_2pc message = {.request_hi = load->request_hi,
                                  .request_lo = load->request_lo++,
                                  .timeout_ms = SIM_TXN_TIMEOUT_MS,
                                  .wait_visible_ms = SIM_WAIT_VISIBLE_MS};
    snprintf(message.db, sizeof message.db, "db");
    snprintf(message.operation, sizeof message.operation, "%s", operation);
    snprintf(message.user, sizeof message.user, "root");
    if (strcmp(operation, "begin") == 0)
        snprintf(message.label, sizeof message.label, "%s", load->history->label);
    else
        snprintf(message.txn_text, sizeof message.txn_text, "%lu",
                 (unsigned long)load->history->txn);
    struct buf head = BUF_INIT;
    msg_txn_2pc_encode(&message, &head);
    if (strcmp(operation, "commit") == 0)
        load_note_commit(load);
    load_call(load, SIM_CLIENT, MSG_TXN_2PC, &head, done);
}

static void load_on_finished(struct sim_load *load, int err, struct slice head, enum sim_told told)
{
    struct msg_txn_2pc_reply reply;
    if (err == 0 && msg_txn_2pc_reply_decode(head, &reply) == 0 &&
        strcmp(reply.status, "Success") == 0) {
        if (told == TOLD_COMMITTED)
            load_tell_committed(load, reply.state);
        else
            load_tell(load, told);
    }
    if (--load->finishing == 0)
        load_end(load);
}

static void on_commit(void *data, int err, struct slice head)
{
    load_on_finished(data, err, head, TOLD_COMMITTED);
}

static void on_abort(void *data, int err, struct slice head)
{
    load_on_finished(data, err, head, TOLD_ABORTED);
}

static void on_thought(void *data)
{
    struct sim_load *load = data;
    enum sim_load_kind kind = load->history->kind;
    load->finishing = kind == SIM_RACE ? 2 : 1;
    if (kind == SIM_2PC || kind == SIM_RACE || kind == SIM_MULTI)
        load_2pc(load, "commit", on_commit);
    if (kind == SIM_ABORT || kind == SIM_RACE)
        load_2pc(load, "abort", on_abort);
}

static void load_finish(struct sim_load *load)
{
    if (load->history->kind == SIM_SILENT) {
        load_end(load);
        return;
    }
    sim_world_after(&load->clients->net->world,
                    sim_world_below(&load->clients->net->world, SIM_THINK_US_MAX), on_thought, load,
                    NULL);
}

static void on_begun_2pc(void *data, int err, struct slice head)
{
    struct sim_load *load = data;
    struct msg_txn_2pc_reply reply;
    if (err != 0 || msg_txn_2pc_reply_decode(head, &reply) != 0 ||
        strcmp(reply.status, "Success") != 0) {
        load_end(load);
        return;
    }
    load->history->txn = reply.txn;
    load_begin(load);
}

static struct sim_load *load_open(struct sim_clients *clients, enum sim_load_kind kind,
                                  unsigned ingest, uint32_t label)
{
    struct sim_world *world = &clients->net->world;
    struct sim_load *load = calloc(1, sizeof *load);
    TG_CHECK(load != NULL);
    load->clients = clients;
    load->history = &clients->history[clients->count++];
    load->history->kind = kind;
    load->history->label_number = label;
    snprintf(load->history->label, sizeof load->history->label, "label_%u", label);
    load->ingest = ingest;
    load->epoch = clients->participants[ingest].epoch;
    load->request_hi = sim_world_between(world, 1, UINT64_MAX / 2);
    load->request_lo = 1;
    load->next = clients->loads;
    if (load->next != NULL)
        load->next->prev = load;
    clients->loads = load;
    clients->under_way++;
    load->table = kind == SIM_MULTI ? 0 : (unsigned)sim_world_below(world, SIM_TABLES);
    return load;
}

static void on_retry(void *data)
{
    struct sim_retry retry = *(struct sim_retry *)data;
    struct sim_clients *clients = retry.clients;
    unsigned ingest = (unsigned)sim_world_below(&clients->net->world, SIM_PARTICIPANTS);
    free(data);
    clients->under_way--;
    if (clients->net->quiet || clients->count + 2 > SIM_LOADS_MAX ||
        clients->participants[ingest].epoch == 0)
        return;
    struct sim_load *load = load_open(clients, SIM_PLAIN, ingest, retry.label);
    load->table = retry.table;
    load_begin(load);
}

void sim_clients_load(struct sim_clients *clients)
{
    struct sim_world *world = &clients->net->world;
    unsigned ingest = (unsigned)sim_world_below(world, SIM_PARTICIPANTS);
    enum sim_load_kind kind = (enum sim_load_kind)sim_world_below(world, SIM_KINDS);
    uint32_t label = clients->count;
    if (clients->net->quiet || clients->count + 2 > SIM_LOADS_MAX ||
        clients->participants[ingest].epoch == 0)
        return;
    struct sim_load *load = load_open(clients, kind, ingest, label);
    unsigned table = load->table;
    if (kind == SIM_MULTI)
        load_2pc(load, "begin", on_begun_2pc);
    else
        load_begin(load);
    unsigned other = (unsigned)sim_world_below(world, SIM_PARTICIPANTS);
    if (kind != SIM_TWIN || clients->participants[other].epoch == 0)
        return;
    load = load_open(clients, kind, other, label);
    load->table = table;
    load->renamed = clients->net->options->mutant == MUTANT_LABELS_TWICE;
    load_begin(load);
}

/* ---- all of them ---- */

struct sim_clients *sim_clients_open(struct sim_net *net, struct sim_coordinator **coordinators,
                                     struct sim_participant *participants, struct sim_check *check)
{
    struct sim_clients *clients = calloc(1, sizeof *clients);
    TG_CHECK(clients != NULL);
    clients->net = net;
    clients->coordinators = coordinators;
    clients->participants = participants;
    clients->check = check;
    clients->history = calloc(SIM_LOADS_MAX, sizeof *clients->history);
    TG_CHECK(clients->history != NULL);
    return clients;
}

void sim_clients_close(struct sim_clients *clients)
{
    for (struct sim_load *load = clients->loads, *next; load != NULL; load = next) {
        next = load->next;
        load_drop_plan(load);
        free(load);
    }
    free(clients->history);
    free(clients);
}

uint32_t sim_clients_under_way(const struct sim_clients *clients)
{
    return clients->under_way;
}

const struct sim_history *sim_clients_history(const struct sim_clients *clients, uint32_t *count)
{
    *count = clients->count;
    return clients->history;
}
