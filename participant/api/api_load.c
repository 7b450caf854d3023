/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP side of loads. An upload is shared by the loop (which has the exchange) and the load's
 * thread; both, and every call that is posted to the loop, hold a share of it. */
#include "participant/api/api_load.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/metrics.h"
#include "common/base/uuid.h"
#include "common/net/auth.h"
#include "participant/api/api_load_internal.h"
#include "participant/ingest/body_queue.h"
#include "participant/ingest/load_answer.h"

#define INVALID "[INVALID_ARGUMENT]"

struct upload {
    struct api_load *api;
    struct http_exchange *exchange; /* the loop's; NULL once it is closed */
    atomic_uint shares;
    struct load_pool_job job;
    struct loop_call accept_call;
    struct loop_call resume_call;
    struct loop_call finish_call;
    atomic_bool resume_posted;
    bool body_wanted;   /* the loop's: the body is being delivered, … */
    bool body_complete; /* … and all of it was */
    char db[HTTP_PARAM_BYTES];
    char table[HTTP_PARAM_BYTES];
    char user[NAME_BYTES];
    char address[ADDRESS_BYTES];
    struct load_options options;
    struct load_request request;
    struct body_queue queue;
    struct load_source source;
    struct load_result result;
};

static void release(struct upload *upload)
{
    if (atomic_fetch_sub(&upload->shares, 1) > 1)
        return;
    body_queue_free(&upload->queue);
    load_options_close(&upload->options);
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

/* A refusal before anything began. */
static void refuse(struct http_exchange *exchange, const struct load_options *options,
                   const char *message)
{
    struct load_result result = {.status = LOAD_FAIL};

    snprintf(result.message, sizeof result.message, "%s", message);
    respond(exchange, options, &result, "");
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
}

static void on_abort(void *data, int err, const char *why)
{
    struct upload *upload = data;
    char text[160];

    (void)err;
    snprintf(text, sizeof text, "receive body don't equal with body bytes: sender is gone (%s)",
             why);
    body_queue_break(&upload->queue, TG_CLOSED, text);
}

static void on_close(void *data)
{
    struct upload *upload = data;

    upload->exchange = NULL;
    if (!upload->body_complete)
        body_queue_break(&upload->queue, TG_CLOSED, "sender is gone");
    release(upload);
}

static void accept_body(struct loop_call *call)
{
    struct upload *upload = call->data;
    struct http_body_sink sink = {
        .on_body = on_body, .on_end = on_end, .on_abort = on_abort, .data = upload};

    if (upload->exchange != NULL) {
        upload->body_wanted = true;
        http_exchange_read_body(upload->exchange, &sink);
    }
    release(upload);
}

static void resume_body(struct loop_call *call)
{
    struct upload *upload = call->data;

    atomic_store(&upload->resume_posted, false);
    if (upload->exchange != NULL)
        http_exchange_resume(upload->exchange);
    release(upload);
}

static void finish_upload(struct loop_call *call)
{
    struct upload *upload = call->data;
    struct http_exchange *exchange = upload->exchange;

    if (exchange != NULL) {
        if (upload->body_wanted && !upload->body_complete)
            http_exchange_drop_body(exchange);
        upload->body_complete = true; /* nobody reads what may still come */
        if (upload->result.status == LOAD_UNKNOWN)
            http_exchange_abort(exchange);
        else
            respond(exchange, &upload->options, &upload->result, upload->address);
    }
    release(upload);
}

/* ---- the load's thread ---- */

static void post(struct upload *upload, struct loop_call *call)
{
    atomic_fetch_add(&upload->shares, 1);
    loop_post(upload->api->options.loop, call);
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

static void run_upload(struct load_pool_job *job)
{
    struct upload *upload = (struct upload *)(void *)((char *)job - offsetof(struct upload, job));

    stream_load_run(&upload->api->context, &upload->request, &upload->source, stop_wake, upload,
                    &upload->result);
    post(upload, &upload->finish_call);
    release(upload);
}

/* ---- the head, on the loop ---- */

int api_load_authenticate(const struct api_load *api, const struct http_request *request,
                          char user[NAME_BYTES], struct tg_errmsg *msg)
{
    const char *password = api->options.root_password;
    struct auth_basic basic;
    struct tg_errmsg why = {{0}};

    if (auth_parse_basic(http_request_header(request, "authorization"), &basic, &why) != 0)
        return tg_fail(msg, TG_DENIED, "[NOT_AUTHORIZED]%s", why.text);
    snprintf(user, NAME_BYTES, "%.*s", NAME_BYTES - 1, basic.user);
    if (strcmp(basic.user, "root") == 0 &&
        auth_equal(basic.password, strlen(basic.password), password, strlen(password)))
        return 0;
    return tg_fail(msg, TG_DENIED,
                   "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Access denied for user "
                   "'%s@%s' (using password: %s)",
                   basic.user, request->peer, basic.password[0] != 0 ? "YES" : "NO");
}

static int check_framing(const struct api_load *api, const struct http_request *request,
                         struct tg_errmsg *msg)
{
    if (request->framing == HTTP_BODY_NONE)
        return tg_fail(msg, TG_INVALID,
                       INVALID "content_length is empty and transfer-encoding!=chunked, please set "
                               "content_length or transfer-encoding=chunked");
    if (request->framing == HTTP_BODY_BOTH)
        return tg_fail(msg, TG_INVALID,
                       INVALID "please do not set both content_length and transfer-encoding");
    if (request->framing == HTTP_BODY_LENGTH &&
        request->content_length > api->options.body_bytes_max)
        return tg_fail(msg, TG_TOO_LARGE, "[INTERNAL_ERROR]body exceed max size: %llu, data: %llu",
                       (unsigned long long)api->options.body_bytes_max,
                       (unsigned long long)request->content_length);
    return 0;
}

static const char *lookup(void *ctx, const char *name)
{
    return http_request_header(ctx, name);
}

/* This node as the client reached it. */
static void choose_address(const struct api_load *api, const struct http_request *request,
                           char address[ADDRESS_BYTES])
{
    static const char GOOD[] =
        ".-:[]0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *host = http_request_header(request, "host");

    if (api->address[0] != 0 || host == NULL || strlen(host) >= ADDRESS_BYTES ||
        strspn(host, GOOD) != strlen(host))
        host = api->address;
    snprintf(address, ADDRESS_BYTES, "%s", host);
}

static struct upload *make_upload(struct api_load *api, struct http_exchange *exchange,
                                  const struct http_params *params)
{
    const struct http_request *http = http_exchange_request(exchange);
    struct upload *u = calloc(1, sizeof *u);

    if (u == NULL)
        return NULL;
    u->api = api;
    u->exchange = exchange;
    atomic_init(&u->shares, 2); /* the exchange's and the thread's */
    u->job.run = run_upload;
    u->accept_call = (struct loop_call){.run = accept_body, .data = u};
    u->resume_call = (struct loop_call){.run = resume_body, .data = u};
    u->finish_call = (struct loop_call){.run = finish_upload, .data = u};
    memcpy(u->db, params->value[0], sizeof u->db);
    memcpy(u->table, params->value[1], sizeof u->table);
    choose_address(api, http, u->address);
    uint64_t hint = http->framing == HTTP_BODY_LENGTH ? http->content_length : 0;
    body_queue_init(&u->queue, api->options.clock, hint, on_room, u);
    u->source = (struct load_source){.read = read_source, .accept = accept_source, .ctx = u};
    u->request = (struct load_request){
        .db = u->db, .table = u->table, .user = u->user, .options = &u->options, .size_hint = hint};
    return u;
}

void api_load_stream_load(struct api_load *api, struct http_exchange *exchange,
                          const struct http_params *params)
{
    const struct http_request *http = http_exchange_request(exchange);
    struct tg_errmsg msg = {{0}};
    struct upload *upload = make_upload(api, exchange, params);
    char label[UUID_TEXT_SIZE];
    uint8_t bytes[16];

    if (upload == NULL) {
        http_exchange_abort(exchange);
        return;
    }
    random_fill(api->options.random, bytes, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    uuid_print(&uuid, label);
    /* The headers are read first, because every answer echoes some of them. */
    int bad_headers =
        load_options_parse(lookup, (void *)(uintptr_t)http, label, &upload->options, &msg);
    struct tg_errmsg first = {{0}};
    int err = api_load_authenticate(api, http, upload->user, &first);
    if (err == 0)
        err = check_framing(api, http, &first);
    if (err == 0 && (err = bad_headers) != 0)
        first = msg;
    if (err == 0 && (err = load_pool_submit(api->pool, &upload->job)) != 0)
        tg_fail(&first, err, "[INTERNAL_ERROR]too many loads run on this node (%s)",
                tg_err_sentence(err));
    if (err == 0) {
        http_exchange_on_close(exchange, on_close, upload);
        return;
    }
    refuse(exchange, &upload->options, first.text);
    atomic_store(&upload->shares, 1);
    release(upload);
}

/* ---- opening and closing ---- */

int api_load_open(const struct api_load_options *options, struct api_load **api,
                  struct tg_errmsg *msg)
{
    struct api_load *a = calloc(1, sizeof *a);

    if (a == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for loads");
    a->options = *options;
    a->world = (struct load_world){
        .coordinators = options->coordinators, .peers = options->peers, .store = options->store};
    load_calls_init(&a->calls, &a->world);
    int err =
        error_logs_open(options->error_log_dir, options->clock, options->random, &a->errors, msg);
    if (err == 0 && (err = load_pool_open((uint32_t)options->loads_max, &a->pool)) != 0)
        tg_fail(msg, err, "no threads for loads");
    if (err != 0) {
        api_load_close(a);
        return err;
    }
    a->context = (struct stream_load_context){.calls = &a->calls,
                                              .clock = options->clock,
                                              .live = options->requests,
                                              .identity = options->identity,
                                              .errors = a->errors,
                                              .memory_bytes = options->load_memory_bytes,
                                              .memory_total_bytes = 2 * options->load_memory_bytes,
                                              .body_bytes_max = options->body_bytes_max,
                                              .publish_wait_ms = options->publish_timeout_ms};
    *api = a;
    return 0;
}

void api_load_close(struct api_load *api)
{
    if (api == NULL)
        return;
    atomic_store(&api->context.closing, true);
    live_requests_stop_all(api->options.requests);
    load_pool_close(api->pool);
    error_logs_close(api->errors);
    free(api);
}

void api_load_set_address(struct api_load *api, const char *address)
{
    snprintf(api->address, sizeof api->address, "%s", address);
}

void api_load_error_log(struct api_load *api, struct http_exchange *exchange,
                        const struct http_params *params)
{
    static const char GONE[] = "no such error log\n";
    char name[ERROR_LOG_NAME_BYTES];
    struct buf text = BUF_INIT;

    (void)params;
    int err = http_request_query(http_exchange_request(exchange), "file", 0, name, sizeof name);
    if (err == 0)
        err = error_logs_read(api->errors, name, &text);
    if (err == 0)
        http_exchange_respond(exchange, 200, "text/plain;charset=utf-8", NULL, text.data, text.len);
    else
        http_exchange_respond(exchange, 404, "text/plain", NULL, GONE, sizeof GONE - 1);
    buf_close(&text);
}
