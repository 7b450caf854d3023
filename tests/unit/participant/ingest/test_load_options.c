/* SPDX-License-Identifier: Apache-2.0 */
/* What each header means, and the message for each that is refused. */
#include "participant/ingest/load_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct headers {
    const char *const *pairs; /* name, value, …, NULL */
};

static const char *lookup(void *ctx, const char *name)
{
    const struct headers *headers = ctx;
    for (const char *const *p = headers->pairs; *p != NULL; p += 2)
        if (strcmp(p[0], name) == 0)
            return p[1];
    return NULL;
}

static int parse(const char *const *pairs, struct load_options *options, struct tg_errmsg *msg)
{
    struct headers headers = {pairs};
    msg->text[0] = 0;
    return load_options_parse(lookup, &headers, "default-label", options, msg);
}

#define PARSE(options, ...) \
    parse((const char *const[]){__VA_ARGS__, NULL, NULL}, options, &(struct tg_errmsg){{0}})

static void test_no_headers_give_the_defaults(void **state)
{
    struct load_options o;
    (void)state;
    assert_int_equal(PARSE(&o, "user-agent", "x"), 0);
    assert_string_equal(o.label, "default-label");
    assert_int_equal(o.format, LOAD_CSV);
    assert_int_equal(o.column_separator.len, 1);
    assert_int_equal(o.column_separator.bytes[0], '\t');
    assert_int_equal(o.line_delimiter.bytes[0], '\n');
    assert_true(o.strip_cr);
    assert_int_equal(o.enclose, -1);
    assert_int_equal(o.timeout_ms, 259200000);
    assert_true(o.tz_offset_us == INT64_C(8) * 3600 * 1000000);
    assert_true(o.max_filter_ratio == 0);
    assert_false(o.two_phase_commit);
    assert_true(o.by_line);
    load_options_close(&o);
}

static void test_separators_are_text_with_escapes_or_hex(void **state)
{
    static const struct {
        const char *value, *bytes;
    } CASES[] = {{"\\x01", "\x01"},       {"\\x01\\x02", "\x01\x02"},
                 {"\\x0102", "\x01\x02"}, {"\\X7c", "|"},
                 {"|@|", "|@|"},          {"\\t", "\t"},
                 {"\\\\", "\\"},          {"\\q", "\\q"},
                 {"14020301", "14020301"}};
    struct load_options o;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_int_equal(PARSE(&o, "column_separator", CASES[i].value), 0);
        assert_int_equal(o.column_separator.len, strlen(CASES[i].bytes));
        assert_memory_equal(o.column_separator.bytes, CASES[i].bytes, o.column_separator.len);
        load_options_close(&o);
    }
}

static void test_booleans_are_true_in_any_case_but_two_phase_commit(void **state)
{
    struct load_options o;
    (void)state;
    assert_int_equal(PARSE(&o, "trim_double_quotes", "TRUE", "strict_mode", "True",
                           "two_phase_commit", "TRUE", "strip_outer_array", "yes"),
                     0);
    assert_true(o.trim_double_quotes);
    assert_true(o.strict_mode);
    assert_false(o.two_phase_commit);
    assert_false(o.strip_outer_array);
    assert_false(o.by_line); /* strip_outer_array was given */
    load_options_close(&o);
}

static void test_time_zones_are_offsets_or_zones_without_daylight_saving(void **state)
{
    static const struct {
        const char *value;
        int minutes;
    } CASES[] = {{"UTC", 0},          {"+08:00", 480}, {"-5:30", -330}, {"+0800", 480},
                 {"Asia/Tokyo", 540}, {"CST", 480},    {"+14:00", 840}};
    struct load_options o;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_int_equal(PARSE(&o, "timezone", CASES[i].value), 0);
        assert_true(o.tz_offset_us == CASES[i].minutes * INT64_C(60000000));
        load_options_close(&o);
    }
}

static void test_columns_are_plain_names(void **state)
{
    struct load_options o;
    (void)state;
    assert_int_equal(
        PARSE(&o, "columns", " a, `b c`,d ", "hidden_columns", "__DORIS_DELETE_SIGN__"), 0);
    assert_int_equal(o.columns.count, 3);
    assert_string_equal(o.columns.names[1], "b c");
    assert_false(o.hidden_delete_sign); /* plain names decide alone */
    load_options_close(&o);
    assert_int_equal(PARSE(&o, "hidden_columns", "__DORIS_DELETE_SIGN__"), 0);
    assert_true(o.hidden_delete_sign);
    load_options_close(&o);
}

static void test_csv_with_names_skips_its_lines(void **state)
{
    struct load_options o;
    (void)state;
    assert_int_equal(PARSE(&o, "format", "CSV_with_names_and_types", "skip_lines", "7"), 0);
    assert_int_equal(o.skip_lines, 2);
    load_options_close(&o);
}

static void test_a_load_in_a_begun_transaction_has_no_label_of_its_own(void **state)
{
    struct load_options o;
    (void)state;
    assert_int_equal(PARSE(&o, "txn_id", "17", "two_phase_commit", "true"), 0);
    assert_int_equal(o.join, 17);
    assert_string_equal(o.label, "");
    load_options_close(&o);
}

static void test_refused_headers_say_why(void **state)
{
    static const struct {
        const char *name, *value, *message;
    } CASES[] = {
        {"label", "a b", "Label format error. regex: ^[-_A-Za-z0-9:]{1,128}$, label: a b"},
        {"format", "parquet", "unknown data format, format=parquet"},
        {"column_separator", "\\x", "Hex str is empty"},
        {"column_separator", "\\x0g", "Hex str format error"},
        {"column_separator", "\\x012", "Hex str length error"},
        {"max_filter_ratio", "1.5", "Invalid max_filter_ratio"},
        {"max_filter_ratio", "-1", "Invalid max_filter_ratio"},
        {"max_filter_ratio", "abc", "Invalid max_filter_ratio"},
        {"max_filter_ratio", "nan", "Invalid max_filter_ratio"},
        {"strict_mode", "maybe", "[INVALID_ARGUMENT]Invalid strict mode format. Must be bool type"},
        {"timeout", "abc", "[INVALID_ARGUMENT]Invalid format of 'timeout': 'abc', stoi"},
        {"timeout", "0", "Invalid timeout: 0. Timeout should between 1 and 259200 seconds"},
        {"timezone", "Mars/Olympus", "time zone"},
        {"timezone", "Europe/Berlin", "time zone"},
        {"merge_type", "MERGE", "Excepted DELETE ON clause when merge type is MERGE."},
        {"merge_type", "x", "[INVALID_ARGUMENT]Invalid merge type x"},
        {"delete", "k=1", "Not support DELETE ON clause when merge type is not MERGE."},
        {"skip_lines", "-3", "[INVALID_ARGUMENT]Invalid 'skip_lines': -3"},
        {"enclose", "ab", "enclose must be single-char, actually is ab"},
        {"enclose", "\t", "enclose must not be part of column_separator or line_delimiter"},
        {"escape", "ab", "escape must be single-char, actually is ab"},
        {"group_commit", "x", "group_commit can only be [async_mode, sync_mode, off_mode]"},
        {"group_commit", "sync_mode", "not supported"},
        {"where", "k > 1", "header 'where' is not supported"},
        {"partitions", "p1", "not supported"},
        {"partial_columns", "true", "not supported"},
        {"function_column.sequence_col", "s", "not supported"},
        {"columns", "a, b = a + 1", "expressions are not supported"},
        {"columns", "a,,b", "a name is expected"},
        {"compress_type", "zstd", "unknown data format"},
        {"hidden_columns", "__DORIS_SEQUENCE_COL__", "not supported"},
        {"txn_id", "12", "two_phase_commit"},
        {"txn_id", "x", "Invalid txn_id"},
        {"send_batch_parallelism", "a",
         "[INVALID_ARGUMENT]Invalid format of 'send_batch_parallelism': 'a', stoi"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *const pairs[] = {CASES[i].name, CASES[i].value, NULL};
        struct load_options o;
        struct tg_errmsg msg;
        assert_true(parse(pairs, &o, &msg) < 0);
        if (strstr(msg.text, CASES[i].message) == NULL)
            fail_msg("%s: %s: %s", CASES[i].name, CASES[i].value, msg.text);
        load_options_close(&o);
    }
}

static void test_json_paths_are_checked(void **state)
{
    struct load_options o;
    (void)state;
    assert_int_equal(PARSE(&o, "format", "json", "jsonpaths",
                           "[\"$.k\",\"$.a.b\",\"$.c[2]\",\"$.t.\\\"a.b\\\"\",\"$.\"]", "json_root",
                           "$.item"),
                     0);
    assert_int_equal(o.jsonpaths.count, 5);
    assert_int_equal(o.jsonpaths.paths[2].steps[1].index, 2);
    assert_string_equal(o.jsonpaths.paths[3].steps[1].name, "a.b");
    assert_int_equal(o.jsonpaths.paths[4].count, 0);
    assert_true(o.has_json_root);
    load_options_close(&o);
    assert_true(PARSE(&o, "format", "json", "jsonpaths", "[\"k\"]") < 0);
    load_options_close(&o);
    assert_true(PARSE(&o, "format", "json", "jsonpaths", "$.k") < 0);
    load_options_close(&o);
    assert_true(PARSE(&o, "format", "json", "jsonpaths", "[\"$.a[x]\"]") < 0);
    load_options_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_headers_give_the_defaults),
        cmocka_unit_test(test_separators_are_text_with_escapes_or_hex),
        cmocka_unit_test(test_booleans_are_true_in_any_case_but_two_phase_commit),
        cmocka_unit_test(test_time_zones_are_offsets_or_zones_without_daylight_saving),
        cmocka_unit_test(test_columns_are_plain_names),
        cmocka_unit_test(test_csv_with_names_skips_its_lines),
        cmocka_unit_test(test_a_load_in_a_begun_transaction_has_no_label_of_its_own),
        cmocka_unit_test(test_refused_headers_say_why),
        cmocka_unit_test(test_json_paths_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
