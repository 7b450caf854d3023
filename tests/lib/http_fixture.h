/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server on a loop of its own thread, with handlers that do what tests want to see, and raw
 * clients that send bytes as they like. */
#ifndef TG_TESTS_LIB_HTTP_FIXTURE_H
#define TG_TESTS_LIB_HTTP_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/net/http_server.h"
#include "common/net/loop.h"

enum {
    CONNECTIONS_MAX = 400,
    HEAD_MS = 600,
    IDLE_MS = 2500,
    DRAIN_MS = 1000,
    MIB = 1024 * 1024,
    STREAM_BYTES = 8 * 1024 * 1024
};

/* Routes:
 *   PUT POST GET /echo   the body comes back when it is complete
 *   PUT /slow            the same, with a pause of 2 ms at each piece
 *   PUT /redirect        307 at once
 *   *   /late            "late" after 30 ms, the body never looked at
 *   PUT /late_read       as /echo, but the body is asked for after 30 ms only
 *   PUT /first_piece     "enough" at the first piece of the body
 *   PUT /drop            drops the body, "late" after 50 ms
 *   *   /abort           closes without an answer
 *   GET /stream          STREAM_BYTES, byte i is 1 + i % 251
 *   GET /broken_stream   "row", then broken off
 *   GET /api/{db}/{table}/_scan   "count db|table peer" */
struct http_fixture {
    struct loop *loop;
    pthread_t thread;
    struct http_server *server;
    uint16_t port;
    atomic_uint requests, ends, aborts, closes, drains;
    atomic_bool server_gone;
    atomic_size_t body_bytes;
};

/* cmocka's set-up and tear-down. The latter closes the server and checks that each exchange was
 * closed once. */
int http_fixture_setup(void **state);
int http_fixture_teardown(void **state);
/* Asks the server to close within 300 ms; the loop ends when it has. call must live until then. */
void http_fixture_stop(struct http_fixture *fixture, struct loop_call *call);
/* Waits (up to 5 s) for a counter the loop's thread moves, then checks it. */
void http_fixture_expect(atomic_uint *counter, unsigned value);

/* A socket to the server, with limits of 10 s on reading and writing. */
int http_fixture_dial(const struct http_fixture *fixture);
/* False if the other side does not take all of it. */
bool http_fixture_put(int fd, const void *bytes, size_t len);
void http_fixture_put_text(int fd, const char *text);
/* Reads until `text` stands in what came (with NULL: to the end). Returns all that is in `in`. */
const char *http_fixture_get_until(int fd, struct buf *in, const char *text);
/* The next answer's status line starts with `status`, it has a Content-Length and this body, and
 * nothing more came. */
void http_fixture_expect_answer(int fd, const char *status, const char *body);
/* True if the other side closed. */
bool http_fixture_is_closed(int fd);

#endif
