/* SPDX-License-Identifier: Apache-2.0 */
/* A load's side of its transaction. All calls are idempotent by request id, so they are made in
 * short attempts, with a look in between whether the load must end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mutant.h"
#include "common/proto/message.h"
#include "participant/ingest/load_run.h"

#define FROM_COORDINATOR "TStatus: errCode = 2, detailMessage = "

enum { VISIBLE_CALL_MS = 2 * LOAD_VISIBLE_SLICE_MS + 1000 };

static uint64_t now_ms(const struct load_run *run)
{
    return clock_monotonic_ms(run->context->clock);
}

/* One attempt of at most attempt_ms. head is left as it is. */
static int attempt(struct load_run *run, uint16_t type, const struct buf *head, uint64_t attempt_ms,
                   struct buf *reply, struct tg_errmsg *msg)
{
    const struct load_calls *calls = run->context->calls;
    struct buf copy = BUF_INIT;

    buf_append(&copy, head->data, head->len);
    if (copy.err != 0)
        return TG_NOMEM;
    buf_clear(reply);
    msg->text[0] = 0;
    int err = calls->coordinator(calls->ctx, type, &copy, attempt_ms, attempt_ms, reply, msg);
    buf_close(&copy);
    return err;
}

static bool is_unknown(int err)
{
    return err == TG_TIMEOUT || err == TG_UNKNOWN_OUTCOME || err == TG_CLOSED ||
           err == TG_NOT_LEADER || err == TG_UNREACHABLE;
}

/* Attempts until the outcome is known, the deadline, or (heed_stop) the load must end: then
 * TG_UNKNOWN_OUTCOME, with the reason in run->msg. */
static int call_until(struct load_run *run, uint16_t type, const struct buf *head,
                      uint64_t deadline_ms, bool heed_stop, struct buf *reply,
                      struct tg_errmsg *msg)
{
    for (;;) {
        uint64_t now = now_ms(run);
        if (now >= deadline_ms) {
            tg_fail(msg, TG_TIMEOUT, "[TIMEOUT]no leading coordinator answered in time");
            return TG_UNKNOWN_OUTCOME;
        }
        uint64_t left = deadline_ms - now;
        int err = attempt(run, type, head, left < LOAD_CALL_MS ? left : LOAD_CALL_MS, reply, msg);
        if (err == TG_CANCELED) { /* the connection to the coordinators is being closed */
            tg_fail(msg, err, "[CANCELLED]the node shuts down");
            return TG_UNKNOWN_OUTCOME;
        }
        if (!is_unknown(err))
            return err;
        if (heed_stop && load_run_check(run, msg) != 0)
            return TG_UNKNOWN_OUTCOME;
    }
}

/* ---- begin ---- */

/* The client's message for a refusal: the coordinators' sentence with Doris's frame around it. */
static void frame_refusal(struct load_run *run, int err, const struct tg_errmsg *sentence)
{
    const char *text = sentence->text[0] != 0 ? sentence->text : tg_err_sentence(err);

    if (text[0] == '[')
        tg_fail(&run->msg, err, "%s", text);
    else if (err == TG_NOT_FOUND)
        tg_fail(&run->msg, err, "[NOT_FOUND]TStatus: errCode = 7, detailMessage = %.400s", text);
    else if (err == TG_NOMEM)
        tg_fail(&run->msg, err, "[INTERNAL_ERROR]out of memory");
    else
        tg_fail(&run->msg, err, "[ANALYSIS_ERROR]" FROM_COORDINATOR "%.400s", text);
}

static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = strnlen(from, size - 1);

    memcpy(to, from, len);
    to[len] = 0;
}

int load_txn_begin_message(struct load_run *run, struct buf *head)
{
    const struct load_options *options = run->options;
    struct msg_txn_begin message = {.node = run->node,
                                    .epoch = run->epoch,
                                    .request_id = run->live.id,
                                    .join = options->join,
                                    .two_phase = options->two_phase_commit,
                                    .timeout_ms = options->timeout_ms};

    if (strlen(run->request->db) >= NAME_BYTES || strlen(run->request->table) >= NAME_BYTES)
        return tg_fail(&run->msg, TG_NOT_FOUND,
                       "[NOT_FOUND]TStatus: errCode = 7, detailMessage = table not found, "
                       "tableName=%.100s",
                       run->request->table);
    copy_text(message.db, sizeof message.db, run->request->db);
    copy_text(message.table, sizeof message.table, run->request->table);
    copy_text(message.label, sizeof message.label, options->label);
    copy_text(message.user, sizeof message.user, run->request->user);
    msg_txn_begin_encode(&message, head);
    return head->err != 0 ? tg_fail(&run->msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory") : 0;
}

/* Asks until there is an answer. */
static int ask_begin(struct load_run *run, struct buf *reply, struct tg_errmsg *sentence)
{
    struct buf head = BUF_INIT;
    int err = load_txn_begin_message(run, &head);

    if (err != 0)
        tg_fail(sentence, err, "%s", run->msg.text);
    else
        err = call_until(run, MSG_TXN_BEGIN, &head, run->deadline_ms, true, reply, sentence);
    buf_close(&head);
    return err;
}

int load_txn_begin(struct load_run *run)
{
    struct buf reply = run->begin_reply;
    struct tg_errmsg sentence = {{0}};
    int err = 0;

    buf_init(&run->begin_reply);
    if (reply.len == 0)
        err = ask_begin(run, &reply, &sentence);
    bool has_reply = (err == 0 || err == TG_LABEL_EXISTS) &&
                     msg_txn_begin_reply_decode(slice_of(reply.data, reply.len), &run->plan) == 0;
    buf_close(&reply);
    if (err == 0 && !has_reply)
        err = TG_UNKNOWN_OUTCOME;
    if (err == TG_LABEL_EXISTS) {
        run->result->existing = run->plan.state;
        tg_fail(&run->msg, err,
                "[LABEL_ALREADY_EXISTS]" FROM_COORDINATOR
                "Label [%s] has already been used, relate to txn [%" PRIu64 "], status [%s].",
                run->options->label, run->plan.txn, txn_state_name(run->plan.state));
        return err;
    }
    if (err != 0) {
        frame_refusal(run, err, &sentence);
        return err;
    }
    run->begun = true;
    run->result->txn = run->plan.txn;
    copy_text(run->result->label, sizeof run->result->label, run->plan.label);
    return 0;
}

/* ---- done ---- */

static int make_report(struct load_run *run, struct msg_load_done *message)
{
    struct tablet_router *router = &run->router;

    message->tablets = calloc((size_t)router->touched_count + 1, sizeof *message->tablets);
    if (message->tablets == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < router->touched_count; i++) {
        uint32_t bucket = router->touched[i];
        const struct rowset_meta *meta = tablet_router_meta(router, bucket);
        message->tablets[message->tablet_count++] =
            (struct load_report_tablet){.tablet = meta->tablet,
                                        .sealed = replicator_sealed(run->replicator, bucket),
                                        .rows = meta->rows,
                                        .bytes = meta->bytes,
                                        .digest = meta->digest};
    }
    return 0;
}

static enum load_finish finish_of(const struct load_options *options)
{
    if (options->join != 0)
        return LOAD_FINISH_NONE;
    return options->two_phase_commit ? LOAD_FINISH_PRECOMMIT : LOAD_FINISH_COMMIT;
}

/* Committed: waits for VISIBLE by asking again. What is not learned in time is "not yet". */
static void wait_visible(struct load_run *run, struct msg_txn_reply *state)
{
    struct msg_load_done *message = &run->done;
    uint64_t end = now_ms(run) + run->context->publish_wait_ms;
    struct tg_errmsg msg;
    struct buf head = BUF_INIT;
    struct buf reply = BUF_INIT;

    while (state->state != TXN_VISIBLE && !atomic_load(&run->context->closing)) {
        uint64_t now = now_ms(run);
        uint64_t left = end > now ? end - now : 0;
        if (left == 0 || now >= run->deadline_ms)
            break;
        message->wait_visible_ms = left < LOAD_VISIBLE_SLICE_MS ? left : LOAD_VISIBLE_SLICE_MS;
        buf_clear(&head);
        msg_load_done_encode(message, &head);
        int err = head.err != 0 ? TG_NOMEM
                                : attempt(run, MSG_LOAD_DONE, &head, VISIBLE_CALL_MS, &reply, &msg);
        struct msg_txn_reply next;
        if (err == TG_CANCELED || err == TG_NOMEM)
            break;
        if (err == 0 && msg_txn_reply_decode(slice_of(reply.data, reply.len), &next) == 0)
            *state = next;
    }
    buf_close(&head);
    buf_close(&reply);
}

/* What a state of the transaction means for the answer. False: it is no success. */
static bool take_state(struct load_run *run, enum txn_state state)
{
    struct load_result *result = run->result;
    enum load_finish finish = finish_of(run->options);

    if (state == TXN_VISIBLE || (finish == LOAD_FINISH_NONE && state == TXN_PREPARE) ||
        (finish != LOAD_FINISH_COMMIT && (state == TXN_PRECOMMITTED || state == TXN_COMMITTED))) {
        result->status = LOAD_SUCCESS;
        copy_text(result->message, sizeof result->message, "OK");
    } else if (state == TXN_COMMITTED) {
        result->status = LOAD_PUBLISH_TIMEOUT;
        copy_text(result->message, sizeof result->message,
                  "[PUBLISH_TIMEOUT]TStatus: transaction commit successfully, BUT data will be "
                  "visible later");
    } else {
        return false;
    }
    result->loaded_rows = run->done.rows;
    return true;
}

int load_txn_make_done(struct load_run *run)
{
    run->done = (struct msg_load_done){.node = run->node,
                                       .epoch = run->epoch,
                                       .request_id = run->live.id,
                                       .txn = run->plan.txn,
                                       .rowset = run->plan.rowset,
                                       .placement_epoch = run->plan.placement_epoch,
                                       .finish = finish_of(run->options),
                                       .rows = run->router.rows,
                                       .bytes = run->source->received};
    if (run->done.finish == LOAD_FINISH_COMMIT && run->context->publish_wait_ms > 0)
        run->done.wait_visible_ms = LOAD_VISIBLE_SLICE_MS;
    return make_report(run, &run->done);
}

int load_txn_done_message(const struct load_run *run, struct buf *head)
{
    msg_load_done_encode(&run->done, head);
    return head->err;
}

bool load_txn_done_reply(struct load_run *run, struct slice head)
{
    struct msg_txn_reply state;

    if (msg_txn_reply_decode(head, &state) != 0)
        return false;
    /* Committed only: whoever may wait asks until it is visible. */
    if (finish_of(run->options) == LOAD_FINISH_COMMIT && state.state == TXN_COMMITTED)
        return false;
    return take_state(run, state.state);
}

int load_txn_done(struct load_run *run)
{
    struct buf head = BUF_INIT;
    struct buf reply = BUF_INIT;
    struct msg_txn_reply state = {0};
    struct tg_errmsg sentence = {{0}};
    int err = load_txn_done_message(run, &head);

    if (err == 0)
        err = call_until(run, MSG_LOAD_DONE, &head, run->deadline_ms, true, &reply, &sentence);
    if (err == 0 && msg_txn_reply_decode(slice_of(reply.data, reply.len), &state) != 0)
        err = TG_UNKNOWN_OUTCOME;
    if (err == 0 && run->done.finish == LOAD_FINISH_COMMIT && state.state == TXN_COMMITTED)
        wait_visible(run, &state);
    buf_close(&head);
    buf_close(&reply);
    if (err != 0) {
        frame_refusal(run, err, &sentence);
        return err;
    }
    if (take_state(run, state.state))
        return 0;
    return tg_fail(&run->msg, TG_TXN_STATE,
                   "[ANALYSIS_ERROR]" FROM_COORDINATOR "transaction [%" PRIu64 "] is %s",
                   run->plan.txn, txn_state_name(state.state));
}

/* ---- failed ---- */

/* Until when the coordinators are asked. A load that was told to stop has to be quick; one that
 * failed by itself goes on until its deadline (rule 11). */
static uint64_t fail_deadline(struct load_run *run)
{
    uint64_t soon = now_ms(run) + LOAD_FAIL_MS;
    bool hurry = atomic_load(&run->live.stopped) || atomic_load(&run->context->closing);

    return hurry || run->deadline_ms < soon ? soon : run->deadline_ms;
}

void load_txn_fail(struct load_run *run)
{
    struct msg_load_failed message = {.node = run->node,
                                      .epoch = run->epoch,
                                      .request_id = run->live.id,
                                      .txn = run->begun ? run->plan.txn : 0,
                                      .rowset = run->begun ? run->plan.rowset : 0};
    struct load_result *result = run->result;
    struct buf head = BUF_INIT;
    struct buf reply = BUF_INIT;
    struct msg_txn_reply state = {0};
    struct tg_errmsg sentence = {{0}};

    copy_text(message.reason, sizeof message.reason, run->msg.text);
    msg_load_failed_encode(&message, &head);
    int err = head.err != 0 ? TG_NOMEM
                            : call_until(run, MSG_LOAD_FAILED, &head, fail_deadline(run), false,
                                         &reply, &sentence);
    if (err == 0 && msg_txn_reply_decode(slice_of(reply.data, reply.len), &state) != 0)
        err = TG_UNKNOWN_OUTCOME;
    buf_close(&head);
    buf_close(&reply);
    if (err == 0 && run->begun && take_state(run, state.state))
        return; /* an earlier report that nobody answered was heard after all */
    bool is_over = (err == 0 && (state.state == TXN_ABORTED || state.state == TXN_UNKNOWN)) ||
                   err == TG_TXN_NOT_FOUND || err == TG_TXN_ABORTED || MUTANT(4);
    result->status = is_over ? LOAD_FAIL : LOAD_UNKNOWN;
    copy_text(result->message, sizeof result->message, run->msg.text);
    if (!is_over)
        log_warn("load", "outcome unknown txn=%" PRIu64 " label=%s err=%s", message.txn,
                 run->options->label, tg_err_name(err));
}
