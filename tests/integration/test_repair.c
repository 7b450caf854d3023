/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that missed something, or whose data was damaged, become good again by themselves: O04,
 * rules 3 and 4 of the design. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/test_cluster.h"
#include "tests/lib/test_load.h"

enum { HEAL_MS = 20000, BIG_ROWS = 60000, BIG_ROW_BYTES = 40 };

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

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

static void make_table(const char *table, const char *key, unsigned buckets)
{
    char statement[256];

    snprintf(statement, sizeof statement,
             "CREATE TABLE %s (k INT, v VARCHAR(64)) %s KEY(k) DISTRIBUTED BY HASH(k) BUCKETS %u",
             table, key, buckets);
    test_sql(port, "d", statement);
}

static void load_at(uint16_t at, const char *table, const char *headers, const char *body,
                    struct test_load *result)
{
    char lines[256];

    snprintf(lines, sizeof lines, "column_separator: ,\r\n%s", headers);
    test_load_text(at, "d", table, lines, body, result);
    if (strcmp(result->status, "Success") != 0)
        fail_msg("load of %s: %s %s", table, result->status, result->message);
}

/* One row, through a participant that runs. */
static void load_row(const char *table, int k)
{
    struct test_load result;
    char body[64];

    snprintf(body, sizeof body, "%d,value-%d\n", k, k);
    load_at(test_cluster_participant(&cluster), table, "", body, &result);
}

/* ---- what the cluster says of its replicas ---- */

/* -1: nobody could say. */
static long replicas_behind(void)
{
    struct test_call call = {.port = test_cluster_coordinator(&cluster), .target = "/api/cluster"};
    struct test_answer answer;
    long count = -1;

    if (test_http_try(&call, &answer) == TEST_HTTP_ANSWERED && answer.status == 200) {
        const char *at = strstr(answer.body, "\"replicas_behind\":");

        count = at != NULL ? strtol(at + strlen("\"replicas_behind\":"), NULL, 10) : -1;
    }
    test_answer_close(&answer);
    return count;
}

static void wait_behind(bool wanted)
{
    uint64_t until = test_now_ms() + HEAL_MS;

    while (replicas_behind() < 0 || (replicas_behind() > 0) != wanted) {
        if (test_now_ms() > until)
            fail_msg("%ld replicas are behind after %d s", replicas_behind(), HEAL_MS / 1000);
        test_sleep_ms(20);
    }
}

static char *tablets_of(unsigned participant)
{
    struct test_call call = {.port = cluster.participants[participant].http,
                             .target = "/api/_tablets"};
    struct test_answer answer;

    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    char *text = strdup(answer.body);
    test_answer_close(&answer);
    return text;
}

/* All three hold the same versions with the same rowsets, tablet for tablet. Binding of a straggler
 * may still be on its way. */
static void all_agree(void)
{
    uint64_t until = test_now_ms() + HEAL_MS;

    for (;;) {
        char *texts[3];
        for (unsigned i = 0; i < 3; i++)
            texts[i] = tablets_of(i);
        bool same = strcmp(texts[0], texts[1]) == 0 && strcmp(texts[0], texts[2]) == 0;
        if (!same && test_now_ms() > until)
            fail_msg("participants differ:\n%s%s%s", texts[0], texts[1], texts[2]);
        for (unsigned i = 0; i < 3; i++)
            free(texts[i]);
        if (same)
            return;
        test_sleep_ms(50);
    }
}

static void heals(void)
{
    wait_behind(false);
    all_agree();
}

/* ---- O04 ---- */

static void a_participant_that_missed_loads_catches_up_without_a_new_one(void **state)
{
    struct test_load pending;

    (void)state;
    make_table("o4", "DUPLICATE", 4);
    for (int i = 0; i < 20; i++)
        load_row("o4", i);
    load_at(port, "o4", "label: o4-2pc\r\ntwo_phase_commit: true\r\n",
            "900,p\n901,p\n902,p\n903,p\n", &pending);
    test_cluster_kill(&cluster, "participant-3");
    for (int i = 20; i < 40; i++)
        load_row("o4", i);
    test_commit(port, "d", pending.txn);
    test_sql(port, "d", "TRUNCATE TABLE o4");
    for (int i = 40; i < 60; i++)
        load_row("o4", i);
    wait_behind(true);
    test_cluster_restart(&cluster, "participant-3");
    heals();
    assert_int_equal(test_row_count(port, "d", "o4", "_scan"), 20);
}

static void each_may_die_in_turn_and_loads_go_on(void **state)
{
    (void)state;
    make_table("turn", "UNIQUE", 3);
    for (int round = 0; round < 3; round++) {
        char node[32];

        snprintf(node, sizeof node, "participant-%d", round + 1);
        test_cluster_kill(&cluster, node);
        for (int i = 0; i < 15; i++)
            load_row("turn", round * 10 + i);
        test_cluster_restart(&cluster, node);
        heals();
    }
    assert_int_equal(test_row_count(port, "d", "turn", "_scan"), 35);
}

/* ---- large rowsets, and the only copy ---- */

/* Rows that do not compress well. */
static char *big_body(size_t *len)
{
    char *body = malloc((size_t)BIG_ROWS * (BIG_ROW_BYTES + 16));
    uint64_t random = 88172645463325252u;
    size_t at = 0;

    assert_non_null(body);
    for (int i = 0; i < BIG_ROWS; i++) {
        at += (size_t)sprintf(body + at, "%d,", i);
        for (int j = 0; j < BIG_ROW_BYTES; j++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            body[at++] = (char)('A' + random % 26);
        }
        body[at++] = '\n';
    }
    *len = at;
    return body;
}

static void load_big(const char *table)
{
    struct test_load result;
    size_t len;
    char *body = big_body(&len);

    test_load(test_cluster_participant(&cluster), "d", table, "column_separator: ,\r\n", body, len,
              &result);
    free(body);
    if (strcmp(result.status, "Success") != 0)
        fail_msg("large load of %s: %s %s", table, result.status, result.message);
}

static void what_was_cloned_can_be_read_alone(void **state)
{
    (void)state;
    make_table("big", "DUPLICATE", 2);
    test_cluster_kill(&cluster, "participant-2");
    load_big("big");
    load_big("big");
    test_cluster_restart(&cluster, "participant-2");
    heals();
    test_cluster_kill(&cluster, "participant-1");
    test_cluster_kill(&cluster, "participant-3");
    assert_int_equal(test_row_count(cluster.participants[1].http, "d", "big", "_scan"),
                     2 * BIG_ROWS);
    test_cluster_start_again(&cluster);
    heals();
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
    make_table("steady", "DUPLICATE", 2);
    for (int i = 0; i < 3; i++) {
        loaders[i] = (struct loader){.number = i, .stop = &stop};
        assert_int_equal(pthread_create(&loaders[i].thread, NULL, load_on, &loaders[i]), 0);
    }
    test_sleep_ms(300);
    test_cluster_kill(&cluster, "participant-2");
    wait_behind(true);
    test_sleep_ms(1500);
    test_cluster_restart(&cluster, "participant-2");
    wait_behind(false);
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++) {
        pthread_join(loaders[i].thread, NULL);
        loaded += (size_t)loaders[i].loaded;
    }
    assert_true(loaded > 20);
    heals();
    /* A load that was cut off by the kill may have been committed or not. */
    size_t rows = test_row_count(port, "d", "steady", "_scan");
    assert_true(rows >= loaded);
    assert_true(rows <=
                loaded + (size_t)(loaders[0].failed + loaders[1].failed + loaders[2].failed));
}

/* ---- damaged blocks ---- */

/* Changes a byte in every run of overflow pages of an LMDB file: contents, not the tree. */
static unsigned spoil_file(const char *path)
{
    int fd = open(path, O_RDWR);
    struct stat info;
    unsigned spoilt = 0;
    uint8_t page[32];

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    for (off_t at = 2 * 4096; at + 4096 <= info.st_size; at += 4096) {
        uint64_t number;
        uint16_t flags;

        assert_int_equal(pread(fd, page, sizeof page, at), sizeof page);
        memcpy(&number, page, sizeof number);
        memcpy(&flags, page + 10, sizeof flags);
        if (number != (uint64_t)at / 4096 || flags != 4)
            continue;
        uint8_t byte = (uint8_t)(page[20] ^ 0x55);
        assert_int_equal(pwrite(fd, &byte, 1, at + 20), 1);
        spoilt++;
    }
    close(fd);
    return spoilt;
}

static void damaged_blocks_are_read_elsewhere_and_replaced(void **state)
{
    char path[1024];

    (void)state;
    make_table("spoilt", "DUPLICATE", 1);
    load_big("spoilt");
    all_agree();
    test_cluster_stop(&cluster, "participant-2");
    unsigned spoilt = 0;
    snprintf(path, sizeof path, "%s/c/participant-2/data/blocks-64k/data.mdb", cluster.dir.path);
    spoilt += spoil_file(path);
    snprintf(path, sizeof path, "%s/c/participant-2/data/blocks-256k/data.mdb", cluster.dir.path);
    spoilt += spoil_file(path);
    assert_true(spoilt > 0);
    test_cluster_restart(&cluster, "participant-2");
    assert_int_equal(test_row_count(cluster.participants[1].http, "d", "spoilt", "_scan"),
                     BIG_ROWS);
    uint64_t until = test_now_ms() + HEAL_MS;
    while (!test_cluster_logged(&cluster, "participant-2", "replaced from")) {
        if (test_now_ms() > until)
            fail_msg("nothing was replaced");
        test_sleep_ms(50);
    }
    heals();
    test_cluster_kill(&cluster, "participant-1");
    test_cluster_kill(&cluster, "participant-3");
    assert_int_equal(test_row_count(cluster.participants[1].http, "d", "spoilt", "_scan"),
                     BIG_ROWS);
    test_cluster_start_again(&cluster);
    heals();
}

/* ---- the leader goes in the middle ---- */

static void another_leader_goes_on_with_a_repair(void **state)
{
    (void)state;
    make_table("lead", "DUPLICATE", 4);
    test_cluster_kill(&cluster, "participant-1");
    for (int i = 0; i < 30; i++)
        load_row("lead", i);
    test_cluster_restart(&cluster, "participant-1");
    test_cluster_kill(&cluster, "leader");
    test_cluster_leader(&cluster);
    heals();
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
    };
    return cmocka_run_group_tests(tests, start, end);
}
