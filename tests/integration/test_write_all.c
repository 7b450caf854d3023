/* SPDX-License-Identifier: Apache-2.0 */
/* What write_quorum = all promises and what it costs: a load needs every replica, publishing a
 * majority. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/test_replicas.h"

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
    test_sql(port, "d",
             "CREATE TABLE w (k INT, v VARCHAR(64)) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) "
             "BUCKETS 2 PROPERTIES (\"write_quorum\" = \"all\")");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

static void try_load(const char *body, struct test_load *result)
{
    test_load_text(test_cluster_participant(&cluster), "d", "w", "column_separator: ,\r\n", body,
                   result);
}

/* It leaves PREPARE with three reports, and becomes visible with two that bind. */
static void a_majority_publishes_what_all_have_written(void **state)
{
    struct test_load pending;

    (void)state;
    test_replicas_row(&cluster, "w", 1);
    test_replicas_load(&cluster, "w", "label: all\r\ntwo_phase_commit: true\r\n", "2,b\n3,c\n",
                       &pending);
    test_cluster_kill(&cluster, "participant-3");
    test_commit(port, "d", pending.txn);
    test_wait_state(port, "d", "all", "VISIBLE", TEST_HEAL_MS);
    assert_int_equal(test_row_count(port, "d", "w", "_scan"), 3);
}

static void with_one_down_a_load_is_refused_clearly_and_soon(void **state)
{
    struct test_load result;

    (void)state;
    uint64_t began = test_now_ms();
    try_load("4,d\n", &result);
    assert_string_equal(result.status, "Fail");
    if (strstr(result.message, "succ replica num 2 < load required replica num 3") == NULL)
        fail_msg("it said: %s", result.message);
    assert_true(test_now_ms() - began < 30000);
    assert_int_equal(test_row_count(port, "d", "w", "_scan"), 3);
}

static void with_all_back_loads_are_taken_again(void **state)
{
    struct test_load result;
    uint64_t until = test_now_ms() + TEST_HEAL_MS;

    (void)state;
    test_cluster_start_again(&cluster);
    do {
        try_load("5,e\n", &result);
        if (test_now_ms() > until)
            fail_msg("no load succeeds: %s", result.message);
        test_sleep_ms(20);
    } while (strcmp(result.status, "Success") != 0);
    test_replicas_heal(&cluster);
    assert_int_equal(test_row_count(port, "d", "w", "_scan"), 4);
}

/* One that has to be filled again counts for nothing until it has proven to be whole. */
static void while_one_is_behind_a_load_is_refused_at_once(void **state)
{
    struct test_load result;

    (void)state;
    test_cluster_kill(&cluster, "participant-2");
    test_replicas_wipe(&cluster, "participant-2");
    test_cluster_restart(&cluster, "participant-2 --rejoin");
    uint64_t until = test_now_ms() + TEST_HEAL_MS;
    do {
        try_load("6,f\n", &result);
        if (strcmp(result.status, "Success") != 0 &&
            strstr(result.message, "load required replica num 3") == NULL)
            fail_msg("it said: %s", result.message);
        if (test_now_ms() > until)
            fail_msg("no load succeeds: %s", result.message);
        test_sleep_ms(20);
    } while (strcmp(result.status, "Success") != 0);
    test_replicas_heal(&cluster);
    assert_int_equal(test_row_count(port, "d", "w", "_scan"), 5);
    test_replicas_clean(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_majority_publishes_what_all_have_written),
        cmocka_unit_test(with_one_down_a_load_is_refused_clearly_and_soon),
        cmocka_unit_test(with_all_back_loads_are_taken_again),
        cmocka_unit_test(while_one_is_behind_a_load_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, start, end);
}
