/* SPDX-License-Identifier: Apache-2.0 */
/* Whole loads in a fake world: what is stored, what is told, and what happens when things go wrong.
 */
#include "participant/ingest/stream_load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "tests/lib/fake_clock.h"
#include "tests/lib/fake_load_world.h"
#include "tests/lib/test_dir.h"

struct fixture {
    struct fake_load_world world;
    struct fake_clock clock;
    struct live_requests *live;
    struct node_identity identity;
    struct test_dir dir;
    struct error_logs *errors;
    struct stream_load_context context;
    struct load_result result;
    const char *headers; /* "name: value; name: value" */
    const char *body;
    size_t len;
    size_t at;
    size_t piece;
    bool accepted;
    int read_err;         /* once the body is used up */
    uint64_t ms_per_read; /* passes with every read */
    bool stop_in_read;    /* an abort from elsewhere comes while the body is read */
    char values[16][256]; /* of headers that were asked for, each in a place of its own */
    unsigned value_count;
};

static void setup(struct fixture *f, uint8_t key_model, uint32_t keys, const char *columns,
                  uint32_t buckets)
{
    memset(f, 0, sizeof *f);
    fake_load_world_init(&f->world, key_model, keys, columns, buckets);
    fake_clock_init(&f->clock);
    f->live = live_requests_open();
    atomic_store(&f->identity.node, 1);
    atomic_store(&f->identity.epoch, 3);
    test_dir_make(&f->dir);
    assert_int_equal(
        error_logs_open(f->dir.path, &f->clock.clock, random_system(), &f->errors, NULL), 0);
    f->context = (struct stream_load_context){.calls = &f->world.calls,
                                              .clock = &f->clock.clock,
                                              .live = f->live,
                                              .identity = &f->identity,
                                              .errors = f->errors,
                                              .memory_bytes = 64 << 20,
                                              .memory_total_bytes = 128 << 20,
                                              .memory.limit = 256 << 20,
                                              .body_bytes_max = 1 << 30,
                                              .publish_wait_ms = 10};
    f->piece = 1000;
}

static void teardown(struct fixture *f)
{
    fake_load_world_close(&f->world);
    live_requests_close(f->live);
    error_logs_close(f->errors);
    test_dir_remove(&f->dir);
}

/* Finds "name: value" in f->headers. */
static const char *lookup(void *ctx, const char *name)
{
    struct fixture *f = ctx;
    size_t len = strlen(name);

    for (const char *p = f->headers; *p != 0;) {
        const char *end = strstr(p, "; ");
        size_t item = end != NULL ? (size_t)(end - p) : strlen(p);
        if (item > len + 2 && strncasecmp(p, name, len) == 0 && p[len] == ':') {
            char *value = f->values[f->value_count++ % 16];
            snprintf(value, sizeof f->values[0], "%.*s", (int)(item - len - 2), p + len + 2);
            return value;
        }
        p += item + (end != NULL ? 2 : 0);
    }
    return NULL;
}

static int read_body(struct load_source *source, uint8_t *out, size_t cap, uint64_t deadline_ms,
                     size_t *n, struct tg_errmsg *msg)
{
    struct fixture *f = source->ctx;
    size_t left = f->len - f->at;

    assert_true(f->accepted);
    fake_clock_advance_ms(&f->clock, f->ms_per_read);
    if (clock_monotonic_ms(&f->clock.clock) >= deadline_ms)
        return tg_fail(msg, TG_TIMEOUT, "[TIMEOUT]the body did not come in time");
    if (f->stop_in_read) {
        live_requests_stop_all(f->live);
        return tg_fail(msg, TG_CANCELED, "[CANCELLED]the load was told to stop");
    }
    *n = left < cap ? left : cap;
    *n = *n < f->piece ? *n : f->piece;
    memcpy(out, f->body + f->at, *n);
    f->at += *n;
    source->received += *n;
    if (*n == 0 && f->read_err != 0)
        return tg_fail(msg, f->read_err, "[CANCELLED]sender is gone");
    return 0;
}

static void accept_body(struct load_source *source)
{
    struct fixture *f = source->ctx;
    f->accepted = true;
}

static enum load_status load(struct fixture *f, const char *headers, const char *body)
{
    struct load_options options;
    struct load_source source = {.read = read_body, .accept = accept_body, .ctx = f};
    struct tg_errmsg msg = {{0}};

    fake_load_world_reset(&f->world);
    f->headers = headers;
    f->body = body;
    f->len = strlen(body);
    f->at = 0;
    f->accepted = false;
    int err = load_options_parse(lookup, f, "made-up-label", &options, &msg);
    if (err != 0)
        fail_msg("%s", msg.text);
    struct load_request request = {.db = "d", .table = "t", .user = "root", .options = &options};
    enum load_status status =
        stream_load_run(&f->context, &request, &source, NULL, NULL, &f->result);
    load_options_close(&options);
    return status;
}

static void check_counts(const struct fixture *f, uint64_t total, uint64_t loaded,
                         uint64_t filtered)
{
    assert_int_equal(f->result.total_rows, total);
    assert_int_equal(f->result.loaded_rows, loaded);
    assert_int_equal(f->result.filtered_rows, filtered);
}

static void check_rows(struct fixture *f, const char *expected)
{
    char *rows = fake_load_world_rows(&f->world, 1);
    assert_string_equal(rows, expected);
    free(rows);
}

static void check_errors(struct fixture *f, const char *expected)
{
    struct buf text = BUF_INIT;
    assert_int_equal(error_logs_read(f->errors, f->result.error_file, &text), 0);
    assert_string_equal(buf_cstr(&text), expected);
    buf_close(&text);
}

static void test_rows_of_a_csv_load_are_stored_sorted_and_reported(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT, v VARCHAR(20)", 1);
    assert_int_equal(load(&f, "column_separator: ,; label: L", "3,c\n1,a\n2,\\N\n1,b"),
                     LOAD_SUCCESS);
    check_counts(&f, 4, 4, 0);
    char *rows = fake_load_world_bucket(&f.world, 1, 0);
    assert_string_equal(rows, "1|a\n1|b\n2|\\N\n3|c\n");
    free(rows);
    assert_string_equal(f.world.begin.label, "L");
    assert_string_equal(f.result.message, "OK");
    assert_int_equal(f.world.done.finish, LOAD_FINISH_COMMIT);
    assert_int_equal(f.world.done.tablet_count, 1);
    assert_int_equal(f.world.done.tablets[0].sealed, 1);
    assert_int_equal(f.world.done.tablets[0].rows, 4);
    assert_int_equal(f.world.messages[1], 1); /* pieces and seal together */
    assert_int_equal(f.result.txn, FAKE_TXN);
    teardown(&f);
}

static void test_the_newest_row_of_a_unique_key_stays(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_UNIQUE, 1, "k INT, v VARCHAR(20)", 1);
    assert_int_equal(load(&f, "column_separator: ,; hidden_columns: __DORIS_DELETE_SIGN__",
                          "2,a,0\n1,b,0\n2,c,1\n1,d,0\n"),
                     LOAD_SUCCESS);
    check_counts(&f, 4, 4, 0);
    check_rows(&f, "1|d|0\n2|c|1\n");
    assert_int_equal(load(&f, "column_separator: ,; merge_type: DELETE", "2,a\n"), LOAD_SUCCESS);
    teardown(&f);
}

static void test_rows_go_to_the_buckets_of_their_keys(void **state)
{
    struct fixture f;
    struct buf body = BUF_INIT;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT, v VARCHAR(20)", 8);
    f.world.replicas = 3;
    for (int i = 0; i < 20000; i++)
        buf_printf(&body, "%d\tvalue-%d\n", i * 7919 % 20000, i);
    assert_int_equal(load(&f, "", buf_cstr(&body)), LOAD_SUCCESS);
    check_counts(&f, 20000, 20000, 0);
    assert_int_equal(f.world.done.tablet_count, 8);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(f.world.done.tablets[i].rows > 2000);
        assert_int_equal(f.world.done.tablets[i].sealed, 7);
        rows += f.world.done.tablets[i].rows;
    }
    assert_int_equal(rows, 20000);
    char *first = fake_load_world_rows(&f.world, 1);
    char *third = fake_load_world_rows(&f.world, 3);
    assert_string_equal(first, third);
    free(first);
    free(third);
    buf_close(&body);
    teardown(&f);
}

static void test_little_memory_gives_more_segments_and_the_same_rows(void **state)
{
    struct fixture f;
    struct buf body = BUF_INIT;
    struct buf expected = BUF_INIT;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT, v STRING", 2);
    f.context.memory_bytes = 1;
    char *value = calloc(1, 2001);
    memset(value, 'x', 2000);
    for (int i = 0; i < 9000; i++)
        buf_printf(&body, "%d\t%s\n", 10000 + i, value);
    for (int i = 0; i < 9000; i++)
        buf_printf(&expected, "%d|%s\n", 10000 + i, value);
    assert_int_equal(load(&f, "", buf_cstr(&body)), LOAD_SUCCESS);
    check_rows(&f, buf_cstr(&expected));
    const struct rowset_meta *meta = &f.world.tablets[1][0].meta;
    assert_true(meta->blocks[meta->block_count - 1].segment > 0);
    free(value);
    buf_close(&body);
    buf_close(&expected);
    teardown(&f);
}

/* Other loads hold all that loads may hold. */
static void test_memory_that_is_used_up_refuses_a_large_load_and_leaves_nothing(void **state)
{
    struct fixture f;
    struct buf body = BUF_INIT;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT, v STRING", 2);
    for (int i = 0; i < 30000; i++)
        buf_printf(&body, "%d\t%s\n", i, "some text that makes the body larger than a small one");
    atomic_store(&f.context.memory.used, f.context.memory.limit);
    assert_int_equal(load(&f, "", buf_cstr(&body)), LOAD_FAIL);
    assert_non_null(strstr(f.result.message, "[INTERNAL_ERROR]memory limit exceeded"));
    assert_int_equal(atomic_load(&f.context.memory.refused), 1);
    assert_int_equal(atomic_load(&f.context.memory.used), f.context.memory.limit);
    assert_int_equal(atomic_load(&f.context.active), 0);
    /* With room it goes, and all is given back. */
    atomic_store(&f.context.memory.used, 0);
    assert_int_equal(load(&f, "", buf_cstr(&body)), LOAD_SUCCESS);
    assert_int_equal(atomic_load(&f.context.memory.used), 0);
    buf_close(&body);
    teardown(&f);
}

static void test_bad_rows_within_the_ratio_are_left_out(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_UNIQUE, 1, "id INT, name VARCHAR(5)", 1);
    assert_int_equal(load(&f,
                          "format: json; strip_outer_array: true; max_filter_ratio: 1; "
                          "strict_mode: true",
                          "[{\"id\":\"1\",\"name\":\"abcdefghij\"}]"),
                     LOAD_SUCCESS);
    check_counts(&f, 1, 0, 1);
    assert_string_not_equal(f.result.error_file, "");
    check_rows(&f, "");
    const char *ten = "1\ta\n2\tb\n3\tc\n4\td\n5\te\n6\tf\n7\tg\n8\th\n9\ti\nbad row\n";
    assert_int_equal(load(&f, "max_filter_ratio: 0.1", ten), LOAD_SUCCESS);
    check_counts(&f, 10, 9, 1);
    assert_int_equal(load(&f, "max_filter_ratio: 0.09", ten), LOAD_FAIL);
    check_counts(&f, 10, 0, 1);
    assert_string_equal(f.result.message, "[DATA_QUALITY_ERROR]too many filtered rows");
    assert_int_equal(f.world.state, TXN_ABORTED);
    assert_int_equal(load(&f, "format: json; strip_outer_array: true", "[]"), LOAD_SUCCESS);
    check_counts(&f, 0, 0, 0);
    teardown(&f);
}

static void test_an_early_bad_row_is_reported_with_counts_and_log(void **state)
{
    struct fixture f;
    struct buf body = BUF_INIT;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT NOT NULL", 1);
    f.piece = SIZE_MAX;
    buf_append_str(&body, "x\n");
    for (int i = 0; i < 300000; i++)
        buf_append_str(&body, "1\n");
    assert_int_equal(load(&f, "", buf_cstr(&body)), LOAD_FAIL);
    check_counts(&f, 300001, 0, 1);
    check_errors(&f, "Reason: column(k) values is null while columns is not nullable. src line "
                     "[x]; \n");
    assert_string_equal(f.result.first_error,
                        "column(k) values is null while columns is not nullable");
    assert_int_equal(f.world.fails, 1);
    buf_close(&body);
    teardown(&f);
}

static void test_zero_tolerance_stops_after_fifty_bad_rows(void **state)
{
    struct fixture f;
    struct buf body = BUF_INIT;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT NOT NULL", 1);
    for (int i = 0; i < 60; i++)
        buf_append_str(&body, "x\n");
    assert_int_equal(load(&f, "", buf_cstr(&body)), LOAD_FAIL);
    assert_non_null(strstr(f.result.message, "Encountered unqualified data, stop processing"));
    buf_close(&body);
    teardown(&f);
}

static void test_wide_numbers_in_json_stay_exact(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "a INT, b LARGEINT, c DECIMAL(38;2), s VARCHAR(50)", 1);
    assert_int_equal(load(&f, "format: json; read_json_by_line: true",
                          "{\"a\":1,\"b\":37778931862957161709568,\"c\":"
                          "123456789012345678901234567890.12,\"s\":12345678901234567890123}\n"),
                     LOAD_SUCCESS);
    check_rows(&f, "1|37778931862957161709568|123456789012345678901234567890.12|"
                   "12345678901234567890123\n");
    teardown(&f);
}

static void test_an_object_without_any_wanted_key_is_filtered(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT, v DOUBLE", 1);
    assert_int_equal(load(&f,
                          "format: json; strip_outer_array: true; jsonpaths: [\"$.k\",\"$.v\"]; "
                          "max_filter_ratio: 1",
                          "[{\"k\":1,\"v\":1.5},{\"k\":2,\"x\":9},{\"z\":null}]"),
                     LOAD_SUCCESS);
    check_counts(&f, 3, 2, 1);
    check_rows(&f, "1|1.5\n2|\\N\n");
    check_errors(&f, "Reason: There is no column matching jsonpaths in the json file, "
                     "columns:[k, v, ], please check columns and "
                     "jsonpaths:[\"$.k\",\"$.v\"]. src line [{\"z\":null}]; \n");
    teardown(&f);
}

static void test_an_absent_key_gets_the_default_and_null_stays_null(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT, v VARCHAR(9), w INT DEFAULT 7", 1);
    assert_int_equal(load(&f, "format: json; read_json_by_line: true",
                          "{\"k\":1}\n{\"k\":2,\"v\":null,\"w\":null}\n"),
                     LOAD_SUCCESS);
    check_rows(&f, "1|\\N|7\n2|\\N|\\N\n");
    teardown(&f);
}

static void test_a_bad_document_spoils_its_line_but_a_whole_array(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT, v VARCHAR(20)", 1);
    const char *lines = "{\"k\":1,\"v\":\"a\"}\n{\"k\":2,\"v\":\"x\\qy\"}\n{\"k\":3,\"v\":\"c\"}\n";
    assert_int_equal(
        load(&f, "format: json; read_json_by_line: true; max_filter_ratio: 0.5", lines),
        LOAD_SUCCESS);
    check_counts(&f, 3, 2, 1);
    check_rows(&f, "1|a\n3|c\n");
    struct buf log = BUF_INIT;
    assert_int_equal(error_logs_read(f.errors, f.result.error_file, &log), 0);
    assert_non_null(strstr(buf_cstr(&log), "src line [{\"k\":2,\"v\":\"x\\qy\"}]"));
    buf_close(&log);
    assert_int_equal(load(&f, "format: json; read_json_by_line: true", lines), LOAD_FAIL);
    const char *array = "[{\"k\":1,\"v\":\"a\"},{\"k\":2,\"v\":\"x\\qy\"},{\"k\":3,\"v\":\"c\"}]";
    assert_int_equal(load(&f, "format: json; strip_outer_array: true; max_filter_ratio: 1", array),
                     LOAD_FAIL);
    assert_int_equal(load(&f, "format: json; strip_outer_array: true; max_filter_ratio: 1",
                          "[{\"k\":1},{\"k\":2}"),
                     LOAD_FAIL);
    teardown(&f);
}

static void test_listed_columns_pick_fields_and_others_get_defaults(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT, v VARCHAR(9) DEFAULT dflt, w INT", 1);
    assert_int_equal(load(&f, "column_separator: ,; columns: `w`, tmp, K", "5,zzz,1\n"),
                     LOAD_SUCCESS);
    check_rows(&f, "1|dflt|5\n");
    teardown(&f);
}

static void test_two_phase_loads_are_precommitted_and_joined_ones_left_open(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT", 1);
    assert_int_equal(load(&f, "two_phase_commit: true", ""), LOAD_SUCCESS);
    check_counts(&f, 0, 0, 0);
    assert_int_equal(f.world.done.finish, LOAD_FINISH_PRECOMMIT);
    assert_int_equal(f.world.done.tablet_count, 0);
    assert_int_equal(load(&f, "two_phase_commit: true; txn_id: 1001", "1\n"), LOAD_SUCCESS);
    assert_int_equal(f.world.begin.join, 1001);
    assert_string_equal(f.world.begin.label, "");
    assert_int_equal(f.world.done.finish, LOAD_FINISH_NONE);
    teardown(&f);
}

static void test_a_used_label_is_told_with_its_transaction(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT", 1);
    f.world.begin_err = TG_LABEL_EXISTS;
    f.world.existing = TXN_VISIBLE;
    assert_int_equal(load(&f, "label: L1", "1\n"), LOAD_LABEL_EXISTS);
    assert_false(f.accepted);
    assert_int_equal(f.result.existing, TXN_VISIBLE);
    assert_int_equal(f.result.txn, 0);
    assert_string_equal(f.result.message,
                        "[LABEL_ALREADY_EXISTS]TStatus: errCode = 2, detailMessage = Label [L1] "
                        "has already been used, relate to txn [1001], status [VISIBLE].");
    teardown(&f);
}

static void test_a_sender_that_leaves_aborts_the_load(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT", 1);
    f.read_err = TG_CLOSED;
    assert_int_equal(load(&f, "", "1\n2"), LOAD_FAIL);
    assert_int_equal(f.world.state, TXN_ABORTED);
    assert_non_null(strstr(f.world.failed.reason, "sender is gone"));
    check_rows(&f, "");
    teardown(&f);
}

static void test_the_timeout_bounds_the_whole_load(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT", 1);
    f.ms_per_read = 1600;
    f.piece = 1;
    assert_int_equal(load(&f, "timeout: 3", "1\n2\n3\n"), LOAD_FAIL);
    assert_non_null(strstr(f.result.message, "[TIMEOUT]"));
    assert_int_equal(f.world.state, TXN_ABORTED);
    assert_true(f.result.load_ms < 5000);
    teardown(&f);
}

static void test_an_abort_from_elsewhere_stops_the_load(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT", 1);
    f.stop_in_read = true;
    assert_int_equal(load(&f, "", "1\n"), LOAD_FAIL);
    assert_int_equal(f.world.state, TXN_ABORTED);
    teardown(&f);
}

static void test_what_cannot_be_learned_stays_unknown(void **state)
{
    struct fixture f;
    (void)state; /* rule 11 */
    setup(&f, KEY_DUPLICATE, 1, "k INT", 1);
    f.read_err = TG_CLOSED;
    f.world.fail_err = TG_FENCED;
    assert_int_equal(load(&f, "timeout: 3", "1\n"), LOAD_UNKNOWN);
    teardown(&f);
}

static void test_a_lost_answer_to_the_report_does_not_lose_the_load(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT", 1);
    f.world.done_err = TG_TIMEOUT;
    f.world.done_applies = true;
    assert_int_equal(load(&f, "", "1\n"), LOAD_SUCCESS);
    check_counts(&f, 1, 1, 0);
    assert_true(f.world.dones >= 2);
    teardown(&f);
}

static void test_a_commit_that_is_not_visible_in_time_is_a_publish_timeout(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT", 1);
    f.world.committed = TXN_COMMITTED;
    f.context.publish_wait_ms = 0;
    assert_int_equal(load(&f, "", "1\n"), LOAD_PUBLISH_TIMEOUT);
    check_counts(&f, 1, 1, 0);
    assert_int_equal(f.world.fails, 0);
    teardown(&f);
}

static void test_one_dead_replica_of_three_is_dropped_and_two_are_too_many(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f, KEY_DUPLICATE, 1, "k INT", 4);
    f.world.replicas = 3;
    f.world.replicate_err[2] = TG_UNREACHABLE;
    assert_int_equal(load(&f, "", "1\n2\n3\n"), LOAD_SUCCESS);
    for (uint32_t i = 0; i < f.world.done.tablet_count; i++)
        assert_int_equal(f.world.done.tablets[i].sealed, 5);
    f.world.replicate_err[3] = TG_NOSPACE;
    assert_int_equal(load(&f, "", "1\n2\n3\n"), LOAD_FAIL);
    assert_non_null(strstr(f.result.message, "succ replica num 1 < load required replica num 2"));
    f.world.replicate_err[2] = 0;
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_a_csv_load_are_stored_sorted_and_reported),
        cmocka_unit_test(test_the_newest_row_of_a_unique_key_stays),
        cmocka_unit_test(test_rows_go_to_the_buckets_of_their_keys),
        cmocka_unit_test(test_little_memory_gives_more_segments_and_the_same_rows),
        cmocka_unit_test(test_memory_that_is_used_up_refuses_a_large_load_and_leaves_nothing),
        cmocka_unit_test(test_bad_rows_within_the_ratio_are_left_out),
        cmocka_unit_test(test_an_early_bad_row_is_reported_with_counts_and_log),
        cmocka_unit_test(test_zero_tolerance_stops_after_fifty_bad_rows),
        cmocka_unit_test(test_wide_numbers_in_json_stay_exact),
        cmocka_unit_test(test_an_object_without_any_wanted_key_is_filtered),
        cmocka_unit_test(test_an_absent_key_gets_the_default_and_null_stays_null),
        cmocka_unit_test(test_a_bad_document_spoils_its_line_but_a_whole_array),
        cmocka_unit_test(test_listed_columns_pick_fields_and_others_get_defaults),
        cmocka_unit_test(test_two_phase_loads_are_precommitted_and_joined_ones_left_open),
        cmocka_unit_test(test_a_used_label_is_told_with_its_transaction),
        cmocka_unit_test(test_a_sender_that_leaves_aborts_the_load),
        cmocka_unit_test(test_the_timeout_bounds_the_whole_load),
        cmocka_unit_test(test_an_abort_from_elsewhere_stops_the_load),
        cmocka_unit_test(test_what_cannot_be_learned_stays_unknown),
        cmocka_unit_test(test_a_lost_answer_to_the_report_does_not_lose_the_load),
        cmocka_unit_test(test_a_commit_that_is_not_visible_in_time_is_a_publish_timeout),
        cmocka_unit_test(test_one_dead_replica_of_three_is_dropped_and_two_are_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
