/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP server: the listener, the sweep over deadlines, the orderly end. */
#include "common/net/http_server.h"

#include <stdlib.h>
#include <uv.h>

#include "common/base/log.h"
#include "common/net/http_connection.h"
#include "common/net/tcp.h"

void http_server_maybe_closed(struct http_server *server)
{
    if (!server->closing || !server->listener_closed || server->connections != NULL)
        return;
    loop_timer_close(server->sweep);
    loop_timer_close(server->grace);
    if (server->closed != NULL)
        server->closed(server->closed_data);
    free(server);
}

static void http_server_listener_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;
    server->listener_closed = true;
    http_server_maybe_closed(server);
}

/* Without descriptors left, libuv takes the connection with a spare one and closes it, so that the
 * client is not left waiting; here it is only told. */
static void http_server_on_connection(uv_stream_t *listener, int status)
{
    struct http_server *server = listener->data;
    if (status != 0) {
        log_warn("http", "cannot accept error=%s", log_quote(uv_strerror(status)));
        return;
    }
    if (server->connections == NULL)
        loop_timer_start(server->sweep, HTTP_SWEEP_MS, HTTP_SWEEP_MS);
    http_connection_accept(server);
}

static void http_server_sweep(void *data)
{
    struct http_server *server = data;
    uint64_t now = loop_now_ms(server->loop);
    for (struct http_connection *at = server->connections; at != NULL; at = at->next)
        http_connection_sweep(at, now);
    if (server->connections == NULL)
        loop_timer_stop(server->sweep);
}

static void http_server_cut_all(void *data)
{
    struct http_server *server = data;
    for (struct http_connection *at = server->connections; at != NULL; at = at->next)
        http_connection_close(at);
}

static void http_server_defaults(struct http_server_options *options)
{
    if (options->connections_max == 0)
        options->connections_max = 1024;
    if (options->head_timeout_ms == 0)
        options->head_timeout_ms = 10 * 1000;
    if (options->idle_timeout_ms == 0)
        options->idle_timeout_ms = 60 * 1000;
    if (options->drain_timeout_ms == 0)
        options->drain_timeout_ms = HTTP_DRAIN_MS_MAX;
}

int http_server_open(struct loop *loop, const struct http_server_options *options,
                     const struct http_server_handlers *handlers, struct http_server **out,
                     struct tg_errmsg *msg)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for an HTTP server");
    server->loop = loop;
    server->options = *options;
    http_server_defaults(&server->options);
    server->handlers = *handlers;
    server->listener.data = server;
    server->sweep = loop_timer_open(loop, http_server_sweep, server);
    server->grace = loop_timer_open(loop, http_server_cut_all, server);
    if (server->sweep == NULL || server->grace == NULL) {
        loop_timer_close(server->sweep);
        loop_timer_close(server->grace);
        free(server);
        return tg_fail(msg, TG_NOMEM, "no memory for an HTTP server");
    }
    int err =
        tcp_listen(loop, &server->listener, options->host, options->port, http_server_on_connection,
                   http_server_listener_closed, &server->port, msg);
    if (err != 0) {
        server->closing = true;
        return tg_wrap(msg, err, "HTTP server");
    }
    *out = server;
    return 0;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

size_t http_server_connections(const struct http_server *server)
{
    return server->connection_count;
}

void http_server_close(struct http_server *server, uint64_t grace_ms, void (*closed)(void *data),
                       void *data)
{
    server->closing = true;
    server->closed = closed;
    server->closed_data = data;
    uv_close((uv_handle_t *)&server->listener, http_server_listener_closed);
    for (struct http_connection *at = server->connections; at != NULL; at = at->next)
        if (at->state == HTTP_CONNECTION_HEAD)
            http_connection_close(at);
    loop_timer_start(server->grace, grace_ms, 0);
}
