/* SPDX-License-Identifier: Apache-2.0 */
/* What is collected and what must not be. */
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

enum { THREADS = 4, LOADS = 400, LOADS_SHORT = 80, LOADS_FULL = 2000 };

static struct test_cluster cluster;
static uint16_t port;

static int start(void **state)
{
    (void)state;
    /* The log's word on what is dead comes with every heartbeat. */
    test_cluster_start(&cluster, 3, 3,
                       "--participant-option heartbeat_ms=50 "
                       "--coordinator-option participant_lease_ms=1500");
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

static void make_table(const char *table)
{
    char statement[256];

    snprintf(statement, sizeof statement,
             "CREATE TABLE %s (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 3", table);
    test_sql(port, "d", statement);
}

static long long precommitted(const char *table, const char *label, const char *body)
{
    struct test_load result;
    char headers[256];

    snprintf(headers, sizeof headers, "label: %s\r\ntwo_phase_commit: true\r\ntimeout: 1\r\n",
             label);
    test_load_text(port, "d", table, headers, body, &result);
    if (strcmp(result.status, "Success") != 0)
        fail_msg("load %s: %s %s", label, result.status, result.message);
    return result.txn;
}

struct worker {
    pthread_t thread;
    int number;
    int loads;
    int committed;
    int failed;
};

/* Every third load plain, every third committed after a pause, every third aborted. */
static void *work(void *data)
{
    struct worker *worker = data;

    for (int i = 0; i < worker->loads; i++) {
        char headers[128];
        char body[32];
        struct test_answer answer;
        struct test_load result = {0};
        struct test_2pc word = {.status = "Success"};
        int n = snprintf(body, sizeof body, "%d\n", worker->number * 100000 + i);
        struct test_call call = {.port = cluster.participants[worker->number % 3].http,
                                 .method = "PUT",
                                 .target = "/api/d/o33/_stream_load",
                                 .headers = i % 3 != 0 ? "two_phase_commit: true\r\n" : NULL,
                                 .body = body,
                                 .len = (size_t)n};

        if (test_http_try(&call, &answer) != TEST_HTTP_ANSWERED ||
            !test_load_parse(&answer, &result) || strcmp(result.status, "Success") != 0)
            worker->failed++;
        test_answer_close(&answer);
        if (i % 3 != 0) {
            test_sleep_ms((unsigned)(i * 11 % 51));
            snprintf(headers, sizeof headers, "txn_operation: %s\r\ntxn_id: %lld\r\n",
                     i % 3 == 1 ? "commit" : "abort", result.txn);
            if (!test_2pc(cluster.coordinators[i % 3].http, "d", headers, true, &word) ||
                strcmp(word.status, "Success") != 0)
                worker->failed++;
        }
        worker->committed += i % 3 != 2;
    }
    return NULL;
}

static void collection_beside_loads_takes_only_what_is_dead(void **state)
{
    struct worker workers[THREADS];
    size_t committed = 0;

    (void)state;
    make_table("o33");
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i,
                                     .loads = test_count(LOADS_SHORT, LOADS, LOADS_FULL) / THREADS};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].failed, 0);
        committed += (size_t)workers[i].committed;
    }
    assert_int_equal(test_row_count(port, "d", "o33", "_scan"), committed);
    /* Aborted rowsets really go. */
    uint64_t until = test_now_ms() + 5000;
    while (!test_cluster_logged(&cluster, "participant-1", "store dropped txn=")) {
        if (test_now_ms() > until)
            fail_msg("nothing was collected");
        test_sleep_ms(50);
    }
    test_cluster_restart_all(&cluster);
    assert_int_equal(test_row_count(port, "d", "o33", "_scan"), committed);
}

/* The participants hear nothing from any coordinator for five times the transaction's timeout. */
static void silence_of_the_coordinators_drops_nothing(void **state)
{
    static const char *const nodes[] = {"coordinator-1", "coordinator-2", "coordinator-3"};

    (void)state;
    make_table("silent");
    long long txn = precommitted("silent", "silent-1", "1\n2\n3\n4\n5\n");
    for (size_t i = 0; i < 3; i++)
        test_cluster_pause(&cluster, nodes[i]);
    test_sleep_ms(test_is_short() ? 2000 : 5000);
    for (size_t i = 0; i < 3; i++)
        test_cluster_resume(&cluster, nodes[i]);
    test_cluster_leader(&cluster);
    test_commit(port, "d", txn);
    test_wait_state(port, "d", "silent-1", "VISIBLE", 10000);
    test_rows_are(port, "d", "silent", "_scan?order=key", "1\n2\n3\n4\n5\n");
}

/* The commit is decided while no participant can hear of it. */
static void a_commit_that_participants_did_not_hear_of_is_kept(void **state)
{
    static const char *const nodes[] = {"participant-1", "participant-2", "participant-3"};
    char now[TEST_WORD_BYTES];

    (void)state;
    make_table("deaf");
    long long txn = precommitted("deaf", "deaf-1", "1\n2\n3\n4\n5\n");
    for (size_t i = 0; i < 3; i++)
        test_cluster_pause(&cluster, nodes[i]);
    test_commit(port, "d", txn);
    test_state(port, "d", "deaf-1", now);
    assert_string_equal(now, "COMMITTED");
    test_sleep_ms(2500); /* past their lease */
    for (size_t i = 0; i < 3; i++)
        test_cluster_resume(&cluster, nodes[i]);
    test_wait_state(port, "d", "deaf-1", "VISIBLE", 10000);
    for (unsigned i = 0; i < 3; i++)
        test_rows_are(cluster.participants[i].http, "d", "deaf", "_scan?order=key",
                      "1\n2\n3\n4\n5\n");
}

/* A new leader after an unknown outcome: what the log says counts, on every replica. */
static void an_unknown_outcome_is_asked_for_not_guessed(void **state)
{
    struct test_2pc answer;
    char headers[128];

    (void)state;
    make_table("unknown");
    for (int i = 0; i < 3; i++) {
        char label[32];
        char body[16];

        snprintf(label, sizeof label, "unknown-%d", i);
        snprintf(body, sizeof body, "%d\n", i);
        long long txn = precommitted("unknown", label, body);
        test_cluster_kill(&cluster, "leader");
        snprintf(headers, sizeof headers, "txn_operation: commit\r\ntxn_id: %lld\r\n", txn);
        assert_true(test_2pc(test_cluster_coordinator(&cluster), "d", headers, false, &answer));
        assert_true(strcmp(answer.status, "Success") == 0 ||
                    strstr(answer.msg, "not pre-committed") != NULL);
        test_cluster_start_again(&cluster);
        test_wait_state(port, "d", label, "VISIBLE", 10000);
    }
    test_rows_are(port, "d", "unknown", "_scan?order=key", "0\n1\n2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collection_beside_loads_takes_only_what_is_dead),
        cmocka_unit_test(silence_of_the_coordinators_drops_nothing),
        cmocka_unit_test(a_commit_that_participants_did_not_hear_of_is_kept),
        cmocka_unit_test(an_unknown_outcome_is_asked_for_not_guessed),
    };

    return cmocka_run_group_tests(tests, start, end);
}
