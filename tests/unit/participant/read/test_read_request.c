/* SPDX-License-Identifier: Apache-2.0 */
/* Query strings to requests: what is understood, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/http_server.h"
#include "participant/read/read_request.h"

#define AT_2026 UINT64_C(1769857200000000) /* 2026-01-31T11:00:00Z in microseconds */

static int lookup(void *ctx, const char *name, unsigned nth, char *out, size_t cap)
{
    return http_request_query(ctx, name, nth, out, cap);
}

static int parse(enum read_kind kind, const char *query, struct read_request *request,
                 struct tg_errmsg *msg)
{
    struct http_request http = {.query = query};

    msg->text[0] = 0;
    return read_request_parse(kind, "db", "t", lookup, &http, request, msg);
}

/* The request, which the caller closes. */
static struct read_request good(enum read_kind kind, const char *query)
{
    struct read_request request;
    struct tg_errmsg msg;
    int err = parse(kind, query, &request, &msg);

    if (err != 0)
        fail_msg("%s: %s", query, msg.text);
    return request;
}

static void refused(enum read_kind kind, const char *query, int err, const char *words)
{
    struct read_request request;
    struct tg_errmsg msg;
    int got = parse(kind, query, &request, &msg);

    if (got != err || strstr(msg.text, words) == NULL)
        fail_msg("%s: %d, '%s'", query, got, msg.text);
    read_request_close(&request);
}

static void test_without_parameters_everything_is_read_at_the_newest_version(void **state)
{
    struct read_request r = good(READ_SCAN, "");

    (void)state;
    assert_string_equal(r.db, "db");
    assert_string_equal(r.table, "t");
    assert_int_equal(r.bound.at, READ_LATEST);
    assert_false(r.local || r.in_key_order || r.include_deleted);
    assert_int_equal(r.limit, 0);
    assert_int_equal(r.format, RESULT_JSON);
    assert_string_equal(r.columns, "");
    read_request_close(&r);
}

static void test_choices_and_numbers(void **state)
{
    struct read_request r = good(READ_SCAN, "columns=a%2Cb&limit=5&order=key&format=csv&"
                                            "include_deleted=true&consistency=local&unknown=1");

    (void)state;
    assert_string_equal(r.columns, "a,b");
    assert_int_equal(r.limit, 5);
    assert_true(r.in_key_order && r.include_deleted && r.local);
    assert_int_equal(r.format, RESULT_CSV);
    read_request_close(&r);
    refused(READ_SCAN, "limit=0", TG_INVALID, "at least 1");
    refused(READ_SCAN, "limit=-1", TG_INVALID, "limit must be a number");
    refused(READ_SCAN, "limit=4294967296", TG_INVALID, "up to 4294967295");
    refused(READ_SCAN, "limit=", TG_INVALID, "limit");
    refused(READ_SCAN, "order=descending", TG_INVALID, "order must be none or key");
    refused(READ_SCAN, "format=xml", TG_INVALID, "format must be json or csv");
    refused(READ_SCAN, "include_deleted=maybe", TG_INVALID, "true or false");
    refused(READ_SCAN, "where=a%3D1", TG_UNSUPPORTED, "where");
    refused(READ_SCAN, "columns=%zz", TG_INVALID, "malformed percent escape");
}

static void test_versions_and_times(void **state)
{
    static const struct {
        const char *query;
        enum read_at at;
        uint64_t value;
    } cases[] = {
        {"version=7", READ_VERSION, 7},
        {"version=0", READ_VERSION, 0},
        {"as_of=1769857200000000", READ_TIME, AT_2026},
        {"as_of=5", READ_TIME, 5},
        {"as_of=2026-01-31T11:00:00Z", READ_TIME, AT_2026},
        {"as_of=2026-01-31T12:00:00%2B01:00", READ_TIME, AT_2026},
        {"as_of=2026-01-31T12:00:00+01:00", READ_TIME, AT_2026}, /* '+' arrives as a blank */
        {"as_of=2026-01-31T10:30:00.000001-00:30", READ_TIME, AT_2026 + 1},
        {"as_of=2026-01-31+12:00:00.000002+01:00", READ_TIME, AT_2026 + 2},
        {"as_of=2026-01-31+11:00:00Z", READ_TIME, AT_2026},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct read_request r = good(READ_SCAN, cases[i].query);

        assert_int_equal(r.bound.at, cases[i].at);
        assert_true(r.bound.value == cases[i].value);
        read_request_close(&r);
    }
    refused(READ_SCAN, "version=x", TG_INVALID, "version number");
    refused(READ_SCAN, "version=18446744073709551616", TG_INVALID, "version number");
    refused(READ_SCAN, "version=1&as_of=2", TG_INVALID, "exclude each other");
    refused(READ_SCAN, "as_of=2026-01-31T12:00:00", TG_INVALID, "as_of");
    refused(READ_SCAN, "as_of=2026-01-31 10:00", TG_INVALID, "as_of");
    refused(READ_SCAN, "as_of=yesterday", TG_INVALID, "as_of");
}

static void test_keys_of_a_get_and_of_a_range(void **state)
{
    struct read_request r = good(READ_GET, "key=a%20b&key=&key=3");

    (void)state;
    assert_int_equal(r.from_count, 3);
    assert_string_equal(buf_cstr(&r.from[0]), "a b");
    assert_string_equal(buf_cstr(&r.from[1]), "");
    assert_string_equal(buf_cstr(&r.from[2]), "3");
    read_request_close(&r);
    r = good(READ_RANGE, "from=1&to=2&to=3");
    assert_int_equal(r.from_count, 1);
    assert_int_equal(r.to_count, 2);
    assert_true(r.in_key_order);
    read_request_close(&r);
    r = good(READ_RANGE, "");
    assert_int_equal(r.from_count + r.to_count, 0);
    read_request_close(&r);
    refused(READ_GET, "", TG_INVALID, "needs key=");
    char query[65 * 6 + 1] = "";
    for (unsigned i = 0; i < 65; i++)
        strcat(query, "key=1&");
    refused(READ_GET, query, TG_INVALID, "more than 64");
}

static void test_bounds_of_changes(void **state)
{
    struct read_request r = good(READ_CHANGES, "after=3&until=9&wait_ms=100&limit=10");

    (void)state;
    assert_int_equal(r.after.at, READ_VERSION);
    assert_int_equal(r.after.value, 3);
    assert_int_equal(r.bound.at, READ_VERSION);
    assert_int_equal(r.bound.value, 9);
    assert_int_equal(r.wait_ms, 100);
    read_request_close(&r);
    r = good(READ_CHANGES, "after=1769857200000000&until=2026-01-31T12:00:01+01:00");
    assert_int_equal(r.after.at, READ_TIME);
    assert_true(r.after.value == AT_2026);
    assert_int_equal(r.bound.at, READ_TIME);
    assert_true(r.bound.value == AT_2026 + 1000000);
    read_request_close(&r);
    r = good(READ_CHANGES, "token=1.9.12.34");
    assert_int_equal(r.token_table, 9);
    assert_int_equal(r.after.at, READ_VERSION);
    assert_int_equal(r.after.value, 12);
    assert_int_equal(r.skip, 34);
    read_request_close(&r);
    refused(READ_CHANGES, "", TG_INVALID, "needs after=");
    refused(READ_CHANGES, "after=1&token=1.9.0.0", TG_INVALID, "exclude");
    refused(READ_CHANGES, "after=1&until=5&version=4", TG_INVALID, "until excludes");
    refused(READ_CHANGES, "after=1&limit=100001", TG_INVALID, "at most 100000");
    refused(READ_CHANGES, "after=1&wait_ms=60001", TG_INVALID, "wait_ms");
    refused(READ_CHANGES, "after=soon", TG_INVALID, "after");
    const char *const bad_tokens[] = {
        "token=",       "token=1",       "token=2.1.1.1",  "token=1.1.1",   "token=1.1.1.",
        "token=1.1..1", "token=1.1.a.1", "token=1.1.1.1x", "token=1.0.1.1", "token=1.1.1.1.1"};
    for (size_t i = 0; i < sizeof bad_tokens / sizeof bad_tokens[0]; i++)
        refused(READ_CHANGES, bad_tokens[i], TG_INVALID, "token");
}

static void test_a_token_is_read_as_it_was_printed(void **state)
{
    char token[READ_TOKEN_BYTES];
    char query[READ_TOKEN_BYTES + 16];

    (void)state;
    read_token_print(UINT64_MAX, UINT64_MAX, UINT64_MAX, token);
    snprintf(query, sizeof query, "token=%s", token);
    struct read_request r = good(READ_CHANGES, query);
    assert_true(r.token_table == UINT64_MAX);
    assert_true(r.after.value == UINT64_MAX && r.skip == UINT64_MAX);
    read_request_close(&r);
}

static void test_the_point_asks_for_what_the_request_needs(void **state)
{
    struct msg_read_point message;
    struct read_request r = good(READ_CHANGES, "after=3&consistency=local");

    (void)state;
    read_request_point(&r, &message);
    assert_string_equal(message.db, "db");
    assert_string_equal(message.table, "t");
    assert_true(message.with_changes && message.local);
    assert_int_equal(message.after.value, 3);
    read_request_close(&r);
    r = good(READ_SCAN, "version=2");
    read_request_point(&r, &message);
    assert_false(message.with_changes);
    assert_int_equal(message.bound.value, 2);
    read_request_close(&r);
}

static void test_names_and_texts_have_limits(void **state)
{
    struct http_request http = {.query = ""};
    struct read_request request;
    struct tg_errmsg msg = {{0}};
    char name[NAME_BYTES + 1];
    char *query = malloc(READ_TEXT_BYTES + 32);

    (void)state;
    memset(name, 'n', sizeof name);
    name[NAME_BYTES] = 0;
    assert_int_equal(read_request_parse(READ_SCAN, name, "t", lookup, &http, &request, &msg),
                     TG_NOT_FOUND);
    read_request_close(&request);
    name[NAME_BYTES - 1] = 0;
    assert_int_equal(read_request_parse(READ_SCAN, "d", name, lookup, &http, &request, &msg), 0);
    read_request_close(&request);
    strcpy(query, "columns=");
    memset(query + 8, 'c', READ_TEXT_BYTES);
    query[8 + READ_TEXT_BYTES] = 0;
    refused(READ_SCAN, query, TG_INVALID, "longer than");
    query[8 + READ_TEXT_BYTES - 1] = 0;
    request = good(READ_SCAN, query);
    assert_int_equal(strlen(request.columns), READ_TEXT_BYTES - 1);
    read_request_close(&request);
    free(query);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_parameters_everything_is_read_at_the_newest_version),
        cmocka_unit_test(test_choices_and_numbers),
        cmocka_unit_test(test_versions_and_times),
        cmocka_unit_test(test_keys_of_a_get_and_of_a_range),
        cmocka_unit_test(test_bounds_of_changes),
        cmocka_unit_test(test_a_token_is_read_as_it_was_printed),
        cmocka_unit_test(test_the_point_asks_for_what_the_request_needs),
        cmocka_unit_test(test_names_and_texts_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
