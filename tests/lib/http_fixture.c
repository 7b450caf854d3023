/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server that tests talk to, and their raw end of the talk. */
#include "tests/lib/http_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/net/http_router.h"

/* ---- the server under test ---- */

/* What one handler keeps of one exchange. */
struct job {
    struct http_fixture *fixture;
    struct http_exchange *exchange;
    struct buf body;
    struct loop_timer *timer;
    size_t streamed;
    bool slow; /* pauses at every piece */
};

static void job_close(void *data)
{
    struct job *job = data;
    job->fixture->closes++;
    loop_timer_close(job->timer);
    buf_close(&job->body);
    free(job);
}

static struct job *job_open(struct http_fixture *fixture, struct http_exchange *exchange)
{
    struct job *job = calloc(1, sizeof *job);
    job->fixture = fixture;
    job->exchange = exchange;
    fixture->requests++;
    http_exchange_on_close(exchange, job_close, job);
    return job;
}

static void job_on_body(void *data, const uint8_t *bytes, size_t len)
{
    struct job *job = data;
    buf_append(&job->body, bytes, len);
    job->fixture->body_bytes += len;
    if (job->slow) {
        http_exchange_pause(job->exchange);
        loop_timer_start(job->timer, 2, 0);
    }
}

static void job_on_end(void *data)
{
    struct job *job = data;
    job->fixture->ends++;
    http_exchange_respond(job->exchange, 200, "application/octet-stream", "X-Job: done\r\n",
                          job->body.data, job->body.len);
}

static void job_on_abort(void *data, int err, const char *why)
{
    struct job *job = data;
    assert_true(err == TG_CLOSED || err == TG_CORRUPT);
    assert_non_null(why);
    job->fixture->aborts++;
}

static void job_read(struct job *job)
{
    struct http_body_sink sink = {
        .on_body = job_on_body, .on_end = job_on_end, .on_abort = job_on_abort, .data = job};
    http_exchange_read_body(job->exchange, &sink);
}

static void handle_echo(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    (void)params;
    job_read(job_open(ctx, exchange));
}

static void job_resume(void *data)
{
    http_exchange_resume(((struct job *)data)->exchange);
}

static void handle_slow(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    (void)params;
    struct job *job = job_open(ctx, exchange);
    job->timer = loop_timer_open(job->fixture->loop, job_resume, job);
    job->slow = true;
    job_read(job);
}

static void handle_redirect(void *ctx, struct http_exchange *exchange,
                            const struct http_params *params)
{
    (void)params;
    job_open(ctx, exchange);
    http_exchange_respond(exchange, 307, NULL, "Location: http://elsewhere/\r\n", NULL, 0);
}

static void job_late(void *data)
{
    struct job *job = data;
    http_exchange_respond(job->exchange, 200, "text/plain", NULL, "late", 4);
}

static void handle_late(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    (void)params;
    struct job *job = job_open(ctx, exchange);
    job->timer = loop_timer_open(job->fixture->loop, job_late, job);
    loop_timer_start(job->timer, 30, 0);
}

static void job_late_read(void *data)
{
    job_read(data);
}

/* Looks at the body only after a while. */
static void handle_late_read(void *ctx, struct http_exchange *exchange,
                             const struct http_params *params)
{
    (void)params;
    struct job *job = job_open(ctx, exchange);
    job->timer = loop_timer_open(job->fixture->loop, job_late_read, job);
    loop_timer_start(job->timer, 30, 0);
}

/* Takes the first piece of the body, then answers. */
static void job_answer_early(void *data, const uint8_t *bytes, size_t len)
{
    struct job *job = data;
    (void)bytes;
    (void)len;
    http_exchange_respond(job->exchange, 200, NULL, NULL, "enough", 6);
}

static void handle_first_piece(void *ctx, struct http_exchange *exchange,
                               const struct http_params *params)
{
    (void)params;
    struct job *job = job_open(ctx, exchange);
    struct http_body_sink sink = {
        .on_body = job_answer_early, .on_end = job_on_end, .on_abort = job_on_abort, .data = job};
    http_exchange_read_body(exchange, &sink);
}

static void handle_drop(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    (void)params;
    struct job *job = job_open(ctx, exchange);
    job->timer = loop_timer_open(job->fixture->loop, job_late, job);
    job_read(job);
    http_exchange_drop_body(exchange);
    loop_timer_start(job->timer, 50, 0);
}

static void handle_abort(void *ctx, struct http_exchange *exchange,
                         const struct http_params *params)
{
    (void)params;
    job_open(ctx, exchange);
    http_exchange_abort(exchange);
}

static void job_stream(void *data)
{
    struct job *job = data;
    char piece[10000];
    while (job->streamed < STREAM_BYTES && !http_exchange_stream_full(job->exchange)) {
        size_t n = STREAM_BYTES - job->streamed < sizeof piece ? STREAM_BYTES - job->streamed
                                                               : sizeof piece;
        for (size_t i = 0; i < n; i++)
            piece[i] = (char)(1 + (job->streamed + i) % 251);
        http_exchange_stream_write(job->exchange, piece, n);
        job->streamed += n;
    }
    if (job->streamed == STREAM_BYTES)
        http_exchange_stream_end(job->exchange);
}

static void job_on_drain(void *data)
{
    struct job *job = data;
    job->fixture->drains++;
    job_stream(job);
}

static void handle_stream(void *ctx, struct http_exchange *exchange,
                          const struct http_params *params)
{
    (void)params;
    struct job *job = job_open(ctx, exchange);
    http_exchange_stream_begin(exchange, 200, "text/plain", NULL, job_on_drain, job);
    job_stream(job);
}

static void job_break_stream(void *data)
{
    http_exchange_stream_abort(((struct job *)data)->exchange);
}

static void handle_broken_stream(void *ctx, struct http_exchange *exchange,
                                 const struct http_params *params)
{
    (void)params;
    struct job *job = job_open(ctx, exchange);
    job->timer = loop_timer_open(job->fixture->loop, job_break_stream, job);
    http_exchange_stream_begin(exchange, 200, "text/plain", NULL, NULL, NULL);
    http_exchange_stream_write(exchange, "row", 3);
    loop_timer_start(job->timer, 20, 0);
}

static void handle_params(void *ctx, struct http_exchange *exchange,
                          const struct http_params *params)
{
    struct job *job = job_open(ctx, exchange);
    buf_printf(&job->body, "%zu %s|%s %s", params->count, params->value[0], params->value[1],
               http_exchange_request(exchange)->peer);
    http_exchange_respond(exchange, 200, NULL, NULL, job->body.data, job->body.len);
}

static const struct http_route routes[] = {
    {"PUT", "/echo", handle_echo},
    {"POST", "/echo", handle_echo},
    {"GET", "/echo", handle_echo},
    {"PUT", "/slow", handle_slow},
    {"PUT", "/redirect", handle_redirect},
    {"*", "/late", handle_late},
    {"PUT", "/late_read", handle_late_read},
    {"PUT", "/first_piece", handle_first_piece},
    {"PUT", "/drop", handle_drop},
    {"*", "/abort", handle_abort},
    {"GET", "/stream", handle_stream},
    {"GET", "/broken_stream", handle_broken_stream},
    {"GET", "/api/{db}/{table}/_scan", handle_params},
};

static void on_request(void *ctx, struct http_exchange *exchange)
{
    http_router_dispatch(routes, sizeof routes / sizeof routes[0], ctx, exchange);
}

static void *http_fixture_run(void *data)
{
    loop_run(((struct http_fixture *)data)->loop);
    return NULL;
}

int http_fixture_setup(void **state)
{
    struct http_fixture *fixture = calloc(1, sizeof *fixture);
    struct http_server_options options = {.host = "127.0.0.1",
                                          .connections_max = CONNECTIONS_MAX,
                                          .head_timeout_ms = HEAD_MS,
                                          .idle_timeout_ms = IDLE_MS,
                                          .drain_timeout_ms = DRAIN_MS};
    struct http_server_handlers handlers = {.on_request = on_request, .ctx = fixture};
    assert_int_equal(loop_open(&fixture->loop, NULL), 0);
    assert_int_equal(http_server_open(fixture->loop, &options, &handlers, &fixture->server, NULL),
                     0);
    fixture->port = http_server_port(fixture->server);
    pthread_create(&fixture->thread, NULL, http_fixture_run, fixture);
    *state = fixture;
    return 0;
}

static void http_fixture_server_closed(void *data)
{
    struct http_fixture *fixture = data;
    fixture->server_gone = true;
    loop_stop(fixture->loop);
}

static void http_fixture_close_server(struct loop_call *call)
{
    struct http_fixture *fixture = call->data;
    http_server_close(fixture->server, 300, http_fixture_server_closed, fixture);
}

void http_fixture_stop(struct http_fixture *fixture, struct loop_call *call)
{
    *call = (struct loop_call){.run = http_fixture_close_server, .data = fixture};
    loop_post(fixture->loop, call);
}

int http_fixture_teardown(void **state)
{
    struct http_fixture *fixture = *state;
    struct loop_call call;
    http_fixture_stop(fixture, &call);
    pthread_join(fixture->thread, NULL);
    assert_true(fixture->server_gone);
    assert_int_equal(fixture->requests, fixture->closes); /* on_close exactly once each */
    loop_close(fixture->loop);
    free(fixture);
    return 0;
}

/* ---- raw clients ---- */

int http_fixture_dial(const struct http_fixture *fixture)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct timeval limit = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(fixture->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

bool http_fixture_put(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

void http_fixture_put_text(int fd, const char *text)
{
    assert_true(http_fixture_put(fd, text, strlen(text)));
}

/* Reads until `text` stands in what came (or, with NULL, to the end). Returns all of it. */
const char *http_fixture_get_until(int fd, struct buf *in, const char *text)
{
    size_t looked = 0;
    size_t text_len = text == NULL ? 0 : strlen(text);
    for (;;) {
        if (text != NULL && in->len >= looked + text_len &&
            memmem(in->data + looked, in->len - looked, text, text_len) != NULL)
            break;
        if (text != NULL && in->len >= text_len)
            looked = in->len - text_len;
        char bytes[16384];
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0)
            break;
        buf_append(in, bytes, (size_t)n);
    }
    return buf_cstr(in);
}

/* One answer's status line starts with `status` and its end is body. */
void http_fixture_expect_answer(int fd, const char *status, const char *body)
{
    struct buf in = BUF_INIT;
    const char *text = http_fixture_get_until(fd, &in, "\r\n\r\n");
    if (strncmp(text, status, strlen(status)) != 0)
        print_message("wanted %s, got: %s\n", status, text);
    assert_true(strncmp(text, status, strlen(status)) == 0);
    const char *length = strstr(text, "Content-Length: ");
    assert_non_null(length);
    size_t want = (size_t)atol(length + 16);
    size_t head_len = (size_t)(strstr(text, "\r\n\r\n") + 4 - text);
    while (in.len < head_len + want) {
        char bytes[4096];
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        assert_true(n > 0);
        buf_append(&in, bytes, (size_t)n);
    }
    assert_int_equal(in.len, head_len + want);
    assert_string_equal(buf_cstr(&in) + head_len, body);
    buf_close(&in);
}

bool http_fixture_is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0) <= 0;
}

/* Waits for a counter the loop's thread moves. */
void http_fixture_expect(atomic_uint *counter, unsigned value)
{
    for (int i = 0; i < 5000 && atomic_load(counter) < value; i++)
        usleep(1000);
    assert_int_equal(atomic_load(counter), value);
}
