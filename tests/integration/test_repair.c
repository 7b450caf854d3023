/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that missed something, or whose data was damaged, become good again by themselves: O04,
 * rules 3 and 4 of the design. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/test_replicas.h"

enum { BIG_ROWS = 60000 };

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

/* What one test left behind when it failed is not the next one's fault. */
static int all_run(void **state)
{
    (void)state;
    test_cluster_start_again(&cluster);
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

/* ---- O04 ---- */

static void a_participant_that_missed_loads_catches_up_without_a_new_one(void **state)
{
    struct test_load pending;

    (void)state;
    test_replicas_table(&cluster, "o4", "DUPLICATE", 4, 0);
    for (int i = 0; i < 20; i++)
        test_replicas_row(&cluster, "o4", i);
    test_replicas_load(&cluster, "o4", "label: o4-2pc\r\ntwo_phase_commit: true\r\n",
                       "900,p\n901,p\n902,p\n903,p\n", &pending);
    test_cluster_kill(&cluster, "participant-3");
    for (int i = 20; i < 40; i++)
        test_replicas_row(&cluster, "o4", i);
    test_commit(port, "d", pending.txn);
    test_sql(port, "d", "TRUNCATE TABLE o4");
    for (int i = 40; i < 60; i++)
        test_replicas_row(&cluster, "o4", i);
    test_replicas_wait(&cluster, true);
    test_cluster_restart(&cluster, "participant-3");
    test_replicas_heal(&cluster);
    assert_int_equal(test_row_count(port, "d", "o4", "_scan"), 20);
}

static void each_may_die_in_turn_and_loads_go_on(void **state)
{
    (void)state;
    test_replicas_table(&cluster, "turn", "UNIQUE", 3, 0);
    for (int round = 0; round < 3; round++) {
        char node[32];

        snprintf(node, sizeof node, "participant-%d", round + 1);
        test_cluster_kill(&cluster, node);
        for (int i = 0; i < 15; i++)
            test_replicas_row(&cluster, "turn", round * 10 + i);
        test_cluster_restart(&cluster, node);
        test_replicas_heal(&cluster);
    }
    assert_int_equal(test_row_count(port, "d", "turn", "_scan"), 35);
}

/* ---- large rowsets, and the only copy ---- */

static void what_was_cloned_can_be_read_alone(void **state)
{
    (void)state;
    test_replicas_table(&cluster, "big", "DUPLICATE", 2, 0);
    test_cluster_kill(&cluster, "participant-2");
    test_replicas_load_big(&cluster, "big", BIG_ROWS);
    test_replicas_load_big(&cluster, "big", BIG_ROWS);
    test_cluster_restart(&cluster, "participant-2");
    test_replicas_heal(&cluster);
    test_cluster_kill(&cluster, "participant-1");
    test_cluster_kill(&cluster, "participant-3");
    assert_int_equal(test_row_count(cluster.participants[1].http, "d", "big", "_scan"),
                     2 * BIG_ROWS);
    test_cluster_start_again(&cluster);
    test_replicas_heal(&cluster);
}

/* ---- while loads go on ---- */

struct loader {
    pthread_t thread;
    int number;
    atomic_bool *stop;
    int loaded;
    int failed;
};

static void *load_on(void *data)
{
    struct loader *loader = data;

    while (!atomic_load(loader->stop)) {
        char body[64];
        struct test_answer answer;
        struct test_load result = {0};
        int n = snprintf(body, sizeof body, "%d\tx\n", loader->number * 1000000 + loader->loaded);
        struct test_call call = {.port = cluster.participants[2 * (loader->number % 2)].http,
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

/* A replica becomes good although there is always a further version on its way. */
static void a_replica_is_repaired_under_a_steady_load(void **state)
{
    static struct loader loaders[3]; /* they outlive a test that fails */
    static atomic_bool stop;
    size_t loaded = 0;

    (void)state;
    test_replicas_table(&cluster, "steady", "DUPLICATE", 2, 0);
    for (int i = 0; i < 3; i++) {
        loaders[i] = (struct loader){.number = i, .stop = &stop};
        assert_int_equal(pthread_create(&loaders[i].thread, NULL, load_on, &loaders[i]), 0);
    }
    test_sleep_ms(300);
    test_cluster_kill(&cluster, "participant-2");
    test_replicas_wait(&cluster, true);
    test_sleep_ms(1500);
    test_cluster_restart(&cluster, "participant-2");
    test_replicas_wait(&cluster, false);
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++) {
        pthread_join(loaders[i].thread, NULL);
        loaded += (size_t)loaders[i].loaded;
    }
    assert_true(loaded > 20);
    test_replicas_heal(&cluster);
    /* A load that was cut off by the kill may have been committed or not. */
    size_t rows = test_row_count(port, "d", "steady", "_scan");
    assert_true(rows >= loaded);
    assert_true(rows <=
                loaded + (size_t)(loaders[0].failed + loaders[1].failed + loaders[2].failed));
}

/* ---- damaged blocks ---- */

static void damaged_blocks_are_read_elsewhere_and_replaced(void **state)
{
    (void)state;
    test_replicas_table(&cluster, "spoilt", "DUPLICATE", 1, 0);
    test_replicas_load_big(&cluster, "spoilt", BIG_ROWS);
    test_replicas_agree(&cluster);
    test_cluster_stop(&cluster, "participant-2");
    assert_true(test_replicas_spoil(&cluster, "participant-2") > 0);
    test_cluster_restart(&cluster, "participant-2");
    assert_int_equal(test_row_count(cluster.participants[1].http, "d", "spoilt", "_scan"),
                     BIG_ROWS);
    test_replicas_logged(&cluster, "participant-2", "replaced from");
    test_replicas_heal(&cluster);
    test_cluster_kill(&cluster, "participant-1");
    test_cluster_kill(&cluster, "participant-3");
    assert_int_equal(test_row_count(cluster.participants[1].http, "d", "spoilt", "_scan"),
                     BIG_ROWS);
    test_cluster_start_again(&cluster);
    test_replicas_heal(&cluster);
}

/* ---- the leader goes in the middle ---- */

static void another_leader_goes_on_with_a_repair(void **state)
{
    (void)state;
    test_replicas_table(&cluster, "lead", "DUPLICATE", 4, 0);
    test_cluster_kill(&cluster, "participant-1");
    for (int i = 0; i < 30; i++)
        test_replicas_row(&cluster, "lead", i);
    test_cluster_restart(&cluster, "participant-1");
    test_cluster_kill(&cluster, "leader");
    test_cluster_leader(&cluster);
    test_replicas_heal(&cluster);
    test_cluster_start_again(&cluster);
    assert_int_equal(test_row_count(test_cluster_coordinator(&cluster), "d", "lead", "_scan"), 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_participant_that_missed_loads_catches_up_without_a_new_one,
                               all_run),
        cmocka_unit_test_setup(each_may_die_in_turn_and_loads_go_on, all_run),
        cmocka_unit_test_setup(what_was_cloned_can_be_read_alone, all_run),
        cmocka_unit_test_setup(a_replica_is_repaired_under_a_steady_load, all_run),
        cmocka_unit_test_setup(damaged_blocks_are_read_elsewhere_and_replaced, all_run),
        cmocka_unit_test_setup(another_leader_goes_on_with_a_repair, all_run),
        cmocka_unit_test(nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, start, end);
}
