/* SPDX-License-Identifier: Apache-2.0 */
/* Where no copy is left, everything that waits for it says so, and an operator's word lets the rest
 * go on: rule 4 of the design. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/lib/test_replicas.h"

enum { BIG_ROWS = 30000, COMMAND_BYTES = 2048 };

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

/* The participant that has the first replica of the table's first tablet: "participant-2". */
static const char *holder(const char *table)
{
    static char name[32];
    char target[128];
    struct test_answer answer;
    struct test_call call = {.port = port, .target = target};

    snprintf(target, sizeof target, "/api/_replicas?db=d&table=%s", table);
    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    const char *at = strstr(answer.body, "\"participant\":");
    if (at == NULL)
        fail_msg("no replica of %s: %s", table, answer.body);
    snprintf(name, sizeof name, "participant-%lu",
             strtoul(at + strlen("\"participant\":"), NULL, 10));
    test_answer_close(&answer);
    return name;
}

/* The tool's exit status; what it printed into out. */
static int declare_lost(const char *table, const char *flags, char *out, size_t cap)
{
    char line[COMMAND_BYTES];
    const char *bin = getenv("TIDEGATE_BIN");

    snprintf(line, sizeof line, "'%s/tidegate' declare-lost d %s %s --url 127.0.0.1:%u 2>&1",
             bin != NULL ? bin : "build/bin", table, flags, port);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    size_t len = fread(out, 1, cap - 1, pipe);
    out[len] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Until how far the replicas reach is known. */
static void lose(const char *table, const char *expected)
{
    char said[TEST_TEXT_BYTES];
    uint64_t until = test_now_ms() + TEST_HEAL_MS;

    while (declare_lost(table, "", said, sizeof said) != 0) {
        if (test_now_ms() > until)
            fail_msg("declare-lost %s: %s", table, said);
        test_sleep_ms(100);
    }
    if (strstr(said, expected) == NULL)
        fail_msg("declare-lost %s said: %s", table, said);
}

static void wait_loadable(const char *table, const char *body)
{
    struct test_load result;
    uint64_t until = test_now_ms() + TEST_HEAL_MS;

    for (;;) {
        test_load_text(port, "d", table, "column_separator: ,\r\n", body, &result);
        if (strcmp(result.status, "Success") == 0)
            return;
        if (test_now_ms() > until)
            fail_msg("no load of %s succeeds: %s", table, result.message);
        test_sleep_ms(50); /* each refused one is an instant of the timeline, too */
    }
}

static void timeline_says_lost(const char *table, unsigned versions)
{
    struct test_answer answer;
    unsigned lost = 0;

    test_get(port, "d", table, "_timeline?action=deltacommit", &answer);
    assert_int_equal(answer.status, 200);
    for (const char *at = answer.body; (at = strstr(at, "\"lost\":true")) != NULL; at++)
        lost++;
    if (lost != versions)
        fail_msg("%u versions should be marked as lost: %s", versions, answer.body);
    test_answer_close(&answer);
}

static void nothing_is_lost_while_a_copy_is_good(void **state)
{
    char said[TEST_TEXT_BYTES];

    (void)state;
    test_replicas_table(&cluster, "safe", "DUPLICATE", 2, 0);
    test_replicas_row(&cluster, "safe", 1);
    assert_int_not_equal(declare_lost("safe", "", said, sizeof said), 0);
    if (strstr(said, "nothing of table safe is lost") == NULL)
        fail_msg("it said: %s", said);
    assert_int_not_equal(declare_lost("nosuch", "", said, sizeof said), 0);
    assert_int_equal(test_row_count(port, "d", "safe", "_scan"), 1);
}

static void the_only_copy_is_gone_and_later_transactions_go_on(void **state)
{
    struct test_load pending;
    struct test_load refused;
    char node[40];
    char said[TEST_TEXT_BYTES];
    char state_word[TEST_WORD_BYTES];

    (void)state;
    test_replicas_table(&cluster, "single", "DUPLICATE", 1, 1);
    test_replicas_row(&cluster, "single", 1);
    test_replicas_load(&cluster, "single", "label: stuck\r\ntwo_phase_commit: true\r\n", "2,b\n",
                       &pending);
    snprintf(node, sizeof node, "%s", holder("single"));
    test_cluster_kill(&cluster, node);
    test_commit(port, "d", pending.txn);
    test_state(port, "d", "stuck", state_word);
    assert_string_equal(state_word, "COMMITTED");
    /* Its copy may come back. */
    test_sleep_ms(1500);
    assert_int_not_equal(declare_lost("single", "", said, sizeof said), 0);
    test_replicas_wipe(&cluster, node);
    strcat(node, " --rejoin");
    test_cluster_restart(&cluster, node);
    test_replicas_wait(&cluster, true);
    test_load_text(port, "d", "single", "column_separator: ,\r\n", "3,c\n", &refused);
    assert_string_equal(refused.status, "Fail");
    if (strstr(refused.message, "are behind") == NULL &&
        strstr(refused.message, "is behind") == NULL)
        fail_msg("it is refused without saying why: %s", refused.message);
    test_state(port, "d", "stuck", state_word);
    assert_string_equal(state_word, "COMMITTED");

    lose("single", "what came after version 0 is lost");
    test_wait_state(port, "d", "stuck", "VISIBLE", TEST_HEAL_MS);
    wait_loadable("single", "4,d\n");
    test_replicas_wait(&cluster, false);
    test_rows_are(port, "d", "single", "_scan?format=csv", "4,d\n");
    timeline_says_lost("single", 2);
    assert_int_not_equal(declare_lost("single", "", said, sizeof said), 0);
}

/* Of the only copy a part is damaged: what came before it stays. */
static void what_can_be_read_is_kept(void **state)
{
    char node[40];

    (void)state;
    test_replicas_table(&cluster, "half", "DUPLICATE", 1, 1);
    test_replicas_row(&cluster, "half", 1);
    test_replicas_row(&cluster, "half", 2);
    test_replicas_load_big(&cluster, "half", BIG_ROWS);
    test_replicas_row(&cluster, "half", 3);
    snprintf(node, sizeof node, "%s", holder("half"));
    assert_true(test_replicas_spoil(&cluster, node) > 0);
    test_replicas_wait(&cluster, true);
    lose("half", "what came after version 2 is lost");
    wait_loadable("half", "5,e\n");
    test_replicas_wait(&cluster, false);
    test_rows_are(port, "d", "half", "_scan?format=csv&order=key", "1,value-1\n2,value-2\n5,e\n");
    timeline_says_lost("half", 2);
    /* Also after a restart. */
    test_cluster_restart(&cluster, node);
    test_rows_are(port, "d", "half", "_scan?format=csv&order=key", "1,value-1\n2,value-2\n5,e\n");
}

static void nothing_is_left_behind(void **state)
{
    (void)state;
    test_replicas_wait(&cluster, false);
    test_replicas_clean(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_while_a_copy_is_good),
        cmocka_unit_test(the_only_copy_is_gone_and_later_transactions_go_on),
        cmocka_unit_test(what_can_be_read_is_kept),
        cmocka_unit_test(nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, start, end);
}
