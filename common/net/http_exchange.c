/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers do with an exchange: read its body, answer it. */
#include <stdlib.h>
#include <string.h>

#include "common/net/http_answer.h"
#include "common/net/http_connection.h"

const struct http_request *http_exchange_request(const struct http_exchange *exchange)
{
    return &exchange->head.request;
}

void http_exchange_on_close(struct http_exchange *exchange, void (*on_close)(void *data),
                            void *data)
{
    exchange->on_close = on_close;
    exchange->close_data = data;
}

void http_exchange_free(struct http_exchange *exchange)
{
    if (exchange->on_close != NULL)
        exchange->on_close(exchange->close_data);
    free(exchange);
}

/* ---- body ---- */

bool http_exchange_wants_body(const struct http_exchange *exchange)
{
    if (exchange->body_done || exchange->body_broken)
        return false;
    if (exchange->dropping)
        return exchange->dropped < HTTP_DRAIN_BYTES_MAX &&
               exchange->head.request.framing != HTTP_BODY_BOTH;
    return exchange->has_sink && !exchange->paused;
}

void http_exchange_break_body(struct http_exchange *exchange, int err, const char *why, int status)
{
    if (exchange->body_broken || exchange->body_done)
        return;
    exchange->body_broken = true;
    if (exchange->has_sink && !exchange->dropping)
        exchange->sink.on_abort(exchange->sink.data, err, why);
    if (status != 0 && !exchange->answered)
        http_exchange_respond(exchange, status, "text/plain;charset=utf-8", NULL, why, strlen(why));
    http_connection_wake(exchange->connection);
}

/* An empty body's end is told from the hook, never from inside http_exchange_read_body. */
static void http_exchange_owe_end(struct http_exchange *exchange)
{
    if (exchange->body_done) {
        exchange->body_done = false;
        http_body_init(&exchange->body, HTTP_BODY_BY_LENGTH, 0);
    }
}

void http_exchange_read_body(struct http_exchange *exchange, const struct http_body_sink *sink)
{
    struct http_connection *connection = exchange->connection;
    if (exchange->answered || exchange->dropping || exchange->body_broken)
        return;
    bool goes_on = exchange->has_sink;
    exchange->has_sink = true;
    exchange->paused = false;
    exchange->sink = *sink;
    if (goes_on) {
        http_connection_wake(connection);
        return;
    }
    const struct http_request *request = &exchange->head.request;
    if (request->framing == HTTP_BODY_BOTH) /* chunks win, and the connection ends afterwards */
        http_body_init(&exchange->body, HTTP_BODY_BY_CHUNKS, 0);
    bool came_already = connection->handling ? connection->rest.len > 0 : connection->in.len > 0;
    if (request->expect_continue && !exchange->body_done && !exchange->body_seen && !came_already)
        buf_append_str(&connection->out, "HTTP/1.1 100 Continue\r\n\r\n");
    http_exchange_owe_end(exchange);
    http_connection_wake(connection);
}

void http_exchange_pause(struct http_exchange *exchange)
{
    exchange->paused = true;
    http_connection_wake(exchange->connection);
}

void http_exchange_resume(struct http_exchange *exchange)
{
    exchange->paused = false;
    http_connection_wake(exchange->connection);
}

void http_exchange_drop_body(struct http_exchange *exchange)
{
    exchange->dropping = true;
    http_connection_wake(exchange->connection);
}

/* ---- answers ---- */

/* Decides about keep-alive and queues the head. */
static void http_exchange_answer(struct http_exchange *exchange, int status,
                                 const char *content_type, const char *headers,
                                 enum http_answer_framing framing, size_t length)
{
    struct http_connection *connection = exchange->connection;
    exchange->answered = true;
    exchange->keep_alive = exchange->head.request.keep_alive && !connection->server->closing &&
                           !connection->peer_ended && framing != HTTP_ANSWER_UNTIL_END &&
                           http_connection_body_is_here(exchange);
    /* Whoever answers before the end of the body does not want the rest of it. */
    exchange->dropping = true;
    if (status == 204 || status == 304) {
        framing = HTTP_ANSWER_NO_BODY;
        exchange->head_only = true;
    }
    struct http_answer answer = {.status = status,
                                 .content_type = content_type,
                                 .headers = headers,
                                 .framing = framing,
                                 .length = length,
                                 .keep_alive = exchange->keep_alive,
                                 .now = time(NULL)};
    http_answer_head(&connection->out, &answer);
    http_connection_wake(connection);
}

void http_exchange_respond(struct http_exchange *exchange, int status, const char *content_type,
                           const char *headers, const void *body, size_t len)
{
    if (exchange->answered || exchange->abort_asked)
        return;
    http_exchange_answer(exchange, status, content_type, headers, HTTP_ANSWER_LENGTH, len);
    if (!exchange->head_only)
        buf_append(&exchange->connection->out, body, len);
    exchange->answer_done = true;
}

void http_exchange_abort(struct http_exchange *exchange)
{
    exchange->abort_asked = true;
    exchange->dropping = true;
    http_connection_wake(exchange->connection);
}

void http_exchange_stream_begin(struct http_exchange *exchange, int status,
                                const char *content_type, const char *headers,
                                void (*on_drain)(void *data), void *data)
{
    if (exchange->answered || exchange->abort_asked)
        return;
    exchange->chunked = exchange->head.minor_version == 1;
    exchange->on_drain = on_drain;
    exchange->drain_data = data;
    http_exchange_answer(exchange, status, content_type, headers,
                         exchange->chunked ? HTTP_ANSWER_CHUNKED : HTTP_ANSWER_UNTIL_END, 0);
}

static bool http_exchange_streams(const struct http_exchange *exchange)
{
    return exchange->answered && !exchange->answer_done && !exchange->abort_asked &&
           !exchange->break_asked;
}

void http_exchange_stream_write(struct http_exchange *exchange, const void *bytes, size_t len)
{
    struct buf *out = &exchange->connection->out;
    if (!http_exchange_streams(exchange) || len == 0 || exchange->head_only)
        return;
    if (exchange->chunked)
        http_answer_chunk_begin(out, len);
    buf_append(out, bytes, len);
    if (exchange->chunked)
        buf_append_str(out, "\r\n");
    if (http_exchange_stream_full(exchange))
        exchange->was_full = true;
    if (out->len > HTTP_OUT_BYTES_MAX)
        exchange->break_asked = true;
    http_connection_wake(exchange->connection);
}

bool http_exchange_stream_full(const struct http_exchange *exchange)
{
    return http_connection_waiting(exchange->connection) > HTTP_WRITE_HIGH;
}

void http_exchange_stream_end(struct http_exchange *exchange)
{
    if (!http_exchange_streams(exchange))
        return;
    if (exchange->chunked && !exchange->head_only)
        buf_append_str(&exchange->connection->out, "0\r\n\r\n");
    exchange->answer_done = true;
    http_connection_wake(exchange->connection);
}

void http_exchange_stream_abort(struct http_exchange *exchange)
{
    if (exchange->answer_done)
        return;
    exchange->break_asked = true;
    http_connection_wake(exchange->connection);
}
