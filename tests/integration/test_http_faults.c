/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that do not behave, and those that go away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/test_cluster.h"
#include "tests/lib/test_load.h"

#define AUTH "Authorization: Basic cm9vdDo=\r\n"
#define PUT  "PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: x\r\n" AUTH

enum { EAGER_TRIES = 100, EAGER_BYTES = 4 * 1024 * 1024, STALLED = 200 };

static struct test_cluster cluster;
static uint16_t coordinator;
static uint16_t participant;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 1, 1, NULL);
    coordinator = cluster.coordinators[0].http;
    participant = cluster.participants[0].http;
    test_sql(coordinator, "", "CREATE DATABASE d");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

static int make_table(void **state)
{
    (void)state;
    test_sql(coordinator, "d", "DROP TABLE IF EXISTS t");
    test_sql(coordinator, "d",
             "CREATE TABLE t (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    return 0;
}

/* One raw exchange: everything is sent at once, then the answer is read. */
static void send_all(uint16_t port, const char *head, const void *body, size_t len,
                     struct test_answer *answer)
{
    int fd = test_socket_open(port, false);

    test_socket_send_text(fd, head);
    test_socket_send(fd, body, len);
    enum test_http_end end_of_it = test_socket_answer(fd, 10000, answer);
    if (end_of_it != TEST_HTTP_ANSWERED)
        fail_msg("ended with %d", (int)end_of_it);
    test_socket_close(fd);
}

static char *many_lines(size_t len)
{
    char *body = malloc(len + 2);

    assert_non_null(body);
    for (size_t i = 0; i < len; i += 2)
        memcpy(body + i, "1\n", 2);
    return body;
}

static void a_client_that_sends_at_once_gets_its_redirect(void **state)
{
    char *body = many_lines(EAGER_BYTES);
    char head[512];
    int tries = test_is_short() ? EAGER_TRIES / 5 : EAGER_TRIES;

    (void)state;
    snprintf(head, sizeof head, PUT "Content-Length: %d\r\n\r\n", EAGER_BYTES);
    for (int i = 0; i < tries; i++) {
        struct test_answer answer;

        send_all(coordinator, head, body, EAGER_BYTES, &answer);
        assert_int_equal(answer.status, 307);
        assert_non_null(strstr(answer.head, "\r\nLocation: http://root:@"));
        test_answer_close(&answer);
    }
    free(body);
}

static void a_chunked_client_that_sends_at_once_gets_it_too(void **state)
{
    char *body = many_lines(EAGER_BYTES / 2);
    const size_t cuts[] = {8192, 100000, 600000, 1500000};

    (void)state;
    for (int i = 0; i < 10; i++) {
        struct test_answer answer;
        struct test_call call = {.port = coordinator,
                                 .method = "PUT",
                                 .target = "/api/d/t/_stream_load",
                                 .headers = "Expect: 100-continue\r\n", /* and does not wait */
                                 .body = body,
                                 .len = EAGER_BYTES / 2,
                                 .cuts = cuts,
                                 .cut_count = 4,
                                 .pause_ms = 5};

        test_http(&call, &answer);
        assert_int_equal(answer.status, 307);
        test_answer_close(&answer);
    }
    free(body);
}

static void load_answer(const char *head, const char *body, struct test_load *result)
{
    struct test_answer answer;

    send_all(participant, head, body, strlen(body), &answer);
    assert_true(test_load_parse(&answer, result));
    test_answer_close(&answer);
}

static void a_body_has_exactly_one_kind_of_length(void **state)
{
    struct test_load result;
    char now[TEST_WORD_BYTES];

    (void)state;
    load_answer(PUT "label: len-1\r\n\r\n", "", &result);
    test_load_failed(&result, "content_length is empty and transfer-encoding!=chunked, please set "
                              "content_length or transfer-encoding=chunked");
    assert_int_equal(result.txn, -1);
    test_state(coordinator, "d", "len-1", now);
    assert_string_equal(now, "UNKNOWN");
    load_answer(PUT "label: len-1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
                "2\r\n1\n\r\n0\r\n\r\n", &result);
    test_load_failed(&result, "please do not set both content_length and transfer-encoding");
    test_state(coordinator, "d", "len-1", now);
    assert_string_equal(now, "UNKNOWN");
    load_answer(PUT "label: len-1\r\nContent-Length: 0\r\n\r\n", "", &result);
    test_load_good(&result, 0, 0);
    load_answer(PUT "label: len-2\r\nTransfer-Encoding: chunked\r\n\r\n", "0\r\n\r\n", &result);
    test_load_good(&result, 0, 0);
}

static void a_body_that_is_cut_off_leaves_nothing(void **state)
{
    char now[TEST_WORD_BYTES];
    struct test_load result;
    int fd = test_socket_open(participant, false);

    (void)state;
    test_socket_send_text(fd, PUT "label: cut-1\r\nContent-Length: 100\r\n\r\n1\n2\n");
    test_wait_state(coordinator, "d", "cut-1", "PREPARE", 2000);
    test_socket_close(fd);
    test_wait_state(coordinator, "d", "cut-1", "ABORTED", 2000);
    fd = test_socket_open(participant, false);
    test_socket_send_text(fd,
                          PUT "label: cut-2\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1\n2\n\r\n");
    test_wait_state(coordinator, "d", "cut-2", "PREPARE", 2000);
    test_socket_close(fd);
    test_wait_state(coordinator, "d", "cut-2", "ABORTED", 2000);
    assert_int_equal(test_row_count(coordinator, "d", "t", "_scan"), 0);
    test_load_text(coordinator, "d", "t", "label: cut-1\r\n", "5\n", &result);
    test_load_good(&result, 1, 0);
    test_state(coordinator, "d", "cut-1", now);
    assert_string_equal(now, "VISIBLE");
}

static void broken_chunks_are_no_rows(void **state)
{
    struct test_answer answer;
    int fd = test_socket_open(participant, false);

    (void)state;
    test_socket_send_text(fd, PUT
                          "label: chunk-1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\nzz\r\n");
    enum test_http_end how = test_socket_answer(fd, 5000, &answer);
    if (how == TEST_HTTP_ANSWERED)
        assert_null(strstr(answer.body, "Success"));
    test_answer_close(&answer);
    test_socket_close(fd);
    test_wait_state(coordinator, "d", "chunk-1", "ABORTED", 2000);
    assert_int_equal(test_row_count(coordinator, "d", "t", "_scan"), 0);
}

static void stalled_uploads_end_in_time_and_disturb_nobody(void **state)
{
    int sockets[STALLED];
    struct test_load result;
    struct test_answer answer;
    char head[256];
    uint64_t begun = test_now_ms();

    (void)state;
    for (int i = 0; i < STALLED; i++) {
        sockets[i] = test_socket_open(participant, false);
        snprintf(head, sizeof head,
                 PUT "label: stall-%d\r\ntimeout: 3\r\nContent-Length: 100\r\n\r\n1\n", i);
        assert_true(test_socket_send_text(sockets[i], head));
    }
    uint64_t stalled = test_now_ms();
    test_load_text(participant, "d", "t", "label: lively\r\n", "7\n", &result);
    test_load_good(&result, 1, 0);
    uint64_t took = test_now_ms() - stalled;
    if (took >= 2000)
        fail_msg("a load beside %d stalled ones took %lu ms", STALLED, (unsigned long)took);
    for (int i = 0; i < STALLED; i++) {
        enum test_http_end how = test_socket_answer(sockets[i], 8000, &answer);

        if (how != TEST_HTTP_ANSWERED)
            fail_msg("stalled upload %d ended with %d after %lu ms", i, (int)how,
                     (unsigned long)(test_now_ms() - begun));
        assert_true(test_load_parse(&answer, &result));
        test_load_failed(&result, "");
        test_answer_close(&answer);
        test_socket_close(sockets[i]);
    }
    uint64_t all = test_now_ms() - begun;
    assert_true(all >= 2900);
    if (all > 7000)
        fail_msg("all were answered only after %lu ms", (unsigned long)all);
    test_rows_are(coordinator, "d", "t", "_scan", "7\n");
    test_load_text(participant, "d", "t", "label: stall-0\r\n", "8\n", &result);
    test_load_good(&result, 1, 0);
}

/* ---- heads ---- */

static void an_oversize_head_is_refused(void **state)
{
    size_t len = 2 * 1024 * 1024;
    char *value = malloc(len);
    struct test_answer answer;
    int fd = test_socket_open(participant, false);

    (void)state;
    assert_non_null(value);
    memset(value, 'a', len);
    test_socket_send_text(fd, PUT "x-long: ");
    test_socket_send(fd, value, len); /* may be hung up on */
    enum test_http_end how = test_socket_answer(fd, 5000, &answer);
    if (how == TEST_HTTP_ANSWERED)
        assert_int_equal(answer.status, 431);
    else
        assert_int_not_equal(how, TEST_HTTP_SILENT);
    test_answer_close(&answer);
    test_socket_close(fd);
    free(value);
}

static void what_is_no_http_is_answered_400_or_hung_up_on(void **state)
{
    static const char bad_length[] = "PUT /api/d/t/_stream_load HTTP/1.1\r\n"
                                     "Content-Length: many\r\n\r\n";
    static const char *const heads[] = {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
                                        "HELO example\r\n\r\n", "GET\r\n\r\n", bad_length};

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct test_answer answer;
        int fd = test_socket_open(participant, false);

        test_socket_send_text(fd, heads[i]);
        enum test_http_end how = test_socket_answer(fd, 5000, &answer);
        assert_int_not_equal(how, TEST_HTTP_SILENT);
        if (how == TEST_HTTP_ANSWERED)
            assert_int_equal(answer.status, 400);
        test_answer_close(&answer);
        test_socket_close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_client_that_sends_at_once_gets_its_redirect, make_table),
        cmocka_unit_test_setup(a_chunked_client_that_sends_at_once_gets_it_too, make_table),
        cmocka_unit_test_setup(a_body_has_exactly_one_kind_of_length, make_table),
        cmocka_unit_test_setup(a_body_that_is_cut_off_leaves_nothing, make_table),
        cmocka_unit_test_setup(broken_chunks_are_no_rows, make_table),
        cmocka_unit_test_setup(stalled_uploads_end_in_time_and_disturb_nobody, make_table),
        cmocka_unit_test_setup(an_oversize_head_is_refused, make_table),
        cmocka_unit_test_setup(what_is_no_http_is_answered_400_or_hung_up_on, make_table),
    };

    return cmocka_run_group_tests(tests, start, end);
}
