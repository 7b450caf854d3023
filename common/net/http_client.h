/* SPDX-License-Identifier: Apache-2.0 */
/* A small blocking HTTP/1.1 client for the command-line tool, tests and benches: one connection
 * kept alive, no TLS, no redirects by itself (the caller sees the 307). Not for event loops. */
#ifndef TG_COMMON_NET_HTTP_CLIENT_H
#define TG_COMMON_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

enum {
    HTTP_CLIENT_HEAD_BYTES_MAX = 64 * 1024,
    HTTP_CLIENT_BODY_BYTES_MAX = 1024 * 1024 * 1024, /* of an answer */
    HTTP_CLIENT_CHUNK_BYTES = 256 * 1024,            /* what produce is asked for at a time */
    /* Wait for 100 Continue, where it was asked for, before sending anyway. */
    HTTP_CLIENT_CONTINUE_MS = 3000
};

struct http_client;

struct http_reply {
    int status;
    struct buf head; /* raw header lines */
    struct buf body;
};

/* timeout_ms: the longest silence (connecting, sending, waiting for the answer) before TG_TIMEOUT.
 * Connects with the first request. TG_INVALID if the address is none. */
int http_client_open(const char *address /* host:port */, uint64_t timeout_ms,
                     struct http_client **client, struct tg_errmsg *msg);
void http_client_close(struct http_client *client);
/* headers: "Name: value\r\n" lines or NULL. A body of NULL sends Content-Length: 0 for PUT and
 * POST. Reconnects once if a kept connection turns out dead before anything was answered. Returns 0
 * whenever a whole answer came, whatever its status. */
int http_client_request(struct http_client *client, const char *method, const char *target,
                        const char *headers, const void *body, size_t len, struct http_reply *reply,
                        struct tg_errmsg *msg);
/* A body produced in pieces and sent chunked: produce fills up to cap bytes and returns how many, 0
 * at the end, negative to break off. */
int http_client_request_chunked(struct http_client *client, const char *method, const char *target,
                                const char *headers,
                                long (*produce)(void *data, void *bytes, size_t cap), void *data,
                                struct http_reply *reply, struct tg_errmsg *msg);
/* Value of an answer's header, copied into out; TG_NOT_FOUND. */
int http_reply_header(const struct http_reply *reply, const char *name, char *out, size_t cap);
void http_reply_close(struct http_reply *reply);

#endif
