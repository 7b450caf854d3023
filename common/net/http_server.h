/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 server on one loop: connections, streamed bodies with back-pressure, answers whole or
 * streamed. Life of a request, all on the loop's thread:
 *
 *   head complete ─▶ handlers.on_request: looks at http_exchange_request(), then calls
 *     either   http_exchange_respond     an early answer: no 100; the body is dropped (bounded);
 *                                        the connection closes unless it was complete already
 *     or       http_exchange_read_body   100 Continue is sent if it was asked for; then
 *                sink.on_body …          pieces, and at last
 *                sink.on_end             or sink.on_abort: the client went away or broke the frame
 *              http_exchange_respond or http_exchange_stream_begin, at any time
 *   finally    on_close, exactly once    the exchange's memory goes away after it returns
 *
 * A handler on another thread posts to the loop. After on_close no function of the exchange may be
 * called; a handler that works elsewhere keeps its own flag (set by on_close on the loop) to know.
 */
#ifndef TG_COMMON_NET_HTTP_SERVER_H
#define TG_COMMON_NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/net/loop.h"

enum {
    HTTP_HEAD_BYTES_MAX = 32 * 1024,
    HTTP_HEADERS_MAX = 128,
    HTTP_TARGET_BYTES_MAX = 8 * 1024,
    /* Of a body nobody wants, before the connection is cut. */
    HTTP_DRAIN_BYTES_MAX = 16 * 1024 * 1024,
    HTTP_DRAIN_MS_MAX = 5000
};

struct http_header {
    const char *name;  /* lower case */
    const char *value; /* blanks trimmed at both ends; "" when empty */
};

enum http_framing {
    HTTP_BODY_NONE, /* neither Content-Length nor chunked */
    HTTP_BODY_LENGTH,
    HTTP_BODY_CHUNKED,
    /* Both headers came: only _stream_load's PUT lets this reach the handler, to refuse it in the
     * words that its clients know; the connection closes after the answer. */
    HTTP_BODY_BOTH
};

struct http_request {
    const char *method; /* "GET" */
    const char *target; /* as received: path?query */
    const char *path;   /* percent-encoded, as received, without the query */
    const char *query;  /* after '?', "" if none */
    const struct http_header *headers;
    size_t header_count;
    enum http_framing framing;
    uint64_t content_length;
    bool expect_continue; /* Expect: 100-continue */
    bool has_expect;      /* an Expect header of any value */
    bool keep_alive;
    char peer[64]; /* client's address, "127.0.0.1" */
};

/* NULL if the header is absent or empty (for loads an empty value equals absent). name in lower
 * case. */
const char *http_request_header(const struct http_request *request, const char *name);
/* Query parameter, percent-decoded ('+' is a blank, as forms and client libraries write it), into
 * out; TG_NOT_FOUND, TG_INVALID (bad escape), TG_TOO_LARGE. The n-th of that name. */
int http_request_query(const struct http_request *request, const char *name, unsigned nth,
                       char *out, size_t cap);
/* The first query parameter whose name is none of the known ones, as it was written and cut to cap,
 * into out; TG_NOT_FOUND if there is none. A misspelt parameter must not be taken for an absent
 * one. */
int http_request_stranger(const struct http_request *request, const char *const *known,
                          size_t count, char *out, size_t cap);
/* Percent-decodes one path segment; '+' stays '+'. TG_INVALID or TG_TOO_LARGE. */
int http_decode_segment(struct slice text, char *out, size_t cap);
void http_encode_userinfo(const char *text, struct buf *out); /* everything reserved as %XX */

struct http_exchange;
struct http_server;

struct http_body_sink {
    /* Bytes of the body, de-chunked. They are the sink's only during the call. */
    void (*on_body)(void *data, const uint8_t *bytes, size_t len);
    /* The body is complete and correctly framed. */
    void (*on_end)(void *data);
    /* The client went away or broke the framing before the end. No more calls but on_close. */
    void (*on_abort)(void *data, int err, const char *why);
    void *data;
};

struct http_server_handlers {
    void (*on_request)(void *ctx, struct http_exchange *exchange);
    void *ctx;
};

struct http_server_options {
    const char *host; /* dotted quad */
    uint16_t port;    /* 0 = any free one */
    /* of these, 0 = the default */
    unsigned connections_max;  /* 1 024; beyond it new ones get 503 and are closed */
    uint64_t head_timeout_ms;  /* 10 000 */
    uint64_t idle_timeout_ms;  /* 60 000: keep-alive without a request; an answer nobody reads */
    uint64_t drain_timeout_ms; /* 5 000: linger after an early answer */
};

/* Before the loop runs, or on it. Options and handlers are copied; host is needed during the call.
 * TG_NOMEM; TG_INVALID, TG_IO: the address cannot be listened on, msg says why. */
int http_server_open(struct loop *loop, const struct http_server_options *options,
                     const struct http_server_handlers *handlers, struct http_server **server,
                     struct tg_errmsg *msg);
uint16_t http_server_port(const struct http_server *server);
/* Stops listening; connections without a request close, others finish. closed is called when all
 * are gone (at most grace_ms later, then they are cut). */
void http_server_close(struct http_server *server, uint64_t grace_ms, void (*closed)(void *data),
                       void *data);
size_t http_server_connections(const struct http_server *server);

const struct http_request *http_exchange_request(const struct http_exchange *exchange);
/* data for the handler's own use; on_close is called exactly once at the end of the exchange, also
 * when the connection was lost. */
void http_exchange_on_close(struct http_exchange *exchange, void (*on_close)(void *data),
                            void *data);
/* Begins (or goes on) delivering the body. */
void http_exchange_read_body(struct http_exchange *exchange, const struct http_body_sink *sink);
/* Back-pressure: no on_body between pause and resume (at most one socket buffer of 64 KiB already
 * read is held). */
void http_exchange_pause(struct http_exchange *exchange);
void http_exchange_resume(struct http_exchange *exchange);
/* Makes on_body stop for good: what still comes is drained within limits and dropped. */
void http_exchange_drop_body(struct http_exchange *exchange);

/* A whole answer. headers: extra header lines "Name: value\r\n…" or NULL. The bytes are copied.
 * Content-Length, Connection, Date and, if content_type is not NULL, Content-Type are added. HEAD
 * answers carry no body. */
void http_exchange_respond(struct http_exchange *exchange, int status, const char *content_type,
                           const char *headers, const void *body, size_t len);
/* Closes the connection without any answer (rule 11: an outcome that cannot be known). */
void http_exchange_abort(struct http_exchange *exchange);

/* A streamed answer (chunked). write copies; when more than HTTP_WRITE_HIGH bytes wait, on_drain is
 * called once they went below half of it. Ends with stream_end, or with stream_abort (the client
 * sees a broken frame, never a result that looks whole). */
enum { HTTP_WRITE_HIGH = 1024 * 1024 };
void http_exchange_stream_begin(struct http_exchange *exchange, int status,
                                const char *content_type, const char *headers,
                                void (*on_drain)(void *data), void *data);
void http_exchange_stream_write(struct http_exchange *exchange, const void *bytes, size_t len);
bool http_exchange_stream_full(const struct http_exchange *exchange);
void http_exchange_stream_end(struct http_exchange *exchange);
void http_exchange_stream_abort(struct http_exchange *exchange);

#endif
