/* SPDX-License-Identifier: Apache-2.0 */
/* One request on its way through the api. */
#include "coordinator/api/api_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/proto/message.h"

/* ---- life ---- */

void api_request_hold(struct api_request *request)
{
    request->holds++;
}

void api_request_release(struct api_request *request)
{
    if (--request->holds > 0)
        return;
    buf_close(&request->body);
    free(request);
}

static void exchange_closed(void *data)
{
    struct api_request *request = data;

    request->exchange = NULL;
    api_request_release(request);
}

struct api_request *api_request_open(struct api *api, struct http_exchange *exchange)
{
    struct api_request *request = calloc(1, sizeof *request);

    TG_CHECK_MEMORY(request != NULL);
    request->api = api;
    request->exchange = exchange;
    request->holds = 1; /* the exchange's */
    http_exchange_on_close(exchange, exchange_closed, request);
    return request;
}

/* ---- asking the leader ---- */

static void call_ended(void *data, int err, const char *sentence, struct slice head)
{
    struct api_request *request = data;

    if (request->exchange != NULL)
        request->called(request, err, sentence, head);
    api_request_release(request);
}

void api_request_call(struct api_request *request, uint16_t type, struct buf *head,
                      uint64_t timeout_ms,
                      void (*called)(struct api_request *request, int err, const char *sentence,
                                     struct slice head))
{
    request->called = called;
    api_request_hold(request);
    leader_call_start(request->api->link, type, head, timeout_ms, call_ended, request);
}

static void query_answered(struct api_request *request, int err, const char *sentence,
                           struct slice head)
{
    struct msg_query_reply reply = {0};

    if (err == 0)
        err = msg_query_reply_decode(head, &reply);
    if (err == 0)
        api_answer_data(request, slice_of(reply.data.data, reply.data.len));
    else
        api_answer_verdict(request, err, sentence);
    msg_query_reply_close(&reply);
}

void api_request_key(struct api_request *request, uint64_t *hi, uint64_t *lo)
{
    do {
        *hi = random_u64(request->api->random);
        *lo = random_u64(request->api->random);
    } while (*hi == 0 || *lo == 0); /* zero means no key */
}

static bool copy_name(char *out, size_t cap, const char *name)
{
    return snprintf(out, cap, "%s", name) < (int)cap;
}

void api_request_query(struct api_request *request, enum query_kind kind, const char *db,
                       const char *table, const char *label, struct slice text)
{
    struct msg_query message = {.kind = kind};
    struct buf head = BUF_INIT;

    if (!copy_name(message.db, sizeof message.db, db) ||
        !copy_name(message.table, sizeof message.table, table) ||
        !copy_name(message.label, sizeof message.label, label)) {
        api_answer_error(request, 1, "errCode = 2, detailMessage = the name is too long");
        return;
    }
    snprintf(message.user, sizeof message.user, "%.*s", NAME_BYTES - 1, request->user.user);
    buf_append(&message.text, text.data, text.len);
    api_request_key(request, &message.request_hi, &message.request_lo);
    msg_query_encode(&message, &head);
    msg_query_close(&message);
    api_request_call(request, MSG_QUERY, &head, request->api->options.call_timeout_ms,
                     query_answered);
}

/* ---- bodies ---- */

static void on_body(void *data, const uint8_t *bytes, size_t len)
{
    struct api_request *request = data;

    if (request->exchange == NULL || request->body_done == NULL)
        return;
    if (request->body.len + len > request->body_max) {
        request->body_done = NULL;
        api_answer_error(request, 403, "the body is too large");
        return;
    }
    buf_append(&request->body, bytes, len);
}

static void on_end(void *data)
{
    struct api_request *request = data;

    if (request->body_done != NULL && request->exchange != NULL)
        request->body_done(request);
}

static void on_abort(void *data, int err, const char *why)
{
    struct api_request *request = data;

    (void)err;
    (void)why;
    request->body_done = NULL; /* on_close follows */
}

void api_request_read(struct api_request *request, size_t max,
                      void (*done)(struct api_request *request))
{
    struct http_body_sink sink = {
        .on_body = on_body, .on_end = on_end, .on_abort = on_abort, .data = request};

    request->body_max = max;
    request->body_done = done;
    http_exchange_read_body(request->exchange, &sink);
}

/* ---- who is it ---- */

/* One user, root, with the password of the options. */
int api_request_check_user(struct api_request *request, struct tg_errmsg *msg)
{
    const struct http_request *http = http_exchange_request(request->exchange);
    const char *header = http_request_header(http, "authorization");
    const char *password = request->api->options.root_password;
    struct auth_basic *user = &request->user;

    if (header == NULL)
        return tg_fail(msg, TG_DENIED, "Need auth information.");
    int err = auth_parse_basic(header, user, msg);
    if (err != 0)
        return err;
    bool good = auth_equal(user->password, strlen(user->password), password, strlen(password));
    if (strcmp(user->user, "root") != 0 || !good)
        return tg_fail(msg, TG_DENIED, "Access denied for user '%s@%s' (using password: %s)",
                       user->user, http->peer, user->password[0] != '\0' ? "YES" : "NO");
    return 0;
}

bool api_request_authorize(struct api_request *request)
{
    struct tg_errmsg msg;

    if (api_request_check_user(request, &msg) == 0)
        return true;
    api_answer_error(request, 401, msg.text);
    return false;
}

/* ---- answers ---- */

static void answer_envelope(struct api_request *request, int status, const char *text, int code,
                            struct slice data)
{
    struct buf out = BUF_INIT;

    buf_append_str(&out, "{\"msg\":");
    json_append_cstr(&out, text);
    buf_printf(&out, ",\"code\":%d,\"data\":", code);
    buf_append(&out, data.data, data.len);
    buf_append_str(&out, ",\"count\":0}");
    http_exchange_respond(request->exchange, status, API_JSON, NULL, out.data, out.len);
    buf_close(&out);
}

void api_answer_data(struct api_request *request, struct slice data)
{
    answer_envelope(request, 200, "success", 0, data);
}

static void answer_error(struct api_request *request, int status, int code, const char *text)
{
    const char *msg = code == 401   ? "Unauthorized"
                      : code == 403 ? "Bad Request"
                      : code == 404 ? "Not Found"
                      : code == 500 ? "Internal Error"
                                    : "Error";
    struct buf data = BUF_INIT;

    json_append_cstr(&data, text);
    answer_envelope(request, status, msg, code, slice_of(data.data, data.len));
    buf_close(&data);
}

void api_answer_error(struct api_request *request, int code, const char *text)
{
    answer_error(request, 200, code, text);
}

void api_answer_refused(struct api_request *request, int status, const char *text)
{
    answer_error(request, status, status, text);
}

void api_answer_verdict(struct api_request *request, int err, const char *sentence)
{
    struct tg_errmsg text;

    if (sentence[0] == '\0')
        sentence = tg_err_sentence(err);
    switch (err) {
    case TG_UNREACHABLE:
    case TG_UNKNOWN_OUTCOME:
    case TG_CANCELED:
    case TG_BUSY:
        answer_error(request, 503, 500, sentence);
        return;
    default:
        tg_fail(&text, err, "errCode = 2, detailMessage = %s", sentence);
        answer_error(request, 200, 1, text.text);
        return;
    }
}

void api_answer_failed(struct api_request *request, const char *text)
{
    struct buf out = BUF_INIT;

    buf_append_str(&out, "{\"status\":\"FAILED\",\"msg\":");
    json_append_cstr(&out, text);
    buf_append_str(&out, "}");
    http_exchange_respond(request->exchange, 200, API_JSON, NULL, out.data, out.len);
    buf_close(&out);
}
