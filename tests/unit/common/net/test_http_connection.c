/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of connections: heads at every cut, keep-alive, early answers, clients that go away, time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/http_server.h"
#include "tests/lib/http_fixture.h"

#define H "HTTP/1.1\r\nHost: h\r\n"

static void test_keep_alive_serves_one_request_after_the_other(void **state)
{
    int fd = http_fixture_dial(*state);
    for (int i = 0; i < 5; i++) {
        http_fixture_put_text(fd, "PUT /echo " H "Content-Length: 5\r\n\r\nhello");
        http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "hello");
        http_fixture_put_text(fd, "GET /echo " H "\r\n");
        http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "");
    }
    http_fixture_put_text(fd, "PUT /echo " H "Connection: close\r\nContent-Length: 1\r\n\r\nx");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "x");
    assert_true(http_fixture_is_closed(fd));
    close(fd);
}

static void test_http_1_0_is_kept_only_if_asked(void **state)
{
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(
        fd, "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "a");
    http_fixture_put_text(fd, "POST /echo HTTP/1.0\r\nContent-Length: 1\r\n\r\nb");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "b");
    assert_true(http_fixture_is_closed(fd));
    close(fd);
}

static void test_a_request_comes_whole_however_it_is_cut(void **state)
{
    struct http_fixture *fixture = *state;
    static const char request[] = "PUT /echo " H "Transfer-Encoding: chunked\r\n\r\n"
                                  "3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: x\r\n\r\n";
    size_t len = strlen(request);
    int fd = http_fixture_dial(fixture);
    for (size_t cut = 1; cut < len; cut++) {
        assert_true(http_fixture_put(fd, request, cut));
        usleep(cut % 8 == 0 ? 300 : 0);
        assert_true(http_fixture_put(fd, request + cut, len - cut));
        http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "abcde");
    }
    for (size_t i = 0; i < len; i++)
        assert_true(http_fixture_put(fd, request + i, 1));
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "abcde");
    close(fd);
}

static void test_pipelined_requests_are_answered_in_order(void **state)
{
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "PUT /late " H "Content-Length: 0\r\n\r\n"
                              "PUT /echo " H "Content-Length: 1\r\n\r\n2\r\n"
                              "GET /api/d/t/_scan " H "Connection: close\r\n\r\n");
    struct buf in = BUF_INIT;
    const char *text = http_fixture_get_until(fd, &in, NULL);
    const char *first = strstr(text, "late");
    assert_non_null(first);
    const char *second = strstr(first, "\r\n\r\n2");
    assert_non_null(second);
    assert_non_null(strstr(second, "2 d|t 127.0.0.1"));
    buf_close(&in);
    close(fd);
}

static void test_an_early_answer_is_readable_while_4_mib_are_sent(void **state)
{
    char *body = malloc(4 * MIB);
    for (size_t i = 0; i < 4 * MIB; i += 2)
        memcpy(body + i, "1\n", 2);
    for (int i = 0; i < 100; i++) {
        int fd = http_fixture_dial(*state);
        if (i % 2 == 0)
            http_fixture_put_text(fd, "PUT /redirect " H "Content-Length: 4194304\r\n\r\n");
        else
            http_fixture_put_text(fd, "PUT /redirect " H
                                      "Transfer-Encoding: chunked\r\n\r\n400000\r\n");
        assert_true(http_fixture_put(fd, body, 4 * MIB));
        struct buf in = BUF_INIT;
        const char *text = http_fixture_get_until(fd, &in, NULL);
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
    int fd = http_fixture_dial(*state);
    for (int i = 0; i < 3; i++) {
        http_fixture_put_text(fd, "PUT /redirect " H "Content-Length: 4\r\n\r\nbody");
        http_fixture_expect_answer(fd, "HTTP/1.1 307", "");
        http_fixture_put_text(fd, "PUT /redirect " H "Content-Length: 0\r\n\r\n");
        http_fixture_expect_answer(fd, "HTTP/1.1 307", "");
        http_fixture_put_text(fd, "PUT /redirect " H "\r\n"); /* no framing at all */
        http_fixture_expect_answer(fd, "HTTP/1.1 307", "");
        http_fixture_put_text(fd, "PUT /redirect " H
                                  "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
        http_fixture_expect_answer(fd, "HTTP/1.1 307", "");
    }
    close(fd);
}

static void test_more_than_the_drain_limit_is_cut(void **state)
{
    char *body = calloc(1, MIB);
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "PUT /redirect " H "Content-Length: 1000000000\r\n\r\n");
    int sent = 0;
    while (sent < 64 && http_fixture_put(fd, body, MIB))
        sent++;
    assert_true(sent >= HTTP_DRAIN_BYTES_MAX / MIB - 1);
    assert_true(sent < 64);
    close(fd);
    free(body);
}

static void test_a_client_that_goes_inside_the_body_aborts_it(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "PUT /echo " H "Content-Length: 100\r\n\r\npart");
    while (atomic_load(&fixture->body_bytes) < 4)
        usleep(1000);
    close(fd);
    http_fixture_expect(&fixture->aborts, 1);
    http_fixture_expect(&fixture->closes, 1);
    assert_int_equal(fixture->ends, 0);
}

static void test_a_client_that_resets_while_nobody_reads_is_noticed(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "PUT /late_read " H "Content-Length: 100\r\n\r\npart");
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    http_fixture_expect(&fixture->closes, 1);
}

static void test_a_half_closed_client_gets_its_answer(void **state)
{
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "PUT /late " H "Content-Length: 4\r\n\r\nbody");
    shutdown(fd, SHUT_WR);
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "late");
    assert_true(http_fixture_is_closed(fd));
    close(fd);
    fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "PUT /slow " H "Content-Length: 4\r\n\r\nbody");
    shutdown(fd, SHUT_WR);
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "body");
    close(fd);
}

static void test_a_half_closed_client_with_half_a_body_is_aborted(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "PUT /slow " H "Content-Length: 10\r\n\r\nbody");
    shutdown(fd, SHUT_WR);
    assert_true(http_fixture_is_closed(fd));
    http_fixture_expect(&fixture->aborts, 1);
    close(fd);
}

static void test_slow_heads_and_idle_connections_end_but_slow_bodies_do_not(void **state)
{
    struct http_fixture *fixture = *state;
    int upload = http_fixture_dial(fixture);
    http_fixture_put_text(upload, "PUT /echo " H "Content-Length: 2\r\n\r\na");
    int head = http_fixture_dial(fixture);
    http_fixture_put_text(head, "GET /echo HTTP/1.1\r\nHo");
    int silent = http_fixture_dial(fixture);
    int idle = http_fixture_dial(fixture);
    http_fixture_put_text(idle, "GET /echo " H "\r\n");
    http_fixture_expect_answer(idle, "HTTP/1.1 200", "");
    http_fixture_expect_answer(head, "HTTP/1.1 408", "the request head took too long\n");
    assert_true(http_fixture_is_closed(head));
    assert_true(http_fixture_is_closed(silent));
    assert_true(http_fixture_is_closed(idle));
    http_fixture_put_text(upload, "b");
    http_fixture_expect_answer(upload, "HTTP/1.1 200", "ab");
    close(upload);
    close(head);
    close(silent);
    close(idle);
}

static void test_a_chunked_body_without_its_last_chunk_is_aborted(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "PUT /slow " H "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n");
    shutdown(fd, SHUT_WR);
    assert_true(http_fixture_is_closed(fd));
    http_fixture_expect(&fixture->aborts, 1);
    assert_int_equal(fixture->ends, 0);
    close(fd);
}

int main(void)
{
#define HTTP_TEST(name) \
    cmocka_unit_test_setup_teardown(name, http_fixture_setup, http_fixture_teardown)
    const struct CMUnitTest tests[] = {
        HTTP_TEST(test_keep_alive_serves_one_request_after_the_other),
        HTTP_TEST(test_http_1_0_is_kept_only_if_asked),
        HTTP_TEST(test_a_request_comes_whole_however_it_is_cut),
        HTTP_TEST(test_pipelined_requests_are_answered_in_order),
        HTTP_TEST(test_an_early_answer_is_readable_while_4_mib_are_sent),
        HTTP_TEST(test_an_early_answer_keeps_the_connection_if_the_body_is_all_there),
        HTTP_TEST(test_more_than_the_drain_limit_is_cut),
        HTTP_TEST(test_a_client_that_goes_inside_the_body_aborts_it),
        HTTP_TEST(test_a_client_that_resets_while_nobody_reads_is_noticed),
        HTTP_TEST(test_a_half_closed_client_gets_its_answer),
        HTTP_TEST(test_a_half_closed_client_with_half_a_body_is_aborted),
        HTTP_TEST(test_slow_heads_and_idle_connections_end_but_slow_bodies_do_not),
        HTTP_TEST(test_a_chunked_body_without_its_last_chunk_is_aborted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
