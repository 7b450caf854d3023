/* SPDX-License-Identifier: Apache-2.0 */
/* GET _scan, _get, _range, _changes on a participant. */
#include "participant/api/api_read.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/work_queue.h"
#include "common/proto/message.h"
#include "participant/api/read_answer.h"
#include "participant/api/read_stream.h"
#include "participant/read/read_request.h"

struct api_read {
    atomic_uint references; /* the owner, each job */
    atomic_bool closing;
    struct loop *loop;
    struct coordinator_client *coordinators;
    struct table_reader_context context;
    struct work_queue queue;
    pthread_mutex_t lock;
    pthread_cond_t ended; /* a thread */
    unsigned threads_busy_max;
    unsigned threads;
    unsigned parked; /* of them, those that wait for their clients */
};

struct read_job {
    struct api_read *api;
    struct read_stream *stream;
    struct read_request request;
    struct msg_read_point_reply point;
    bool parked;
    struct loop_timer *timer; /* long poll: asks again */
    bool asking;              /* for its read point */
    uint64_t until_ms;
};

enum {
    POLL_MS = 100,
    PARAMETER_SHOWN_BYTES = 64,
    THREADS_FACTOR = 2, /* so many times scans_max threads, if most wait for their clients */
    THREAD_STACK_BYTES = 1024 * 1024
};

static void release(struct api_read *api)
{
    if (atomic_fetch_sub(&api->references, 1) != 1)
        return;
    work_queue_free(&api->queue);
    pthread_cond_destroy(&api->ended);
    pthread_mutex_destroy(&api->lock);
    free(api);
}

static void free_job(struct read_job *job)
{
    struct api_read *api = job->api;

    if (job->timer != NULL)
        loop_timer_close(job->timer);
    read_request_close(&job->request);
    msg_read_point_reply_close(&job->point);
    free(job);
    release(api);
}

static void fail(struct read_job *job, int err, const char *sentence)
{
    struct buf body = BUF_INIT;

    read_answer_error(err, sentence, &body);
    read_stream_fail(job->stream, tg_err_http_status(err), &body);
}

/* ---- on a reader's thread ---- */

static void run_job(struct read_job *job)
{
    struct tg_errmsg msg = {{0}};
    struct buf rest = BUF_INIT;
    int err =
        read_answer_run(&job->api->context, &job->request, &job->point, job->stream, &rest, &msg);

    if (err == 0)
        read_stream_end(job->stream, &rest);
    else
        fail(job, err, msg.text[0] != 0 ? msg.text : tg_err_sentence(err));
    buf_close(&rest);
    free_job(job);
}

/* Whether the thread goes on; else it is not counted any more. With the lock held. */
static bool stays(struct api_read *api)
{
    return api->threads - api->parked <= api->threads_busy_max;
}

static void *run(void *data)
{
    struct api_read *api = data;
    void *job;
    bool goes_on = true;

    while (goes_on && work_queue_pop(&api->queue, WORK_QUEUE_FOREVER, &job) == 0) {
        run_job(job);
        pthread_mutex_lock(&api->lock);
        goes_on = stays(api);
        if (!goes_on)
            api->threads--;
        pthread_mutex_unlock(&api->lock);
    }
    pthread_mutex_lock(&api->lock);
    if (goes_on)
        api->threads--;
    pthread_cond_signal(&api->ended);
    pthread_mutex_unlock(&api->lock);
    release(api);
    return NULL;
}

/* With the lock held. */
static bool add_thread(struct api_read *api)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    atomic_fetch_add(&api->references, 1);
    bool made = pthread_create(&thread, &attributes, run, api) == 0;
    pthread_attr_destroy(&attributes);
    if (made)
        api->threads++;
    else
        atomic_fetch_sub(&api->references, 1); /* the caller has another */
    return made;
}

/* A job's client takes nothing (or does again): another thread takes its place, while there may be
 * more of them. True: there may not, and jobs are waiting. */
static bool parks(void *data, bool parked)
{
    struct read_job *job = data;
    struct api_read *api = job->api;

    pthread_mutex_lock(&api->lock);
    if (parked && !job->parked)
        api->parked++;
    else if (!parked && job->parked)
        api->parked--;
    job->parked = parked;
    bool busy = api->threads - api->parked >= api->threads_busy_max;
    bool full = api->threads >= THREADS_FACTOR * api->threads_busy_max;
    bool waiting = work_queue_count(&api->queue) > 0;
    if (parked && !busy && !full && !atomic_load(&api->closing))
        full = !add_thread(api);
    pthread_mutex_unlock(&api->lock);
    return waiting && full;
}

/* ---- on the loop ---- */

int api_read_open(struct loop *loop, struct coordinator_client *coordinators,
                  const struct table_reader_context *context, unsigned threads,
                  struct api_read **api)
{
    struct api_read *a = calloc(1, sizeof *a);

    if (a == NULL)
        return TG_NOMEM;
    atomic_init(&a->references, 1);
    a->loop = loop;
    a->coordinators = coordinators;
    a->context = *context;
    if (work_queue_init(&a->queue, READ_QUEUE_MAX) != 0) {
        free(a);
        return TG_NOMEM;
    }
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->ended, NULL);
    a->threads_busy_max = threads;
    pthread_mutex_lock(&a->lock);
    while (a->threads < threads && add_thread(a))
        ;
    bool any = a->threads > 0;
    pthread_mutex_unlock(&a->lock);
    if (!any) {
        api_read_close(a);
        return TG_NOMEM;
    }
    *api = a;
    return 0;
}

void api_read_close(struct api_read *api)
{
    if (api == NULL)
        return;
    atomic_store(&api->closing, true);
    work_queue_close(&api->queue);
    pthread_mutex_lock(&api->lock);
    while (api->threads > 0)
        pthread_cond_wait(&api->ended, &api->lock);
    pthread_mutex_unlock(&api->lock);
    release(api);
}

static void ask_point(struct read_job *job);

static void poll_again(void *data)
{
    ask_point(data);
}

/* Nothing new yet for a reader of changes that is willing to wait. */
static bool should_wait(const struct read_job *job)
{
    return job->request.kind == READ_CHANGES && job->request.bound.at == READ_LATEST &&
           job->point.version <= job->point.after && loop_now_ms(job->api->loop) < job->until_ms;
}

static void end_job(struct read_job *job, int err, const char *sentence)
{
    read_stream_on_gone(job->stream, NULL, NULL);
    fail(job, err, sentence);
    free_job(job);
}

/* The client left while its job was still here. What it asked will be answered and ends it then. */
static void client_gone(void *data)
{
    struct read_job *job = data;

    if (!job->asking)
        end_job(job, TG_CANCELED, "the client is gone");
}

static void wait_for_more(struct read_job *job)
{
    msg_read_point_reply_close(&job->point);
    msg_read_point_reply_init(&job->point);
    if (job->timer == NULL)
        job->timer = loop_timer_open(job->api->loop, poll_again, job);
    if (job->timer == NULL)
        end_job(job, TG_NOMEM, tg_err_sentence(TG_NOMEM));
    else
        loop_timer_start(job->timer, POLL_MS, 0);
}

static void hand_over(struct read_job *job)
{
    if (job->timer != NULL)
        loop_timer_close(job->timer);
    job->timer = NULL;
    read_stream_on_gone(job->stream, NULL, NULL);
    read_stream_on_park(job->stream, parks, job);
    if (work_queue_try_push(&job->api->queue, job) != 0)
        end_job(job, TG_BUSY, "too many reads are waiting");
}

/* A token of a table that was dropped, made again under its name, would skip the new one's first
 * versions; nor does one of another table mean anything here. */
static bool token_is_strange(const struct read_job *job)
{
    return job->request.token_table != 0 && job->request.token_table != job->point.table;
}

static void on_point(void *data, const struct rpc_reply *reply)
{
    struct read_job *job = data;
    int err = reply->err;

    job->asking = false;
    if (err == 0)
        err = msg_read_point_reply_decode(reply->head, &job->point);
    if (err == TG_NOT_YET && job->request.token_table != 0)
        end_job(
            job, err,
            "the token is ahead of the table: is it of another one, or of one that was dropped?");
    else if (err != 0)
        end_job(job, err, reply->message[0] != 0 ? reply->message : tg_err_sentence(err));
    else if (atomic_load(read_stream_stop(job->stream)) || atomic_load(&job->api->closing))
        end_job(job, TG_CANCELED, "the read was stopped");
    else if (token_is_strange(job))
        end_job(job, TG_INVALID,
                "the token is of another table, or of one that was dropped: begin with after=0");
    else if (should_wait(job))
        wait_for_more(job);
    else
        hand_over(job);
}

static void ask_leader(struct read_job *job, struct buf *head)
{
    coordinator_client_call(job->api->coordinators, MSG_READ_POINT, head, READ_POINT_TIMEOUT_MS, 0,
                            on_point, job);
}

static void encode_point(const struct read_job *job, struct msg_read_point *message,
                         struct buf *head)
{
    read_request_point(&job->request, message);
    msg_read_point_encode(message, head);
}

/* Nobody could answer without a leader: then it is a question for one. */
static void on_anybodys_point(void *data, const struct rpc_reply *reply)
{
    struct read_job *job = data;
    struct msg_read_point message;
    struct buf head = BUF_INIT;

    if (reply->err != TG_NOT_LEADER && reply->err != TG_UNREACHABLE && reply->err != TG_CLOSED &&
        reply->err != TG_TIMEOUT && reply->err != TG_BUSY && reply->err != TG_UNKNOWN_OUTCOME) {
        on_point(data, reply);
        return;
    }
    encode_point(job, &message, &head);
    ask_leader(job, &head);
}

/* What asks for no more than a coordinator may have applied already is asked of all of them, so that
 * it is answered while nobody leads. */
static void ask_point(struct read_job *job)
{
    struct msg_read_point message;
    struct buf head = BUF_INIT;

    job->asking = true;
    encode_point(job, &message, &head);
    if (message.local || message.bound.at != READ_LATEST)
        coordinator_client_ask_any(job->api->coordinators, MSG_READ_POINT, &head, on_anybodys_point,
                                   job);
    else
        ask_leader(job, &head);
}

static int lookup(void *ctx, const char *name, unsigned nth, char *out, size_t cap)
{
    return http_request_query(ctx, name, nth, out, cap);
}

static void refuse(struct http_exchange *exchange, int err, const char *sentence)
{
    struct buf body = BUF_INIT;

    read_answer_error(err, sentence, &body);
    http_exchange_respond(exchange, tg_err_http_status(err), "application/json;charset=utf-8", NULL,
                          body.data, body.len);
    buf_close(&body);
}

/* A misspelt version= or as_of= must not be answered with the newest rows. */
static int check_parameters(const struct http_request *request, enum read_kind kind,
                            struct tg_errmsg *msg)
{
    size_t count;
    const char *const *known = read_request_parameters(kind, &count);
    struct buf list = BUF_INIT;
    char stranger[PARAMETER_SHOWN_BYTES];

    if (http_request_stranger(request, known, count, stranger, sizeof stranger) != 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        buf_printf(&list, "%s%s", i > 0 ? ", " : "", known[i]);
    tg_fail(msg, TG_INVALID, "unknown parameter '%s'; known are %s", stranger, buf_cstr(&list));
    buf_close(&list);
    return TG_INVALID;
}

static void start(struct api_read *api, struct http_exchange *exchange,
                  const struct http_params *params, enum read_kind kind)
{
    struct read_job *job = calloc(1, sizeof *job);
    struct tg_errmsg msg = {{0}};
    int err;

    if (job == NULL) {
        refuse(exchange, TG_NOMEM, tg_err_sentence(TG_NOMEM));
        return;
    }
    job->api = api;
    atomic_fetch_add(&api->references, 1);
    msg_read_point_reply_init(&job->point);
    err = read_request_parse(kind, params->value[0], params->value[1], lookup,
                             (void *)http_exchange_request(exchange), &job->request, &msg);
    if (err == 0)
        err = check_parameters(http_exchange_request(exchange), kind, &msg);
    if (err == 0) {
        job->stream = read_stream_open(api->loop, exchange);
        err = job->stream == NULL ? TG_NOMEM : 0;
    }
    if (err != 0) {
        refuse(exchange, err, msg.text[0] != 0 ? msg.text : tg_err_sentence(err));
        free_job(job);
        return;
    }
    job->until_ms = loop_now_ms(api->loop) + job->request.wait_ms;
    read_stream_on_gone(job->stream, client_gone, job);
    ask_point(job);
}

void api_read_scan(struct api_read *api, struct http_exchange *exchange,
                   const struct http_params *params)
{
    start(api, exchange, params, READ_SCAN);
}

void api_read_get(struct api_read *api, struct http_exchange *exchange,
                  const struct http_params *params)
{
    start(api, exchange, params, READ_GET);
}

void api_read_range(struct api_read *api, struct http_exchange *exchange,
                    const struct http_params *params)
{
    start(api, exchange, params, READ_RANGE);
}

void api_read_changes(struct api_read *api, struct http_exchange *exchange,
                      const struct http_params *params)
{
    start(api, exchange, params, READ_CHANGES);
}
