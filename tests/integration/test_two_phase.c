/* SPDX-License-Identifier: Apache-2.0 */
/* Two-phase commit: labels, timeouts, races. */
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

enum { RACES = 200, RACES_SHORT = 40, RACES_FULL = 500 };

static struct test_cluster cluster;
static uint16_t port; /* of a coordinator */

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 3, 3, "--coordinator-option precommit_timeout_s=2");
    port = cluster.coordinators[(test_cluster_leader(&cluster) + 1) % 3].http;
    test_sql(port, "", "CREATE DATABASE d");
    test_sql(port, "", "CREATE DATABASE e");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

static void make_table(const char *db)
{
    test_sql(port, db, "DROP TABLE IF EXISTS t");
    test_sql(port, db, "CREATE TABLE t (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
}

static void load(const char *label, const char *body, bool two_phase, struct test_load *result)
{
    char headers[256];

    snprintf(headers, sizeof headers, "label: %s\r\n%s", label,
             two_phase ? "two_phase_commit: true\r\n" : "");
    test_load_text(port, "d", "t", headers, body, result);
}

static void rows_are(const char *expected)
{
    test_rows_are(port, "d", "t", "_scan?order=key", expected);
}

static void state_is(const char *label, const char *expected)
{
    char now[TEST_WORD_BYTES];

    /* The same from every coordinator. */
    for (unsigned i = 0; i < cluster.coordinator_count; i++) {
        test_state(cluster.coordinators[i].http, "d", label, now);
        assert_string_equal(now, expected);
    }
}

static void an_expired_precommit_is_aborted_and_says_so(void **state)
{
    struct test_load result;
    struct test_2pc answer;

    (void)state;
    make_table("d");
    load("a1", "1\n", true, &result);
    test_load_good(&result, 1, 0);
    state_is("a1", "PRECOMMITTED");
    rows_are("");
    test_wait_state(port, "d", "a1", "ABORTED", 4000);
    test_2pc_txn(port, "d", "commit", result.txn, &answer);
    assert_string_equal(answer.status, "ANALYSIS_ERROR");
    assert_non_null(strstr(answer.msg, "is already aborted. abort reason: timeout by txn manager"));
    rows_are("");
    load("a1", "1\n", true, &result);
    test_load_good(&result, 1, 0);
    test_commit(port, "d", result.txn);
    rows_are("1\n");
}

/* The precommit's age counts from the precommit, however long the load took before it. */
static void a_slow_load_has_the_whole_precommit_timeout(void **state)
{
    const size_t cuts[] = {2, 4};
    struct test_answer answer;
    struct test_load result;
    struct test_call call = {.port = cluster.participants[1].http,
                             .method = "PUT",
                             .target = "/api/d/t/_stream_load",
                             .headers = "label: slow-1\r\ntwo_phase_commit: true\r\n",
                             .body = "5\n6\n",
                             .len = 4,
                             .expect = true,
                             .cuts = cuts,
                             .cut_count = 2,
                             .pause_ms = 1400};

    (void)state;
    make_table("d");
    test_http(&call, &answer);
    assert_true(test_load_parse(&answer, &result));
    test_answer_close(&answer);
    test_load_good(&result, 2, 0);
    test_sleep_ms(800);
    test_commit(port, "d", result.txn);
    rows_are("5\n6\n");
}

static void a_begun_transaction_ages_from_its_begin(void **state)
{
    struct test_2pc answer;
    char state_now[TEST_WORD_BYTES];

    (void)state;
    test_2pc(port, "d", "txn_operation: begin\r\nlabel: young\r\ntimeout: 1\r\n", false, &answer);
    assert_string_equal(answer.status, "Success");
    test_state(port, "d", "young", state_now);
    assert_string_equal(state_now, "PREPARE");
    test_wait_state(port, "d", "young", "ABORTED", 3000);
}

/* The answer never arrives, because the client goes as soon as it has sent the body. */
static void a_client_that_missed_the_answer_repeats_its_load_safely(void **state)
{
    struct test_load result;
    char now[TEST_WORD_BYTES];

    (void)state;
    make_table("d");
    for (int i = 0; i < 10; i++) {
        char head[256];
        char label[32];
        int fd = test_socket_open(cluster.participants[(unsigned)i % 3].http, false);

        snprintf(label, sizeof label, "b%d", i);
        snprintf(head, sizeof head,
                 "PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: x\r\nAuthorization: Basic "
                 "cm9vdDo=\r\nlabel: %s\r\nContent-Length: 3\r\n\r\n7%d\n",
                 label, i);
        test_socket_send_text(fd, head);
        test_sleep_ms((unsigned)i);
        test_socket_close(fd);
        for (int tries = 0; tries < 200; tries++) { /* until it is decided */
            test_state(port, "d", label, now);
            if (strcmp(now, "VISIBLE") == 0 || strcmp(now, "ABORTED") == 0)
                break;
            test_sleep_ms(10);
            if (tries > 100 && strcmp(now, "UNKNOWN") == 0)
                break; /* it was gone before anything began */
        }
        char body[8];
        snprintf(body, sizeof body, "7%d\n", i);
        load(label, body, false, &result);
        if (strcmp(now, "VISIBLE") == 0) {
            assert_string_equal(result.status, "Label Already Exists");
            assert_string_equal(result.existing, "FINISHED");
        } else {
            test_load_good(&result, 1, 0);
        }
    }
    rows_are("70\n71\n72\n73\n74\n75\n76\n77\n78\n79\n");
}

static void a_used_label_is_refused_in_every_state(void **state)
{
    struct test_load first;
    struct test_load result;

    (void)state;
    make_table("d");
    make_table("e");
    load("L1", "1\n", false, &first);
    load("L1", "1\n", false, &result);
    assert_string_equal(result.status, "Label Already Exists");
    assert_string_equal(result.existing, "FINISHED");
    assert_int_equal(result.total + result.loaded + result.filtered, 0);
    load("L2", "2\n", true, &first);
    load("L2", "2\n", true, &result);
    assert_string_equal(result.status, "Label Already Exists");
    assert_string_equal(result.existing, "PRECOMMITTED");
    char txn[64];
    snprintf(txn, sizeof txn, "relate to txn [%lld]", first.txn);
    assert_non_null(strstr(result.message, txn));
    rows_are("1\n");
    test_load_text(port, "e", "t", "label: L1\r\n", "8\n", &result); /* labels are a database's */
    test_load_good(&result, 1, 0);
    test_commit(port, "d", first.txn);
    rows_are("1\n2\n");
}

struct rival {
    pthread_t thread;
    uint16_t port;
    struct test_load result;
    bool answered;
};

static void *load_slowly(void *data)
{
    struct rival *rival = data;
    const size_t cuts[] = {1};
    struct test_answer answer;
    struct test_call call = {.port = rival->port,
                             .method = "PUT",
                             .target = "/api/d/t/_stream_load",
                             .headers = "label: L3\r\n",
                             .body = "3\n",
                             .len = 2,
                             .expect = true,
                             .cuts = cuts,
                             .cut_count = 1,
                             .pause_ms = 200};

    rival->answered = test_http_try(&call, &answer) == TEST_HTTP_ANSWERED &&
                      test_load_parse(&answer, &rival->result);
    test_answer_close(&answer);
    return NULL;
}

static void of_two_loads_with_one_label_one_wins(void **state)
{
    struct rival rivals[2];
    int won = 0;

    (void)state;
    make_table("d");
    for (int i = 0; i < 2; i++) {
        rivals[i].port = cluster.participants[i].http;
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, load_slowly, &rivals[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(rivals[i].thread, NULL);
        assert_true(rivals[i].answered);
        won += strcmp(rivals[i].result.status, "Success") == 0;
        if (strcmp(rivals[i].result.status, "Success") != 0) {
            assert_string_equal(rivals[i].result.status, "Label Already Exists");
            assert_true(strcmp(rivals[i].result.existing, "RUNNING") == 0 ||
                        strcmp(rivals[i].result.existing, "FINISHED") == 0);
        }
    }
    assert_int_equal(won, 1);
    rows_are("3\n");
}

struct race {
    pthread_barrier_t start;
    long long txn;
    const char *operations[2];
    uint16_t ports[2];
    struct test_2pc answers[2];
    bool answered[2];
    int next;
};

static void *run_racer(void *data)
{
    struct race *race = data;
    int me = __atomic_fetch_add(&race->next, 1, __ATOMIC_SEQ_CST);
    char headers[128];

    snprintf(headers, sizeof headers, "txn_operation: %s\r\ntxn_id: %lld\r\n", race->operations[me],
             race->txn);
    pthread_barrier_wait(&race->start);
    race->answered[me] = test_2pc(race->ports[me], "d", headers, true, &race->answers[me]);
    return NULL;
}

static void run_race(struct race *race)
{
    pthread_t threads[2];

    race->next = 0;
    pthread_barrier_init(&race->start, NULL, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_racer, race), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&race->start);
    assert_true(race->answered[0] && race->answered[1]);
}

static void of_commit_and_abort_exactly_one_wins(void **state)
{
    struct race race = {.operations = {"commit", "abort"}};
    int races = test_count(RACES_SHORT, RACES, RACES_FULL);
    size_t committed = 0;
    struct test_load result;

    (void)state;
    make_table("d");
    for (int i = 0; i < races; i++) {
        struct test_2pc again;
        char label[32];
        char body[16];

        snprintf(label, sizeof label, "race-%d", i);
        snprintf(body, sizeof body, "%d\n", i);
        load(label, body, true, &result);
        test_load_good(&result, 1, 0);
        race.txn = result.txn;
        race.ports[0] = cluster.coordinators[(unsigned)i % 3].http;
        race.ports[1] = cluster.coordinators[(unsigned)(i + 1) % 3].http;
        run_race(&race);
        bool commit_won = strcmp(race.answers[0].status, "Success") == 0;
        bool abort_won = strcmp(race.answers[1].status, "Success") == 0;
        if (commit_won == abort_won)
            fail_msg("race %d: commit %s (%s), abort %s (%s)", i, race.answers[0].status,
                     race.answers[0].msg, race.answers[1].status, race.answers[1].msg);
        committed += commit_won;
        test_2pc_txn(port, "d", "commit", race.txn, &again); /* the verdict stays */
        assert_non_null(strstr(again.msg, commit_won ? "not pre-committed" : "is already aborted"));
    }
    load("after-races", "1000000\n", false, &result);
    test_load_good(&result, 1, 0);
    assert_int_equal(test_row_count(port, "d", "t", "_scan"), committed + 1);
}

/* The sweeper as the rival of a commit: whoever the log hears first. */
static void of_commit_and_timeout_exactly_one_wins(void **state)
{
    struct test_load result;
    struct test_2pc answer;
    size_t committed = 0;

    (void)state;
    make_table("d");
    for (int i = 0; i < 3; i++) {
        char label[32];
        char now[TEST_WORD_BYTES];

        snprintf(label, sizeof label, "late-%d", i);
        load(label, "1\n", true, &result);
        test_load_good(&result, 1, 0);
        test_sleep_ms(1980 + 220 * (unsigned)i);
        test_2pc_txn(port, "d", "commit", result.txn, &answer);
        test_state(port, "d", label, now);
        if (strcmp(answer.status, "Success") == 0)
            test_wait_state(port, "d", label, "VISIBLE", 5000);
        else
            assert_string_equal(now, "ABORTED");
        committed += strcmp(answer.status, "Success") == 0;
    }
    assert_int_equal(test_row_count(port, "d", "t", "_scan"), committed);
}

/* Flink's start: an empty two-phase load is precommitted with no rows, and can be aborted. */
static void an_empty_two_phase_load_is_precommitted(void **state)
{
    struct test_load result;
    struct test_2pc answer;
    struct test_answer raw;
    struct test_call call = {.port = cluster.participants[0].http,
                             .method = "PUT",
                             .target = "/api/d/t/_stream_load",
                             .headers = "label: empty-1\r\ntwo_phase_commit: true\r\n"
                                        "Expect: 100-continue\r\nformat: json\r\n"
                                        "read_json_by_line: true\r\n"};

    (void)state;
    make_table("d");
    test_http(&call, &raw);
    assert_false(raw.continued);
    assert_true(test_load_parse(&raw, &result));
    test_answer_close(&raw);
    test_load_good(&result, 0, 0);
    assert_true(result.txn > 0);
    test_2pc_txn(port, "d", "abort", result.txn, &answer);
    assert_string_equal(answer.status, "Success");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expired_precommit_is_aborted_and_says_so),
        cmocka_unit_test(a_slow_load_has_the_whole_precommit_timeout),
        cmocka_unit_test(a_begun_transaction_ages_from_its_begin),
        cmocka_unit_test(a_client_that_missed_the_answer_repeats_its_load_safely),
        cmocka_unit_test(a_used_label_is_refused_in_every_state),
        cmocka_unit_test(of_two_loads_with_one_label_one_wins),
        cmocka_unit_test(of_commit_and_abort_exactly_one_wins),
        cmocka_unit_test(of_commit_and_timeout_exactly_one_wins),
        cmocka_unit_test(an_empty_two_phase_load_is_precommitted),
    };

    return cmocka_run_group_tests(tests, start, end);
}
