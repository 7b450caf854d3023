/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that are killed. */
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

#define AUTH "Authorization: Basic cm9vdDo=\r\n"

enum { CHURN_KILLS = 14, CHURN_KILLS_SHORT = 5, CHURN_STOPS = 12, CHURN_STOPS_SHORT = 6 };

static struct test_cluster cluster;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 3, 3,
                       "--coordinator-option participant_lease_ms=2000 "
                       "--coordinator-option snapshot_bytes=64k");
    test_sql(test_cluster_coordinator(&cluster), "", "CREATE DATABASE d");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

/* Everything runs again, with a fresh table. */
static void make_table(const char *table, unsigned buckets, unsigned replicas)
{
    char statement[512];

    test_cluster_start_again(&cluster);
    snprintf(statement, sizeof statement,
             "CREATE TABLE %s (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS %u "
             "PROPERTIES (\"replication_num\" = \"%u\")",
             table, buckets, replicas);
    test_sql(test_cluster_coordinator(&cluster), "d", statement);
}

static long long load(uint16_t port, const char *table, const char *label, const char *body,
                      bool two_phase)
{
    struct test_load result;
    char headers[256];

    snprintf(headers, sizeof headers, "label: %s\r\n%s", label,
             two_phase ? "two_phase_commit: true\r\n" : "");
    test_load_text(port, "d", table, headers, body, &result);
    if (strcmp(result.status, "Success") != 0)
        fail_msg("load %s: %s %s", label, result.status, result.message);
    return result.txn;
}

static void one_dead_replica_does_not_hold_a_commit_up(void **state)
{
    uint16_t port;

    (void)state;
    make_table("o4", 4, 3);
    port = test_cluster_coordinator(&cluster);
    long long txn = load(port, "o4", "o4-1", "1\n2\n3\n4\n", true);
    test_cluster_kill(&cluster, "participant-3");
    uint64_t begun = test_now_ms();
    test_commit(port, "d", txn);
    test_wait_state(port, "d", "o4-1", "VISIBLE", 10000 - (unsigned)(test_now_ms() - begun));
    for (int i = 0; i < 2; i++)
        test_rows_are(cluster.participants[i].http, "d", "o4", "_scan?order=key", "1\n2\n3\n4\n");
    begun = test_now_ms(); /* nor a load, which goes on without it */
    load(cluster.participants[0].http, "o4", "o4-2", "5\n6\n7\n8\n", false);
    assert_true(test_now_ms() - begun < 2500);
    test_rows_are(cluster.participants[1].http, "d", "o4", "_scan?order=key",
                  "1\n2\n3\n4\n5\n6\n7\n8\n");
    test_cluster_restart(&cluster, "participant-3");
    /* It answers for the whole table, whatever it lacks itself. */
    test_rows_are(cluster.participants[2].http, "d", "o4", "_scan?order=key",
                  "1\n2\n3\n4\n5\n6\n7\n8\n");
}

static void without_a_quorum_a_commit_is_kept_and_ends_by_itself(void **state)
{
    char now[TEST_WORD_BYTES];
    struct test_load result;
    uint16_t port;

    (void)state;
    make_table("o4b", 4, 3);
    port = test_cluster_coordinator(&cluster);
    long long txn = load(port, "o4b", "o4b-1", "1\n2\n3\n4\n", true);
    test_cluster_kill(&cluster, "participant-1");
    test_cluster_kill(&cluster, "participant-2");
    uint64_t begun = test_now_ms();
    test_commit(port, "d", txn); /* decided; it waited two seconds for nothing */
    assert_true(test_now_ms() - begun >= 1500);
    test_state(port, "d", "o4b-1", now);
    assert_string_equal(now, "COMMITTED");
    begun = test_now_ms();
    test_load_text(cluster.participants[2].http, "d", "o4b", "label: o4b-2\r\n", "5\n6\n7\n8\n",
                   &result);
    assert_true(test_now_ms() - begun < 5000);
    test_load_failed(&result, ""); /* no write quorum: nothing of it stays */
    test_cluster_restart(&cluster, "participant-1");
    test_cluster_restart(&cluster, "participant-2");
    test_wait_state(port, "d", "o4b-1", "VISIBLE", 10000);
    test_rows_are(port, "d", "o4b", "_scan?order=key", "1\n2\n3\n4\n");
}

static void a_dead_receiver_s_transaction_is_aborted_soon(void **state)
{
    uint16_t port;
    int fd;

    (void)state;
    make_table("o7", 2, 3);
    port = test_cluster_coordinator(&cluster);
    fd = test_socket_open(cluster.participants[1].http, false);
    test_socket_send_text(fd, "PUT /api/d/o7/_stream_load HTTP/1.1\r\nHost: x\r\n" AUTH
                              "label: P1\r\nContent-Length: 100\r\n\r\n1\n");
    test_wait_state(port, "d", "P1", "PREPARE", 3000);
    test_cluster_kill(&cluster, "participant-2");
    test_socket_close(fd);
    test_wait_state(port, "d", "P1", "ABORTED", 10000);
    load(cluster.participants[0].http, "o7", "P1", "1\n", false);
    test_rows_are(cluster.participants[0].http, "d", "o7", "_scan", "1\n");
}

static void an_abort_by_label_frees_it_at_once(void **state)
{
    struct test_2pc answer;
    uint16_t port;
    int fd;

    (void)state;
    make_table("o7b", 2, 3);
    port = test_cluster_coordinator(&cluster);
    fd = test_socket_open(cluster.participants[1].http, false);
    test_socket_send_text(fd, "PUT /api/d/o7b/_stream_load HTTP/1.1\r\nHost: x\r\n" AUTH
                              "label: P2\r\nContent-Length: 100\r\n\r\n1\n");
    test_wait_state(port, "d", "P2", "PREPARE", 3000);
    test_cluster_kill(&cluster, "participant-2");
    test_2pc(port, "d", "txn_operation: abort\r\nlabel: P2\r\n", false, &answer);
    assert_string_equal(answer.status, "Success");
    load(cluster.participants[0].http, "o7b", "P2", "1\n", false);
    /* Not through a coordinator: it may still redirect to the dead one until its lease ends. */
    test_rows_are(cluster.participants[0].http, "d", "o7b", "_scan", "1\n");
    test_socket_close(fd);
}

/* A participant that dies and returns at once has a new epoch: its old loads are dead, too. */
static void a_restarted_receiver_s_transaction_is_aborted_soon(void **state)
{
    uint16_t port;
    int fd;

    (void)state;
    make_table("o7c", 2, 3);
    port = test_cluster_coordinator(&cluster);
    fd = test_socket_open(cluster.participants[1].http, false);
    test_socket_send_text(fd, "PUT /api/d/o7c/_stream_load HTTP/1.1\r\nHost: x\r\n" AUTH
                              "label: P3\r\nContent-Length: 100\r\n\r\n1\n");
    test_wait_state(port, "d", "P3", "PREPARE", 3000);
    test_cluster_kill(&cluster, "participant-2");
    test_cluster_restart(&cluster, "participant-2");
    test_wait_state(port, "d", "P3", "ABORTED", 5000);
    test_socket_close(fd);
}

static void a_new_leader_knows_what_was_committed_and_what_was_not(void **state)
{
    struct test_2pc answer;
    uint16_t port;
    char now[TEST_WORD_BYTES];

    (void)state;
    make_table("o28", 2, 3);
    port = test_cluster_coordinator(&cluster);
    load(port, "o28", "o28-a", "1\n", false);
    long long b = load(port, "o28", "o28-b", "2\n", true);
    long long d = load(port, "o28", "o28-d", "4\n", true);
    test_2pc_txn(port, "d", "abort", b, &answer);
    assert_string_equal(answer.status, "Success");
    test_cluster_kill(&cluster, "leader");
    port = test_cluster_coordinator(&cluster);
    uint64_t begun = test_now_ms();
    test_commit(port, "d", d);
    uint64_t took = test_now_ms() - begun;
    if (took > (test_is_short() ? 8000 : 2000))
        fail_msg("the first commit after the leader's death took %lu ms", (unsigned long)took);
    load(port, "o28", "o28-c", "3\n", false);
    char *rows = test_rows(port, "d", "o28", "_changes?after=0&columns=k");
    const char *one = strstr(rows, ",insert,1\n");
    const char *four = strstr(rows, ",insert,4\n");
    const char *three = strstr(rows, ",insert,3\n");
    assert_true(one != NULL && four > one && three > four);
    assert_null(strstr(rows, ",insert,2\n"));
    free(rows);
    test_state(port, "d", "o28-b", now);
    assert_string_equal(now, "ABORTED");
    load(port, "o28", "o28-b", "5\n", false);
    test_cluster_start_again(&cluster);
    for (unsigned i = 0; i < 3; i++) {
        test_state(cluster.coordinators[i].http, "d", "o28-a", now);
        assert_string_equal(now, "VISIBLE");
    }
    test_rows_are(port, "d", "o28", "_scan?order=key", "1\n3\n4\n5\n");
}

static uint64_t metric(uint16_t port, const char *name)
{
    struct test_answer answer;
    struct test_call call = {.port = port, .target = "/metrics", .anonymous = true};
    char start_of_line[128];

    test_http(&call, &answer);
    snprintf(start_of_line, sizeof start_of_line, "\n%s ", name);
    const char *line = strstr(answer.body, start_of_line);
    uint64_t value = line != NULL ? strtoull(line + strlen(start_of_line), NULL, 10) : 0;
    test_answer_close(&answer);
    return value;
}

struct churn {
    pthread_t thread;
    bool stop;
    long loads;
    long refused; /* answered otherwise than Success: none is expected */
    uint16_t port;
    int number;
    const char *table; /* and the labels' beginning */
};

/* Loads rows one by one under labels of its own; repeats what got no answer, as a client would. */
static void *load_on(void *data)
{
    struct churn *churn = data;

    while (!__atomic_load_n(&churn->stop, __ATOMIC_SEQ_CST)) {
        struct test_answer answer;
        struct test_load result = {0};
        char target[64];
        char headers[64];
        char body[16];
        int n = snprintf(body, sizeof body, "%ld\n", churn->number * 1000000L + churn->loads);
        struct test_call call = {.port = churn->port,
                                 .method = "PUT",
                                 .target = target,
                                 .headers = headers,
                                 .body = body,
                                 .len = (size_t)n};

        snprintf(target, sizeof target, "/api/d/%s/_stream_load", churn->table);
        snprintf(headers, sizeof headers, "label: %s-%d-%ld\r\n", churn->table, churn->number,
                 churn->loads);
        bool answered = test_http_try(&call, &answer) == TEST_HTTP_ANSWERED &&
                        test_load_parse(&answer, &result);
        test_answer_close(&answer);
        if (answered &&
            (strcmp(result.status, "Success") == 0 || strcmp(result.existing, "FINISHED") == 0))
            churn->loads++;
        else if (answered && strcmp(result.status, "Label Already Exists") != 0)
            churn->refused++;
    }
    return NULL;
}

static size_t end_churn(struct churn *churn)
{
    __atomic_store_n(&churn->stop, true, __ATOMIC_SEQ_CST);
    pthread_join(churn->thread, NULL);
    return (size_t)churn->loads;
}

/* Bindings and seals of others' loads are still on their way through its store then. */
static void a_replica_stops_in_order_while_loads_go_on(void **state)
{
    struct churn churns[6];
    int stops = test_is_short() ? CHURN_STOPS_SHORT : CHURN_STOPS;
    size_t loads = 0;

    (void)state;
    make_table("stops", 2, 3);
    for (int i = 0; i < 6; i++) {
        churns[i] =
            (struct churn){.number = i, .port = cluster.participants[i % 2].http, .table = "stops"};
        assert_int_equal(pthread_create(&churns[i].thread, NULL, load_on, &churns[i]), 0);
    }
    for (int i = 0; i < stops; i++) {
        test_sleep_ms(100 + (unsigned)(i * 61 % 200));
        uint64_t begun = test_now_ms();
        test_cluster_stop(&cluster, "participant-3");
        assert_true(test_now_ms() - begun < 9000); /* not by force */
        test_cluster_restart(&cluster, "participant-3");
    }
    for (int i = 0; i < 6; i++)
        loads += end_churn(&churns[i]);
    assert_true(loads > 0);
    assert_false(test_cluster_logged(&cluster, "participant-3", "bound but not shown"));
    assert_int_equal(test_row_count(test_cluster_coordinator(&cluster), "d", "stops", "_scan"),
                     loads);
}

/* The same of each in one look, and nothing changed while it lasted. */
static bool coordinators_agree(void)
{
    static const char *const same[] = {
        "tidegate_raft_applied_index",
        "tidegate_transactions_finished",
        "tidegate_labels_bytes",
        "tidegate_transactions_open",
        "tidegate_transactions_publishing",
        "tidegate_replicas_behind",
        "tidegate_participants",
        "tidegate_raft_applied_index",
    };
    bool agree = true;

    for (size_t m = 0; m < sizeof same / sizeof same[0]; m++)
        for (int i = 1; i < 3; i++)
            agree = agree && metric(cluster.coordinators[0].http, same[m]) ==
                                 metric(cluster.coordinators[i].http, same[m]);
    return agree;
}

static void coordinators_killed_again_and_again_keep_one_state(void **state)
{
    struct churn churns[3];
    int kills = test_is_short() ? CHURN_KILLS_SHORT : CHURN_KILLS;
    size_t loads = 0;
    uint16_t port;

    (void)state;
    make_table("o26", 2, 3);
    for (int i = 0; i < 3; i++) {
        churns[i] =
            (struct churn){.number = i, .port = cluster.participants[i].http, .table = "o26"};
        assert_int_equal(pthread_create(&churns[i].thread, NULL, load_on, &churns[i]), 0);
    }
    for (int i = 0; i < kills; i++) {
        char node[32];

        snprintf(node, sizeof node, "coordinator-%d", (i * 7 + i / 3) % 3 + 1);
        test_cluster_kill(&cluster, node);
        test_sleep_ms((unsigned)(i * 37 % 200));
        test_cluster_restart(&cluster, node);
        test_sleep_ms(100 + (unsigned)(i * 61 % 200));
    }
    for (int i = 0; i < 3; i++) {
        loads += end_churn(&churns[i]);
        if (churns[i].refused > 0)
            fail_msg("%ld loads failed while coordinators were killed", churns[i].refused);
    }
    assert_true(loads > 0);
    port = test_cluster_coordinator(&cluster);
    assert_int_equal(test_row_count(port, "d", "o26", "_scan"), loads);
    for (int i = 0; i < 3; i++) { /* each label was taken once */
        char label[64];
        char now[TEST_WORD_BYTES];

        snprintf(label, sizeof label, "o26-%d-%ld", i, churns[i].loads - 1);
        test_state(port, "d", label, now);
        assert_string_equal(now, "VISIBLE");
    }
    /* Equal states at an equal index. Repairs of earlier tests' replicas may still go on. */
    uint64_t until = test_now_ms() + 20000;
    while (!coordinators_agree()) {
        if (test_now_ms() > until)
            fail_msg("the coordinators do not reach the same state");
        test_sleep_ms(20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_dead_replica_does_not_hold_a_commit_up),
        cmocka_unit_test(without_a_quorum_a_commit_is_kept_and_ends_by_itself),
        cmocka_unit_test(a_dead_receiver_s_transaction_is_aborted_soon),
        cmocka_unit_test(an_abort_by_label_frees_it_at_once),
        cmocka_unit_test(a_restarted_receiver_s_transaction_is_aborted_soon),
        cmocka_unit_test(a_new_leader_knows_what_was_committed_and_what_was_not),
        cmocka_unit_test(a_replica_stops_in_order_while_loads_go_on),
        cmocka_unit_test(coordinators_killed_again_and_again_keep_one_state),
    };

    return cmocka_run_group_tests(tests, start, end);
}
