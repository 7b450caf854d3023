/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of a cluster do all the time. */
#include "tests/lib/test_load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/base/json.h"

enum { STATE_STEP_MS = 20, TARGET_BYTES = 4096 };

/* ---- JSON ---- */

static void copy_text(const struct json_value *value, char *out, size_t cap)
{
    struct slice text = json_value_text(value);
    size_t len = text.len < cap ? text.len : cap - 1;

    if (json_value_kind(value) == JSON_BOOL)
        text = slice_str(json_value_bool(value) ? "true" : "false"), len = text.len;
    if (len > 0)
        memcpy(out, text.data, len);
    out[len] = '\0';
}

static long long take_number(const struct json_value *object, const char *name)
{
    char text[TEST_WORD_BYTES];

    copy_text(json_value_get(object, name), text, sizeof text);
    return strtoll(text, NULL, 10);
}

const char *test_json(const struct test_answer *answer, const char *name, char *out, size_t cap)
{
    struct json_doc *doc;

    out[0] = '\0';
    if (json_doc_parse(answer->body, answer->body_len, NULL, &doc, NULL) != 0)
        fail_msg("not JSON: %s", answer->body);
    copy_text(json_value_get(json_doc_root(doc), name), out, cap);
    json_doc_close(doc);
    return out;
}

/* ---- statements ---- */

static void run_statement(uint16_t port, const char *db, const char *statement,
                          struct test_answer *answer)
{
    char target[TARGET_BYTES];
    struct buf body = BUF_INIT;

    snprintf(target, sizeof target, "/api/query/default_cluster%s%s", db[0] != '\0' ? "/" : "", db);
    buf_append_str(&body, "{\"stmt\":");
    json_append_cstr(&body, statement);
    buf_append_str(&body, "}");
    struct test_call call = {
        .port = port, .method = "POST", .target = target, .body = body.data, .len = body.len};
    test_http(&call, answer);
    buf_close(&body);
}

void test_sql(uint16_t port, const char *db, const char *statement)
{
    struct test_answer answer;
    char code[TEST_WORD_BYTES];

    run_statement(port, db, statement, &answer);
    if (strcmp(test_json(&answer, "code", code, sizeof code), "0") != 0)
        fail_msg("%s: %s", statement, answer.body);
    test_answer_close(&answer);
}

void test_sql_refused(uint16_t port, const char *db, const char *statement, char *out, size_t cap)
{
    struct test_answer answer;
    char code[TEST_WORD_BYTES];

    run_statement(port, db, statement, &answer);
    assert_int_equal(answer.status, 200);
    if (strcmp(test_json(&answer, "code", code, sizeof code), "0") == 0)
        fail_msg("%s succeeded", statement);
    test_json(&answer, "data", out, cap);
    test_answer_close(&answer);
}

/* ---- loads ---- */

bool test_load_parse(const struct test_answer *answer, struct test_load *load)
{
    struct json_doc *doc;

    memset(load, 0, sizeof *load);
    if (answer->status != 200 ||
        json_doc_parse(answer->body, answer->body_len, NULL, &doc, NULL) != 0)
        return false;
    const struct json_value *root = json_doc_root(doc);
    load->txn = take_number(root, "TxnId");
    copy_text(json_value_get(root, "Label"), load->label, sizeof load->label);
    copy_text(json_value_get(root, "TwoPhaseCommit"), load->two_phase, sizeof load->two_phase);
    copy_text(json_value_get(root, "Status"), load->status, sizeof load->status);
    copy_text(json_value_get(root, "ExistingJobStatus"), load->existing, sizeof load->existing);
    copy_text(json_value_get(root, "Message"), load->message, sizeof load->message);
    copy_text(json_value_get(root, "ErrorURL"), load->error_url, sizeof load->error_url);
    load->total = take_number(root, "NumberTotalRows");
    load->loaded = take_number(root, "NumberLoadedRows");
    load->filtered = take_number(root, "NumberFilteredRows");
    load->unselected = take_number(root, "NumberUnselectedRows");
    load->bytes = take_number(root, "LoadBytes");
    json_doc_close(doc);
    return load->status[0] != '\0';
}

void test_load(uint16_t port, const char *db, const char *table, const char *headers,
               const void *body, size_t len, struct test_load *load)
{
    char target[TARGET_BYTES];
    struct test_answer answer;

    snprintf(target, sizeof target, "/api/%s/%s/_stream_load", db, table);
    struct test_call call = {.port = port,
                             .method = "PUT",
                             .target = target,
                             .headers = headers,
                             .body = body,
                             .len = len,
                             .expect = true,
                             .follow = true};
    test_http(&call, &answer);
    if (!test_load_parse(&answer, load))
        fail_msg("not the answer of a load: %d %s", answer.status, answer.body);
    test_answer_close(&answer);
}

void test_load_text(uint16_t port, const char *db, const char *table, const char *headers,
                    const char *body, struct test_load *load)
{
    test_load(port, db, table, headers, body, strlen(body), load);
}

void test_load_good(const struct test_load *load, long long total, long long filtered)
{
    if (strcmp(load->status, "Success") != 0)
        fail_msg("load %s: %s, %s", load->label, load->status, load->message);
    assert_int_equal(load->total, total);
    assert_int_equal(load->filtered, filtered);
    assert_int_equal(load->loaded, total - filtered);
    assert_int_equal(load->unselected, 0);
}

void test_load_failed(const struct test_load *load, const char *message)
{
    if (strcmp(load->status, "Fail") != 0 || strstr(load->message, message) == NULL)
        fail_msg("wanted Fail with '%s', got %s: %s", message, load->status, load->message);
    assert_int_equal(load->loaded, 0);
}

/* ---- two-phase commit ---- */

bool test_2pc(uint16_t port, const char *db, const char *headers, bool may_fail,
              struct test_2pc *out)
{
    char target[TARGET_BYTES];
    struct test_answer answer;
    struct json_doc *doc;

    memset(out, 0, sizeof *out);
    snprintf(target, sizeof target, "/api/%s/_stream_load_2pc", db);
    struct test_call call = {.port = port, .method = "PUT", .target = target, .headers = headers};
    enum test_http_end end = test_http_try(&call, &answer);
    bool good = end == TEST_HTTP_ANSWERED && answer.status == 200 &&
                json_doc_parse(answer.body, answer.body_len, NULL, &doc, NULL) == 0;
    if (good) {
        const struct json_value *root = json_doc_root(doc);

        copy_text(json_value_get(root, "status"), out->status, sizeof out->status);
        copy_text(json_value_get(root, "msg"), out->msg, sizeof out->msg);
        out->txn = take_number(root, "txn_id");
        json_doc_close(doc);
    }
    test_answer_close(&answer);
    if (!good && !may_fail)
        fail_msg("no answer of _stream_load_2pc to %s", headers);
    return good;
}

void test_2pc_txn(uint16_t port, const char *db, const char *operation, long long txn,
                  struct test_2pc *answer)
{
    char headers[TEST_TEXT_BYTES];

    snprintf(headers, sizeof headers, "txn_operation: %s\r\ntxn_id: %lld\r\n", operation, txn);
    test_2pc(port, db, headers, false, answer);
}

void test_commit(uint16_t port, const char *db, long long txn)
{
    struct test_2pc answer;

    test_2pc_txn(port, db, "commit", txn, &answer);
    if (strcmp(answer.status, "Success") != 0)
        fail_msg("commit of %lld: %s, %s", txn, answer.status, answer.msg);
}

/* ---- labels ---- */

void test_state(uint16_t port, const char *db, const char *label, char out[TEST_WORD_BYTES])
{
    char target[TARGET_BYTES];
    struct test_answer answer;
    struct test_call call = {.port = port, .target = target};

    snprintf(target, sizeof target, "/api/%s/get_load_state?label=%s", db, label);
    test_http(&call, &answer);
    test_json(&answer, "data", out, TEST_WORD_BYTES);
    test_answer_close(&answer);
}

void test_wait_state(uint16_t port, const char *db, const char *label, const char *state,
                     unsigned timeout_ms)
{
    const struct timespec step = {.tv_nsec = STATE_STEP_MS * 1000000L};
    char now[TEST_WORD_BYTES];

    for (unsigned waited = 0;; waited += STATE_STEP_MS) {
        test_state(port, db, label, now);
        if (strcmp(now, state) == 0)
            return;
        if (waited >= timeout_ms)
            fail_msg("label %s is %s, not %s, after %u ms", label, now, state, timeout_ms);
        nanosleep(&step, NULL);
    }
}

/* ---- reads ---- */

void test_get(uint16_t port, const char *db, const char *table, const char *route,
              struct test_answer *answer)
{
    char target[TARGET_BYTES];
    struct test_call call = {.port = port, .target = target, .follow = true};

    snprintf(target, sizeof target, "/api/%s/%s/%s", db, table, route);
    test_http(&call, answer);
}

char *test_rows(uint16_t port, const char *db, const char *table, const char *route)
{
    char full[TARGET_BYTES];
    struct test_answer answer;

    snprintf(full, sizeof full, "%s%sformat=csv", route, strchr(route, '?') != NULL ? "&" : "?");
    test_get(port, db, table, full, &answer);
    if (answer.status != 200)
        fail_msg("%s of %s: %d %s", route, table, answer.status, answer.body);
    char *rows = answer.body;
    answer.body = NULL;
    test_answer_close(&answer);
    return rows;
}

void test_rows_are(uint16_t port, const char *db, const char *table, const char *route,
                   const char *expected)
{
    char *rows = test_rows(port, db, table, route);

    if (strcmp(rows, expected) != 0)
        fail_msg("%s of %s:\n%swhere expected is\n%s", route, table, rows, expected);
    free(rows);
}

size_t test_row_count(uint16_t port, const char *db, const char *table, const char *route)
{
    char *rows = test_rows(port, db, table, route);
    size_t count = 0;

    for (const char *at = rows; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    free(rows);
    return count;
}
