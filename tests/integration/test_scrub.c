/* SPDX-License-Identifier: Apache-2.0 */
/* Damage that nobody reads is found and repaired; a store that cannot be opened says what to do;
 * and after all that nothing is left behind. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/test_replicas.h"

enum { BIG_ROWS = 30000, PATH_BYTES = 1024, PAGE_BYTES = 4096 };

static struct test_cluster cluster;
static uint16_t port;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 3, 3,
                       "--participant-option heartbeat_ms=50 "
                       "--participant-option scrub_bytes_per_s=0 "
                       "--participant-option scrub_interval_s=1 "
                       "--coordinator-option participant_lease_ms=1000");
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

static uint64_t scrub_says(const char *member)
{
    struct test_call call = {.port = cluster.participants[1].http, .target = "/api/_scrub"};
    struct test_answer answer;
    char name[64];

    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    snprintf(name, sizeof name, "\"%s\":", member);
    const char *at = strstr(answer.body, name);
    assert_non_null(at);
    uint64_t value = strtoull(at + strlen(name), NULL, 10);
    test_answer_close(&answer);
    return value;
}

/* All is good, and a whole pass that began after that finds nothing. */
static void settles(void)
{
    uint64_t until = test_now_ms() + TEST_HEAL_MS;

    for (;;) {
        test_replicas_heal(&cluster);
        uint64_t damaged = scrub_says("damaged");
        uint64_t passes = scrub_says("passes");
        while (scrub_says("passes") < passes + 2) {
            if (test_now_ms() > until)
                fail_msg("no pass ends");
            test_sleep_ms(50);
        }
        if (scrub_says("damaged") == damaged)
            break;
    }
    test_replicas_heal(&cluster);
}

static void alone(const char *table, size_t rows)
{
    test_cluster_kill(&cluster, "participant-1");
    test_cluster_kill(&cluster, "participant-3");
    assert_int_equal(test_row_count(cluster.participants[1].http, "d", table, "_scan"), rows);
    test_cluster_start_again(&cluster);
    test_replicas_heal(&cluster);
}

static void damage_that_nobody_reads_is_found_while_it_runs(void **state)
{
    (void)state;
    test_replicas_table(&cluster, "running", "DUPLICATE", 2, 0);
    test_replicas_load_big(&cluster, "running", BIG_ROWS);
    test_replicas_agree(&cluster);
    assert_true(test_replicas_spoil(&cluster, "participant-2") > 0);
    test_replicas_logged(&cluster, "participant-2", "scrub damage_found");
    test_replicas_logged(&cluster, "participant-2", "replaced from");
    settles();
    alone("running", BIG_ROWS);
}

static void damage_done_while_it_stood_still_is_found_after_the_start(void **state)
{
    (void)state;
    test_cluster_stop(&cluster, "participant-2");
    /* What was said before does not count. */
    test_replicas_shell(&cluster, "participant-2", ": > log");
    assert_true(test_replicas_spoil(&cluster, "participant-2") > 0);
    test_cluster_restart(&cluster, "participant-2");
    test_replicas_logged(&cluster, "participant-2", "scrub damage_found");
    test_replicas_logged(&cluster, "participant-2", "replaced from");
    settles();
    alone("running", BIG_ROWS);
}

/* A small rowset lies beside its description; a byte of it in the metadata is changed. */
static void damage_of_a_small_rowset_is_found(void **state)
{
    static const char needle[] = "needle-in-the-metadata";
    char path[PATH_BYTES];
    struct test_load result;
    struct stat info;
    unsigned changed = 0;

    (void)state;
    test_replicas_table(&cluster, "small", "DUPLICATE", 1, 0);
    test_replicas_load(&cluster, "small", "", "1,needle-in-the-metadata\n", &result);
    test_replicas_agree(&cluster);
    test_cluster_stop(&cluster, "participant-2");
    test_replicas_shell(&cluster, "participant-2", ": > log");
    test_replicas_path(&cluster, "participant-2", "meta/data.mdb", path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    char *bytes = malloc((size_t)info.st_size);
    assert_non_null(bytes);
    assert_int_equal(pread(fd, bytes, (size_t)info.st_size, 0), info.st_size);
    for (char *at = bytes; at < bytes + info.st_size - sizeof needle; at++)
        if (memcmp(at, needle, sizeof needle - 1) == 0) {
            assert_int_equal(pwrite(fd, "N", 1, at - bytes), 1);
            changed++;
        }
    free(bytes);
    close(fd);
    assert_true(changed > 0);
    test_cluster_restart(&cluster, "participant-2");
    test_replicas_logged(&cluster, "participant-2", "scrub damage_found");
    test_replicas_logged(&cluster, "participant-2", "replaced from");
    settles();
    test_cluster_kill(&cluster, "participant-1");
    test_cluster_kill(&cluster, "participant-3");
    test_rows_are(cluster.participants[1].http, "d", "small", "_scan?format=csv",
                  "1,needle-in-the-metadata\n");
    test_cluster_start_again(&cluster);
    test_replicas_heal(&cluster);
}

static void how_far_it_is_can_be_asked(void **state)
{
    struct test_call call = {.port = cluster.participants[1].http, .target = "/api/_scrub"};
    struct test_answer answer;
    uint64_t until = test_now_ms() + TEST_HEAL_MS;
    bool passed = false;

    (void)state;
    while (!passed && test_now_ms() < until) {
        test_http(&call, &answer);
        assert_int_equal(answer.status, 200);
        passed = strstr(answer.body, "\"passes\":0") == NULL &&
                 strstr(answer.body, "\"last_pass_bytes\":0") == NULL;
        test_answer_close(&answer);
        test_sleep_ms(50);
    }
    assert_true(passed);
    call.target = "/metrics";
    test_http(&call, &answer);
    assert_non_null(strstr(answer.body, "tidegate_scrub_passes"));
    test_answer_close(&answer);
}

/* ---- stores that cannot be used ---- */

static void overwrite(const char *name, off_t from, off_t len, uint8_t value)
{
    char path[PATH_BYTES];
    uint8_t page[PAGE_BYTES];

    memset(page, value, sizeof page);
    test_replicas_path(&cluster, "participant-2", name, path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (off_t at = from; at < from + len; at += PAGE_BYTES)
        assert_int_equal(pwrite(fd, page, sizeof page, at), sizeof page);
    close(fd);
}

static off_t size_of(const char *name)
{
    char path[PATH_BYTES];
    struct stat info;

    test_replicas_path(&cluster, "participant-2", name, path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

static void cut(const char *name, off_t size)
{
    char path[PATH_BYTES];

    test_replicas_path(&cluster, "participant-2", name, path, sizeof path);
    assert_int_equal(truncate(path, size), 0);
}

/* It ends by itself, with a sentence and no signal; and does what the sentence says. */
static void says_what_to_do(void (*harm)(void))
{
    test_cluster_kill(&cluster, "participant-2");
    test_replicas_shell(&cluster, "participant-2", "rm -rf kept && cp -r data kept");
    harm();
    int status = test_replicas_start_fails(&cluster, "participant-2", "--rejoin");
    if (status != 1 && status != 70)
        fail_msg("it ended with %d", status);
    test_replicas_shell(&cluster, "participant-2", "rm -rf data && mv kept data");
    test_cluster_restart(&cluster, "participant-2");
}

static void lose_the_begin(void)
{
    overwrite("meta/data.mdb", 0, 2 * PAGE_BYTES, 0x5a);
}

static void cut_in_half(void)
{
    cut("meta/data.mdb", size_of("meta/data.mdb") / 2 / PAGE_BYTES * PAGE_BYTES);
}

static void cut_the_blocks(void)
{
    cut("blocks-256k/data.mdb", 3 * PAGE_BYTES);
}

static void fill_all_pages(void)
{
    overwrite("meta/data.mdb", 2 * PAGE_BYTES, size_of("meta/data.mdb") - 2 * PAGE_BYTES, 0xff);
}

static void fill_all_pages_with_zeros(void)
{
    overwrite("meta/data.mdb", 2 * PAGE_BYTES, size_of("meta/data.mdb") - 2 * PAGE_BYTES, 0);
}

static void a_store_that_cannot_be_opened_says_what_to_do(void **state)
{
    void (*const harms[])(void) = {lose_the_begin, cut_in_half, cut_the_blocks, fill_all_pages,
                                   fill_all_pages_with_zeros};

    (void)state;
    for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++)
        says_what_to_do(harms[i]);
    /* And that helps. */
    test_cluster_kill(&cluster, "participant-2");
    lose_the_begin();
    test_replicas_wipe(&cluster, "participant-2");
    test_cluster_restart(&cluster, "participant-2 --rejoin");
    test_replicas_heal(&cluster);
    alone("running", BIG_ROWS);
}

/* ---- nothing is left ---- */

static void after_all_that_every_rowset_belongs_to_a_version(void **state)
{
    struct test_load open;

    (void)state;
    test_replicas_load(&cluster, "running", "label: open\r\ntwo_phase_commit: true\r\n",
                       "1,a\n2,b\n3,c\n", &open);
    /* What is staged is listed. */
    struct test_call call = {.port = cluster.participants[1].http, .target = "/api/_rowsets"};
    struct test_answer answer;
    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    if (strstr(answer.body, "\"standing\":\"sealed\"") == NULL)
        fail_msg("nothing is listed as staged: %s", answer.body);
    test_answer_close(&answer);
    struct test_2pc aborted;
    test_2pc_txn(port, "d", "abort", open.txn, &aborted);
    assert_string_equal(aborted.status, "Success");
    test_sql(port, "d", "DROP TABLE small");
    test_replicas_clean(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_that_nobody_reads_is_found_while_it_runs),
        cmocka_unit_test(damage_done_while_it_stood_still_is_found_after_the_start),
        cmocka_unit_test(damage_of_a_small_rowset_is_found),
        cmocka_unit_test(how_far_it_is_can_be_asked),
        cmocka_unit_test(a_store_that_cannot_be_opened_says_what_to_do),
        cmocka_unit_test(after_all_that_every_rowset_belongs_to_a_version),
    };
    return cmocka_run_group_tests(tests, start, end);
}
