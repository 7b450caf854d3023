/* SPDX-License-Identifier: Apache-2.0 */
/* What survives an end and a new start: everything killed at once, orderly stops, directories
 * that must not come back. One coordinator and one participant, so that nobody else can help. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/lib/test_cluster.h"
#include "tests/lib/test_load.h"

#define AUTH "Authorization: Basic cm9vdDo=\r\n"

enum { KILL_ROUNDS = 30, KILL_ROUNDS_SHORT = 8, KILL_ROUNDS_FULL = 200 };

static struct test_cluster cluster;
static uint16_t port;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 1, 1, NULL);
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

    test_cluster_start_again(&cluster);
    snprintf(statement, sizeof statement,
             "CREATE TABLE %s (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1", table);
    test_sql(port, "d", statement);
}

static long long load(const char *table, const char *label, const char *body, bool two_phase)
{
    struct test_load result;
    char headers[256];

    snprintf(headers, sizeof headers, "label: %s\r\n%s", label,
             two_phase ? "two_phase_commit: true\r\n" : "");
    test_load_text(cluster.participants[0].http, "d", table, headers, body, &result);
    if (strcmp(result.status, "Success") != 0)
        fail_msg("load %s: %s %s", label, result.status, result.message);
    return result.txn;
}

static void state_is(const char *label, const char *expected)
{
    char now[TEST_WORD_BYTES];

    test_state(port, "d", label, now);
    assert_string_equal(now, expected);
}

struct committer {
    pthread_t thread;
    long long txn;
    uint16_t port;
    bool acknowledged;
};

static void *commit_alone(void *data)
{
    struct committer *committer = data;
    struct test_2pc answer;
    char headers[128];

    snprintf(headers, sizeof headers, "txn_operation: commit\r\ntxn_id: %lld\r\n", committer->txn);
    committer->acknowledged =
        test_2pc(committer->port, "d", headers, true, &answer) &&
        (strcmp(answer.status, "Success") == 0 || strstr(answer.msg, "not pre-committed") != NULL);
    return NULL;
}

/* A single copy, killed within 0 to 20 ms of its commit: no acknowledged row is lost, no version is
 * skipped. */
static void a_participant_killed_while_it_publishes_leaves_no_hole(void **state)
{
    int rounds = test_count(KILL_ROUNDS_SHORT, KILL_ROUNDS, KILL_ROUNDS_FULL);
    char expected[1024] = "";

    (void)state;
    make_table("o5");
    for (int i = 0; i < rounds; i++) {
        struct committer committer = {.port = port};
        char body[16];
        char label[32];

        snprintf(body, sizeof body, "%d\n", 100 + i);
        snprintf(label, sizeof label, "o5-%d", i);
        committer.txn = load("o5", label, body, true);
        assert_int_equal(pthread_create(&committer.thread, NULL, commit_alone, &committer), 0);
        test_sleep_ms((unsigned)(i * 13 % 21));
        test_cluster_kill(&cluster, "participant-1");
        test_cluster_restart(&cluster, "participant-1");
        pthread_join(committer.thread, NULL);
        assert_true(committer.acknowledged);
        test_wait_state(port, "d", label, "VISIBLE", 10000);
        strcat(expected, body);
    }
    test_rows_are(port, "d", "o5", "_scan?order=key", expected);
    for (int v = 1; v <= rounds; v++) {
        char route[64];

        snprintf(route, sizeof route, "_scan?version=%d", v);
        assert_int_equal(test_row_count(port, "d", "o5", route), v);
    }
}

/* ---- everything at once ---- */

static void make_a_bit_of_everything(const char *table, long long *precommitted)
{
    struct test_2pc answer;
    char label[64];

    make_table(table);
    snprintf(label, sizeof label, "%s-visible", table);
    load(table, label, "1\n2\n", false);
    snprintf(label, sizeof label, "%s-precommitted", table);
    *precommitted = load(table, label, "3\n", true);
    snprintf(label, sizeof label, "%s-aborted", table);
    test_2pc_txn(port, "d", "abort", load(table, label, "4\n", true), &answer);
    assert_string_equal(answer.status, "Success");
    char headers[128];
    snprintf(headers, sizeof headers, "txn_operation: begin\r\nlabel: %s-begun\r\n", table);
    test_2pc(port, "d", headers, false, &answer);
    assert_string_equal(answer.status, "Success");
}

static void all_of_it_is_still_there(const char *table, long long precommitted)
{
    struct test_load again;
    char label[64];

    test_rows_are(port, "d", table, "_scan?order=key", "1\n2\n");
    snprintf(label, sizeof label, "%s-visible", table);
    state_is(label, "VISIBLE");
    snprintf(label, sizeof label, "%s-aborted", table);
    state_is(label, "ABORTED");
    snprintf(label, sizeof label, "%s-begun", table);
    state_is(label, "PREPARE");
    snprintf(label, sizeof label, "label: %s-visible\r\n", table);
    test_load_text(port, "d", table, label, "9\n", &again);
    assert_string_equal(again.status, "Label Already Exists");
    test_commit(port, "d", precommitted);
    test_rows_are(port, "d", table, "_scan?order=key", "1\n2\n3\n");
}

static void everything_killed_at_once_loses_nothing_acknowledged(void **state)
{
    long long precommitted;

    (void)state;
    make_a_bit_of_everything("killed", &precommitted);
    test_cluster_kill(&cluster, "participant-1");
    test_cluster_kill(&cluster, "coordinator-1");
    test_cluster_start_again(&cluster);
    all_of_it_is_still_there("killed", precommitted);
}

static void an_orderly_restart_loses_nothing_either(void **state)
{
    long long precommitted;

    (void)state;
    make_a_bit_of_everything("orderly", &precommitted);
    test_cluster_restart_all(&cluster);
    all_of_it_is_still_there("orderly", precommitted);
    assert_true(test_cluster_logged(&cluster, "participant-1", "participant stopped"));
    assert_true(test_cluster_logged(&cluster, "coordinator-1", "coordinator stopped status=0"));
}

static void a_stop_ends_uploads_and_aborts_them(void **state)
{
    int fd;

    (void)state;
    make_table("stopped");
    fd = test_socket_open(cluster.participants[0].http, false);
    test_socket_send_text(fd, "PUT /api/d/stopped/_stream_load HTTP/1.1\r\nHost: x\r\n" AUTH
                              "label: upload\r\nContent-Length: 100\r\n\r\n1\n");
    test_wait_state(port, "d", "upload", "PREPARE", 3000);
    uint64_t begun = test_now_ms();
    test_cluster_stop(&cluster, "participant-1");
    assert_true(test_now_ms() - begun < 9000); /* not by force */
    test_socket_close(fd);
    test_cluster_start_again(&cluster);
    test_wait_state(port, "d", "upload", "ABORTED", 8000);
    assert_int_equal(test_row_count(port, "d", "stopped", "_scan"), 0);
    load("stopped", "upload", "2\n", false);
}

/* ---- directories that must not come back ---- */

static int run(const char *format, const char *path)
{
    char command[1024];

    snprintf(command, sizeof command, format, getenv("TIDEGATE_BIN"), path, path);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A coordinator whose log is gone stays out: it may have acknowledged what it no longer has. */
static void a_coordinator_without_its_log_is_refused(void **state)
{
    (void)state;
    test_cluster_stop(&cluster, "coordinator-1");
    assert_int_equal(run("true '%s' && mv '%s/c/coordinator-1/data' '%s/away'", cluster.dir.path),
                     0);
    assert_int_equal(run("true '%s' && mkdir '%s/c/coordinator-1/data'", cluster.dir.path), 0);
    assert_int_not_equal(run("timeout 20 '%s/tidegate' cluster restart coordinator-1 --dir '%s/c' "
                             ">/dev/null 2>&1",
                             cluster.dir.path),
                         0);
    assert_true(test_cluster_logged(&cluster, "coordinator-1", "cannot_start error=REFUSED"));
    assert_int_equal(run("true '%s' && rm -rf '%s/c/coordinator-1/data'", cluster.dir.path), 0);
    assert_int_equal(run("true '%s' && mv '%s/away' '%s/c/coordinator-1/data'", cluster.dir.path),
                     0);
    test_cluster_start_again(&cluster);
}

/* A copy of a participant's directory registers first; the original is fenced, or the other way
 * round, but never do both serve. */
static void of_two_copies_of_a_participant_one_is_fenced(void **state)
{
    (void)state;
    make_table("copies");
    load("copies", "copies-1", "1\n", false);
    test_cluster_stop(&cluster, "participant-1");
    assert_int_equal(
        run("true '%s' && cp -a '%s/c/participant-1/data' '%s/copy'", cluster.dir.path), 0);
    test_cluster_start_again(&cluster);
    int status =
        run("timeout 10 '%s/tidegate-participant' --config '%s/c/participant-1/"
            "participant.conf' --data-dir '%s/copy' --http-port 0 --rpc-port 0 2>/dev/null",
            cluster.dir.path);
    assert_int_equal(status, 3); /* fenced: its start is older than the other's */
    test_rows_are(port, "d", "copies", "_scan", "1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_participant_killed_while_it_publishes_leaves_no_hole),
        cmocka_unit_test(everything_killed_at_once_loses_nothing_acknowledged),
        cmocka_unit_test(an_orderly_restart_loses_nothing_either),
        cmocka_unit_test(a_stop_ends_uploads_and_aborts_them),
        cmocka_unit_test(a_coordinator_without_its_log_is_refused),
        cmocka_unit_test(of_two_copies_of_a_participant_one_is_fenced),
    };

    return cmocka_run_group_tests(tests, start, end);
}
