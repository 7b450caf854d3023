/* SPDX-License-Identifier: Apache-2.0 */
/* Text on its way from a reading thread to a client: order, bounds, clients that dawdle or leave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "participant/api/read_stream.h"
#include "tests/lib/loop_thread.h"
#include "tests/lib/test_http.h"

enum { PIECE = 64 * 1024, PIECES = 400, AHEAD = 1024 * 1024 };

enum ending { ENDS, FAILS };

struct fixture {
    struct loop_thread thread;
    struct http_server *server;
    uint16_t port;
    atomic_bool server_closed;
    pthread_t writer;
    bool has_writer;
    struct read_stream *stream;
    unsigned pieces; /* to write */
    uint64_t stall_ms;
    enum ending ending;
    atomic_uint written, gone;
    atomic_int err;
    atomic_bool over;
};

static void *write_pieces(void *data)
{
    struct fixture *f = data;
    struct buf text = BUF_INIT;
    int err = 0;

    read_stream_headers(f->stream, "text/csv", "X-Test: yes\r\n");
    for (unsigned i = 0; i < f->pieces && err == 0; i++) {
        memset(buf_extend(&text, PIECE), 'a' + (int)(i % 26), PIECE);
        err = read_stream_write(f->stream, &text, AHEAD, f->stall_ms);
        if (err == 0)
            atomic_fetch_add(&f->written, 1);
    }
    atomic_store(&f->err, err);
    buf_clear(&text);
    buf_append_str(&text, "the end");
    if (err == 0 && f->ending == ENDS)
        read_stream_end(f->stream, &text);
    else
        read_stream_fail(f->stream, 503, &text);
    buf_close(&text);
    atomic_store(&f->over, true);
    return NULL;
}

static void on_gone(void *data)
{
    atomic_fetch_add(&((struct fixture *)data)->gone, 1);
}

static void on_request(void *ctx, struct http_exchange *exchange)
{
    struct fixture *f = ctx;

    f->stream = read_stream_open(f->thread.loop, exchange);
    assert_non_null(f->stream);
    read_stream_on_gone(f->stream, on_gone, f);
    assert_int_equal(pthread_create(&f->writer, NULL, write_pieces, f), 0);
    f->has_writer = true;
}

static void open_server(void *data)
{
    struct fixture *f = data;
    struct http_server_options options = {.host = "127.0.0.1"};
    struct http_server_handlers handlers = {.on_request = on_request, .ctx = f};

    assert_int_equal(http_server_open(f->thread.loop, &options, &handlers, &f->server, NULL), 0);
    f->port = http_server_port(f->server);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    loop_thread_open(&f->thread);
    loop_thread_do(&f->thread, open_server, f);
    f->stall_ms = 60000;
    *state = f;
    return 0;
}

static void server_closed(void *data)
{
    atomic_store(&((struct fixture *)data)->server_closed, true);
}

static void close_server(void *data)
{
    struct fixture *f = data;

    http_server_close(f->server, 0, server_closed, f);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    loop_thread_do(&f->thread, close_server, f);
    while (!f->server_closed)
        usleep(1000);
    if (f->has_writer)
        pthread_join(f->writer, NULL);
    loop_thread_close(&f->thread);
    free(f);
    return 0;
}

static int ask(struct fixture *f)
{
    int fd = test_socket_open(f->port, false);

    test_socket_send_text(fd, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    return fd;
}

static void wait_until_over(struct fixture *f)
{
    for (unsigned ms = 0; !f->over; ms++) {
        assert_true(ms < 20000);
        usleep(1000);
    }
}

static void test_an_answer_without_pieces_is_whole(void **state)
{
    struct fixture *f = *state;
    struct test_answer answer;
    char value[32];
    int fd = ask(f);

    assert_int_equal(test_socket_answer(fd, 10000, &answer), TEST_HTTP_ANSWERED);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "the end");
    assert_string_equal(test_answer_header(&answer, "X-Test", value, sizeof value), "yes");
    assert_string_equal(test_answer_header(&answer, "Content-Length", value, sizeof value), "7");
    test_answer_close(&answer);
    test_socket_close(fd);
}

static void test_a_failure_before_the_first_piece_is_an_answer(void **state)
{
    struct fixture *f = *state;
    struct test_answer answer;

    f->ending = FAILS;
    int fd = ask(f);
    assert_int_equal(test_socket_answer(fd, 10000, &answer), TEST_HTTP_ANSWERED);
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer.body, "the end");
    test_answer_close(&answer);
    test_socket_close(fd);
}

static void test_a_failure_behind_the_first_piece_breaks_the_answer_off(void **state)
{
    struct fixture *f = *state;
    struct test_answer answer;

    f->ending = FAILS;
    f->pieces = 3;
    int fd = ask(f);
    enum test_http_end end = test_socket_answer(fd, 10000, &answer);
    assert_true(end == TEST_HTTP_CLOSED || end == TEST_HTTP_RESET);
    test_answer_close(&answer);
    test_socket_close(fd);
}

/* The client takes nothing for a while: the writer stops soon, and goes on when it does; at last
 * everything has arrived in order. */
static void test_a_slow_client_holds_the_writer_back_and_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct test_answer answer;

    f->pieces = PIECES;
    int fd = ask(f);
    unsigned written = 0;
    for (unsigned same = 0; same < 300;) { /* milliseconds without progress */
        usleep(1000);
        same = f->written == written ? same + 1 : 0;
        written = f->written;
    }
    assert_false(f->over);
    /* What is ahead, the exchange's own buffer, and what two sockets hold. */
    assert_in_range(written, AHEAD / PIECE, PIECES / 2);
    assert_int_equal(test_socket_answer(fd, 20000, &answer), TEST_HTTP_ANSWERED);
    assert_int_equal(answer.body_len, (size_t)PIECES * PIECE + 7);
    for (unsigned i = 0; i < PIECES; i++) {
        assert_int_equal(answer.body[(size_t)i * PIECE], 'a' + (int)(i % 26));
        assert_int_equal(answer.body[(size_t)(i + 1) * PIECE - 1], 'a' + (int)(i % 26));
    }
    assert_string_equal(answer.body + (size_t)PIECES * PIECE, "the end");
    wait_until_over(f);
    assert_int_equal(f->err, 0);
    test_answer_close(&answer);
    test_socket_close(fd);
}

static void test_a_client_that_stalls_is_given_up(void **state)
{
    struct fixture *f = *state;

    f->pieces = PIECES;
    f->stall_ms = 200;
    int fd = ask(f);
    wait_until_over(f);
    assert_int_equal(f->err, TG_TIMEOUT);
    test_socket_close(fd);
}

static void test_a_client_that_leaves_stops_the_writer_at_once(void **state)
{
    struct fixture *f = *state;
    char some[1000];

    f->pieces = PIECES;
    int fd = ask(f);
    assert_true(read(fd, some, sizeof some) > 0);
    test_socket_close(fd);
    wait_until_over(f);
    assert_int_equal(f->err, TG_CANCELED);
    assert_int_equal(f->gone, 1);
    assert_true(f->written < PIECES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_answer_without_pieces_is_whole),
        TEST(test_a_failure_before_the_first_piece_is_an_answer),
        TEST(test_a_failure_behind_the_first_piece_breaks_the_answer_off),
        TEST(test_a_slow_client_holds_the_writer_back_and_loses_nothing),
        TEST(test_a_client_that_stalls_is_given_up),
        TEST(test_a_client_that_leaves_stops_the_writer_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
