/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of exchanges over loopback: bodies in, answers out, whole and streamed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/net/http_server.h"
#include "tests/lib/http_fixture.h"

#define H "HTTP/1.1\r\nHost: h\r\n"

static void test_100_continue_is_sent_when_the_body_is_wanted(void **state)
{
    int fd = http_fixture_dial(*state);
    struct buf in = BUF_INIT;
    http_fixture_put_text(fd, "PUT /echo " H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_string_equal(http_fixture_get_until(fd, &in, "\r\n\r\n"),
                        "HTTP/1.1 100 Continue\r\n\r\n");
    http_fixture_put_text(fd, "hi");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "hi");
    /* not if the body is there already, and not for an empty one */
    http_fixture_put_text(fd, "PUT /echo " H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "hi");
    http_fixture_put_text(fd, "PUT /echo " H "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "");
    /* nor if the answer is another one */
    http_fixture_put_text(fd,
                          "PUT /redirect " H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 307", "");
    assert_true(http_fixture_is_closed(fd));
    buf_close(&in);
    close(fd);
}

static void test_a_late_reader_still_sends_the_100(void **state)
{
    int fd = http_fixture_dial(*state);
    struct buf in = BUF_INIT;
    http_fixture_put_text(fd,
                          "PUT /late_read " H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_string_equal(http_fixture_get_until(fd, &in, "\r\n\r\n"),
                        "HTTP/1.1 100 Continue\r\n\r\n");
    http_fixture_put_text(fd, "hi");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "hi");
    http_fixture_put_text(fd, "PUT /late_read " H "Content-Length: 3\r\n\r\nyes");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "yes");
    http_fixture_put_text(fd, "PUT /late_read " H "\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 200 OK", "");
    buf_close(&in);
    close(fd);
}

static void test_an_answer_in_the_middle_of_the_body_ends_it(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "PUT /first_piece " H "Content-Length: 1000000\r\n\r\nsome");
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "enough");
    assert_true(http_fixture_is_closed(fd));
    close(fd);
    assert_int_equal(fixture->aborts, 0);
}

static void test_a_dropped_body_is_read_and_forgotten(void **state)
{
    struct http_fixture *fixture = *state;
    char *body = calloc(1, MIB);
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "PUT /drop " H "Content-Length: 1048576\r\n\r\n");
    assert_true(http_fixture_put(fd, body, MIB));
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "late");
    http_fixture_put_text(fd, "PUT /echo " H "Content-Length: 1\r\n\r\nx");
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "x");
    assert_int_equal(fixture->body_bytes, 1);
    close(fd);
    free(body);
}

static void test_both_framings_are_answered_and_closed(void **state)
{
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "PUT /redirect " H
                              "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "0\r\n\r\nGET /echo " H "\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 307", "");
    assert_true(http_fixture_is_closed(fd));
    close(fd);
    fd = http_fixture_dial(*state);
    http_fixture_put_text(fd,
                          "PUT /echo " H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                          "1\r\nx\r\n0\r\n\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "x");
    assert_true(http_fixture_is_closed(fd));
    close(fd);
    fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "POST /echo " H
                              "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 400", "both Content-Length and Transfer-Encoding\n");
    assert_true(http_fixture_is_closed(fd));
    close(fd);
}

static void test_a_slow_reader_slows_the_client_and_loses_nothing(void **state)
{
    struct http_fixture *fixture = *state;
    size_t len = 2 * MIB;
    char *body = malloc(len);
    for (size_t i = 0; i < len; i++)
        body[i] = (char)(i % 253);
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd,
                          "PUT /slow " H "Connection: close\r\nContent-Length: 2097152\r\n\r\n");
    assert_true(http_fixture_put(fd, body, len));
    struct buf in = BUF_INIT;
    http_fixture_get_until(fd, &in, NULL);
    assert_true(in.len > len);
    assert_memory_equal(in.data + in.len - len, body, len);
    buf_close(&in);
    free(body);
    close(fd);
}

static void test_a_stream_waits_for_its_reader(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "GET /stream " H "\r\n");
    usleep(50000); /* nobody reads: the producer must have stopped */
    struct buf in = BUF_INIT;
    http_fixture_get_until(fd, &in, "\r\n0\r\n\r\n");
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
    http_fixture_put_text(fd, "PUT /echo " H "Content-Length: 1\r\n\r\nx");
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "x");
    buf_close(&in);
    close(fd);
}

static void test_a_stream_to_http_1_0_ends_with_the_connection(void **state)
{
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    struct buf in = BUF_INIT;
    const char *text = http_fixture_get_until(fd, &in, NULL);
    assert_non_null(strstr(text, "Connection: close\r\n"));
    assert_null(strstr(text, "chunked"));
    size_t head_len = (size_t)(strstr(text, "\r\n\r\n") + 4 - text);
    assert_int_equal(in.len - head_len, STREAM_BYTES);
    buf_close(&in);
    close(fd);
}

static void test_a_broken_stream_never_looks_whole(void **state)
{
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "GET /broken_stream " H "\r\n");
    struct buf in = BUF_INIT;
    const char *text = http_fixture_get_until(fd, &in, NULL);
    assert_non_null(strstr(text, "3\r\nrow\r\n"));
    assert_null(strstr(text, "0\r\n\r\n"));
    buf_close(&in);
    close(fd);
}

static void test_head_answers_have_no_body(void **state)
{
    int fd = http_fixture_dial(*state);
    struct buf in = BUF_INIT;
    http_fixture_put_text(fd, "HEAD /api/d/t/_scan " H "\r\nHEAD /stream " H "\r\nHEAD /nothing " H
                              "Connection: close\r\n\r\n");
    const char *text = http_fixture_get_until(fd, &in, NULL);
    assert_non_null(strstr(text, "Content-Length: 15\r\n"));
    assert_null(strstr(text, "2 d|t"));
    assert_non_null(strstr(text, "chunked"));
    assert_non_null(strstr(text, "404 Not Found"));
    assert_null(strstr(text, "0\r\n\r\n0"));
    buf_close(&in);
    close(fd);
}

static void test_broken_chunks_abort_the_body_with_400(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd,
                          "PUT /echo " H "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 400", "chunk longer than its size");
    assert_true(http_fixture_is_closed(fd));
    assert_int_equal(fixture->aborts, 1);
    close(fd);
}

static void test_an_aborted_exchange_gets_no_answer(void **state)
{
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "GET /abort " H "\r\n");
    assert_true(http_fixture_is_closed(fd));
    close(fd);
}

int main(void)
{
#define HTTP_TEST(name) \
    cmocka_unit_test_setup_teardown(name, http_fixture_setup, http_fixture_teardown)
    const struct CMUnitTest tests[] = {
        HTTP_TEST(test_100_continue_is_sent_when_the_body_is_wanted),
        HTTP_TEST(test_a_late_reader_still_sends_the_100),
        HTTP_TEST(test_an_answer_in_the_middle_of_the_body_ends_it),
        HTTP_TEST(test_a_dropped_body_is_read_and_forgotten),
        HTTP_TEST(test_both_framings_are_answered_and_closed),
        HTTP_TEST(test_a_slow_reader_slows_the_client_and_loses_nothing),
        HTTP_TEST(test_a_stream_waits_for_its_reader),
        HTTP_TEST(test_a_stream_to_http_1_0_ends_with_the_connection),
        HTTP_TEST(test_a_broken_stream_never_looks_whole),
        HTTP_TEST(test_head_answers_have_no_body),
        HTTP_TEST(test_broken_chunks_abort_the_body_with_400),
        HTTP_TEST(test_an_aborted_exchange_gets_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
