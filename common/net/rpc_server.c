/* SPDX-License-Identifier: Apache-2.0 */
/* RPC server: accepts links, hands their requests to one handler, sends its answers when they come.
 */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/rpc.h"
#include "common/net/rpc_link.h"
#include "common/net/tcp.h"

struct rpc_connection {
    struct rpc_link link;
    struct rpc_server *server;
    struct rpc_connection *previous, *next;
    struct rpc_request *requests; /* not answered yet */
    unsigned request_count;
    size_t request_bytes;
};

struct rpc_request {
    struct rpc_connection *connection; /* NULL once it is gone */
    struct rpc_request *previous, *next;
    struct rpc_frame frame;
    uint8_t *body;
};

struct rpc_server {
    struct loop *loop;
    uv_tcp_t listener;
    bool listener_closed;
    bool closing;
    uint16_t port;
    rpc_handler *handler;
    void *ctx;
    char *secret;
    unsigned connections_max;
    unsigned connection_count;
    struct rpc_connection *connections;
    uint64_t bad_frames;
    void (*closed)(void *data);
    void *closed_data;
};

/* ---- requests ---- */

uint16_t rpc_request_type(const struct rpc_request *request)
{
    return request->frame.type;
}

struct slice rpc_request_head(const struct rpc_request *request)
{
    return request->frame.head;
}

struct slice rpc_request_payload(const struct rpc_request *request)
{
    return request->frame.payload;
}

static size_t rpc_request_bytes(const struct rpc_request *request)
{
    return request->frame.head.len + request->frame.payload.len;
}

/* The peer is not read from while it has too much with us: calls, their bytes, or answers it does
 * not take. */
static void rpc_connection_balance(struct rpc_connection *connection)
{
    if (connection->request_count >= RPC_CALLS_MAX ||
        connection->request_bytes > RPC_QUEUED_BYTES_MAX ||
        connection->link.queued_bytes > RPC_QUEUED_BYTES_MAX / 2)
        rpc_link_pause(&connection->link);
    else
        rpc_link_resume(&connection->link);
}

static void rpc_request_unlink(struct rpc_request *request)
{
    struct rpc_connection *connection = request->connection;
    if (request->next != NULL)
        request->next->previous = request->previous;
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        connection->requests = request->next;
    connection->request_count--;
    connection->request_bytes -= rpc_request_bytes(request);
}

static void rpc_request_answer(struct rpc_request *request, int err, const char *text,
                               struct buf *head, struct buf *payload)
{
    struct rpc_connection *connection = request->connection;
    if (connection != NULL) {
        struct rpc_frame frame = {.flags = RPC_FRAME_REPLY,
                                  .type = request->frame.type,
                                  .id = request->frame.id,
                                  .err = err,
                                  .text = slice_of(text, strnlen(text, RPC_FRAME_TEXT_BYTES_MAX))};
        size_t head_len = head == NULL ? 0 : head->len;
        size_t payload_len = payload == NULL ? 0 : payload->len;
        const char *refused = NULL;
        if (head_len > RPC_HEAD_BYTES_MAX || payload_len > RPC_PAYLOAD_BYTES_MAX) {
            frame.err = TG_TOO_LARGE;
            refused = "the answer does not fit into a frame";
        } else if (connection->link.queued_bytes + head_len + payload_len > RPC_QUEUED_BYTES_MAX) {
            frame.err = TG_BUSY;
            refused = "too many answers wait for the caller to read them";
        }
        if (refused != NULL) {
            frame.text = slice_str(refused);
            head = NULL;
            payload = NULL;
        }
        rpc_link_send(&connection->link, &frame, head, payload);
        rpc_request_unlink(request);
        rpc_connection_balance(connection);
    }
    free(request->body);
    free(request);
}

void rpc_request_reply_take(struct rpc_request *request, int err, struct buf *head,
                            struct buf *payload)
{
    TG_CHECK_MEMORY((head == NULL || head->err == 0) && (payload == NULL || payload->err == 0));
    rpc_request_answer(request, err, "", head, payload);
    if (head != NULL)
        buf_close(head);
    if (payload != NULL)
        buf_close(payload);
}

void rpc_request_reply(struct rpc_request *request, int err, struct slice head,
                       struct slice payload)
{
    struct buf head_copy = BUF_INIT;
    struct buf payload_copy = BUF_INIT;
    if (request->connection != NULL) {
        buf_append(&head_copy, head.data, head.len);
        buf_append(&payload_copy, payload.data, payload.len);
    }
    rpc_request_reply_take(request, err, &head_copy, &payload_copy);
}

void rpc_request_fail(struct rpc_request *request, int err, const char *text)
{
    TG_CHECK(err < 0);
    rpc_request_answer(request, err, text == NULL ? "" : text, NULL, NULL);
}

void rpc_request_verdict(struct rpc_request *request, int err, const char *text, struct slice head)
{
    struct buf copy = BUF_INIT;
    if (request->connection != NULL)
        buf_append(&copy, head.data, head.len);
    TG_CHECK_MEMORY(copy.err == 0);
    rpc_request_answer(request, err, text == NULL ? "" : text, &copy, NULL);
    buf_close(&copy);
}

void rpc_request_drop(struct rpc_request *request)
{
    rpc_request_fail(request, TG_CANCELED, "the call was dropped");
}

/* ---- connections ---- */

static void rpc_server_maybe_closed(struct rpc_server *server)
{
    if (!server->closing || !server->listener_closed || server->connections != NULL)
        return;
    if (server->closed != NULL)
        server->closed(server->closed_data);
    free(server->secret);
    free(server);
}

static void rpc_connection_forget_requests(struct rpc_connection *connection)
{
    while (connection->requests != NULL) {
        struct rpc_request *request = connection->requests;
        rpc_request_unlink(request);
        request->connection = NULL;
        request->previous = NULL;
        request->next = NULL;
    }
}

static void rpc_connection_on_up(void *data)
{
    (void)data;
}

static void rpc_connection_on_frame(void *data, const struct rpc_frame *frame, uint8_t *body)
{
    struct rpc_connection *connection = data;
    struct rpc_request *request = calloc(1, sizeof *request);
    TG_CHECK_MEMORY(request != NULL);
    request->connection = connection;
    request->frame = *frame;
    request->body = body;
    request->next = connection->requests;
    if (request->next != NULL)
        request->next->previous = request;
    connection->requests = request;
    connection->request_count++;
    connection->request_bytes += rpc_request_bytes(request);
    rpc_connection_balance(connection);
    if ((frame->flags & RPC_FRAME_REPLY) != 0)
        rpc_request_fail(request, TG_INVALID, "an answer nobody asked for");
    else
        connection->server->handler(connection->server->ctx, request);
}

static void rpc_connection_on_written(void *data)
{
    rpc_connection_balance(data);
}

static void rpc_connection_on_lost(void *data, int err, const char *why)
{
    struct rpc_connection *connection = data;
    rpc_connection_forget_requests(connection);
    if (err == TG_CORRUPT || err == TG_UNSUPPORTED || err == TG_TOO_LARGE || err == TG_DENIED) {
        connection->server->bad_frames++;
        log_warn("rpc", "connection refused peer=%s error=%s why=%s", connection->link.peer,
                 tg_err_name(err), log_quote(why));
    } else {
        log_debug("rpc", "connection ended peer=%s why=%s", connection->link.peer, log_quote(why));
    }
}

static void rpc_connection_on_closed(void *data)
{
    struct rpc_connection *connection = data;
    struct rpc_server *server = connection->server;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    server->connection_count--;
    free(connection);
    rpc_server_maybe_closed(server);
}

static const struct rpc_link_handlers rpc_connection_handlers = {
    .on_up = rpc_connection_on_up,
    .on_frame = rpc_connection_on_frame,
    .on_written = rpc_connection_on_written,
    .on_lost = rpc_connection_on_lost,
    .on_closed = rpc_connection_on_closed};

static void rpc_server_on_connection(uv_stream_t *listener, int status)
{
    struct rpc_server *server = listener->data;
    if (status != 0) {
        log_warn("rpc", "cannot accept error=%s", log_quote(uv_strerror(status)));
        return;
    }
    struct rpc_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return;
    int err = rpc_link_init(&connection->link, server->loop, "rpc", server->secret, true,
                            &rpc_connection_handlers, connection);
    if (err != 0) {
        free(connection);
        return;
    }
    connection->server = server;
    connection->next = server->connections;
    if (connection->next != NULL)
        connection->next->previous = connection;
    server->connections = connection;
    server->connection_count++;
    if (uv_accept(listener, (uv_stream_t *)&connection->link.tcp) != 0) {
        rpc_link_close(&connection->link);
        return;
    }
    if (server->connection_count > server->connections_max) {
        log_warn("rpc", "too many connections limit=%u", server->connections_max);
        rpc_link_close(&connection->link);
        return;
    }
    rpc_link_start(&connection->link);
}

/* ---- life ---- */

static void rpc_server_listener_closed(uv_handle_t *handle)
{
    struct rpc_server *server = handle->data;
    server->listener_closed = true;
    rpc_server_maybe_closed(server);
}

int rpc_server_open(struct loop *loop, const struct rpc_server_options *options,
                    rpc_handler *handler, void *ctx, struct rpc_server **out, struct tg_errmsg *msg)
{
    struct rpc_server *server = calloc(1, sizeof *server);
    char *secret = server == NULL ? NULL : strdup(options->secret);
    if (secret == NULL) {
        free(server);
        return tg_fail(msg, TG_NOMEM, "no memory for an RPC server");
    }
    server->loop = loop;
    server->handler = handler;
    server->ctx = ctx;
    server->secret = secret;
    server->connections_max = options->connections_max == 0 ? 1024 : options->connections_max;
    server->listener.data = server;
    int err = tcp_listen(loop, &server->listener, options->host, options->port,
                         rpc_server_on_connection, rpc_server_listener_closed, &server->port, msg);
    if (err != 0) {
        server->closing = true;
        return tg_wrap(msg, err, "RPC server");
    }
    *out = server;
    return 0;
}

uint16_t rpc_server_port(const struct rpc_server *server)
{
    return server->port;
}

uint64_t rpc_server_bad_frames(const struct rpc_server *server)
{
    return server->bad_frames;
}

void rpc_server_close(struct rpc_server *server, void (*closed)(void *data), void *data)
{
    server->closing = true;
    server->closed = closed;
    server->closed_data = data;
    uv_close((uv_handle_t *)&server->listener, rpc_server_listener_closed);
    for (struct rpc_connection *at = server->connections; at != NULL; at = at->next) {
        rpc_connection_forget_requests(at);
        rpc_link_close(&at->link);
    }
}
