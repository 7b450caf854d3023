/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an upload.
 *
 *   loop      begin asked for ─▶ answer ─▶ a small body is read ─┐
 *   thread                                  (a large one: here)  └▶ parse … seal ─┐
 *   loop                                                    report ─▶ answer ◀────┘
 *
 * The loop makes the calls at both ends, because a thread that sleeps for each of them costs more
 * than a small load's rows. What the loop's one attempt leaves open, a thread finishes.
 *
 * An upload is shared by the exchange, the load, and every call that is under way to or on the
 * loop; each holds a share of it. */
#include "participant/api/api_upload.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/metrics.h"
#include "common/proto/message.h"
#include "participant/ingest/body_queue.h"
#include "participant/ingest/load_answer.h"

struct upload {
    struct api_load *api; /* gone once the load has ended */
    struct loop *loop;
    struct http_exchange *exchange; /* the loop's; NULL once it is closed */
    atomic_uint shares;
    struct load_pool_job job;
    struct loop_call accept_call;
    struct loop_call resume_call;
    struct loop_call worked_call;
    struct loop_timer *timer; /* the loop's, made when first needed */
    atomic_bool resume_posted;
    bool accepted;      /* the loop lets the body come, not the thread */
    bool body_wanted;   /* the loop's: the body is being delivered, … */
    bool body_complete; /* … and all of it was */
    bool awaits_body;   /* no thread has the load yet */
    bool reporting;     /* the thread's next work is the report */
    struct upload_head head;
    struct load_request request;
    struct body_queue queue;
    struct load_source source;
    struct load_run *run; /* NULL: the load has ended, result is complete */
    struct buf done;      /* MSG_LOAD_DONE */
    struct load_result result;
};

static void release(struct upload *upload)
{
    if (atomic_fetch_sub(&upload->shares, 1) > 1)
        return;
    body_queue_free(&upload->queue);
    load_options_close(&upload->head.options);
    buf_close(&upload->done);
    free(upload);
}

static const char *metric_status(enum load_status status)
{
    switch (status) {
    case LOAD_SUCCESS:
        return "success";
    case LOAD_PUBLISH_TIMEOUT:
        return "publish_timeout";
    case LOAD_LABEL_EXISTS:
        return "label_exists";
    default:
        return "fail";
    }
}

static void count(const struct load_result *result)
{
    struct metric_label label = {"status", metric_status(result->status)};

    metric_add(metric_counter("tidegate_loads_total", "loads answered", &label, 1), 1);
    metric_add(metric_counter("tidegate_load_rows_total", "rows of loads that succeeded", NULL, 0),
               result->loaded_rows);
    metric_add(metric_counter("tidegate_load_bytes_total", "bytes of loads' bodies", NULL, 0),
               result->bytes);
}

static void respond(struct http_exchange *exchange, const struct load_options *options,
                    const struct load_result *result, const char *address)
{
    struct buf body = BUF_INIT;

    count(result);
    load_answer_print(options, result, address, &body);
    http_exchange_respond(exchange, 200, API_LOAD_JSON, NULL, body.data, body.len);
    buf_close(&body);
}

void api_upload_refuse(struct http_exchange *exchange, const struct load_options *options,
                       const char *message)
{
    struct load_result result = {.status = LOAD_FAIL};

    snprintf(result.message, sizeof result.message, "%s", message);
    respond(exchange, options, &result, "");
}

/* ---- between loop and threads ---- */

static void post(struct upload *upload, struct loop_call *call)
{
    atomic_fetch_add(&upload->shares, 1);
    loop_post(upload->loop, call);
}

/* The load has ended: from here on nothing of the api_load may be touched. Any thread. */
static void end_load(struct upload *upload)
{
    struct api_load *api = upload->api;

    if (upload->run != NULL)
        stream_load_close(upload->run);
    upload->run = NULL;
    upload->api = NULL;
    pthread_mutex_lock(&api->lock);
    if (--api->uploads == 0)
        pthread_cond_broadcast(&api->ended);
    pthread_mutex_unlock(&api->lock);
}

/* On a thread of the pool. */
static void work(struct load_pool_job *job)
{
    struct upload *upload = (struct upload *)(void *)((char *)job - offsetof(struct upload, job));

    if (upload->reporting)
        stream_load_report(upload->run);
    if (upload->reporting || !stream_load_work(upload->run, &upload->done))
        end_load(upload);
    post(upload, &upload->worked_call);
    release(upload);
}

static void submit_again(void *data);

/* Gives the load to a thread. There is one for each upload; if it cannot be made now, it is tried
 * until it can: what has begun must end. */
static void submit(struct upload *upload)
{
    upload->awaits_body = false;
    atomic_fetch_add(&upload->shares, 1);
    if (upload->timer != NULL)
        loop_timer_stop(upload->timer);
    if (load_pool_submit(upload->api->pool, &upload->job) == 0)
        return;
    atomic_fetch_sub(&upload->shares, 1);
    if (upload->timer == NULL)
        upload->timer = loop_timer_open(upload->loop, submit_again, upload);
    TG_CHECK_MEMORY(upload->timer != NULL);
    loop_timer_start(upload->timer, UPLOAD_RETRY_MS, 0);
}

static void submit_again(void *data)
{
    submit(data);
}

/* ---- the body, on the loop ---- */

static void on_body(void *data, const uint8_t *bytes, size_t len)
{
    struct upload *upload = data;

    if (body_queue_push(&upload->queue, bytes, len))
        http_exchange_pause(upload->exchange);
}

static void on_end(void *data)
{
    struct upload *upload = data;

    upload->body_complete = true;
    body_queue_end(&upload->queue);
    if (upload->awaits_body)
        submit(upload);
}

static void on_abort(void *data, int err, const char *why)
{
    struct upload *upload = data;
    char text[160];

    (void)err;
    snprintf(text, sizeof text, "receive body don't equal with body bytes: sender is gone (%s)",
             why);
    body_queue_break(&upload->queue, TG_CLOSED, text);
    if (upload->awaits_body)
        submit(upload);
}

static void on_close(void *data)
{
    struct upload *upload = data;

    upload->exchange = NULL;
    if (!upload->body_complete)
        body_queue_break(&upload->queue, TG_CLOSED, "sender is gone");
    if (upload->awaits_body)
        submit(upload);
    release(upload);
}

static void read_body(struct upload *upload)
{
    struct http_body_sink sink = {
        .on_body = on_body, .on_end = on_end, .on_abort = on_abort, .data = upload};

    if (upload->exchange == NULL || upload->body_wanted)
        return;
    upload->body_wanted = true;
    http_exchange_read_body(upload->exchange, &sink);
}

static void accept_body(struct loop_call *call)
{
    read_body(call->data);
    release(call->data);
}

static void resume_body(struct loop_call *call)
{
    struct upload *upload = call->data;

    atomic_store(&upload->resume_posted, false);
    if (upload->exchange != NULL)
        http_exchange_resume(upload->exchange);
    release(upload);
}

static void finish(struct upload *upload)
{
    struct http_exchange *exchange = upload->exchange;

    if (upload->timer != NULL)
        loop_timer_close(upload->timer);
    upload->timer = NULL;
    if (exchange != NULL) {
        if (upload->body_wanted && !upload->body_complete)
            http_exchange_drop_body(exchange);
        upload->body_complete = true; /* nobody reads what may still come */
        if (upload->result.status == LOAD_UNKNOWN)
            http_exchange_abort(exchange);
        else
            respond(exchange, &upload->head.options, &upload->result, upload->head.address);
    }
    release(upload); /* the load's share */
}

static void reported(void *data, const struct rpc_reply *reply)
{
    struct upload *upload = data;

    if (stream_load_done(upload->run, reply->err, reply->head)) {
        end_load(upload);
        finish(upload);
    } else {
        upload->reporting = true;
        submit(upload);
    }
    release(upload);
}

/* A thread has done what it could. */
static void worked(struct loop_call *call)
{
    struct upload *upload = call->data;

    if (upload->run == NULL) {
        finish(upload);
    } else {
        atomic_fetch_add(&upload->shares, 1);
        coordinator_client_call(upload->api->options.coordinators, MSG_LOAD_DONE, &upload->done,
                                LOAD_CALL_MS, LOAD_CALL_MS, reported, upload);
    }
    release(upload);
}

static void on_room(void *ctx)
{
    struct upload *upload = ctx;

    if (!atomic_exchange(&upload->resume_posted, true))
        post(upload, &upload->resume_call);
}

static void accept_source(struct load_source *source)
{
    struct upload *upload = source->ctx;

    if (!upload->accepted)
        post(upload, &upload->accept_call);
}

static int read_source(struct load_source *source, uint8_t *out, size_t cap, uint64_t deadline_ms,
                       size_t *n, struct tg_errmsg *msg)
{
    struct upload *upload = source->ctx;
    int err = body_queue_read(&upload->queue, out, cap, deadline_ms, n, msg);

    source->received += *n;
    return err;
}

static void stop_wake(void *ctx)
{
    struct upload *upload = ctx;

    body_queue_stop(&upload->queue);
}

/* ---- the beginning, on the loop ---- */

/* A small body that was already sent is here within a turn of the loop. */
static void await_body(struct upload *upload)
{
    upload->accepted = true;
    upload->awaits_body = true;
    read_body(upload);
    if (!upload->awaits_body)
        return;
    upload->timer = loop_timer_open(upload->loop, submit_again, upload);
    if (upload->timer != NULL)
        loop_timer_start(upload->timer, UPLOAD_BODY_MS, 0);
    else
        submit(upload);
}

static void begun(void *data, const struct rpc_reply *reply)
{
    struct upload *upload = data;

    stream_load_began(upload->run, reply->err, reply->head);
    /* Who asks first whether the body is wanted gets no 100 Continue before the thread has looked
     * at the columns. */
    if (reply->err == 0 && upload->exchange != NULL && !upload->head.expects_continue &&
        upload->head.length <= UPLOAD_SMALL_BYTES)
        await_body(upload);
    else
        submit(upload);
    release(upload);
}

static void begin(struct upload *upload)
{
    struct buf head = BUF_INIT;

    if (stream_load_begin_message(upload->run, &head) != 0) {
        buf_close(&head);
        submit(upload);
        return;
    }
    atomic_fetch_add(&upload->shares, 1);
    coordinator_client_call(upload->api->options.coordinators, MSG_TXN_BEGIN, &head, LOAD_CALL_MS,
                            LOAD_CALL_MS, begun, upload);
}

static struct upload *make_upload(struct api_load *api, struct http_exchange *exchange,
                                  struct upload_head *head)
{
    struct upload *u = calloc(1, sizeof *u);

    if (u == NULL)
        return NULL;
    u->api = api;
    u->loop = api->options.loop;
    u->exchange = exchange;
    atomic_init(&u->shares, 2); /* the exchange's and the load's */
    u->job.run = work;
    u->accept_call = (struct loop_call){.run = accept_body, .data = u};
    u->resume_call = (struct loop_call){.run = resume_body, .data = u};
    u->worked_call = (struct loop_call){.run = worked, .data = u};
    u->head = *head;
    head->options = (struct load_options){0};
    uint64_t hint = head->length == UPLOAD_LENGTH_UNKNOWN ? 0 : head->length;
    body_queue_init(&u->queue, api->options.clock, hint, on_room, u);
    u->source = (struct load_source){.read = read_source, .accept = accept_source, .ctx = u};
    u->request = (struct load_request){.db = u->head.db,
                                       .table = u->head.table,
                                       .user = u->head.user,
                                       .options = &u->head.options,
                                       .size_hint = hint};
    return u;
}

/* One more load, if there may be one. */
static bool count_in(struct api_load *api)
{
    pthread_mutex_lock(&api->lock);
    bool room = api->uploads < api->options.loads_max;
    if (room)
        api->uploads++;
    pthread_mutex_unlock(&api->lock);
    return room;
}

void api_upload_start(struct api_load *api, struct http_exchange *exchange,
                      struct upload_head *head)
{
    if (!count_in(api)) {
        char text[128];

        snprintf(text, sizeof text, "[INTERNAL_ERROR]too many loads run on this node (%s)",
                 tg_err_sentence(TG_BUSY));
        api_upload_refuse(exchange, &head->options, text);
        load_options_close(&head->options);
        return;
    }
    struct upload *upload = make_upload(api, exchange, head);
    TG_CHECK_MEMORY(upload != NULL);
    http_exchange_on_close(exchange, on_close, upload);
    if (stream_load_open(&api->context, &upload->request, &upload->source, stop_wake, upload,
                         &upload->result, &upload->run) == 0) {
        begin(upload);
        return;
    }
    end_load(upload);
    finish(upload);
}
