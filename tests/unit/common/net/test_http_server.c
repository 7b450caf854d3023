/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the HTTP server over loopback: a loop in a thread, raw clients in the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/http_router.h"
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

/* ---- the server under test ---- */

struct fixture {
    struct loop *loop;
    pthread_t thread;
    struct http_server *server;
    uint16_t port;
    atomic_uint requests, ends, aborts, closes, drains;
    atomic_bool server_gone;
    atomic_size_t body_bytes;
};

/* What one handler keeps of one exchange. */
struct job {
    struct fixture *fixture;
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

static struct job *job_open(struct fixture *fixture, struct http_exchange *exchange)
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

static void *fixture_run(void *data)
{
    loop_run(((struct fixture *)data)->loop);
    return NULL;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
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
    pthread_create(&fixture->thread, NULL, fixture_run, fixture);
    *state = fixture;
    return 0;
}

static void fixture_server_closed(void *data)
{
    struct fixture *fixture = data;
    fixture->server_gone = true;
    loop_stop(fixture->loop);
}

static void fixture_stop(struct loop_call *call)
{
    struct fixture *fixture = call->data;
    http_server_close(fixture->server, 300, fixture_server_closed, fixture);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    struct loop_call call = {.run = fixture_stop, .data = fixture};
    loop_post(fixture->loop, &call);
    pthread_join(fixture->thread, NULL);
    assert_true(fixture->server_gone);
    assert_int_equal(fixture->requests, fixture->closes); /* on_close exactly once each */
    loop_close(fixture->loop);
    free(fixture);
    return 0;
}

/* ---- raw clients ---- */

static int dial(const struct fixture *fixture)
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

static bool put(int fd, const void *bytes, size_t len)
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

static void put_text(int fd, const char *text)
{
    assert_true(put(fd, text, strlen(text)));
}

/* Reads until `text` stands in what came (or, with NULL, to the end). Returns all of it. */
static const char *get_until(int fd, struct buf *in, const char *text)
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
static void expect_answer(int fd, const char *status, const char *body)
{
    struct buf in = BUF_INIT;
    const char *text = get_until(fd, &in, "\r\n\r\n");
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

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0) <= 0;
}

/* Waits for a counter the loop's thread moves. */
static void expect_count(atomic_uint *counter, unsigned value)
{
    for (int i = 0; i < 5000 && atomic_load(counter) < value; i++)
        usleep(1000);
    assert_int_equal(atomic_load(counter), value);
}

#define H "HTTP/1.1\r\nHost: h\r\n"

static void test_keep_alive_serves_one_request_after_the_other(void **state)
{
    int fd = dial(*state);
    for (int i = 0; i < 5; i++) {
        put_text(fd, "PUT /echo " H "Content-Length: 5\r\n\r\nhello");
        expect_answer(fd, "HTTP/1.1 200 OK", "hello");
        put_text(fd, "GET /echo " H "\r\n");
        expect_answer(fd, "HTTP/1.1 200 OK", "");
    }
    put_text(fd, "PUT /echo " H "Connection: close\r\nContent-Length: 1\r\n\r\nx");
    expect_answer(fd, "HTTP/1.1 200 OK", "x");
    assert_true(is_closed(fd));
    close(fd);
}

static void test_http_1_0_is_kept_only_if_asked(void **state)
{
    int fd = dial(*state);
    put_text(fd, "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na");
    expect_answer(fd, "HTTP/1.1 200 OK", "a");
    put_text(fd, "POST /echo HTTP/1.0\r\nContent-Length: 1\r\n\r\nb");
    expect_answer(fd, "HTTP/1.1 200 OK", "b");
    assert_true(is_closed(fd));
    close(fd);
}

static void test_a_request_comes_whole_however_it_is_cut(void **state)
{
    struct fixture *fixture = *state;
    static const char request[] = "PUT /echo " H "Transfer-Encoding: chunked\r\n\r\n"
                                  "3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: x\r\n\r\n";
    size_t len = strlen(request);
    int fd = dial(fixture);
    for (size_t cut = 1; cut < len; cut++) {
        assert_true(put(fd, request, cut));
        usleep(cut % 8 == 0 ? 300 : 0);
        assert_true(put(fd, request + cut, len - cut));
        expect_answer(fd, "HTTP/1.1 200 OK", "abcde");
    }
    for (size_t i = 0; i < len; i++)
        assert_true(put(fd, request + i, 1));
    expect_answer(fd, "HTTP/1.1 200 OK", "abcde");
    close(fd);
}

static void test_pipelined_requests_are_answered_in_order(void **state)
{
    int fd = dial(*state);
    put_text(fd, "PUT /late " H "Content-Length: 0\r\n\r\n"
                 "PUT /echo " H "Content-Length: 1\r\n\r\n2\r\n"
                 "GET /api/d/t/_scan " H "Connection: close\r\n\r\n");
    struct buf in = BUF_INIT;
    const char *text = get_until(fd, &in, NULL);
    const char *first = strstr(text, "late");
    assert_non_null(first);
    const char *second = strstr(first, "\r\n\r\n2");
    assert_non_null(second);
    assert_non_null(strstr(second, "2 d|t 127.0.0.1"));
    buf_close(&in);
    close(fd);
}

static void test_100_continue_is_sent_when_the_body_is_wanted(void **state)
{
    int fd = dial(*state);
    struct buf in = BUF_INIT;
    put_text(fd, "PUT /echo " H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_string_equal(get_until(fd, &in, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    put_text(fd, "hi");
    expect_answer(fd, "HTTP/1.1 200 OK", "hi");
    /* not if the body is there already, and not for an empty one */
    put_text(fd, "PUT /echo " H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi");
    expect_answer(fd, "HTTP/1.1 200 OK", "hi");
    put_text(fd, "PUT /echo " H "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n");
    expect_answer(fd, "HTTP/1.1 200 OK", "");
    /* nor if the answer is another one */
    put_text(fd, "PUT /redirect " H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    expect_answer(fd, "HTTP/1.1 307", "");
    assert_true(is_closed(fd));
    buf_close(&in);
    close(fd);
}

static void test_a_late_reader_still_sends_the_100(void **state)
{
    int fd = dial(*state);
    struct buf in = BUF_INIT;
    put_text(fd, "PUT /late_read " H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_string_equal(get_until(fd, &in, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    put_text(fd, "hi");
    expect_answer(fd, "HTTP/1.1 200 OK", "hi");
    put_text(fd, "PUT /late_read " H "Content-Length: 3\r\n\r\nyes");
    expect_answer(fd, "HTTP/1.1 200 OK", "yes");
    put_text(fd, "PUT /late_read " H "\r\n");
    expect_answer(fd, "HTTP/1.1 200 OK", "");
    buf_close(&in);
    close(fd);
}

/* ---- early answers ---- */

static void test_an_early_answer_is_readable_while_4_mib_are_sent(void **state)
{
    char *body = malloc(4 * MIB);
    for (size_t i = 0; i < 4 * MIB; i += 2)
        memcpy(body + i, "1\n", 2);
    for (int i = 0; i < 100; i++) {
        int fd = dial(*state);
        if (i % 2 == 0)
            put_text(fd, "PUT /redirect " H "Content-Length: 4194304\r\n\r\n");
        else
            put_text(fd, "PUT /redirect " H "Transfer-Encoding: chunked\r\n\r\n400000\r\n");
        assert_true(put(fd, body, 4 * MIB));
        struct buf in = BUF_INIT;
        const char *text = get_until(fd, &in, NULL);
        assert_true(strncmp(text, "HTTP/1.1 307 Temporary Redirect\r\n", 33) == 0);
        assert_non_null(strstr(text, "\r\nLocation: http://elsewhere/\r\n"));
        assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
        buf_close(&in);
        close(fd);
    }
    free(body);
}

static void test_an_early_answer_keeps_the_connection_if_the_body_is_all_there(void **state)
{
    int fd = dial(*state);
    for (int i = 0; i < 3; i++) {
        put_text(fd, "PUT /redirect " H "Content-Length: 4\r\n\r\nbody");
        expect_answer(fd, "HTTP/1.1 307", "");
        put_text(fd, "PUT /redirect " H "Content-Length: 0\r\n\r\n");
        expect_answer(fd, "HTTP/1.1 307", "");
        put_text(fd, "PUT /redirect " H "\r\n"); /* no framing at all */
        expect_answer(fd, "HTTP/1.1 307", "");
        put_text(fd, "PUT /redirect " H "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
        expect_answer(fd, "HTTP/1.1 307", "");
    }
    close(fd);
}

static void test_an_answer_in_the_middle_of_the_body_ends_it(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    put_text(fd, "PUT /first_piece " H "Content-Length: 1000000\r\n\r\nsome");
    expect_answer(fd, "HTTP/1.1 200", "enough");
    assert_true(is_closed(fd));
    close(fd);
    assert_int_equal(fixture->aborts, 0);
}

static void test_more_than_the_drain_limit_is_cut(void **state)
{
    char *body = calloc(1, MIB);
    int fd = dial(*state);
    put_text(fd, "PUT /redirect " H "Content-Length: 1000000000\r\n\r\n");
    int sent = 0;
    while (sent < 64 && put(fd, body, MIB))
        sent++;
    assert_true(sent >= HTTP_DRAIN_BYTES_MAX / MIB - 1);
    assert_true(sent < 64);
    close(fd);
    free(body);
}

static void test_a_dropped_body_is_read_and_forgotten(void **state)
{
    struct fixture *fixture = *state;
    char *body = calloc(1, MIB);
    int fd = dial(fixture);
    put_text(fd, "PUT /drop " H "Content-Length: 1048576\r\n\r\n");
    assert_true(put(fd, body, MIB));
    expect_answer(fd, "HTTP/1.1 200", "late");
    put_text(fd, "PUT /echo " H "Content-Length: 1\r\n\r\nx");
    expect_answer(fd, "HTTP/1.1 200", "x");
    assert_int_equal(fixture->body_bytes, 1);
    close(fd);
    free(body);
}

static void test_both_framings_are_answered_and_closed(void **state)
{
    int fd = dial(*state);
    put_text(fd, "PUT /redirect " H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "0\r\n\r\nGET /echo " H "\r\n");
    expect_answer(fd, "HTTP/1.1 307", "");
    assert_true(is_closed(fd));
    close(fd);
    fd = dial(*state);
    put_text(fd, "PUT /echo " H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "1\r\nx\r\n0\r\n\r\n");
    expect_answer(fd, "HTTP/1.1 200", "x");
    assert_true(is_closed(fd));
    close(fd);
    fd = dial(*state);
    put_text(fd, "POST /echo " H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
    expect_answer(fd, "HTTP/1.1 400", "both Content-Length and Transfer-Encoding\n");
    assert_true(is_closed(fd));
    close(fd);
}

/* ---- back-pressure ---- */

static void test_a_slow_reader_slows_the_client_and_loses_nothing(void **state)
{
    struct fixture *fixture = *state;
    size_t len = 2 * MIB;
    char *body = malloc(len);
    for (size_t i = 0; i < len; i++)
        body[i] = (char)(i % 253);
    int fd = dial(fixture);
    put_text(fd, "PUT /slow " H "Connection: close\r\nContent-Length: 2097152\r\n\r\n");
    assert_true(put(fd, body, len));
    struct buf in = BUF_INIT;
    get_until(fd, &in, NULL);
    assert_true(in.len > len);
    assert_memory_equal(in.data + in.len - len, body, len);
    buf_close(&in);
    free(body);
    close(fd);
}

static void test_a_stream_waits_for_its_reader(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    put_text(fd, "GET /stream " H "\r\n");
    usleep(50000); /* nobody reads: the producer must have stopped */
    struct buf in = BUF_INIT;
    get_until(fd, &in, "\r\n0\r\n\r\n");
    assert_true(atomic_load(&fixture->drains) > 0);
    /* de-chunk by hand */
    char *at = strstr((const char *)in.data, "\r\n\r\n") + 4;
    size_t seen = 0;
    for (;;) {
        size_t n = strtoul(at, &at, 16);
        at += 2;
        for (size_t i = 0; i < n; i++, seen++)
            if ((unsigned char)at[i] != 1 + seen % 251)
                fail();
        at += n + 2;
        if (n == 0)
            break;
    }
    assert_int_equal(seen, STREAM_BYTES);
    put_text(fd, "PUT /echo " H "Content-Length: 1\r\n\r\nx");
    expect_answer(fd, "HTTP/1.1 200", "x");
    buf_close(&in);
    close(fd);
}

static void test_a_stream_to_http_1_0_ends_with_the_connection(void **state)
{
    int fd = dial(*state);
    put_text(fd, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    struct buf in = BUF_INIT;
    const char *text = get_until(fd, &in, NULL);
    assert_non_null(strstr(text, "Connection: close\r\n"));
    assert_null(strstr(text, "chunked"));
    size_t head_len = (size_t)(strstr(text, "\r\n\r\n") + 4 - text);
    assert_int_equal(in.len - head_len, STREAM_BYTES);
    buf_close(&in);
    close(fd);
}

static void test_a_broken_stream_never_looks_whole(void **state)
{
    int fd = dial(*state);
    put_text(fd, "GET /broken_stream " H "\r\n");
    struct buf in = BUF_INIT;
    const char *text = get_until(fd, &in, NULL);
    assert_non_null(strstr(text, "3\r\nrow\r\n"));
    assert_null(strstr(text, "0\r\n\r\n"));
    buf_close(&in);
    close(fd);
}

static void test_head_answers_have_no_body(void **state)
{
    int fd = dial(*state);
    struct buf in = BUF_INIT;
    put_text(fd, "HEAD /api/d/t/_scan " H "\r\nHEAD /stream " H "\r\nHEAD /nothing " H
                 "Connection: close\r\n\r\n");
    const char *text = get_until(fd, &in, NULL);
    assert_non_null(strstr(text, "Content-Length: 15\r\n"));
    assert_null(strstr(text, "2 d|t"));
    assert_non_null(strstr(text, "chunked"));
    assert_non_null(strstr(text, "404 Not Found"));
    assert_null(strstr(text, "0\r\n\r\n0"));
    buf_close(&in);
    close(fd);
}

/* ---- clients that go away ---- */

static void test_a_client_that_goes_inside_the_body_aborts_it(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    put_text(fd, "PUT /echo " H "Content-Length: 100\r\n\r\npart");
    while (atomic_load(&fixture->body_bytes) < 4)
        usleep(1000);
    close(fd);
    expect_count(&fixture->aborts, 1);
    expect_count(&fixture->closes, 1);
    assert_int_equal(fixture->ends, 0);
}

static void test_a_client_that_resets_while_nobody_reads_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    put_text(fd, "PUT /late_read " H "Content-Length: 100\r\n\r\npart");
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    expect_count(&fixture->closes, 1);
}

static void test_a_half_closed_client_gets_its_answer(void **state)
{
    int fd = dial(*state);
    put_text(fd, "PUT /late " H "Content-Length: 4\r\n\r\nbody");
    shutdown(fd, SHUT_WR);
    expect_answer(fd, "HTTP/1.1 200", "late");
    assert_true(is_closed(fd));
    close(fd);
    fd = dial(*state);
    put_text(fd, "PUT /slow " H "Content-Length: 4\r\n\r\nbody");
    shutdown(fd, SHUT_WR);
    expect_answer(fd, "HTTP/1.1 200", "body");
    close(fd);
}

static void test_a_half_closed_client_with_half_a_body_is_aborted(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    put_text(fd, "PUT /slow " H "Content-Length: 10\r\n\r\nbody");
    shutdown(fd, SHUT_WR);
    assert_true(is_closed(fd));
    expect_count(&fixture->aborts, 1);
    close(fd);
}

static void test_broken_chunks_abort_the_body_with_400(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    put_text(fd, "PUT /echo " H "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n");
    expect_answer(fd, "HTTP/1.1 400", "chunk longer than its size");
    assert_true(is_closed(fd));
    assert_int_equal(fixture->aborts, 1);
    close(fd);
}

static void test_an_aborted_exchange_gets_no_answer(void **state)
{
    int fd = dial(*state);
    put_text(fd, "GET /abort " H "\r\n");
    assert_true(is_closed(fd));
    close(fd);
}

/* ---- limits ---- */

static void test_bad_and_oversize_heads_are_told_so(void **state)
{
    static const struct {
        const char *head;
        const char *status;
    } cases[] = {
        {"GET / HTTP/1.1\nHost: h\n\n", "HTTP/1.1 400"},
        {"GET /echo HTTP/3.0\r\nHost: h\r\n\r\n", "HTTP/1.1 505"},
        {"\x16\x03\x01\x02", "HTTP/1.1 400"}, /* TLS on the wrong port */
        {"PUT /echo " H "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501"},
        {"GET /nothing " H "Connection: close\r\n\r\n", "HTTP/1.1 404"},
        {"DELETE /echo " H "Connection: close\r\n\r\n", "HTTP/1.1 405"},
        {"GET /api/%zz/t/_scan " H "Connection: close\r\n\r\n", "HTTP/1.1 400"},
        {"GET /api//t/_scan " H "Connection: close\r\n\r\n", "HTTP/1.1 404"},
        {"GET /api/d%2Fx/t%20y/_scan?q " H "Connection: close\r\n\r\n", "HTTP/1.1 200"},
    };
    struct buf in = BUF_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = dial(*state);
        put_text(fd, cases[i].head);
        buf_clear(&in);
        const char *text = get_until(fd, &in, NULL);
        assert_true(strncmp(text, cases[i].status, strlen(cases[i].status)) == 0);
        close(fd);
    }
    assert_non_null(strstr(buf_cstr(&in), "2 d/x|t y 127.0.0.1"));
    char *large = malloc(MIB);
    memset(large, 'x', MIB);
    int fd = dial(*state);
    put_text(fd, "GET / HTTP/1.1\r\nHost: h\r\nX: ");
    put(fd, large, MIB);
    buf_clear(&in);
    assert_true(strncmp(get_until(fd, &in, NULL), "HTTP/1.1 431", 12) == 0);
    close(fd);
    fd = dial(*state);
    put_text(fd, "GET /");
    put(fd, large, MIB);
    buf_clear(&in);
    assert_true(strncmp(get_until(fd, &in, NULL), "HTTP/1.1 414", 12) == 0);
    close(fd);
    free(large);
    buf_close(&in);
}

static void test_slow_heads_and_idle_connections_end_but_slow_bodies_do_not(void **state)
{
    struct fixture *fixture = *state;
    int upload = dial(fixture);
    put_text(upload, "PUT /echo " H "Content-Length: 2\r\n\r\na");
    int head = dial(fixture);
    put_text(head, "GET /echo HTTP/1.1\r\nHo");
    int silent = dial(fixture);
    int idle = dial(fixture);
    put_text(idle, "GET /echo " H "\r\n");
    expect_answer(idle, "HTTP/1.1 200", "");
    expect_answer(head, "HTTP/1.1 408", "the request head took too long\n");
    assert_true(is_closed(head));
    assert_true(is_closed(silent));
    assert_true(is_closed(idle));
    put_text(upload, "b");
    expect_answer(upload, "HTTP/1.1 200", "ab");
    close(upload);
    close(head);
    close(silent);
    close(idle);
}

static void test_hundreds_of_stalled_uploads_do_not_hinder_others(void **state)
{
    struct fixture *fixture = *state;
    enum { STALLED = 300 };
    int fds[STALLED];
    for (size_t i = 0; i < STALLED; i++) {
        fds[i] = dial(fixture);
        put_text(fds[i], "PUT /echo " H "Content-Length: 100\r\n\r\n1\n");
    }
    expect_count(&fixture->requests, STALLED);
    int fd = dial(fixture);
    for (int i = 0; i < 100; i++) {
        put_text(fd, "PUT /echo " H "Content-Length: 5\r\n\r\nhello");
        expect_answer(fd, "HTTP/1.1 200", "hello");
    }
    close(fd);
    for (size_t i = 0; i < STALLED; i++)
        close(fds[i]);
    expect_count(&fixture->aborts, STALLED);
}

static void test_connections_over_the_limit_get_503(void **state)
{
    struct fixture *fixture = *state;
    int fds[CONNECTIONS_MAX];
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        fds[i] = dial(fixture);
        put_text(fds[i], "PUT /echo " H "Content-Length: 2\r\n\r\na");
    }
    expect_count(&fixture->requests, CONNECTIONS_MAX);
    int fd = dial(fixture);
    put_text(fd, "GET /echo " H "\r\n");
    expect_answer(fd, "HTTP/1.1 503", "too many connections\n");
    close(fd);
    put_text(fds[7], "b");
    expect_answer(fds[7], "HTTP/1.1 200", "ab");
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        close(fds[i]);
}

static void test_no_descriptors_left_is_survived(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    put_text(fd, "GET /echo " H "\r\n");
    expect_answer(fd, "HTTP/1.1 200", "");
    int spare = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit tight = before;
    tight.rlim_cur = (rlim_t)spare + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    /* the client's socket exists already; the server has no descriptor for its side */
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(fixture->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = 10};
    setsockopt(spare, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(spare, (struct sockaddr *)&address, sizeof address), 0);
    assert_true(is_closed(spare));
    put_text(fd, "GET /echo " H "\r\n");
    expect_answer(fd, "HTTP/1.1 200", "");
    setrlimit(RLIMIT_NOFILE, &before);
    close(spare);
    close(fd);
    fd = dial(fixture);
    put_text(fd, "GET /echo " H "\r\n");
    expect_answer(fd, "HTTP/1.1 200", "");
    close(fd);
}

static void test_every_socket_of_the_server_has_nodelay(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    put_text(fd, "GET /echo " H "\r\n");
    expect_answer(fd, "HTTP/1.1 200", "");
    unsigned found = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct sockaddr_in own;
        struct sockaddr_in peer;
        socklen_t own_len = sizeof own;
        socklen_t peer_len = sizeof peer;
        int other = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || getsockname(other, (struct sockaddr *)&own, &own_len) != 0 ||
            getpeername(other, (struct sockaddr *)&peer, &peer_len) != 0 ||
            own.sin_family != AF_INET || ntohs(own.sin_port) != fixture->port)
            continue;
        int value = 0;
        socklen_t len = sizeof value;
        getsockopt(other, IPPROTO_TCP, TCP_NODELAY, &value, &len);
        assert_int_equal(value != 0, 1);
        found++;
    }
    closedir(dir);
    assert_int_equal(found, 1);
    close(fd);
}

static void test_closing_lets_requests_finish_and_cuts_the_rest(void **state)
{
    struct fixture *fixture = *state;
    int idle = dial(fixture);
    put_text(idle, "GET /echo " H "\r\n");
    expect_answer(idle, "HTTP/1.1 200", "");
    int late = dial(fixture);
    put_text(late, "PUT /late " H "Content-Length: 0\r\n\r\n");
    int stuck = dial(fixture);
    put_text(stuck, "PUT /echo " H "Content-Length: 9\r\n\r\n");
    expect_count(&fixture->requests, 3);
    struct loop_call call = {.run = fixture_stop, .data = fixture};
    loop_post(fixture->loop, &call);
    assert_true(is_closed(idle));
    expect_answer(late, "HTTP/1.1 200", "late");
    assert_true(is_closed(late));
    close(late);
    assert_true(is_closed(stuck));
    pthread_join(fixture->thread, NULL);
    assert_true(fixture->server_gone);
    assert_int_equal(fixture->closes, 3);
    close(idle);
    close(stuck);
    loop_close(fixture->loop);
    free(fixture);
    setup(state); /* for the teardown */
}

int main(void)
{
#define HTTP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        HTTP_TEST(test_keep_alive_serves_one_request_after_the_other),
        HTTP_TEST(test_http_1_0_is_kept_only_if_asked),
        HTTP_TEST(test_a_request_comes_whole_however_it_is_cut),
        HTTP_TEST(test_pipelined_requests_are_answered_in_order),
        HTTP_TEST(test_100_continue_is_sent_when_the_body_is_wanted),
        HTTP_TEST(test_a_late_reader_still_sends_the_100),
        HTTP_TEST(test_an_early_answer_is_readable_while_4_mib_are_sent),
        HTTP_TEST(test_an_early_answer_keeps_the_connection_if_the_body_is_all_there),
        HTTP_TEST(test_an_answer_in_the_middle_of_the_body_ends_it),
        HTTP_TEST(test_more_than_the_drain_limit_is_cut),
        HTTP_TEST(test_a_dropped_body_is_read_and_forgotten),
        HTTP_TEST(test_both_framings_are_answered_and_closed),
        HTTP_TEST(test_a_slow_reader_slows_the_client_and_loses_nothing),
        HTTP_TEST(test_a_stream_waits_for_its_reader),
        HTTP_TEST(test_a_stream_to_http_1_0_ends_with_the_connection),
        HTTP_TEST(test_a_broken_stream_never_looks_whole),
        HTTP_TEST(test_head_answers_have_no_body),
        HTTP_TEST(test_a_client_that_goes_inside_the_body_aborts_it),
        HTTP_TEST(test_a_client_that_resets_while_nobody_reads_is_noticed),
        HTTP_TEST(test_a_half_closed_client_gets_its_answer),
        HTTP_TEST(test_a_half_closed_client_with_half_a_body_is_aborted),
        HTTP_TEST(test_broken_chunks_abort_the_body_with_400),
        HTTP_TEST(test_an_aborted_exchange_gets_no_answer),
        HTTP_TEST(test_bad_and_oversize_heads_are_told_so),
        HTTP_TEST(test_slow_heads_and_idle_connections_end_but_slow_bodies_do_not),
        HTTP_TEST(test_hundreds_of_stalled_uploads_do_not_hinder_others),
        HTTP_TEST(test_connections_over_the_limit_get_503),
        HTTP_TEST(test_no_descriptors_left_is_survived),
        HTTP_TEST(test_every_socket_of_the_server_has_nodelay),
        HTTP_TEST(test_closing_lets_requests_finish_and_cuts_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
