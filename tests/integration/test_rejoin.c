/* SPDX-License-Identifier: Apache-2.0 */
/* A participant that has lost its directory, or has an old one, is refused; with --rejoin it takes
 * its place again and is filled from the others: rules 3, 4 and 13 of the design. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/test_replicas.h"

enum { BIG_ROWS = 30000 };

static struct test_cluster cluster;
static uint16_t port;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 3, 3,
                       "--participant-option heartbeat_ms=50 "
                       "--coordinator-option participant_lease_ms=1000");
    port = cluster.coordinators[0].http;
    test_sql(port, "", "CREATE DATABASE d");
    return 0;
}

/* Whatever was done: all that is there belongs to a version. */
static void nothing_is_left_behind(void **state)
{
    (void)state;
    test_replicas_heal(&cluster);
    test_replicas_clean(&cluster);
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

/* Everything must be readable from this one alone, and the others come back. */
static void alone(const char *last, const char *const *others)
{
    test_cluster_kill(&cluster, others[0]);
    test_cluster_kill(&cluster, others[1]);
    uint16_t at = cluster.participants[last[strlen(last) - 1] - '1'].http;
    assert_int_equal(test_row_count(at, "d", "dup", "_scan"), 2 * BIG_ROWS + 20);
    assert_int_equal(test_row_count(at, "d", "uni", "_scan"), 33);
    assert_int_equal(test_row_count(at, "d", "uni", "_scan?version=1"), 1);
    assert_int_equal(test_row_count(at, "d", "cut", "_scan"), 5);
    assert_int_equal(test_row_count(at, "d", "cut", "_scan?version=10"), 10);
    test_cluster_start_again(&cluster);
    test_replicas_heal(&cluster);
}

static void a_wiped_participant_is_filled_again(void **state)
{
    struct test_load pending;
    struct test_load explicit;

    (void)state;
    test_replicas_table(&cluster, "dup", "DUPLICATE", 3, 0);
    test_replicas_table(&cluster, "uni", "UNIQUE", 2, 0);
    test_replicas_table(&cluster, "cut", "DUPLICATE", 2, 0);
    test_replicas_table(&cluster, "empty", "DUPLICATE", 2, 0);
    test_replicas_load_big(&cluster, "dup", BIG_ROWS);
    for (int i = 0; i < 20; i++)
        test_replicas_row(&cluster, "dup", i);
    for (int i = 0; i < 30; i++)
        test_replicas_row(&cluster, "uni", i);
    for (int i = 0; i < 10; i++)
        test_replicas_row(&cluster, "cut", i);
    test_sql(port, "d", "TRUNCATE TABLE cut");
    for (int i = 0; i < 5; i++)
        test_replicas_row(&cluster, "cut", i);
    test_replicas_load(&cluster, "uni", "label: open\r\ntwo_phase_commit: true\r\n",
                       "900,p\n901,p\n902,p\n", &pending);
    test_replicas_load(&cluster, "empty", "label: first\r\ntwo_phase_commit: true\r\n",
                       "1,a\n2,b\n3,c\n4,d\n", &explicit);
    test_replicas_agree(&cluster);

    test_cluster_kill(&cluster, "participant-2");
    test_replicas_wipe(&cluster, "participant-2");
    test_replicas_load_big(&cluster, "dup", BIG_ROWS);
    test_cluster_restart(&cluster, "participant-2 --rejoin");
    assert_true(test_cluster_logged(&cluster, "participant-2", "serving"));
    test_commit(port, "d", pending.txn);
    test_commit(port, "d", explicit.txn);
    test_replicas_heal(&cluster);
    alone("participant-2", (const char *const[]){"participant-1", "participant-3"});
    assert_int_equal(test_row_count(port, "d", "empty", "_scan"), 4);
}

static void without_the_flag_a_wiped_one_is_refused(void **state)
{
    (void)state;
    test_cluster_kill(&cluster, "participant-1");
    test_replicas_shell(&cluster, "participant-1", "mv data kept && mkdir data");
    assert_int_equal(test_replicas_start_fails(&cluster, "participant-1", "start with --rejoin"),
                     3);
    /* With its own directory it is welcome again. */
    test_replicas_shell(&cluster, "participant-1", "rm -rf data && mv kept data");
    test_cluster_restart(&cluster, "participant-1");
    test_replicas_heal(&cluster);
}

/* A copy of the directory from before: refused, and with the flag whatever differs is fetched. */
static void an_old_copy_is_refused_and_with_the_flag_compared(void **state)
{
    (void)state;
    test_cluster_stop(&cluster, "participant-3");
    test_replicas_shell(&cluster, "participant-3", "cp -r data old");
    test_cluster_restart(&cluster, "participant-3");
    test_replicas_table(&cluster, "later", "DUPLICATE", 2, 0);
    for (int i = 0; i < 20; i++)
        test_replicas_row(&cluster, "later", i);
    for (int i = 0; i < 3; i++)
        test_replicas_row(&cluster, "uni", i);
    test_replicas_heal(&cluster);
    test_cluster_stop(&cluster, "participant-3");
    test_replicas_shell(&cluster, "participant-3", "rm -rf data && mv old data");
    assert_int_equal(test_replicas_start_fails(&cluster, "participant-3", "fenced"), 3);
    test_cluster_restart(&cluster, "participant-3 --rejoin");
    test_replicas_heal(&cluster);
    alone("participant-3", (const char *const[]){"participant-1", "participant-2"});
}

struct loader {
    pthread_t thread;
    atomic_bool stop;
    int loaded;
    int failed;
};

static void *load_on(void *data)
{
    struct loader *loader = data;

    while (!atomic_load(&loader->stop)) {
        char body[64];
        struct test_answer answer;
        struct test_load result = {0};
        int n = snprintf(body, sizeof body, "%d\tx\n", loader->loaded);
        struct test_call call = {.port = cluster.participants[0].http,
                                 .method = "PUT",
                                 .target = "/api/d/steady/_stream_load",
                                 .body = body,
                                 .len = (size_t)n,
                                 .expect = true,
                                 .follow = true};

        if (test_http_try(&call, &answer) != TEST_HTTP_ANSWERED ||
            !test_load_parse(&answer, &result) || strcmp(result.status, "Success") != 0)
            loader->failed++;
        else
            loader->loaded++;
        test_answer_close(&answer);
    }
    return NULL;
}

static void one_is_wiped_while_loads_go_on(void **state)
{
    static struct loader loader; /* outlives a test that fails */

    (void)state;
    test_replicas_table(&cluster, "steady", "DUPLICATE", 2, 0);
    assert_int_equal(pthread_create(&loader.thread, NULL, load_on, &loader), 0);
    test_cluster_kill(&cluster, "participant-2");
    test_replicas_wipe(&cluster, "participant-2");
    test_replicas_wait(&cluster, true);
    test_cluster_restart(&cluster, "participant-2 --rejoin");
    test_replicas_wait(&cluster, false);
    atomic_store(&loader.stop, true);
    pthread_join(loader.thread, NULL);
    test_replicas_heal(&cluster);
    size_t rows = test_row_count(port, "d", "steady", "_scan");
    assert_true(loader.loaded > 0);
    assert_true(rows >= (size_t)loader.loaded && rows <= (size_t)(loader.loaded + loader.failed));
}

/* With two of three it goes on; with the second one back, both are filled from the only good one.
 */
static void one_is_wiped_while_another_is_down(void **state)
{
    (void)state;
    test_cluster_kill(&cluster, "participant-1");
    test_replicas_row(&cluster, "steady", 1);
    test_cluster_kill(&cluster, "participant-3");
    test_replicas_wipe(&cluster, "participant-3");
    test_cluster_restart(&cluster, "participant-3 --rejoin");
    /* Loads succeed again as soon as it is filled from the one that is left. */
    struct test_load result;
    uint64_t until = test_now_ms() + TEST_HEAL_MS;
    do {
        test_load_text(cluster.participants[1].http, "d", "later", "column_separator: ,\r\n",
                       "100,x\n", &result);
        if (test_now_ms() > until)
            fail_msg("no load succeeds: %s", result.message);
    } while (strcmp(result.status, "Success") != 0);
    test_cluster_start_again(&cluster);
    test_replicas_heal(&cluster);
    alone("participant-3", (const char *const[]){"participant-1", "participant-2"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wiped_participant_is_filled_again),
        cmocka_unit_test(without_the_flag_a_wiped_one_is_refused),
        cmocka_unit_test(an_old_copy_is_refused_and_with_the_flag_compared),
        cmocka_unit_test(one_is_wiped_while_loads_go_on),
        cmocka_unit_test(one_is_wiped_while_another_is_down),
        cmocka_unit_test(nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, start, end);
}
