/* SPDX-License-Identifier: Apache-2.0 */
/* Insides of the HTTP server, shared by its files: a connection and the exchange it carries.
 *
 *   HEAD ──head complete──▶ EXCHANGE ──answered, body complete, keep-alive──▶ HEAD
 *     │                        │
 *     └─ bad head, time ─▶ FINISHING ◀─ answered, but the body is not complete, or no keep-alive
 *                              │ everything written, our half closed
 *                              ▼
 *                           LINGER: what still comes is read and dropped, within limits ──▶ CLOSING
 *
 * User callbacks may call back into the exchange at any point, so nothing is freed or finished
 * under them: an answer only queues bytes and arms the connection's hook, and the hook, at the end
 * of the turn, writes, finishes and goes on. */
#ifndef TG_COMMON_NET_HTTP_CONNECTION_H
#define TG_COMMON_NET_HTTP_CONNECTION_H

#include <uv.h>

#include "common/net/http_body.h"
#include "common/net/http_head.h"
#include "common/net/http_server.h"

enum {
    HTTP_SWEEP_MS = 250,    /* how often deadlines are looked at */
    HTTP_REFUSALS_MAX = 64, /* connections over the limit that still get their 503 */
    HTTP_OUT_BYTES_MAX = 256 * 1024 * 1024, /* a stream whose writer ignores stream_full is cut */
    HTTP_OUT_KEEP_BYTES = 16 * 1024 /* larger output memory is given back when it is empty */
};

enum http_connection_state {
    HTTP_CONNECTION_HEAD,
    HTTP_CONNECTION_EXCHANGE,
    HTTP_CONNECTION_FINISHING,
    HTTP_CONNECTION_LINGER,
    HTTP_CONNECTION_CLOSING
};

struct http_exchange {
    struct http_connection *connection;
    struct http_body body;
    struct http_body_sink sink;
    bool has_sink;
    bool paused;
    bool dropping;    /* nobody wants the body any more */
    bool body_seen;   /* at least one byte of it came */
    bool body_done;   /* complete */
    bool body_broken; /* will never be complete */
    uint64_t dropped;

    bool answered;    /* its head is queued */
    bool answer_done; /* all of it is queued */
    bool keep_alive;  /* promised in the answer */
    bool head_only;
    bool chunked; /* the streamed answer is */
    bool was_full;
    bool abort_asked;
    bool break_asked; /* abort, and let the client see that it was one */
    void (*on_drain)(void *data);
    void *drain_data;
    void (*on_close)(void *data);
    void *close_data;

    struct http_head head;
    char text[];
};

struct http_connection {
    struct http_server *server;
    struct http_connection *previous, *next;
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct loop_turn_hook hook;
    enum http_connection_state state;
    struct http_exchange *exchange;
    struct http_head_scan scan;
    struct buf in;      /* bytes that came but could not be used yet */
    struct slice rest;  /* what lies behind the byte that is being handled */
    bool handling;      /* rest is about bytes of a read under way, not about `in` */
    struct buf out;     /* queued in this turn */
    struct buf writing; /* handed to the kernel */
    bool write_busy;
    bool reading;
    bool peer_ended; /* the client closed its half */
    char peer[64];
    uint64_t deadline_ms;
    uint64_t drain_left;
    size_t last_waiting; /* bytes unwritten at the last sweep */
    uint64_t progress_ms;
};

struct http_server {
    struct loop *loop;
    struct http_server_handlers handlers;
    struct http_server_options options;
    uv_tcp_t listener;
    bool listener_closed;
    bool closing;
    uint16_t port;
    struct http_connection *connections;
    size_t connection_count;
    struct loop_timer *sweep;
    struct loop_timer *grace;
    void (*closed)(void *data);
    void *closed_data;
};

/* A connection that the listener has waiting. */
void http_connection_accept(struct http_server *server);
/* Cuts it. The exchange, if any, is told. Not from under a user's callback about this connection.
 */
void http_connection_close(struct http_connection *connection);
/* Looks at the deadlines. */
void http_connection_sweep(struct http_connection *connection, uint64_t now_ms);
/* Something changed: the hook has to look at it at the end of the turn. */
void http_connection_wake(struct http_connection *connection);
/* Bytes not yet with the kernel. */
size_t http_connection_waiting(const struct http_connection *connection);
/* True if what is left of the body has already come (or there is nothing left of it). */
bool http_connection_body_is_here(const struct http_exchange *exchange);
/* A connection's memory is gone. */
void http_server_maybe_closed(struct http_server *server);

/* http_exchange.c: */
/* The exchange is over: on_close and the memory. */
void http_exchange_free(struct http_exchange *exchange);
/* The body will not be complete: tells the sink; then, if nobody answered, answers `status` (0: not
 * at all). */
void http_exchange_break_body(struct http_exchange *exchange, int err, const char *why, int status);
/* True if bytes of the body should be read and decoded now. */
bool http_exchange_wants_body(const struct http_exchange *exchange);

#endif
