/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP connection: bytes in, requests out; answers written; the careful end. */
#include "common/net/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/mutant.h"
#include "common/net/http_answer.h"
#include "common/net/tcp.h"

static void http_connection_update_reading(struct http_connection *connection);

static uint64_t http_connection_now(const struct http_connection *connection)
{
    return loop_now_ms(connection->server->loop);
}

void http_connection_wake(struct http_connection *connection)
{
    if (connection->state != HTTP_CONNECTION_CLOSING)
        loop_turn_hook_arm(connection->server->loop, &connection->hook);
}

size_t http_connection_waiting(const struct http_connection *connection)
{
    size_t in_kernel_queue = 0;
    if (connection->write_busy)
        in_kernel_queue = uv_stream_get_write_queue_size((const uv_stream_t *)&connection->tcp);
    return connection->out.len + in_kernel_queue;
}

/* ---- the end ---- */

static void http_connection_on_closed(uv_handle_t *handle)
{
    struct http_connection *connection = handle->data;
    struct http_server *server = connection->server;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    server->connection_count--;
    buf_close(&connection->in);
    buf_close(&connection->out);
    buf_close(&connection->writing);
    free(connection);
    http_server_maybe_closed(server);
}

static void http_connection_cut(struct http_connection *connection, bool reset)
{
    if (connection->state == HTTP_CONNECTION_CLOSING)
        return;
    connection->state = HTTP_CONNECTION_CLOSING;
    connection->reading = false;
    loop_turn_hook_remove(connection->server->loop, &connection->hook);
    struct http_exchange *exchange = connection->exchange;
    connection->exchange = NULL;
    if (exchange != NULL) {
        if (!exchange->body_done)
            http_exchange_break_body(exchange, TG_CLOSED, "the connection was lost", 0);
        http_exchange_free(exchange);
    }
    if (!reset || uv_tcp_close_reset(&connection->tcp, http_connection_on_closed) != 0)
        uv_close((uv_handle_t *)&connection->tcp, http_connection_on_closed);
}

void http_connection_close(struct http_connection *connection)
{
    http_connection_cut(connection, false);
}

static void http_connection_on_shutdown(uv_shutdown_t *request, int status)
{
    (void)request;
    (void)status;
}

/* Everything is written. Closing at once, with input unread or still coming, would make the kernel
 * send a reset that can overtake the answer: so only our half is closed, and the rest of the input
 * is read and dropped. */
static void http_connection_linger(struct http_connection *connection)
{
    if (connection->peer_ended) {
        http_connection_close(connection);
        return;
    }
    connection->state = HTTP_CONNECTION_LINGER;
    connection->deadline_ms =
        http_connection_now(connection) + connection->server->options.drain_timeout_ms;
    connection->drain_left = HTTP_DRAIN_BYTES_MAX;
    buf_close(&connection->in);
    buf_close(&connection->out);
    if (uv_shutdown(&connection->shutdown, (uv_stream_t *)&connection->tcp,
                    http_connection_on_shutdown) != 0) {
        http_connection_close(connection);
        return;
    }
    http_connection_update_reading(connection);
}

/* An answer to something that never became an exchange. */
static void http_connection_refuse(struct http_connection *connection, int status, const char *why)
{
    log_debug("http", "request refused status=%d why=%s", status, log_quote(why));
    size_t len = strlen(why);
    struct http_answer answer = {.status = status,
                                 .content_type = "text/plain;charset=utf-8",
                                 .framing = HTTP_ANSWER_LENGTH,
                                 .length = len + 1,
                                 .now = time(NULL)};
    http_answer_head(&connection->out, &answer);
    buf_append(&connection->out, why, len);
    buf_append_str(&connection->out, "\n");
    connection->state = HTTP_CONNECTION_FINISHING;
    http_connection_wake(connection);
}

/* ---- out ---- */

static void http_connection_on_write(uv_write_t *request, int status)
{
    struct http_connection *connection = request->data;
    connection->write_busy = false;
    if (connection->state == HTTP_CONNECTION_CLOSING)
        return;
    buf_close(&connection->writing);
    if (status != 0)
        http_connection_close(connection);
    else
        http_connection_wake(connection);
}

static void http_connection_flush(struct http_connection *connection)
{
    struct buf *out = &connection->out;
    if (connection->write_busy)
        return;
    if (out->err != 0) { /* even if nothing of the answer found room: the client waits */
        http_connection_close(connection);
        return;
    }
    if (out->len == 0)
        return;
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    uv_buf_t bytes = uv_buf_init((char *)out->data, (unsigned)out->len);
    int rc = uv_try_write(stream, &bytes, 1);
    if (rc < 0 && rc != UV_EAGAIN) {
        http_connection_close(connection);
        return;
    }
    size_t written = rc > 0 ? (size_t)rc : 0;
    if (written < out->len) {
        connection->writing = *out;
        buf_init(out);
        bytes.base += written;
        bytes.len -= written;
        connection->write.data = connection;
        if (uv_write(&connection->write, stream, &bytes, 1, http_connection_on_write) != 0) {
            http_connection_close(connection);
            return;
        }
        connection->write_busy = true;
        connection->progress_ms = http_connection_now(connection);
        connection->last_waiting = 0;
    } else if (out->capacity > HTTP_OUT_KEEP_BYTES) {
        buf_close(out);
    } else {
        buf_clear(out);
    }
}

/* ---- in ---- */

static void http_connection_begin_exchange(struct http_connection *connection, const uint8_t *head,
                                           size_t len)
{
    struct http_server *server = connection->server;
    struct http_exchange *exchange = calloc(1, sizeof *exchange + http_head_text_bytes(len));
    if (exchange == NULL) {
        http_connection_close(connection);
        return;
    }
    memcpy(exchange->text, head, len);
    int status = 0;
    const char *why = NULL;
    if (http_head_parse(&exchange->head, exchange->text, len, &status, &why) != 0) {
        http_connection_refuse(connection, status, why);
        free(exchange);
        return;
    }
    struct http_request *request = &exchange->head.request;
    memcpy(request->peer, connection->peer, sizeof request->peer);
    exchange->connection = connection;
    exchange->head_only = strcmp(request->method, "HEAD") == 0;
    bool chunked = request->framing == HTTP_BODY_CHUNKED;
    http_body_init(&exchange->body, chunked ? HTTP_BODY_BY_CHUNKS : HTTP_BODY_BY_LENGTH,
                   request->content_length);
    exchange->body_done = request->framing == HTTP_BODY_NONE ||
                          (request->framing == HTTP_BODY_LENGTH && request->content_length == 0);
    connection->exchange = exchange;
    connection->state = HTTP_CONNECTION_EXCHANGE;
    server->handlers.on_request(server->handlers.ctx, exchange);
}

static void http_connection_end_body(struct http_exchange *exchange)
{
    exchange->body_done = true;
    if (exchange->has_sink && !exchange->dropping)
        exchange->sink.on_end(exchange->sink.data);
    http_connection_wake(exchange->connection);
}

/* Decodes what the exchange wants of the bytes; returns how many were used. */
static size_t http_connection_handle_body(struct http_connection *connection, const uint8_t *bytes,
                                          size_t len)
{
    struct http_exchange *exchange = connection->exchange;
    const uint8_t *at = bytes;
    const uint8_t *end = bytes + len;
    /* A body that was complete before the sink came still owes it an end. */
    while (http_exchange_wants_body(exchange)) {
        struct slice piece = {0};
        enum http_body_event event = http_body_next(&exchange->body, &at, end, &piece);
        connection->rest = slice_of(at, (size_t)(end - at));
        if (at > bytes)
            exchange->body_seen = true;
        if (event == HTTP_BODY_MORE)
            break;
        if (event == HTTP_BODY_DONE) {
            http_connection_end_body(exchange);
            break;
        }
        if (event == HTTP_BODY_BROKEN) {
            http_exchange_break_body(exchange, TG_CORRUPT, exchange->body.why, 400);
            break;
        }
        if (exchange->dropping)
            exchange->dropped += piece.len;
        else
            exchange->sink.on_body(exchange->sink.data, piece.data, piece.len);
    }
    return (size_t)(at - bytes);
}

static size_t http_connection_handle_head(struct http_connection *connection, const uint8_t *bytes,
                                          size_t len)
{
    size_t skipped = 0;
    if (connection->scan.at == 0) /* blank lines after a body that somebody sent too much of */
        while (len - skipped >= 2 && memcmp(bytes + skipped, "\r\n", 2) == 0)
            skipped += 2;
    bytes += skipped;
    len -= skipped;
    if (len == 0 || (len == 1 && bytes[0] == '\r'))
        return skipped;
    if (connection->scan.at == 0)
        connection->deadline_ms =
            http_connection_now(connection) + connection->server->options.head_timeout_ms;
    size_t end = 0;
    int err = http_head_scan(&connection->scan, bytes, len, &end);
    if (err == TG_INCOMPLETE)
        return skipped;
    if (err != 0) {
        http_connection_refuse(connection, connection->scan.status, connection->scan.why);
        return skipped + len;
    }
    memset(&connection->scan, 0, sizeof connection->scan);
    connection->deadline_ms = 0;
    connection->rest = slice_of(bytes + end, len - end);
    http_connection_begin_exchange(connection, bytes, end);
    return skipped + end;
}

/* Uses what can be used of the bytes; the rest has to wait. */
static size_t http_connection_handle(struct http_connection *connection, const uint8_t *bytes,
                                     size_t len)
{
    size_t at = 0;
    connection->handling = true;
    for (;;) {
        size_t used = 0;
        connection->rest = slice_of(bytes + at, len - at);
        if (connection->state == HTTP_CONNECTION_HEAD && at < len)
            used = http_connection_handle_head(connection, bytes + at, len - at);
        else if (connection->state == HTTP_CONNECTION_EXCHANGE)
            used = http_connection_handle_body(connection, bytes + at, len - at);
        else if (connection->state != HTTP_CONNECTION_HEAD)
            used = len - at;
        at += used;
        if (used == 0)
            break;
    }
    connection->handling = false;
    return at;
}

/* Never NULL, so that it can be counted from. */
static struct slice http_connection_held(const struct http_connection *connection)
{
    static const uint8_t nothing;
    return slice_of(connection->in.len > 0 ? connection->in.data : &nothing, connection->in.len);
}

static void http_connection_handle_held(struct http_connection *connection)
{
    struct slice held = http_connection_held(connection);
    size_t used = http_connection_handle(connection, held.data, held.len);
    if (used == connection->in.len)
        buf_close(&connection->in);
    else if (used > 0)
        buf_consume(&connection->in, used);
}

static void http_connection_on_bytes(struct http_connection *connection, const uint8_t *bytes,
                                     size_t len)
{
    if (connection->state == HTTP_CONNECTION_LINGER) {
        if (len >= connection->drain_left)
            http_connection_close(connection);
        else
            connection->drain_left -= len;
        return;
    }
    if (connection->in.len == 0) {
        size_t used = http_connection_handle(connection, bytes, len);
        buf_append(&connection->in, bytes + used, len - used);
    } else {
        buf_append(&connection->in, bytes, len);
        http_connection_handle_held(connection);
    }
    if (connection->in.err != 0)
        http_connection_close(connection);
}

/* The client will send nothing more. With its request complete it may well wait for the answer. */
static void http_connection_on_end(struct http_connection *connection)
{
    struct http_exchange *exchange = connection->exchange;
    if (!connection->peer_ended || connection->state == HTTP_CONNECTION_FINISHING)
        return;
    if (connection->state != HTTP_CONNECTION_EXCHANGE) {
        http_connection_close(connection);
        return;
    }
    if (exchange->body_done || exchange->answered)
        return;
    /* What is held, or only its end, may be all that is missing. */
    if (!exchange->body_broken &&
        (connection->in.len > 0 || http_body_is_complete(&exchange->body)))
        return;
    if ((MUTANT(20) && exchange->body.kind == HTTP_BODY_BY_LENGTH) ||
        (MUTANT(21) && exchange->body.kind == HTTP_BODY_BY_CHUNKS))
        http_connection_end_body(exchange);
    http_exchange_break_body(exchange, TG_CLOSED,
                             "the client closed the connection inside the body", 0);
    if (!exchange->answered)
        http_connection_close(connection);
}

static void http_connection_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct http_connection *connection = handle->data;
    *buf = uv_buf_init((char *)loop_scratch(connection->server->loop), LOOP_SCRATCH_BYTES);
}

static void http_connection_on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct http_connection *connection = stream->data;
    if (connection->state == HTTP_CONNECTION_CLOSING || nread == 0)
        return;
    if (nread == UV_EOF) {
        connection->peer_ended = true;
        http_connection_on_end(connection);
    } else if (nread < 0) {
        http_connection_close(connection);
    } else {
        http_connection_on_bytes(connection, (const uint8_t *)buf->base, (size_t)nread);
    }
    http_connection_update_reading(connection);
}

/* Reads on only where the bytes can be used, or where one buffer of them may be held: so a client
 * that goes away is noticed, and one that pipelines or overruns a paused sink is slowed down by
 * TCP. */
static void http_connection_update_reading(struct http_connection *connection)
{
    bool wanted = false;
    if (!connection->peer_ended) {
        if (connection->state == HTTP_CONNECTION_HEAD ||
            connection->state == HTTP_CONNECTION_LINGER)
            wanted = true;
        else if (connection->state == HTTP_CONNECTION_EXCHANGE)
            wanted = connection->in.len == 0 || http_exchange_wants_body(connection->exchange);
    }
    if (wanted == connection->reading || connection->state == HTTP_CONNECTION_CLOSING)
        return;
    connection->reading = wanted;
    if (!wanted)
        uv_read_stop((uv_stream_t *)&connection->tcp);
    else if (uv_read_start((uv_stream_t *)&connection->tcp, http_connection_alloc,
                           http_connection_on_read) != 0)
        http_connection_close(connection);
}

bool http_connection_body_is_here(const struct http_exchange *exchange)
{
    const struct http_connection *connection = exchange->connection;
    if (exchange->body_broken || exchange->head.request.framing == HTTP_BODY_BOTH)
        return false;
    if (exchange->body_done)
        return true;
    struct slice rest = connection->handling ? connection->rest : http_connection_held(connection);
    struct http_body probe = exchange->body;
    const uint8_t *at = rest.data;
    struct slice piece;
    enum http_body_event event;
    do
        event = http_body_next(&probe, &at, rest.data + rest.len, &piece);
    while (event == HTTP_BODY_PIECE);
    return event == HTTP_BODY_DONE;
}

/* ---- the end of a turn ---- */

/* The answer is with the kernel. Returns true if another request may follow. */
static bool http_connection_finish_exchange(struct http_connection *connection)
{
    struct http_exchange *exchange = connection->exchange;
    bool again = exchange->keep_alive && exchange->body_done && !connection->server->closing;
    if (connection->peer_ended && connection->in.len == 0)
        again = false;
    connection->exchange = NULL;
    connection->state = again ? HTTP_CONNECTION_HEAD : HTTP_CONNECTION_FINISHING;
    connection->deadline_ms =
        http_connection_now(connection) + connection->server->options.idle_timeout_ms;
    http_exchange_free(exchange);
    return connection->state == HTTP_CONNECTION_HEAD;
}

static void http_connection_tell_drain(struct http_connection *connection)
{
    struct http_exchange *exchange = connection->exchange;
    if (exchange == NULL || !exchange->was_full || exchange->answer_done ||
        http_connection_waiting(connection) >= HTTP_WRITE_HIGH / 2)
        return;
    exchange->was_full = false;
    if (exchange->on_drain != NULL)
        exchange->on_drain(exchange->drain_data);
}

/* One step of the connection; true if there may be more to do in this turn. */
static bool http_connection_step(struct http_connection *connection)
{
    struct http_exchange *exchange = connection->exchange;
    if (exchange != NULL && (exchange->abort_asked || exchange->break_asked)) {
        http_connection_cut(connection, exchange->break_asked);
        return false;
    }
    if (connection->in.len > 0 || (exchange != NULL && http_exchange_wants_body(exchange)))
        http_connection_handle_held(connection);
    if (connection->state != HTTP_CONNECTION_CLOSING)
        http_connection_on_end(connection);
    if (connection->state != HTTP_CONNECTION_CLOSING)
        http_connection_flush(connection);
    if (connection->state == HTTP_CONNECTION_CLOSING)
        return false;
    http_connection_tell_drain(connection);
    exchange = connection->exchange;
    if (exchange != NULL && (exchange->abort_asked || exchange->break_asked))
        return true;
    if (connection->out.len > 0)
        return !connection->write_busy;
    if (connection->write_busy)
        return false;
    if (connection->state == HTTP_CONNECTION_FINISHING) {
        http_connection_linger(connection);
        return false;
    }
    if (exchange == NULL || !exchange->answer_done)
        return false;
    bool again = http_connection_finish_exchange(connection);
    return connection->state == HTTP_CONNECTION_FINISHING || (again && connection->in.len > 0);
}

static void http_connection_turn(struct loop_turn_hook *hook)
{
    struct http_connection *connection = hook->data;
    while (http_connection_step(connection))
        continue;
    if (connection->state != HTTP_CONNECTION_CLOSING)
        http_connection_update_reading(connection);
}

/* ---- time ---- */

/* A reset does not show on a socket nobody reads; the kernel knows it. */
static bool http_connection_is_dead(const struct http_connection *connection)
{
    uv_os_fd_t fd;
    struct tcp_info info;
    socklen_t len = sizeof info;
    return uv_fileno((const uv_handle_t *)&connection->tcp, &fd) == 0 &&
           getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_state == TCP_CLOSE;
}

void http_connection_sweep(struct http_connection *connection, uint64_t now_ms)
{
    if (connection->state == HTTP_CONNECTION_CLOSING)
        return;
    if (connection->write_busy) {
        size_t waiting = uv_stream_get_write_queue_size((uv_stream_t *)&connection->tcp);
        if (waiting != connection->last_waiting) {
            connection->last_waiting = waiting;
            connection->progress_ms = now_ms;
        } else if (now_ms - connection->progress_ms > connection->server->options.idle_timeout_ms) {
            http_connection_close(connection);
            return;
        }
    }
    if (connection->state == HTTP_CONNECTION_EXCHANGE) {
        if (!connection->reading && http_connection_is_dead(connection))
            http_connection_close(connection);
        return;
    }
    if (now_ms < connection->deadline_ms || connection->state == HTTP_CONNECTION_FINISHING)
        return;
    if (connection->state == HTTP_CONNECTION_HEAD && connection->in.len > 0)
        http_connection_refuse(connection, 408, "the request head took too long");
    else
        http_connection_close(connection);
}

/* ---- the beginning ---- */

void http_connection_accept(struct http_server *server)
{
    struct http_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL || uv_tcp_init(loop_uv(server->loop), &connection->tcp) != 0) {
        free(connection);
        return;
    }
    connection->server = server;
    connection->tcp.data = connection;
    connection->hook = (struct loop_turn_hook){.run = http_connection_turn, .data = connection};
    loop_turn_hook_add(server->loop, &connection->hook);
    connection->next = server->connections;
    if (connection->next != NULL)
        connection->next->previous = connection;
    server->connections = connection;
    server->connection_count++;
    connection->deadline_ms = loop_now_ms(server->loop) + server->options.head_timeout_ms;
    size_t limit = server->options.connections_max;
    if (uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&connection->tcp) != 0 ||
        server->connection_count > limit + HTTP_REFUSALS_MAX) {
        http_connection_close(connection);
        return;
    }
    tcp_prepare(&connection->tcp);
    tcp_peer(&connection->tcp, connection->peer, sizeof connection->peer);
    if (server->connection_count > limit)
        http_connection_refuse(connection, 503, "too many connections");
    else
        http_connection_update_reading(connection);
}
