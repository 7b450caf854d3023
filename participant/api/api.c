/* SPDX-License-Identifier: Apache-2.0 */
/* The participant's HTTP routes. */
#include "participant/api/api.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/metrics.h"
#include "common/net/auth.h"
#include "common/net/http_router.h"
#include "common/proto/message.h"
#include "common/proto/msg_query.h"
#include "participant/api/api_tablets.h"
#include "participant/api/read_answer.h"

#define JSON_TYPE "application/json;charset=utf-8"

enum { TIMELINE_TIMEOUT_MS = 10000 };

static void respond_buf(struct http_exchange *exchange, int status, struct buf *body)
{
    http_exchange_respond(exchange, status, JSON_TYPE, NULL, body->data, body->len);
    buf_close(body);
}

static void respond_error(struct http_exchange *exchange, int err, const char *sentence)
{
    struct buf body = BUF_INIT;

    read_answer_error(err, sentence, &body);
    respond_buf(exchange, tg_err_http_status(err), &body);
}

/* Joined and with good credentials; else the exchange was answered. Loads answer in their own words
 * (api_load.h). */
static bool may_read(struct api *api, struct http_exchange *exchange)
{
    struct auth_basic basic;
    struct tg_errmsg msg = {{0}};
    int err = auth_parse_basic(
        http_request_header(http_exchange_request(exchange), "authorization"), &basic, &msg);

    if (!api->joined)
        respond_error(exchange, TG_BUSY, "this node has not joined its cluster yet");
    else if (err != 0)
        respond_error(exchange, TG_DENIED, msg.text);
    else if (strcmp(basic.user, "root") != 0 ||
             !auth_equal(basic.password, strlen(basic.password), api->root_password,
                         strlen(api->root_password)))
        respond_error(exchange, TG_DENIED, "Access denied");
    else
        return true;
    return false;
}

static void get_scan(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;

    if (may_read(api, exchange))
        api_read_scan(api->read, exchange, params);
}

static void get_get(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;

    if (may_read(api, exchange))
        api_read_get(api->read, exchange, params);
}

static void get_range(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;

    if (may_read(api, exchange))
        api_read_range(api->read, exchange, params);
}

static void get_changes(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;

    if (may_read(api, exchange))
        api_read_changes(api->read, exchange, params);
}

/* ---- _timeline: the leader's answer, passed on ---- */

struct timeline_call {
    struct http_exchange *exchange; /* NULL once closed */
};

static void timeline_closed(void *data)
{
    struct timeline_call *call = data;

    call->exchange = NULL;
}

static void on_timeline(void *data, const struct rpc_reply *reply)
{
    struct timeline_call *call = data;
    struct msg_query_reply answer = {0};
    int err = reply->err != 0 ? reply->err : msg_query_reply_decode(reply->head, &answer);

    if (call->exchange != NULL) {
        http_exchange_on_close(call->exchange, NULL, NULL);
        if (err != 0) {
            respond_error(call->exchange, err,
                          reply->message[0] != 0 ? reply->message : tg_err_sentence(err));
        } else {
            struct buf body = BUF_INIT;

            buf_append_str(&body, "{\"msg\":\"success\",\"code\":0,\"data\":");
            buf_append(&body, answer.data.data, answer.data.len);
            buf_append_str(&body, ",\"count\":0}\n");
            respond_buf(call->exchange, 200, &body);
        }
    }
    if (err == 0)
        msg_query_reply_close(&answer);
    free(call);
}

static void get_timeline(void *ctx, struct http_exchange *exchange,
                         const struct http_params *params)
{
    struct api *api = ctx;
    struct msg_query message = {.kind = QUERY_TIMELINE};
    struct timeline_call *call;
    struct buf head = BUF_INIT;

    if (!may_read(api, exchange))
        return;
    if (strlen(params->value[0]) >= sizeof message.db ||
        (params->count > 1 && strlen(params->value[1]) >= sizeof message.table)) {
        respond_error(exchange, TG_NOT_FOUND, "no name is that long");
        return;
    }
    strcpy(message.db, params->value[0]);
    if (params->count > 1)
        strcpy(message.table, params->value[1]);
    strcpy(message.user, "root");
    buf_append_str(&message.text, http_exchange_request(exchange)->query);
    msg_query_encode(&message, &head);
    msg_query_close(&message);
    call = calloc(1, sizeof *call);
    TG_CHECK_MEMORY(call != NULL);
    call->exchange = exchange;
    http_exchange_on_close(exchange, timeline_closed, call);
    coordinator_client_call(api->coordinators, MSG_QUERY, &head, TIMELINE_TIMEOUT_MS, 0,
                            on_timeline, call);
}

/* ---- the rest ---- */

static void put_stream_load(void *ctx, struct http_exchange *exchange,
                            const struct http_params *params)
{
    struct api *api = ctx;

    api_load_stream_load(api->load, exchange, params);
}

static void put_2pc(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;

    api_load_2pc(api->load, exchange, params);
}

static void get_error_log(void *ctx, struct http_exchange *exchange,
                          const struct http_params *params)
{
    struct api *api = ctx;

    api_load_error_log(api->load, exchange, params);
}

static void get_health(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    static const char ok[] = "{\"status\": \"OK\",\"msg\": \"To Be Added\"}\n";
    static const char not_yet[] = "{\"status\": \"Starting\",\"msg\": \"not joined yet\"}\n";
    struct api *api = ctx;
    const char *body = api->joined ? ok : not_yet;

    (void)params;
    http_exchange_respond(exchange, api->joined ? 200 : 503, JSON_TYPE, NULL, body, strlen(body));
}

static void get_tablets(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;
    struct buf body = BUF_INIT;

    (void)params;
    if (!may_read(api, exchange))
        return;
    int err = api_tablets_print(api->tablets, http_exchange_request(exchange)->query, &body);
    if (err == 0) {
        respond_buf(exchange, 200, &body);
        return;
    }
    buf_close(&body);
    respond_error(exchange, err, tg_err_sentence(err));
}

static void get_scrub(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;
    struct buf body = BUF_INIT;

    (void)params;
    if (!may_read(api, exchange))
        return;
    api_scrub_print(api->scrubber, &body);
    respond_buf(exchange, 200, &body);
}

static void get_rowsets(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;

    (void)params;
    if (may_read(api, exchange))
        api_rowsets_answer(api->rowsets, exchange);
}

static void get_root(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    static const char body[] = "Tidegate participant\n";

    (void)ctx;
    (void)params;
    http_exchange_respond(exchange, 200, "text/plain", NULL, body, sizeof body - 1);
}

static void get_metrics(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct buf body = BUF_INIT;
    struct api *api = ctx;

    (void)params;
    if (api->refresh_metrics != NULL)
        api->refresh_metrics(api->refresh_data);
    metrics_print(&body);
    http_exchange_respond(exchange, 200, "text/plain; version=0.0.4", NULL, body.data, body.len);
    buf_close(&body);
}

static const struct http_route routes[] = {
    {"PUT", "/api/{db}/{table}/_stream_load", put_stream_load},
    {"PUT", "/api/{db}/_stream_load_2pc", put_2pc},
    {"PUT", "/api/{db}/{table}/_stream_load_2pc", put_2pc},
    {"GET", "/api/_load_error_log", get_error_log},
    {"HEAD", "/api/_load_error_log", get_error_log},
    {"GET", "/api/health", get_health},
    {"GET", "/api/_tablets", get_tablets},
    {"GET", "/api/_rowsets", get_rowsets},
    {"GET", "/api/_scrub", get_scrub},
    {"GET", "/api/{db}/_timeline", get_timeline},
    {"GET", "/api/{db}/{table}/_scan", get_scan},
    {"GET", "/api/{db}/{table}/_get", get_get},
    {"GET", "/api/{db}/{table}/_range", get_range},
    {"GET", "/api/{db}/{table}/_changes", get_changes},
    {"GET", "/api/{db}/{table}/_timeline", get_timeline},
    {"GET", "/metrics", get_metrics},
    {"GET", "/", get_root},
    {"HEAD", "/", get_root},
};

void api_on_request(void *ctx, struct http_exchange *exchange)
{
    http_router_dispatch(routes, sizeof routes / sizeof routes[0], ctx, exchange);
}
