/* SPDX-License-Identifier: Apache-2.0 */
/* One load from begin to result. */
#include "participant/ingest/stream_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

int load_run_no_memory(struct load_run *run, size_t want)
{
    struct load_memory *memory = &run->context->memory;

    atomic_fetch_add(&memory->refused, 1);
    return tg_fail(
        &run->msg, TG_NOMEM,
        "[INTERNAL_ERROR]memory limit exceeded: the loads of this node hold %llu of %llu "
        "bytes (loads_memory_bytes), and this one wants %zu more",
        (unsigned long long)atomic_load(&memory->used), (unsigned long long)memory->limit,
        want > run->held ? want - run->held : want);
}

static bool may_be_large(const struct load_run *run)
{
    return run->request->size_hint == 0 || run->request->size_hint > LOAD_MEMORY_ALWAYS / 8;
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

/* Reports, and waits for what the log says. */
static void report(struct load_run *run)
{
    if (load_txn_done(run) != 0)
        load_txn_fail(run);
    else if (!run->options->two_phase_commit)
        run->result->commit_ms = now_ms(run) - run->done_ms;
}

/* Everything between begin and the report. False: the transaction's fate is decided. */
static bool run_begun(struct load_run *run)
{
    uint64_t began = now_ms(run);
    int err = load_body_run(run);

    if (err == 0 && (err = load_txn_make_done(run)) != 0)
        tg_fail(&run->msg, err, "[INTERNAL_ERROR]out of memory");
    /* On the thread that made it: the loop, which may end the load, has other things to do. */
    load_body_close(run);
    run->done_ms = now_ms(run);
    run->result->write_ms = run->done_ms - began - run->result->read_ms;
    if (err != 0)
        load_txn_fail(run);
    return err == 0;
}

static bool run_live(struct load_run *run)
{
    int err = load_txn_begin(run);

    run->result->begin_ms = now_ms(run) - run->start_ms;
    if (err == 0)
        return run_begun(run);
    if (err == TG_LABEL_EXISTS)
        say(run, LOAD_LABEL_EXISTS);
    else if (err == TG_UNKNOWN_OUTCOME)
        load_txn_fail(run);
    else
        say(run, LOAD_FAIL);
    return false;
}

static void finish(struct load_run *run)
{
    struct load_result *result = run->result;
    const char *file = error_log_finish(&run->log);

    if (file != NULL)
        snprintf(result->error_file, sizeof result->error_file, "%s", file);
    if (result->status == LOAD_FAIL)
        snprintf(result->first_error, sizeof result->first_error, "%s", run->log.first);
    load_body_close(run);
    result->bytes = run->source->received;
    result->load_ms = now_ms(run) - run->start_ms;
    msg_load_done_close(&run->done);
    msg_txn_begin_reply_close(&run->plan);
    buf_close(&run->begin_reply);
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

int stream_load_open(struct stream_load_context *context, const struct load_request *request,
                     struct load_source *source, void (*stop_wake)(void *ctx), void *ctx,
                     struct load_result *result, struct load_run **out)
{
    struct load_run *run = calloc(1, sizeof *run);

    *result = (struct load_result){.status = LOAD_FAIL};
    if (run == NULL) {
        snprintf(result->message, sizeof result->message, "[INTERNAL_ERROR]out of memory");
        return TG_NOMEM;
    }
    run->context = context;
    run->request = request;
    run->options = request->options;
    run->source = source;
    run->result = result;
    run->live.on_stop = on_stop;
    run->live.data = run;
    run->stop_wake = stop_wake;
    run->stop_ctx = ctx;
    run->mapping.sign_field = -1;
    run->start_ms = now_ms(run);
    run->deadline_ms = run->start_ms + request->options->timeout_ms;
    run->node = atomic_load(&context->identity->node);
    run->epoch = atomic_load(&context->identity->epoch);
    msg_txn_begin_reply_init(&run->plan);
    error_log_init(&run->log, context->errors);
    atomic_fetch_add(&context->active, 1);
    int err = 0;
    if (run->node == 0)
        err =
            tg_fail(&run->msg, TG_BUSY, "[INTERNAL_ERROR]this node has not joined its cluster yet");
    else if ((err = live_requests_begin(context->live, &run->live)) != 0)
        tg_fail(&run->msg, err, "[INTERNAL_ERROR]too many loads run on this node");
    else if (may_be_large(run) && !load_memory_has_room(&context->memory))
        err = load_run_no_memory(run, LOAD_MEMORY_ALWAYS);
    run->is_live = err == 0 || run->live.id != 0;
    if (err != 0) {
        say(run, LOAD_FAIL);
        stream_load_close(run);
        return err;
    }
    *out = run;
    return 0;
}

int stream_load_begin_message(struct load_run *run, struct buf *head)
{
    return load_txn_begin_message(run, head);
}

void stream_load_began(struct load_run *run, int err, struct slice head)
{
    if (err == 0)
        buf_append(&run->begin_reply, head.data, head.len);
    if (err != 0 || run->begin_reply.err != 0)
        buf_close(&run->begin_reply); /* stream_load_work asks itself */
}

bool stream_load_work(struct load_run *run, struct buf *done)
{
    if (!run_live(run))
        return false;
    if (done == NULL || load_txn_done_message(run, done) != 0) {
        report(run);
        return false;
    }
    return true;
}

bool stream_load_done(struct load_run *run, int err, struct slice head)
{
    if (err != 0 || !load_txn_done_reply(run, head))
        return false;
    if (!run->options->two_phase_commit)
        run->result->commit_ms = now_ms(run) - run->done_ms;
    return true;
}

void stream_load_report(struct load_run *run)
{
    report(run);
}

void stream_load_close(struct load_run *run)
{
    if (run->is_live)
        live_requests_end(run->context->live, &run->live);
    atomic_fetch_sub(&run->context->active, 1);
    finish(run);
    log_end(run);
    free(run);
}

enum load_status stream_load_run(struct stream_load_context *context,
                                 const struct load_request *request, struct load_source *source,
                                 void (*stop_wake)(void *ctx), void *ctx,
                                 struct load_result *result)
{
    struct load_run *run;

    if (stream_load_open(context, request, source, stop_wake, ctx, result, &run) == 0) {
        (void)stream_load_work(run, NULL);
        stream_load_close(run);
    }
    return result->status;
}
