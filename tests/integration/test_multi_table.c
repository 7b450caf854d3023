/* SPDX-License-Identifier: Apache-2.0 */
/* One transaction over several loads and several tables. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/test_cluster.h"
#include "tests/lib/test_load.h"

enum { LOADS_AT_ONCE = 6 };

static struct test_cluster cluster;
static uint16_t port;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 3, 3, NULL);
    port = cluster.coordinators[0].http;
    test_sql(port, "", "CREATE DATABASE d");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

static int make_tables(void **state)
{
    (void)state;
    test_sql(port, "d", "DROP TABLE IF EXISTS a");
    test_sql(port, "d", "DROP TABLE IF EXISTS b");
    test_sql(port, "d",
             "CREATE TABLE a (k INT, v VARCHAR(20)) DUPLICATE KEY(k) "
             "DISTRIBUTED BY HASH(k) BUCKETS 4");
    test_sql(port, "d",
             "CREATE TABLE b (k INT, v VARCHAR(20)) UNIQUE KEY(k) "
             "DISTRIBUTED BY HASH(k) BUCKETS 2");
    return 0;
}

static long long begin(const char *label)
{
    struct test_2pc answer;
    char headers[256];

    snprintf(headers, sizeof headers, "txn_operation: begin\r\nlabel: %s\r\n", label);
    test_2pc(port, "d", headers, false, &answer);
    assert_string_equal(answer.status, "Success");
    assert_true(answer.txn > 0);
    return answer.txn;
}

static void join(long long txn, const char *table, const char *body, struct test_load *result)
{
    char headers[256];

    snprintf(headers, sizeof headers,
             "txn_id: %lld\r\ntwo_phase_commit: true\r\ncolumn_separator: ,\r\n", txn);
    test_load_text(port, "d", table, headers, body, result);
}

static long long completed(const char *table)
{
    struct test_answer answer;

    test_get(port, "d", table, "_timeline?limit=1", &answer);
    const char *at = strstr(answer.body, "\"completed_us\":");
    long long us = at != NULL ? atoll(at + strlen("\"completed_us\":")) : 0;
    test_answer_close(&answer);
    return us;
}

static void two_tables_become_visible_at_one_instant(void **state)
{
    struct test_load result;
    char route[128];
    long long txn = begin("both-1");

    (void)state;
    join(txn, "a", "1,x\n2,y\n3,z\n", &result);
    test_load_good(&result, 3, 0);
    assert_int_equal(result.txn, txn);
    join(txn, "b", "1,p\n", &result);
    test_load_good(&result, 1, 0);
    join(txn, "b", "1,q\n2,r\n", &result); /* a later load of the transaction is the newer */
    test_load_good(&result, 2, 0);
    assert_int_equal(test_row_count(port, "d", "a", "_scan"), 0);
    assert_int_equal(test_row_count(port, "d", "b", "_scan"), 0);
    test_commit(port, "d", txn);
    test_rows_are(port, "d", "a", "_scan?order=key", "1,x\n2,y\n3,z\n");
    test_rows_are(port, "d", "b", "_scan?order=key", "1,q\n2,r\n");
    long long at = completed("a");
    assert_true(at > 0);
    assert_true(at == completed("b"));
    snprintf(route, sizeof route, "_scan?as_of=%lld", at - 1);
    assert_int_equal(test_row_count(port, "d", "a", route), 0);
    assert_int_equal(test_row_count(port, "d", "b", route), 0);
    snprintf(route, sizeof route, "_scan?as_of=%lld", at);
    assert_int_equal(test_row_count(port, "d", "a", route), 3);
    assert_int_equal(test_row_count(port, "d", "b", route), 2);
}

struct joiner {
    pthread_t thread;
    uint16_t port;
    long long txn;
    int number;
    struct test_load result;
    bool answered;
};

static void *join_at_once(void *data)
{
    struct joiner *joiner = data;
    char headers[256];
    char body[64];
    int n = snprintf(body, sizeof body, "%d,x\n%d,y\n", joiner->number, 1000 + joiner->number);
    struct test_answer answer;
    struct test_call call = {.port = joiner->port,
                             .method = "PUT",
                             .target = joiner->number % 2 != 0 ? "/api/d/a/_stream_load"
                                                               : "/api/d/b/_stream_load",
                             .headers = headers,
                             .body = body,
                             .len = (size_t)n,
                             .expect = true};

    snprintf(headers, sizeof headers,
             "txn_id: %lld\r\ntwo_phase_commit: true\r\ncolumn_separator: ,\r\n", joiner->txn);
    joiner->answered = test_http_try(&call, &answer) == TEST_HTTP_ANSWERED &&
                       test_load_parse(&answer, &joiner->result);
    test_answer_close(&answer);
    return NULL;
}

static void loads_of_one_transaction_may_run_at_once(void **state)
{
    struct joiner joiners[LOADS_AT_ONCE];
    struct test_2pc answer;
    long long txn = begin("at-once");

    (void)state;
    for (int i = 0; i < LOADS_AT_ONCE; i++) {
        joiners[i] =
            (struct joiner){.port = cluster.participants[i % 3].http, .txn = txn, .number = i + 1};
        assert_int_equal(pthread_create(&joiners[i].thread, NULL, join_at_once, &joiners[i]), 0);
    }
    for (int i = 0; i < LOADS_AT_ONCE; i++) {
        pthread_join(joiners[i].thread, NULL);
        assert_true(joiners[i].answered);
        test_load_good(&joiners[i].result, 2, 0);
    }
    test_2pc_txn(port, "d", "precommit", txn, &answer);
    assert_string_equal(answer.status, "Success");
    test_2pc_txn(port, "d", "precommit", txn, &answer); /* once more is well, too */
    assert_string_equal(answer.status, "Success");
    assert_int_equal(test_row_count(port, "d", "a", "_scan"), 0);
    test_commit(port, "d", txn);
    assert_int_equal(test_row_count(port, "d", "a", "_scan"), LOADS_AT_ONCE);
    assert_int_equal(test_row_count(port, "d", "b", "_scan"), LOADS_AT_ONCE);
}

static void a_failed_load_makes_its_transaction_abort_only(void **state)
{
    struct test_load result;
    struct test_2pc answer;
    long long txn = begin("spoilt");

    (void)state;
    join(txn, "a", "1,x\n", &result);
    test_load_good(&result, 1, 0);
    join(txn, "a", "2\n", &result);
    test_load_failed(&result, "too many filtered rows");
    test_2pc_txn(port, "d", "commit", txn, &answer);
    assert_string_equal(answer.status, "ANALYSIS_ERROR");
    test_2pc_txn(port, "d", "abort", txn, &answer);
    /* Either it was abort-only still, or aborted already. */
    assert_true(strcmp(answer.status, "Success") == 0 || strstr(answer.msg, "aborted") != NULL);
    test_wait_state(port, "d", "spoilt", "ABORTED", 2000);
    assert_int_equal(test_row_count(port, "d", "a", "_scan"), 0);
}

static void an_abort_stops_uploads_that_still_run(void **state)
{
    char head[512];
    struct test_answer answer;
    struct test_load result;
    struct test_2pc word;
    long long txn = begin("stopped");
    int fd = test_socket_open(cluster.participants[1].http, false);

    (void)state;
    snprintf(head, sizeof head,
             "PUT /api/d/a/_stream_load HTTP/1.1\r\nHost: x\r\nAuthorization: Basic cm9vdDo=\r\n"
             "Expect: 100-continue\r\ntxn_id: %lld\r\ntwo_phase_commit: true\r\n"
             "column_separator: ,\r\nTransfer-Encoding: chunked\r\n\r\n",
             txn);
    test_socket_send_text(fd, head);
    assert_true(test_socket_continue(fd, 5000, &answer));
    test_answer_close(&answer);
    test_socket_send_text(fd, "4\r\n1,x\n\r\n");
    test_2pc_txn(port, "d", "commit", txn, &word); /* a load still runs */
    assert_string_equal(word.status, "ANALYSIS_ERROR");
    test_2pc_txn(port, "d", "abort", txn, &word);
    assert_string_equal(word.status, "Success");
    assert_int_equal(test_socket_answer(fd, 3000, &answer), TEST_HTTP_ANSWERED);
    assert_true(test_load_parse(&answer, &result));
    test_load_failed(&result, "");
    test_answer_close(&answer);
    test_socket_close(fd);
    assert_int_equal(test_row_count(port, "d", "a", "_scan"), 0);
}

static void strangers_cannot_join(void **state)
{
    struct test_load result;
    long long txn;

    (void)state;
    join(999999, "a", "1,x\n", &result);
    test_load_failed(&result, "transaction [999999] not found");
    txn = begin("over");
    test_commit(port, "d", txn); /* of nothing */
    join(txn, "a", "1,x\n", &result);
    test_load_failed(&result, "");
    assert_int_equal(test_row_count(port, "d", "a", "_scan"), 0);
}

/* Rule 15: the commit of a transaction with a dropped table fails, its abort works. */
static void a_dropped_table_fails_the_commit(void **state)
{
    struct test_load result;
    struct test_2pc answer;
    long long txn = begin("dropped");

    (void)state;
    join(txn, "a", "1,x\n", &result);
    test_load_good(&result, 1, 0);
    join(txn, "b", "1,x\n", &result);
    test_load_good(&result, 1, 0);
    test_sql(port, "d", "DROP TABLE b");
    test_2pc_txn(port, "d", "commit", txn, &answer);
    assert_string_equal(answer.status, "ANALYSIS_ERROR");
    test_2pc_txn(port, "d", "abort", txn, &answer);
    assert_string_equal(answer.status, "Success");
    assert_int_equal(test_row_count(port, "d", "a", "_scan"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_tables_become_visible_at_one_instant, make_tables),
        cmocka_unit_test_setup(loads_of_one_transaction_may_run_at_once, make_tables),
        cmocka_unit_test_setup(a_failed_load_makes_its_transaction_abort_only, make_tables),
        cmocka_unit_test_setup(an_abort_stops_uploads_that_still_run, make_tables),
        cmocka_unit_test_setup(strangers_cannot_join, make_tables),
        cmocka_unit_test_setup(a_dropped_table_fails_the_commit, make_tables),
    };

    return cmocka_run_group_tests(tests, start, end);
}
