/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input gets a clear message and leaves nothing behind. */
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

static struct test_cluster cluster;
static uint16_t coordinator;
static uint16_t participant;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 1, 1, NULL);
    coordinator = cluster.coordinators[0].http;
    participant = cluster.participants[0].http;
    test_sql(coordinator, "", "CREATE DATABASE d");
    test_sql(coordinator, "d",
             "CREATE TABLE t (k INT NOT NULL, v VARCHAR(3), x DECIMAL(4,1)) DUPLICATE KEY(k) "
             "DISTRIBUTED BY HASH(k) BUCKETS 2");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

static void nothing_is_left(void)
{
    struct test_answer answer;
    struct test_call call = {.port = coordinator, .target = "/api/cluster"};

    assert_int_equal(test_row_count(coordinator, "d", "t", "_scan"), 0);
    test_http(&call, &answer);
    assert_non_null(strstr(answer.body, "\"open\":0"));
    assert_non_null(strstr(answer.body, "\"publishing\":0"));
    test_answer_close(&answer);
}

static void refused(const char *headers, const char *body, const char *message)
{
    struct test_load result;

    test_load_text(coordinator, "d", "t", headers, body, &result);
    test_load_failed(&result, message);
    nothing_is_left();
}

static void loads_with_bad_rows_fail_as_a_whole(void **state)
{
    static const char bad[] = "[DATA_QUALITY_ERROR]too many filtered rows";
    static const char csv[] = "column_separator: ,\r\n";
    static const char strict[] = "column_separator: ,\r\nstrict_mode: true\r\n";
    static const char json[] = "format: json\r\nread_json_by_line: true\r\n";

    (void)state;
    refused(csv, "1,a,1\n2,b\n", bad);
    refused(csv, "1,a,1\n2,b,2,c\n", bad);
    refused(csv, "x,a,1\n", bad);          /* NULL into NOT NULL */
    refused(strict, "1,a,nothing\n", bad); /* a failed cast */
    refused(strict, "1,abcdef,1\n", bad);  /* too long */
    refused(strict, "1,a,12345.6\n", bad); /* too large */
    refused(csv, "1,\xff\xfe,1\n", bad);   /* not UTF-8 */
    refused(json, "{\"k\":1}\n{\"k\":\n", bad);
    refused(json, "{\"z\":1}\n", bad);
    refused("format: json\r\nstrip_outer_array: true\r\n", "[{\"k\":1},{\"k\":2]", "");
}

static void headers_that_make_no_sense_are_refused_before_anything_begins(void **state)
{
    (void)state;
    refused("max_filter_ratio: 1.5\r\n", "1\n", "max_filter_ratio");
    refused("max_filter_ratio: abc\r\n", "1\n", "max_filter_ratio");
    refused("strict_mode: perhaps\r\n", "1\n", "Invalid strict mode format. Must be bool type");
    refused("enclose: ab\r\n", "1\n", "enclose must be single-char, actually is ab");
    refused("escape: ab\r\n", "1\n", "escape must be single-char");
    refused("column_separator: \\x0\r\n", "1\n", "Hex str");
    refused("skip_lines: -3\r\n", "1\n", "Invalid 'skip_lines': -3");
    refused("columns: k, nowhere, k\r\ncolumn_separator: ,\r\n", "1,2,3\n", "");
    refused("compress_type: zstd\r\n", "1\n", "unknown data format");
    refused("format: json\r\njsonpaths: nonsense\r\n", "{}\n", "");
    refused("txn_id: abc\r\ntwo_phase_commit: true\r\n", "1\n", "");
    refused("compress_type: gz\r\n", "this is not gzip", "");
}

static void statements_point_at_what_is_wrong(void **state)
{
    static const struct {
        const char *statement, *word;
    } cases[] = {
        {"CREATE TABEL t (k INT)", "TABEL"},
        {"CREATE TABLE u (k INT", "line 1, column 22"},
        {"CREATE TABLE u (k WIDGET) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1", "WIDGET"},
        {"CREATE TABLE u (k INT) DUPLICATE KEY(z) DISTRIBUTED BY HASH(k) BUCKETS 1", "z"},
        {"CREATE TABLE u (k INT, k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1", "k"},
        {"CREATE TABLE u (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 0", "bucket"},
        {"CREATE TABLE t (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1", "t"},
        {"DROP TABLE nowhere", "nowhere"},
        {"SHOW CREATE TABLE nowhere", "nowhere"},
        {"TRUNCATE TABLE nowhere", "nowhere"},
        {"SELECT 1", "SELECT"},
        {"", ""},
    };
    char sentence[TEST_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_sql_refused(coordinator, "d", cases[i].statement, sentence, sizeof sentence);
        if (sentence[0] == '\0' || strstr(sentence, cases[i].word) == NULL)
            fail_msg("%s: the sentence is '%s'", cases[i].statement, sentence);
    }
    test_sql_refused(coordinator, "", "CREATE DATABASE d", sentence, sizeof sentence);
    test_sql_refused(coordinator, "nobody", "SHOW TABLES", sentence, sizeof sentence);
    assert_non_null(strstr(sentence, "nobody"));
}

static void reads_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        const char *route;
        int status;
        const char *word;
    } cases[] = {
        {"_scan?columns=nowhere", 400, "nowhere"},
        {"_scan?version=x", 400, "version"},
        {"_scan?version=1&as_of=1600000000000000", 400, "version"},
        {"_scan?as_of=yesterday", 400, "as_of"},
        {"_scan?limit=-1", 400, "limit"},
        {"_scan?format=xml", 400, "format"},
        {"_scan?columns=%zz", 400, "columns"},
        {"_scan?where=k=1", 400, "where"},
        {"_get", 400, "key"},
        {"_get?key=abc", 400, "k"},
        {"_get?key=1&key=2&key=3&key=4", 400, "key"},
        {"_changes", 400, "after"},
        {"_changes?token=abc", 400, "token"},
        {"_scan?versoin=1", 400, "versoin"}, /* not the newest rows */
        {"_get?key=1&asof=5", 400, "asof"},
        {"_scan?version=77", 404, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct test_answer answer;
        char sentence[TEST_TEXT_BYTES];

        test_get(participant, "d", "t", cases[i].route, &answer);
        test_json(&answer, "data", sentence, sizeof sentence);
        if (answer.status != cases[i].status || strstr(sentence, cases[i].word) == NULL)
            fail_msg("%s: %d %s", cases[i].route, answer.status, answer.body);
        test_answer_close(&answer);
    }
    struct test_answer answer;
    test_get(participant, "d", "nowhere", "_scan", &answer);
    assert_int_equal(answer.status, 404);
    test_answer_close(&answer);
}

static void queries_that_are_no_json_are_refused(void **state)
{
    static const char *const bodies[] = {"", "{", "[]", "{\"stmt\":7}", "{\"other\":\"x\"}"};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct test_answer answer;
        char code[TEST_WORD_BYTES];
        struct test_call call = {.port = coordinator,
                                 .method = "POST",
                                 .target = "/api/query/default_cluster/d",
                                 .body = bodies[i],
                                 .len = strlen(bodies[i])};

        test_http(&call, &answer);
        assert_int_equal(answer.status, 200);
        assert_string_not_equal(test_json(&answer, "code", code, sizeof code), "0");
        test_answer_close(&answer);
    }
}

/* ---- ports that speak other languages ---- */

static void corrupt(uint16_t port, const void *bytes, size_t len)
{
    int fd = test_socket_open(port, false);

    test_socket_send(fd, bytes, len);
    if (!test_socket_ends(fd, 5000))
        fail_msg("port %u keeps a connection that speaks nonsense", port);
    test_socket_close(fd);
}

static void corrupt_frames_close_the_connection_and_nothing_else(void **state)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n\r\n"
                               "0123456789012345678901234567890123456789012345678901234567890123";
    unsigned char noise[512];
    unsigned char zeros[512] = {0};
    struct test_load result;

    (void)state;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)(i * 167 + 13);
    const uint16_t ports[] = {cluster.coordinators[0].rpc, cluster.participants[0].rpc,
                              cluster.coordinators[0].raft};
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        corrupt(ports[i], http, sizeof http - 1);
        corrupt(ports[i], noise, sizeof noise);
        corrupt(ports[i], zeros, sizeof zeros);
    }
    test_load_text(coordinator, "d", "t", "column_separator: ,\r\ntwo_phase_commit: true\r\n",
                   "1,a,1\n", &result);
    test_load_good(&result, 1, 0);
    struct test_2pc answer;
    test_2pc_txn(coordinator, "d", "abort", result.txn, &answer);
    assert_string_equal(answer.status, "Success");
    assert_true(test_cluster_logged(&cluster, "participant-1", "WARN"));
    assert_true(test_cluster_logged(&cluster, "coordinator-1", "WARN"));
}

static uint64_t metric(uint16_t port, const char *word)
{
    struct test_answer answer;
    struct test_call call = {.port = port, .target = "/metrics", .anonymous = true};
    uint64_t sum = 0;

    test_http(&call, &answer);
    for (char *line = strtok(answer.body, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (line[0] != '#' && strstr(line, word) != NULL && strrchr(line, ' ') != NULL)
            sum += strtoull(strrchr(line, ' ') + 1, NULL, 10);
    test_answer_close(&answer);
    return sum;
}

static void refused_connections_are_counted(void **state)
{
    (void)state;
    assert_true(metric(coordinator, "tidegate_rpc_bad_frames") > 0);
    assert_true(metric(coordinator, "tidegate_raft_links_refused") > 0);
    assert_true(metric(participant, "tidegate_rpc_bad_frames") > 0);
    assert_true(metric(participant, "tidegate_loads_total") > 0);
}

/* ---- configuration ---- */

/* Runs a program with arguments; its exit status, its words into out. */
static int run(const char *program, const char *arguments, char *out, size_t cap)
{
    char command[2048];
    size_t n = 0;

    snprintf(command, sizeof command, "timeout 10 '%s/%s' %s 2>&1", getenv("TIDEGATE_BIN"), program,
             arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    n = fread(out, 1, cap - 1, pipe);
    out[n] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_wrong_option_is_named(void **state)
{
    static const char conf[] = "data_dir = /tmp\nhttp_prot = 8030\n";
    static const char *const programs[] = {"tidegate-coordinator", "tidegate-participant"};
    struct test_dir dir;
    char arguments[600];
    char path[TEST_PATH_SIZE];
    char out[8192];

    (void)state;
    test_dir_make(&dir);
    test_dir_write(&dir, "wrong.conf", conf, sizeof conf - 1);
    test_dir_path(&dir, "wrong.conf", path);
    for (size_t i = 0; i < 2; i++) {
        snprintf(arguments, sizeof arguments, "--config %s", path);
        assert_int_not_equal(run(programs[i], arguments, out, sizeof out), 0);
        assert_non_null(strstr(out, "wrong.conf:2"));
        assert_non_null(strstr(out, "http_prot"));
        assert_non_null(strstr(out, "http_port")); /* what was meant */
        assert_int_not_equal(run(programs[i], "--http-port 99999", out, sizeof out), 0);
        assert_non_null(strstr(out, "http_port"));
        assert_int_not_equal(run(programs[i], "--no-such-flag", out, sizeof out), 0);
        assert_int_not_equal(run(programs[i], "", out, sizeof out), 0);
        assert_non_null(strstr(out, "data_dir"));
        snprintf(arguments, sizeof arguments, "--data-dir %s --host 0.0.0.0", dir.path);
        assert_int_not_equal(run(programs[i], arguments, out, sizeof out), 0);
        assert_non_null(strstr(out, "root_password"));
        assert_int_equal(run(programs[i], "--help", out, sizeof out), 0);
        assert_non_null(strstr(out, "http-port"));
        snprintf(arguments, sizeof arguments, "--config %s", dir.path);
        assert_int_not_equal(run(programs[i], arguments, out, sizeof out), 0);
        snprintf(arguments, sizeof arguments, "--config /nowhere.conf");
        assert_int_not_equal(run(programs[i], arguments, out, sizeof out), 0);
        assert_non_null(strstr(out, "/nowhere.conf"));
    }
    test_dir_remove(&dir);
}

static void the_tool_says_what_is_wrong(void **state)
{
    char out[4096];

    (void)state;
    assert_int_equal(run("tidegate", "", out, sizeof out), 2);
    assert_int_equal(run("tidegate", "dance", out, sizeof out), 2);
    assert_int_equal(run("tidegate", "cluster start", out, sizeof out), 2);
    assert_int_equal(run("tidegate", "cluster stop --dir /nowhere", out, sizeof out), 1);
    assert_non_null(strstr(out, "/nowhere"));
    assert_int_equal(run("tidegate", "cluster start --dir /usr", out, sizeof out), 1);
    assert_non_null(strstr(out, "not empty"));
    assert_int_equal(run("tidegate", "sql --url 127.0.0.1:1 'SHOW DATABASES'", out, sizeof out), 1);
    assert_non_null(strstr(out, "127.0.0.1:1"));
    assert_int_equal(
        run("tidegate", "load --url nonsense -D d -t t /etc/hostname", out, sizeof out), 1);
    assert_int_equal(run("tidegate", "load -D d -t t /nowhere", out, sizeof out), 1);
    assert_int_equal(run("tidegate", "--help", out, sizeof out), 0);
    assert_int_equal(run("tidegate", "cluster --help", out, sizeof out), 0);
    assert_int_equal(run("tidegate", "txn -D d commit some_label", out, sizeof out), 2);
    assert_non_null(strstr(out, "some_label"));
}

/* A script that takes the status for good must not get an error for rows. */
static void the_tool_fails_where_a_coordinator_says_200(void **state)
{
    static const struct {
        const char *words;
        const char *sentence;
    } cases[] = {
        {"scan -D d -t t -p wrong", "Access denied"},
        {"scan -D d -t nowhere", "nowhere"},
        {"timeline -D d -t t -p wrong", "Access denied"},
        {"timeline -D d -t nowhere", "nowhere"},
    };
    char arguments[256];
    char out[4096];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(arguments, sizeof arguments, "%s --url 127.0.0.1:%u", cases[i].words, coordinator);
        if (run("tidegate", arguments, out, sizeof out) != 1 ||
            strstr(out, cases[i].sentence) == NULL || out[0] == '{')
            fail_msg("%s: %s", cases[i].words, out);
    }
    snprintf(arguments, sizeof arguments, "timeline -D d -t t --url 127.0.0.1:%u", coordinator);
    assert_int_equal(run("tidegate", arguments, out, sizeof out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_with_bad_rows_fail_as_a_whole),
        cmocka_unit_test(headers_that_make_no_sense_are_refused_before_anything_begins),
        cmocka_unit_test(statements_point_at_what_is_wrong),
        cmocka_unit_test(reads_that_make_no_sense_are_refused),
        cmocka_unit_test(queries_that_are_no_json_are_refused),
        cmocka_unit_test(corrupt_frames_close_the_connection_and_nothing_else),
        cmocka_unit_test(refused_connections_are_counted),
        cmocka_unit_test(a_wrong_option_is_named),
        cmocka_unit_test(the_tool_says_what_is_wrong),
        cmocka_unit_test(the_tool_fails_where_a_coordinator_says_200),
    };

    return cmocka_run_group_tests(tests, start, end);
}
