/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions on the leader.
 *
 * Every call becomes one command (a two-phase request that names no transaction becomes a barrier,
 * so that even "not found" is the log's word). When it was applied, the call is answered, or, for
 * commits that want it, joins the list of those that wait until their transaction is VISIBLE. */
#include "coordinator/txn/txn_manager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "coordinator/txn/txn_2pc.h"
#include "coordinator/txn/txn_plan.h"

struct txn_call {
    struct consensus_request request;
    struct txn_manager *manager; /* NULL once nobody may be told any more */
    struct txn_call *prev, *next;
    txn_manager_done *done;
    void *data;
    struct command command;
    struct msg_txn_2pc message; /* of a two-phase call */
    struct txn_2pc_target target;
    txn_id txn; /* waits for this one, … */
    table_id table;
    uint64_t until_ms; /* … until then */
    bool waits;
};

struct txn_manager {
    struct consensus *consensus;
    struct clock *clock;
    struct txn_call *calls;
    uint32_t call_count;
};

int txn_manager_open(struct consensus *consensus, struct clock *clock, struct txn_manager **manager)
{
    struct txn_manager *m = calloc(1, sizeof *m);

    if (m == NULL)
        return TG_NOMEM;
    m->consensus = consensus;
    m->clock = clock;
    *manager = m;
    return 0;
}

/* The call leaves the list; its memory goes here. */
static void end(struct txn_call *call, int err, const char *sentence, struct slice head)
{
    struct txn_manager *m = call->manager;

    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        m->calls = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    m->call_count--;
    call->done(call->data, err, sentence, head);
    command_close(&call->command);
    free(call);
}

static void end_plain(struct txn_call *call, int err, const char *sentence)
{
    end(call, err, sentence[0] != 0 ? sentence : tg_err_sentence(err), slice_of(NULL, 0));
}

static struct txn_call *new_call(struct txn_manager *m, txn_manager_done *done, void *data)
{
    struct txn_call *call = calloc(1, sizeof *call);

    TG_CHECK_MEMORY(call != NULL);
    call->manager = m;
    call->done = done;
    call->data = data;
    call->request.data = call;
    call->next = m->calls;
    if (m->calls != NULL)
        m->calls->prev = call;
    m->calls = call;
    m->call_count++;
    return call;
}

/* Proposals own their requests until they are done, so a manager that closes leaves those calls to
 * end in silence. */
static bool is_orphan(struct txn_call *call)
{
    if (call->manager != NULL)
        return false;
    command_close(&call->command);
    free(call);
    return true;
}

void txn_manager_close(struct txn_manager *manager)
{
    struct txn_call *next;

    if (manager == NULL)
        return;
    for (struct txn_call *call = manager->calls; call != NULL; call = next) {
        next = call->next;
        if (call->waits) {
            end_plain(call, TG_NOT_LEADER, "the coordinator shuts down");
            continue;
        }
        call->done(call->data, TG_UNKNOWN_OUTCOME, "the coordinator shuts down", slice_of(NULL, 0));
        call->manager = NULL;
    }
    free(manager);
}

static const struct state *state_of(const struct txn_call *call)
{
    return consensus_state(call->manager->consensus);
}

static void propose(struct txn_call *call,
                    void (*done)(struct consensus_request *, int, const struct apply_result *))
{
    call->request.done = done;
    consensus_propose(call->manager->consensus, &call->command, &call->request);
}

static uint64_t wait_until(const struct txn_manager *m, uint64_t wait_ms)
{
    return clock_monotonic_ms(m->clock) +
           (wait_ms < TXN_WAIT_VISIBLE_MS_MAX ? wait_ms : TXN_WAIT_VISIBLE_MS_MAX);
}

/* ---- begin ---- */

static void begin_applied(struct consensus_request *request, int err,
                          const struct apply_result *result)
{
    struct txn_call *call = request->data;
    struct msg_txn_begin_reply reply;
    struct buf head = BUF_INIT;
    const char *sentence = "";

    if (is_orphan(call))
        return;
    if (err != 0) {
        end_plain(call, err, "");
        return;
    }
    msg_txn_begin_reply_init(&reply);
    reply.txn = result->txn;
    reply.state = result->txn_state;
    err = result->err;
    sentence = result->msg.text;
    if (err == 0) {
        const struct txn *txn = txn_table_find(&state_of(call)->txns, result->txn);

        /* A repeated begin whose transaction ended meanwhile has no plan any more. */
        if (txn == NULL || txn->state == TXN_ABORTED) {
            err = TG_TXN_ABORTED;
            sentence = txn != NULL && txn->reason != NULL ? txn->reason : "transaction is aborted";
        } else {
            err = txn_plan_fill(state_of(call), txn, result->rowset, &reply);
            sentence = tg_err_sentence(err);
        }
    }
    msg_txn_begin_reply_encode(&reply, &head);
    end(call, err, err == 0 ? "" : sentence, slice_of(head.data, head.len));
    msg_txn_begin_reply_close(&reply);
    buf_close(&head);
}

static struct txn_call *open_call(struct txn_manager *m, txn_manager_done *done, void *data,
                                  enum command_type type)
{
    struct txn_call *call = new_call(m, done, data);

    call->command.type = type;
    return call;
}

void txn_manager_begin(struct txn_manager *m, const struct msg_txn_begin *message,
                       txn_manager_done *done, void *data)
{
    struct request_key key = {message->node, message->epoch, message->request_id};
    struct txn_call *call;

    if (message->join != 0) {
        call = open_call(m, done, data, COMMAND_LOAD_START);
        call->command.load_start = (struct command_load_start){.key = key, .txn = message->join};
        memcpy(call->command.load_start.db, message->db, sizeof message->db);
        memcpy(call->command.load_start.table, message->table, sizeof message->table);
    } else {
        call = open_call(m, done, data, COMMAND_TXN_BEGIN);
        struct command_begin *begin = &call->command.begin;
        begin->key = key;
        memcpy(begin->db, message->db, sizeof begin->db);
        memcpy(begin->table, message->table, sizeof begin->table);
        memcpy(begin->label, message->label, sizeof begin->label);
        memcpy(begin->user, message->user, sizeof begin->user);
        begin->two_phase = message->two_phase;
        begin->timeout_ms = message->timeout_ms != 0 ? message->timeout_ms
                                                     : state_of(call)->limits.prepare_timeout_ms;
    }
    propose(call, begin_applied);
}

/* ---- outcomes ---- */

static void fill_reply(const struct state *state, txn_id id, table_id table,
                       struct msg_txn_reply *reply)
{
    const struct txn *txn = txn_table_find(&state->txns, id);

    memset(reply, 0, sizeof *reply);
    reply->txn = id;
    if (txn == NULL)
        return;
    reply->state = (enum txn_state)txn->state;
    reply->version = txn_table_version(txn, table);
    reply->visible_us = txn->state == TXN_VISIBLE ? txn->visible_us : 0;
}

static void end_with_state(struct txn_call *call, int err, const char *sentence)
{
    struct buf head = BUF_INIT;

    if (call->message.operation[0] != 0) {
        struct msg_txn_2pc_reply reply;
        const struct txn *txn = txn_table_find(&state_of(call)->txns, call->txn);

        txn_2pc_answer(&call->message, &call->target, err, sentence, call->txn, &reply);
        reply.state = txn != NULL ? (enum txn_state)txn->state : TXN_UNKNOWN;
        msg_txn_2pc_reply_encode(&reply, &head);
        err = 0;
        sentence = "";
    } else {
        struct msg_txn_reply reply;

        fill_reply(state_of(call), call->txn, call->table, &reply);
        msg_txn_reply_encode(&reply, &head);
    }
    end(call, err, sentence, slice_of(head.data, head.len));
    buf_close(&head);
}

/* True if the answer is due: the transaction is not on its way to VISIBLE, or the time is over. */
static bool is_due(const struct txn_call *call, uint64_t now_ms)
{
    const struct txn *txn = txn_table_find(&state_of(call)->txns, call->txn);

    return txn == NULL || txn->state != TXN_COMMITTED || now_ms >= call->until_ms;
}

static void answer_or_wait(struct txn_call *call)
{
    if (is_due(call, clock_monotonic_ms(call->manager->clock)))
        end_with_state(call, 0, "");
    else
        call->waits = true;
}

void txn_manager_run(struct txn_manager *m)
{
    uint64_t now = clock_monotonic_ms(m->clock);
    struct txn_call *next;

    for (struct txn_call *call = m->calls; call != NULL; call = next) {
        next = call->next;
        if (call->waits && is_due(call, now))
            end_with_state(call, 0, "");
    }
}

void txn_manager_lost(struct txn_manager *m)
{
    struct txn_call *next;

    for (struct txn_call *call = m->calls; call != NULL; call = next) {
        next = call->next;
        if (call->waits)
            end_plain(call, TG_NOT_LEADER, "");
    }
}

/* ---- loads ---- */

static void load_applied(struct consensus_request *request, int err,
                         const struct apply_result *result)
{
    struct txn_call *call = request->data;

    FAILPOINT(call->command.load_done.message.finish == LOAD_FINISH_COMMIT
                  ? "coord.commit_applied_before_reply"
                  : "coord.precommit_applied");
    if (is_orphan(call))
        return;
    if (err != 0)
        end_plain(call, err, "");
    else if (result->err != 0)
        end_with_state(call, result->err, result->msg.text);
    else if (call->command.type == COMMAND_LOAD_DONE &&
             call->command.load_done.message.finish == LOAD_FINISH_COMMIT)
        answer_or_wait(call);
    else
        end_with_state(call, 0, "");
}

static void copy_report(const struct msg_load_done *from, struct msg_load_done *to)
{
    *to = *from;
    to->tablets = calloc(from->tablet_count + 1, sizeof *to->tablets);
    TG_CHECK_MEMORY(to->tablets != NULL);
    if (from->tablet_count > 0)
        memcpy(to->tablets, from->tablets, from->tablet_count * sizeof *to->tablets);
}

void txn_manager_load_done(struct txn_manager *m, const struct msg_load_done *message,
                           txn_manager_done *done, void *data)
{
    struct txn_call *call = open_call(m, done, data, COMMAND_LOAD_DONE);
    const struct txn *txn = txn_table_find(&state_of(call)->txns, message->txn);
    const struct txn_load *load = txn != NULL ? txn_find_load(txn, message->rowset) : NULL;

    call->txn = message->txn;
    call->table = load != NULL ? load->table : 0;
    call->until_ms = wait_until(m, message->wait_visible_ms);
    copy_report(message, &call->command.load_done.message);
    propose(call, load_applied);
}

void txn_manager_load_failed(struct txn_manager *m, const struct msg_load_failed *message,
                             txn_manager_done *done, void *data)
{
    struct txn_call *call = open_call(m, done, data, COMMAND_LOAD_FAILED);
    struct command_load_failed *failed = &call->command.load_failed;

    call->txn = message->txn;
    failed->key = (struct request_key){message->node, message->epoch, message->request_id};
    failed->txn = message->txn;
    failed->rowset = message->rowset;
    snprintf(failed->reason, sizeof failed->reason, "%s", message->reason);
    propose(call, load_applied);
}

/* ---- two-phase requests of clients ---- */

static void finish_applied(struct consensus_request *request, int err,
                           const struct apply_result *result)
{
    struct txn_call *call = request->data;

    FAILPOINT(call->target.operation == TXN_2PC_COMMIT ? "coord.commit_applied_before_reply"
                                                       : "coord.precommit_applied");
    if (is_orphan(call))
        return;
    if (err != 0) {
        end_plain(call, err, "");
        return;
    }
    if (call->target.operation == TXN_2PC_BEGIN || result->txn != 0)
        call->txn = result->txn;
    if (result->err == 0 && call->target.operation == TXN_2PC_COMMIT)
        answer_or_wait(call);
    else
        end_with_state(call, result->err, result->msg.text);
}

static void propose_2pc(struct txn_call *call)
{
    static const enum command_type types[] = {COMMAND_TXN_BEGIN, COMMAND_TXN_PRECOMMIT,
                                              COMMAND_TXN_COMMIT, COMMAND_TXN_ABORT};
    const struct msg_txn_2pc *message = &call->message;
    struct request_key key = {0, message->request_hi, message->request_lo};

    call->command.type = types[call->target.operation];
    call->txn = call->target.txn;
    if (call->target.operation == TXN_2PC_BEGIN) {
        struct command_begin *begin = &call->command.begin;

        begin->key = key;
        memcpy(begin->db, message->db, sizeof begin->db);
        memcpy(begin->label, message->label, sizeof begin->label);
        memcpy(begin->user, message->user, sizeof begin->user);
        begin->two_phase = true;
        begin->timeout_ms = message->timeout_ms != 0 ? message->timeout_ms
                                                     : state_of(call)->limits.prepare_timeout_ms;
    } else {
        struct command_finish *finish = &call->command.finish;

        finish->key = key;
        finish->txn = call->target.txn;
        finish->db = call->target.db;
        if (call->target.operation == TXN_2PC_ABORT)
            snprintf(finish->reason, sizeof finish->reason, "User Abort");
    }
    propose(call, finish_applied);
}

/* Behind a barrier: what the state says now is what the log says. */
static void resolve_again(struct consensus_request *request, int err,
                          const struct apply_result *result)
{
    struct txn_call *call = request->data;
    struct msg_txn_2pc_reply reply;

    (void)result;
    if (is_orphan(call))
        return;
    if (err != 0) {
        end_plain(call, err, "");
        return;
    }
    if (txn_2pc_resolve(state_of(call), &call->message, &call->target, &reply)) {
        propose_2pc(call);
        return;
    }
    struct buf head = BUF_INIT;
    msg_txn_2pc_reply_encode(&reply, &head);
    end(call, 0, "", slice_of(head.data, head.len));
    buf_close(&head);
}

void txn_manager_2pc(struct txn_manager *m, const struct msg_txn_2pc *message,
                     txn_manager_done *done, void *data)
{
    struct txn_call *call = new_call(m, done, data);
    struct msg_txn_2pc_reply reply;

    call->message = *message;
    call->until_ms = wait_until(m, message->wait_visible_ms);
    if (txn_2pc_resolve(state_of(call), message, &call->target, &reply)) {
        propose_2pc(call);
        return;
    }
    call->command.type = COMMAND_FORGET; /* nothing to close */
    call->request.done = resolve_again;
    consensus_barrier(m->consensus, 0, &call->request);
}
