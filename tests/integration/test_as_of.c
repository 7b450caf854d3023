/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of the past and what changed since: truncation, repeatability, order. */
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

enum { WRITERS = 8, LOADS_PER_WRITER = 12, ROWS_MAX = WRITERS * LOADS_PER_WRITER };

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

static void make_table(const char *model, unsigned buckets)
{
    char statement[256];

    test_sql(port, "d", "DROP TABLE IF EXISTS t");
    snprintf(statement, sizeof statement,
             "CREATE TABLE t (k INT, v VARCHAR(20)) %s KEY(k) DISTRIBUTED BY HASH(k) BUCKETS %u",
             model, buckets);
    test_sql(port, "d", statement);
}

static long long load(const char *body, bool two_phase)
{
    struct test_load result;

    test_load_text(port, "d", "t",
                   two_phase ? "column_separator: ,\r\ntwo_phase_commit: true\r\n"
                             : "column_separator: ,\r\n",
                   body, &result);
    assert_string_equal(result.status, "Success");
    return result.txn;
}

/* The completion time of the newest version. */
static long long newest(void)
{
    struct test_answer answer;
    char text[64];

    test_get(port, "d", "t", "_scan?limit=1", &answer);
    long long us = atoll(test_answer_header(&answer, "x-tidegate-as-of", text, sizeof text));
    test_answer_close(&answer);
    return us;
}

static void as_of_is(long long us, const char *expected)
{
    char route[128];

    snprintf(route, sizeof route, "_scan?order=key&as_of=%lld", us);
    test_rows_are(port, "d", "t", route, expected);
}

static void a_time_names_exactly_one_version(void **state)
{
    struct test_answer answer;
    char route[128];

    (void)state;
    make_table("DUPLICATE", 2);
    long long created = newest();
    load("1,a\n", false);
    long long t1 = newest();
    load("2,b\n", false);
    long long t2 = newest();
    assert_true(created < t1 && t1 < t2);
    as_of_is(t1 - 1, "");
    as_of_is(created, "");
    as_of_is(t1, "1,a\n");
    as_of_is(t2 - 1, "1,a\n");
    as_of_is(t2, "1,a\n2,b\n");
    snprintf(route, sizeof route, "_changes?after=%lld&until=%lld&columns=k", t1 - 1, t2);
    char *rows = test_rows(port, "d", "t", route);
    assert_non_null(strstr(rows, ",insert,1\n"));
    assert_non_null(strstr(rows, ",insert,2\n"));
    free(rows);
    snprintf(route, sizeof route, "_scan?as_of=%lld", created - 1000000); /* before it existed */
    test_get(port, "d", "t", route, &answer);
    assert_int_not_equal(answer.status, 200);
    test_answer_close(&answer);
    snprintf(route, sizeof route, "_scan?as_of=%lld", t2 + 3600000000);
    test_get(port, "d", "t", route, &answer);
    assert_int_equal(answer.status, 400);
    assert_non_null(strstr(answer.body, "future"));
    test_answer_close(&answer);
    test_get(port, "d", "t", "_scan?version=3", &answer);
    assert_int_equal(answer.status, 404);
    test_answer_close(&answer);
}

static void the_past_is_the_same_from_every_node_and_after_a_restart(void **state)
{
    char route[64];
    char *before[6];

    (void)state;
    make_table("UNIQUE", 4);
    for (int i = 0; i < 5; i++) {
        char body[128];

        snprintf(body, sizeof body, "1,one-%d\n%d,x\n3,three-%d\n", i, 10 + i, i);
        load(body, false);
    }
    for (int v = 0; v <= 5; v++) {
        snprintf(route, sizeof route, "_scan?order=key&version=%d", v);
        before[v] = test_rows(port, "d", "t", route);
        for (unsigned p = 0; p < cluster.participant_count; p++)
            test_rows_are(cluster.participants[p].http, "d", "t", route, before[v]);
    }
    assert_string_equal(before[0], "");
    assert_string_equal(before[2], "1,one-1\n3,three-1\n10,x\n11,x\n");
    test_cluster_restart_all(&cluster);
    for (int v = 0; v <= 5; v++) {
        snprintf(route, sizeof route, "_scan?order=key&version=%d", v);
        test_rows_are(port, "d", "t", route, before[v]);
        free(before[v]);
    }
}

static void keys_and_ranges_read_the_past_too(void **state)
{
    (void)state;
    make_table("UNIQUE", 3);
    load("1,a\n2,b\n3,c\n4,d\n", false);
    load("2,B\n5,e\n", false);
    test_rows_are(port, "d", "t", "_get?key=2", "2,B\n");
    test_rows_are(port, "d", "t", "_get?key=2&version=1", "2,b\n");
    test_rows_are(port, "d", "t", "_get?key=5&version=1", "");
    test_rows_are(port, "d", "t", "_range?from=2&to=4", "2,B\n3,c\n");
    test_rows_are(port, "d", "t", "_range?from=4&version=2", "4,d\n5,e\n");
    test_rows_are(port, "d", "t", "_range?to=3&version=1", "1,a\n2,b\n");
    test_rows_are(port, "d", "t", "_range?from=1&to=9&limit=2&columns=v", "a\nB\n");
}

static void truncation_is_a_version_and_the_past_stays(void **state)
{
    (void)state;
    make_table("DUPLICATE", 2);
    load("1,a\n", false);
    test_sql(port, "d", "TRUNCATE TABLE t");
    load("2,b\n", false);
    test_rows_are(port, "d", "t", "_scan?version=1", "1,a\n");
    test_rows_are(port, "d", "t", "_scan?version=2", "");
    test_rows_are(port, "d", "t", "_scan?version=3", "2,b\n");
    char *rows = test_rows(port, "d", "t", "_changes?after=0&columns=k");
    const char *truncate = strstr(rows, ",truncate\n");
    assert_non_null(truncate);
    assert_true(strstr(rows, ",insert,1\n") < truncate);
    assert_true(strstr(rows, ",insert,2\n") > truncate);
    free(rows);
}

/* One pull from a token; the numbers of the rows into seen. Advances the token. */
static size_t pull(char token[64], unsigned limit, int *seen)
{
    struct test_answer answer;
    char route[256];
    size_t rows = 0;

    snprintf(route, sizeof route, "_changes?%s%s&columns=k&format=csv%s",
             token[0] != '\0' ? "token=" : "after=0", token, limit > 0 ? "&limit=5" : "");
    test_get(port, "d", "t", route, &answer);
    if (answer.status != 200)
        fail_msg("%s: %d %s", route, answer.status, answer.body);
    for (char *line = answer.body; line != NULL && *line != '\0'; rows++) {
        char *end = strchr(line, '\n');
        char *comma = strrchr(line, ',');

        assert_non_null(end);
        *end = '\0';
        comma = strrchr(line, ',');
        int k = atoi(comma + 1);
        assert_true(k >= 0 && k < ROWS_MAX);
        seen[k]++;
        line = end + 1;
    }
    test_answer_header(&answer, "x-tidegate-token", token, 64);
    assert_true(token[0] != '\0');
    test_answer_close(&answer);
    return rows;
}

static void a_feed_never_passes_what_may_still_become_visible(void **state)
{
    int seen[ROWS_MAX] = {0};
    char token[64] = "";

    (void)state;
    make_table("DUPLICATE", 1);
    long long first = load("1,a\n", true);
    long long second = load("2,b\n", true);
    test_commit(port, "d", second);
    assert_int_equal(pull(token, 0, seen), 1);
    assert_int_equal(seen[2], 1);
    test_commit(port, "d", first);
    assert_int_equal(pull(token, 0, seen), 1);
    assert_int_equal(seen[1], 1);
    assert_int_equal(pull(token, 0, seen), 0);
}

struct writer {
    pthread_t thread;
    int number;
    int failed;
};

static void *write_some(void *data)
{
    struct writer *writer = data;

    for (int i = 0; i < LOADS_PER_WRITER; i++) {
        char headers[128];
        char body[32];
        int k = writer->number * LOADS_PER_WRITER + i;
        struct test_answer answer;
        struct test_load result = {0};
        struct test_2pc word = {.status = "Success"};
        int n = snprintf(body, sizeof body, "%d,x\n", k);
        struct test_call call = {.port = cluster.participants[writer->number % 3].http,
                                 .method = "PUT",
                                 .target = "/api/d/t/_stream_load",
                                 .headers = "column_separator: ,\r\ntwo_phase_commit: true\r\n",
                                 .body = body,
                                 .len = (size_t)n};

        if (test_http_try(&call, &answer) != TEST_HTTP_ANSWERED ||
            !test_load_parse(&answer, &result) || strcmp(result.status, "Success") != 0)
            writer->failed++;
        test_answer_close(&answer);
        test_sleep_ms((unsigned)(k * 7 % 20));
        snprintf(headers, sizeof headers, "txn_operation: commit\r\ntxn_id: %lld\r\n", result.txn);
        if (!test_2pc(cluster.coordinators[writer->number % 3].http, "d", headers, true, &word) ||
            strcmp(word.status, "Success") != 0)
            writer->failed++;
    }
    return NULL;
}

static void pulls_beside_many_writers_give_every_row_once(void **state)
{
    struct writer writers[WRITERS];
    int seen[ROWS_MAX] = {0};
    char token[64] = "";
    size_t rows = 0;

    (void)state;
    make_table("DUPLICATE", 3);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_some, &writers[i]), 0);
    }
    uint64_t until = test_now_ms() + 30000;
    while (rows < ROWS_MAX && test_now_ms() < until)
        rows += pull(token, rows % 2 == 0 ? 5 : 0, seen);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_int_equal(writers[i].failed, 0);
    }
    rows += pull(token, 0, seen);
    assert_int_equal(rows, ROWS_MAX);
    for (int k = 0; k < ROWS_MAX; k++)
        if (seen[k] != 1)
            fail_msg("row %d came %d times", k, seen[k]);
}

static void a_long_poll_wakes_up_for_a_new_version(void **state)
{
    struct writer writer = {.number = 0};
    struct test_answer answer;

    (void)state;
    make_table("DUPLICATE", 1);
    uint64_t begun = test_now_ms();
    test_get(port, "d", "t", "_changes?after=0&wait_ms=300", &answer);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.body_len, 0);
    assert_true(test_now_ms() - begun >= 250);
    test_answer_close(&answer);
    assert_int_equal(pthread_create(&writer.thread, NULL, write_some, &writer), 0);
    test_get(port, "d", "t", "_changes?after=0&wait_ms=10000", &answer);
    pthread_join(writer.thread, NULL);
    assert_true(answer.body_len > 0);
    test_answer_close(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_names_exactly_one_version),
        cmocka_unit_test(keys_and_ranges_read_the_past_too),
        cmocka_unit_test(truncation_is_a_version_and_the_past_stays),
        cmocka_unit_test(a_feed_never_passes_what_may_still_become_visible),
        cmocka_unit_test(pulls_beside_many_writers_give_every_row_once),
        cmocka_unit_test(a_long_poll_wakes_up_for_a_new_version),
        cmocka_unit_test(the_past_is_the_same_from_every_node_and_after_a_restart),
    };

    return cmocka_run_group_tests(tests, start, end);
}
