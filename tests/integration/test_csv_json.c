/* SPDX-License-Identifier: Apache-2.0 */
/* CSV and JSON through HTTP, on a cluster: cases of real bug reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "tests/lib/test_cluster.h"
#include "tests/lib/test_load.h"

static struct test_cluster cluster;
static uint16_t port; /* of a participant */

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 1, 1, NULL);
    port = test_cluster_participant(&cluster);
    test_sql(test_cluster_coordinator(&cluster), "", "CREATE DATABASE d");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

/* An empty table t of these columns, the first being its key. */
static void make_table(const char *model, const char *columns, const char *key)
{
    char statement[1024];
    uint16_t coordinator = test_cluster_coordinator(&cluster);

    test_sql(coordinator, "d", "DROP TABLE IF EXISTS t");
    snprintf(statement, sizeof statement,
             "CREATE TABLE t (%s) %s KEY(%s) DISTRIBUTED BY HASH(%s) BUCKETS 1", columns, model,
             key, key);
    test_sql(coordinator, "d", statement);
}

static void load(const char *headers, const char *body, long long total, long long filtered)
{
    struct test_load result;

    test_load_text(port, "d", "t", headers, body, &result);
    test_load_good(&result, total, filtered);
}

static void rows_are(const char *expected)
{
    test_rows_are(port, "d", "t", "_scan?order=key", expected);
}

/* ---- CSV ---- */

static void a_last_record_needs_no_multi_byte_delimiter(void **state)
{
    static const char headers[] = "line_delimiter: @@\r\ncolumn_separator: |\r\n";

    (void)state;
    make_table("DUPLICATE", "k INT, v VARCHAR(64)", "k");
    load(headers, "1|aa@@2|bb@@3|cc", 3, 0);
    rows_are("1,aa\n2,bb\n3,cc\n");
    make_table("DUPLICATE", "k INT, v VARCHAR(64)", "k");
    load(headers, "1|aa@@2|bb@@3|cc@@", 3, 0);
    rows_are("1,aa\n2,bb\n3,cc\n");
    make_table("DUPLICATE", "k INT, v VARCHAR(64)", "k");
    load(headers, "1|aa@@2|bb@@3|cc@", 3, 0);
    rows_are("1,aa\n2,bb\n3,cc@\n");
}

static void load_in_chunks(const char *headers, const char *body, const size_t *cuts, size_t count,
                           unsigned pause_ms, struct test_load *result)
{
    struct test_answer answer;
    struct test_call call = {.port = port,
                             .method = "PUT",
                             .target = "/api/d/t/_stream_load",
                             .headers = headers,
                             .body = body,
                             .len = strlen(body),
                             .expect = true,
                             .cuts = cuts,
                             .cut_count = count,
                             .pause_ms = pause_ms};

    test_http(&call, &answer);
    assert_true(test_load_parse(&answer, result));
    test_answer_close(&answer);
}

/* Split inside the delimiter. */
static void a_delimiter_may_be_cut_by_a_chunk(void **state)
{
    struct test_load result;
    const size_t cuts[] = {5};

    (void)state;
    make_table("DUPLICATE", "k INT, v VARCHAR(64)", "k");
    load_in_chunks("line_delimiter: @@\r\ncolumn_separator: |\r\n", "1|aa@@2|bb", cuts, 1, 20,
                   &result);
    test_load_good(&result, 2, 0);
    rows_are("1,aa\n2,bb\n");
}

static void separators_match_leftmost_without_overlap(void **state)
{
    static const char columns[] = "a VARCHAR(9), b VARCHAR(9), c VARCHAR(9), d VARCHAR(9)";

    (void)state;
    make_table("DUPLICATE", columns, "a");
    load("column_separator: ||\r\n", "x||y||||\n", 1, 0);
    rows_are("x,y,\"\",\"\"\n");
    make_table("DUPLICATE", columns, "a");
    load("column_separator: aaaa\r\n", "111aaaa2222aaaaaaaa\n", 1, 0);
    rows_are("111,2222,\"\",\"\"\n");
}

static void one_carriage_return_before_a_newline_goes(void **state)
{
    (void)state;
    make_table("DUPLICATE", "k INT, v VARCHAR(9)", "k");
    load("column_separator: ,\r\n", "1,abc\n2,def\r\n3,qwe\n4,hello\r\n", 4, 0);
    rows_are("1,abc\n2,def\n3,qwe\n4,hello\n");
    load("column_separator: ,\r\n", "5,a\rb\n", 1, 0);
    test_rows_are(port, "d", "t", "_range?from=5&to=6", "5,\"a\rb\"\n");
    make_table("DUPLICATE", "k INT, v VARCHAR(9)", "k");
    load("column_separator: ,\r\nline_delimiter: \\r\\n\r\n",
         "1,abc\r\n2,def\r\n3,qwe\r\n4,hello\r\n", 4, 0);
    rows_are("1,abc\n2,def\n3,qwe\n4,hello\n");
}

static const char quoted_headers[] = "column_separator: ,\r\nenclose: \"\r\nescape: ~\r\n"
                                     "trim_double_quotes: true\r\n";
static const char quoted_body[] = "1,\"{~\"t~\": ~\"v~\", ~\"u~\": 2}\"\n2,\"a\nb\"\n";
static const char quoted_rows[] = "1,\"{\"\"t\"\": \"\"v\"\", \"\"u\"\": 2}\"\n2,\"a\nb\"\n";

/* Wherever the body is cut, the result is the same. */
static void quotes_and_escapes_survive_every_cut(void **state)
{
    struct test_load result;
    size_t len = strlen(quoted_body);
    size_t every[64];

    (void)state;
    assert_true(len < 64);
    for (size_t cut = 1; cut < len; cut++) {
        make_table("DUPLICATE", "k INT, v VARCHAR(99)", "k");
        load_in_chunks(quoted_headers, quoted_body, &cut, 1, 3, &result);
        test_load_good(&result, 2, 0);
        rows_are(quoted_rows);
    }
    for (size_t i = 0; i + 1 < len; i++)
        every[i] = i + 1;
    make_table("DUPLICATE", "k INT, v VARCHAR(99)", "k");
    load_in_chunks(quoted_headers, quoted_body, every, len - 1, 1, &result);
    test_load_good(&result, 2, 0);
    rows_are(quoted_rows);
}

/* Where the parts of the server's own buffers end: behind a mebibyte of rows, less a few. */
static void quotes_survive_the_end_of_a_buffer(void **state)
{
    size_t len = strlen(quoted_body);

    (void)state;
    for (size_t shift = 0; shift <= len; shift += test_is_short() ? 17 : 5) {
        struct buf body = BUF_INIT;
        struct test_load result;
        long long rows = 0;

        make_table("DUPLICATE", "k INT, v VARCHAR(99)", "k");
        for (; body.len + 60 < 1024 * 1024 - shift; rows++)
            buf_printf(&body, "%lld,\"%040lld\"\n", 10 + rows, rows);
        while (body.len < 1024 * 1024 - shift - 5) /* one row more, as long as it takes */
            buf_append_str(&body, body.data[body.len - 1] == '\n' ? "9,\"" : "x");
        buf_append_str(&body, "\"\n");
        buf_append_str(&body, quoted_body);
        test_load(port, "d", "t", quoted_headers, body.data, body.len, &result);
        test_load_good(&result, rows + 3, 0);
        test_rows_are(port, "d", "t", "_range?from=1&to=3", quoted_rows);
        buf_close(&body);
    }
}

static void blank_lines_are_skipped_and_not_counted(void **state)
{
    struct test_load result;

    (void)state;
    make_table("DUPLICATE", "k INT, v VARCHAR(9)", "k");
    load("column_separator: ,\r\n", "1,a\n\n2,b\n\n\r\n", 2, 0);
    rows_are("1,a\n2,b\n");
    test_load_text(port, "d", "t", "column_separator: ,\r\nmax_filter_ratio: 0.5\r\n", "3,c\n \n",
                   &result);
    test_load_good(&result, 2, 1);
}

static void a_content_type_never_changes_the_body(void **state)
{
    (void)state;
    make_table("UNIQUE", "id INT, name VARCHAR(32)", "id");
    load("Content-Type: application/x-www-form-urlencoded\r\ncolumn_separator: ,\r\n",
         "1,a\n2,b%\n3,49%x\n4,a+b\n", 4, 0);
    rows_are("1,a\n2,b%\n3,49%x\n4,a+b\n");
}

/* ---- JSON ---- */

static void an_object_without_any_wanted_key_is_filtered(void **state)
{
    (void)state;
    make_table("DUPLICATE", "k INT, v DOUBLE", "k");
    load("format: json\r\nstrip_outer_array: true\r\njsonpaths: [\"$.k\",\"$.v\"]\r\n"
         "max_filter_ratio: 1\r\n",
         "[{\"k\":1,\"v\":1.5},{\"k\":2,\"x\":9},{\"z\":null}]", 3, 1);
    rows_are("1,1.5\n2,\\N\n");
}

static void an_absent_key_is_null_or_the_default(void **state)
{
    (void)state;
    make_table("DUPLICATE", "k INT, v VARCHAR(9), w INT DEFAULT \"7\"", "k");
    load("format: json\r\nread_json_by_line: true\r\n",
         "{\"k\":1}\n{\"k\":2,\"v\":null,\"w\":null}\n", 2, 0);
    rows_are("1,\\N,7\n2,\\N,\\N\n");
}

static void json_root_finds_an_array_below_a_key(void **state)
{
    (void)state;
    make_table("UNIQUE", "code VARCHAR(9), name VARCHAR(20)", "code");
    load("format: json\r\njson_root: $.3166-2\r\nstrip_outer_array: true\r\n",
         "{\"3166-2\":[{\"code\":\"AD-02\",\"name\":\"Canillo\",\"type\":\"Parish\"},"
         "{\"name\":\"Encamp\",\"code\":\"AD-03\"}]}",
         2, 0);
    rows_are("AD-02,Canillo\nAD-03,Encamp\n");
}

/* ---- deletes ---- */

static void a_hidden_delete_sign_removes_keys(void **state)
{
    (void)state;
    make_table("UNIQUE", "id INT, name VARCHAR(32)", "id");
    load("column_separator: ,\r\n", "1,a\n2,b\n3,c\n", 3, 0);
    load("format: json\r\nread_json_by_line: true\r\nhidden_columns: __DORIS_DELETE_SIGN__\r\n",
         "{\"id\":1,\"name\":\"a\",\"__DORIS_DELETE_SIGN__\":\"1\"}\n"
         "{\"id\":4,\"name\":\"d\",\"__DORIS_DELETE_SIGN__\":\"0\"}\n",
         2, 0);
    rows_are("2,b\n3,c\n4,d\n");
    test_rows_are(port, "d", "t", "_scan?order=key&version=1", "1,a\n2,b\n3,c\n");
    test_rows_are(port, "d", "t", "_scan?order=key&include_deleted=true&columns=id",
                  "1,1\n0,2\n0,3\n0,4\n");
}

/* ---- what the columns hold ---- */

static void all_types_come_back_as_they_went_in(void **state)
{
    static const char row[] =
        "1,true,-128,32767,-2147483648,9223372036854775807,170141183460469231731687303715884105727,"
        "1.5,-2.25,123.45,2024-02-29,2024-02-29 12:34:56.123456,ab,text,\"{\"\"a\"\":1}\"\n";

    (void)state;
    make_table("DUPLICATE",
               "k INT, b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, x LARGEINT, f FLOAT, "
               "d DOUBLE, c DECIMAL(9,2), day DATE, at DATETIME(6), h CHAR(2), v STRING, j JSON",
               "k");
    load("column_separator: ,\r\nenclose: \"\r\ntrim_double_quotes: true\r\n", row, 1, 0);
    char *rows = test_rows(port, "d", "t", "_scan");
    assert_non_null(strstr(rows, "170141183460469231731687303715884105727"));
    assert_non_null(strstr(rows, "2024-02-29 12:34:56.123456"));
    assert_non_null(strstr(rows, "123.45"));
    /* What a read gives, loads back as the same. */
    make_table("DUPLICATE",
               "k INT, b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, x LARGEINT, f FLOAT, "
               "d DOUBLE, c DECIMAL(9,2), day DATE, at DATETIME(6), h CHAR(2), v STRING, j JSON",
               "k");
    load("column_separator: ,\r\nenclose: \"\r\ntrim_double_quotes: true\r\n", rows, 1, 0);
    rows_are(rows);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_last_record_needs_no_multi_byte_delimiter),
        cmocka_unit_test(a_delimiter_may_be_cut_by_a_chunk),
        cmocka_unit_test(separators_match_leftmost_without_overlap),
        cmocka_unit_test(one_carriage_return_before_a_newline_goes),
        cmocka_unit_test(quotes_and_escapes_survive_every_cut),
        cmocka_unit_test(quotes_survive_the_end_of_a_buffer),
        cmocka_unit_test(blank_lines_are_skipped_and_not_counted),
        cmocka_unit_test(a_content_type_never_changes_the_body),
        cmocka_unit_test(an_object_without_any_wanted_key_is_filtered),
        cmocka_unit_test(an_absent_key_is_null_or_the_default),
        cmocka_unit_test(json_root_finds_an_array_below_a_key),
        cmocka_unit_test(a_hidden_delete_sign_removes_keys),
        cmocka_unit_test(all_types_come_back_as_they_went_in),
    };

    return cmocka_run_group_tests(tests, start, end);
}
