/* SPDX-License-Identifier: Apache-2.0 */
/* One load from begin to result. */
#include "participant/ingest/stream_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "participant/ingest/load_run.h"

static uint64_t now_ms(const struct load_run *run)
{
    return clock_monotonic_ms(run->context->clock);
}

int load_run_check(struct load_run *run, struct tg_errmsg *msg)
{
    if (atomic_load(&run->context->closing))
        return tg_fail(msg, TG_CANCELED, "[CANCELLED]the node shuts down");
    if (atomic_load(&run->live.stopped))
        return tg_fail(msg, TG_CANCELED,
                       "[CANCELLED]the load was stopped: its transaction is over");
    if (now_ms(run) >= run->deadline_ms)
        return tg_fail(msg, TG_TIMEOUT, "[TIMEOUT]load timed out after %" PRIu64 " ms",
                       run->options->timeout_ms);
    return 0;
}

static void on_stop(struct live_request *live)
{
    struct load_run *run = live->data;

    if (run->stop_wake != NULL)
        run->stop_wake(run->stop_ctx);
}

static void say(struct load_run *run, enum load_status status)
{
    run->result->status = status;
    snprintf(run->result->message, sizeof run->result->message, "%s", run->msg.text);
}

/* Everything between begin and the transaction's fate. */
static void run_begun(struct load_run *run)
{
    uint64_t began = now_ms(run);
    int err = load_body_run(run);

    run->result->write_ms = now_ms(run) - began - run->result->read_ms;
    if (err == 0) {
        began = now_ms(run);
        err = load_txn_done(run);
        if (!run->options->two_phase_commit)
            run->result->commit_ms = now_ms(run) - began;
    }
    if (err != 0)
        load_txn_fail(run);
}

static void run_live(struct load_run *run)
{
    int err = load_txn_begin(run);

    run->result->begin_ms = now_ms(run) - run->start_ms;
    if (err == 0)
        run_begun(run);
    else if (err == TG_LABEL_EXISTS)
        say(run, LOAD_LABEL_EXISTS);
    else if (err == TG_UNKNOWN_OUTCOME)
        load_txn_fail(run);
    else
        say(run, LOAD_FAIL);
}

static void finish(struct load_run *run)
{
    struct load_result *result = run->result;
    const char *file = error_log_finish(&run->log);

    if (file != NULL)
        snprintf(result->error_file, sizeof result->error_file, "%s", file);
    if (result->status == LOAD_FAIL)
        snprintf(result->first_error, sizeof result->first_error, "%s", run->log.first);
    result->total_rows = run->converter.total;
    result->filtered_rows = run->converter.filtered;
    result->bytes = run->source->received;
    result->load_ms = now_ms(run) - run->start_ms;
    replicator_close(run->replicator);
    tablet_router_close(&run->router);
    row_converter_close(&run->converter);
    row_mapping_close(&run->mapping);
    msg_txn_begin_reply_close(&run->plan);
    error_log_close(&run->log);
}

static void log_end(const struct load_run *run)
{
    static const char *const NAMES[] = {"success", "publish_timeout", "label_exists", "fail",
                                        "unknown"};
    const struct load_result *r = run->result;

    log_info("load",
             "end status=%s txn=%" PRIu64 " label=%s table=%s.%s rows=%" PRIu64 " filtered=%" PRIu64
             " bytes=%" PRIu64 " ms=%" PRIu64 " message=%s",
             NAMES[r->status], r->txn, run->options->label, run->request->db, run->request->table,
             r->loaded_rows, r->filtered_rows, r->bytes, r->load_ms, log_quote(r->message));
}

enum load_status stream_load_run(struct stream_load_context *context,
                                 const struct load_request *request, struct load_source *source,
                                 void (*stop_wake)(void *ctx), void *ctx,
                                 struct load_result *result)
{
    struct load_run run = {.context = context,
                           .request = request,
                           .options = request->options,
                           .source = source,
                           .result = result,
                           .live = {.on_stop = on_stop},
                           .stop_wake = stop_wake,
                           .stop_ctx = ctx,
                           .mapping = {.sign_field = -1}};

    *result = (struct load_result){.status = LOAD_FAIL};
    run.live.data = &run;
    run.start_ms = now_ms(&run);
    run.deadline_ms = run.start_ms + request->options->timeout_ms;
    run.node = atomic_load(&context->identity->node);
    run.epoch = atomic_load(&context->identity->epoch);
    msg_txn_begin_reply_init(&run.plan);
    error_log_init(&run.log, context->errors);
    atomic_fetch_add(&context->active, 1);
    if (run.node == 0) {
        tg_fail(&run.msg, TG_BUSY, "[INTERNAL_ERROR]this node has not joined its cluster yet");
        say(&run, LOAD_FAIL);
    } else if (live_requests_begin(context->live, &run.live) != 0) {
        tg_fail(&run.msg, TG_LIMIT, "[INTERNAL_ERROR]too many loads run on this node");
        say(&run, LOAD_FAIL);
    } else {
        run_live(&run);
        live_requests_end(context->live, &run.live);
    }
    atomic_fetch_sub(&context->active, 1);
    finish(&run);
    log_end(&run);
    return result->status;
}
