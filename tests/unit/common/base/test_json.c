/* SPDX-License-Identifier: Apache-2.0 */
/* JSON reading: strict, numbers as text, pools, and where a document ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/json.h"
#include "common/base/random.h"

static struct json_doc *parsed(const char *text, struct json_pool *pool)
{
    struct json_doc *doc = NULL;
    struct tg_errmsg msg = {""};
    if (json_doc_parse(text, strlen(text), pool, &doc, &msg) != 0)
        fail_msg("%s: %s", text, msg.text);
    return doc;
}

static void text_is(const struct json_value *value, enum json_kind kind, const char *text)
{
    assert_int_equal(json_value_kind(value), kind);
    if (!slice_equal_str(json_value_text(value), text))
        fail_msg("text is not '%s'", text);
}

static void every_kind_is_read(void **state)
{
    (void)state;
    struct json_doc *doc =
        parsed(" {\"n\": null, \"t\": true, \"f\": false, \"i\": -12, \"s\": \"a\\u00e9\\n\","
               " \"a\": [1, [2], {}], \"o\": {\"x\": {\"y\": 1}}, \"t\": \"second\"} ",
               NULL);
    const struct json_value *root = json_doc_root(doc);
    assert_int_equal(json_value_kind(root), JSON_OBJECT);
    assert_int_equal(json_value_count(root), 8);
    assert_int_equal(json_value_kind(json_value_get(root, "n")), JSON_NULL);
    assert_int_equal(json_value_kind(json_value_get(root, "t")), JSON_BOOL);
    assert_true(json_value_bool(json_value_get(root, "t")));
    assert_false(json_value_bool(json_value_get(root, "f")));
    text_is(json_value_get(root, "i"), JSON_NUMBER, "-12");
    text_is(json_value_get(root, "s"), JSON_STRING, "a\xC3\xA9\n");
    const struct json_value *array = json_value_get(root, "a");
    assert_int_equal(json_value_count(array), 3);
    text_is(json_value_at(array, 0), JSON_NUMBER, "1");
    assert_int_equal(json_value_kind(json_value_at(array, 1)), JSON_ARRAY);
    assert_int_equal(json_value_count(json_value_at(array, 2)), 0);
    assert_null(json_value_at(array, 3));
    assert_null(json_value_get(root, "absent"));
    assert_null(json_value_get(array, "n"));
    text_is(json_value_get(json_value_get(json_value_get(root, "o"), "x"), "y"), JSON_NUMBER, "1");
    json_doc_close(doc);
}

static void numbers_keep_every_digit(void **state)
{
    (void)state;
    const char *const numbers[] = {"12345678901234567890123456789012345678.0100",
                                   "1e400",
                                   "-0",
                                   "-0.0",
                                   "9007199254740993",
                                   "1E+2",
                                   "0.1"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct json_doc *doc = parsed(numbers[i], NULL);
        text_is(json_doc_root(doc), JSON_NUMBER, numbers[i]);
        struct buf out = BUF_INIT;
        json_value_print(json_doc_root(doc), &out);
        assert_string_equal(buf_cstr(&out), numbers[i]);
        buf_close(&out);
        json_doc_close(doc);
    }
}

static void what_is_not_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *place;
    } cases[] = {
        {"", "byte 0"},
        {"   ", "byte "},
        {"{\"a\":1,}", "byte 6"},
        {"[1,]", "byte 2"},
        {"{a:1}", "byte 1"},
        {"{'a':1}", "byte 1"},
        {"01", "byte "},
        {"+1", "byte 0"},
        {"1.", "byte "},
        {".5", "byte 0"},
        {"NaN", "byte 0"},
        {"Infinity", "byte 0"},
        {"tru", "byte 3"},
        {"[1 2]", "byte 3"},
        {"{\"a\" 1}", "byte 5"},
        {"1 2", "byte 2"},
        {"{} x", "byte 3"},
        {"// c\n1", "byte 0"},
        {"\"\xFF\"", "byte 1"},
        {"\"\xC0\x80\"", "byte 1"},
        {"\"\xED\xA0\x80\"", "byte 1"},
        {"\"\\ud800\"", "byte "},
        {"\"a\nb\"", "byte 2"},
        {"\"\\x\"", "byte "},
        {"[", "byte "},
        {"{\"a\":", "byte "},
        {"\"abc", "byte "},
        {"\xEF\xBB\xBF{}", "byte 0"},
    };
    struct json_pool *pool = json_pool_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int pooled = 0; pooled < 2; pooled++) {
            struct json_doc *doc = (struct json_doc *)1;
            struct tg_errmsg msg = {""};
            int err = json_doc_parse(cases[i].text, strlen(cases[i].text), pooled ? pool : NULL,
                                     &doc, &msg);
            if (err != TG_SYNTAX || strstr(msg.text, cases[i].place) == NULL)
                fail_msg("'%s' gives %s: %s", cases[i].text, tg_err_name(err), msg.text);
            assert_null(doc);
        }
    }
    json_pool_close(pool);
}

static void a_zero_byte_is_no_end_of_text(void **state)
{
    (void)state;
    struct json_doc *doc;
    struct tg_errmsg msg;
    assert_int_equal(json_doc_parse("1\0", 2, NULL, &doc, &msg), TG_SYNTAX);
    assert_int_equal(json_doc_parse("\"a\0b\"", 5, NULL, &doc, &msg), TG_SYNTAX);
    /* Escaped, it is a character like any other. */
    doc = parsed("\"a\\u0000b\"", NULL);
    struct slice text = json_value_text(json_doc_root(doc));
    assert_true(slice_equal(text, slice_of("a\0b", 3)));
    json_doc_close(doc);
}

static void members_and_elements_are_walked_in_order(void **state)
{
    (void)state;
    struct json_doc *doc = parsed("{\"a\":[1,[2,3],{\"k\":4},5],\"b\":\"x\",\"a\":{}}", NULL);
    struct json_iter iter;
    struct slice name;
    const struct json_value *value;
    json_iter_init(&iter, json_doc_root(doc));
    assert_false(json_iter_element(&iter, &value));
    assert_true(json_iter_member(&iter, &name, &value));
    assert_true(slice_equal_str(name, "a"));
    struct json_iter inner;
    json_iter_init(&inner, value);
    assert_false(json_iter_member(&inner, &name, &value));
    for (int i = 0; i < 4; i++)
        assert_true(json_iter_element(&inner, &value));
    text_is(value, JSON_NUMBER, "5");
    assert_false(json_iter_element(&inner, &value));
    assert_true(json_iter_member(&iter, &name, &value));
    text_is(value, JSON_STRING, "x");
    assert_true(json_iter_member(&iter, &name, &value));
    assert_true(slice_equal_str(name, "a"));
    assert_false(json_iter_member(&iter, &name, &value));
    json_iter_init(&iter, json_value_get(json_doc_root(doc), "b"));
    assert_false(json_iter_member(&iter, &name, &value));
    json_iter_init(&iter, NULL);
    assert_false(json_iter_element(&iter, &value));
    json_doc_close(doc);
}

static void a_row_is_read_in_one_call(void **state)
{
    (void)state;
    struct json_doc *doc = parsed("{\"id\":7,\"tags\":[1,2],\"name\":\"n\",\"x\":null}", NULL);
    struct json_field fields[3];
    assert_int_equal(json_object_fields(json_doc_root(doc), fields, 3), 4);
    assert_true(slice_equal_str(fields[0].name, "id"));
    assert_int_equal(fields[0].kind, JSON_NUMBER);
    assert_true(slice_equal_str(fields[0].text, "7"));
    assert_int_equal(fields[1].kind, JSON_ARRAY);
    assert_int_equal(fields[1].text.len, 0);
    assert_int_equal(json_value_count(fields[1].value), 2);
    assert_true(slice_equal_str(fields[2].text, "n"));
    assert_int_equal(json_object_fields(fields[1].value, fields, 3), 0);
    json_doc_close(doc);
    doc = parsed("{}", NULL);
    assert_int_equal(json_object_fields(json_doc_root(doc), fields, 3), 0);
    json_doc_close(doc);
}

static void a_pool_serves_documents_of_all_sizes_in_turn(void **state)
{
    (void)state;
    struct json_pool *pool = json_pool_open();
    assert_non_null(pool);
    size_t lengths[] = {10, 5000, 3, 300 * 1024, 7, 700 * 1024, 200 * 1024, 2};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct buf text = BUF_INIT;
        buf_append_str(&text, "[");
        while (text.len < lengths[i])
            buf_append_str(&text, "\"\\t\",1,");
        buf_append_str(&text, "true]");
        struct json_doc *doc = parsed(buf_cstr(&text), pool);
        /* The text may go away. */
        memset(text.data, 'x', text.len);
        const struct json_value *root = json_doc_root(doc);
        assert_true(json_value_bool(json_value_at(root, json_value_count(root) - 1)));
        /* Closing is allowed and not needed. */
        if (i % 2 == 0)
            json_doc_close(doc);
        buf_close(&text);
    }
    json_pool_close(pool);
    json_pool_close(NULL);
    json_doc_close(NULL);
}

static void depth_costs_no_stack(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    char *text = malloc(2 * DEPTH);
    assert_non_null(text);
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    struct json_doc *doc;
    struct tg_errmsg msg;
    assert_int_equal(json_doc_parse(text, 2 * DEPTH, NULL, &doc, &msg), 0);
    struct buf out = BUF_INIT;
    json_value_print(json_doc_root(doc), &out);
    assert_int_equal(out.len, 2 * DEPTH);
    assert_memory_equal(out.data, text, 2 * DEPTH);
    buf_close(&out);
    json_doc_close(doc);
    size_t used;
    assert_int_equal(json_doc_parse_first(text, 2 * DEPTH, NULL, &doc, &used, &msg), TG_SYNTAX);
    free(text);
}

static void concatenated_documents_come_one_by_one(void **state)
{
    (void)state;
    const char *text = "{\"a\":\"}\\\"\"} [1,{\"]\":2}]\n\"x\\\\\"12 true\nnull{}";
    const char *const want[] = {
        "{\"a\":\"}\\\"\"}", "[1,{\"]\":2}]", "\"x\\\\\"", "12", "true", "null", "{}"};
    size_t len = strlen(text);
    size_t at = 0;
    struct json_pool *pool = json_pool_open();
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct json_doc *doc;
        size_t used;
        struct tg_errmsg msg = {""};
        if (json_doc_parse_first(text + at, len - at, pool, &doc, &used, &msg) != 0)
            fail_msg("document %zu: %s", i, msg.text);
        struct buf out = BUF_INIT;
        json_value_print(json_doc_root(doc), &out);
        assert_string_equal(buf_cstr(&out), want[i]);
        buf_close(&out);
        at += used;
    }
    assert_int_equal(at, len);
    json_pool_close(pool);
}

static void an_unfinished_first_document_is_incomplete(void **state)
{
    (void)state;
    const char *const texts[] = {"", "  \n", "{\"a\": [1, 2}", "[", "\"abc", "\"a\\", "{\"a\":\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct json_doc *doc;
        size_t used;
        struct tg_errmsg msg = {""};
        int err = json_doc_parse_first(texts[i], strlen(texts[i]), NULL, &doc, &used, &msg);
        if (err != TG_INCOMPLETE)
            fail_msg("'%s' gives %s", texts[i], tg_err_name(err));
        assert_null(doc);
    }
    const char *const wrong[] = {"}", ",1", "tru", "[}", "nul{}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct json_doc *doc;
        size_t used;
        struct tg_errmsg msg = {""};
        assert_int_equal(json_doc_parse_first(wrong[i], strlen(wrong[i]), NULL, &doc, &used, &msg),
                         TG_SYNTAX);
    }
}

static void a_scan_finds_the_same_end_in_any_pieces(void **state)
{
    (void)state;
    const char *const texts[] = {" {\"a\\\"}\":[\"\\\\\",{}]} ", "\"a\\\\\" ", "[[],[\"]\"]]x",
                                 "123,", "true]"};
    const size_t ends[] = {19, 5, 10, 3, 4};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (size_t step = 1; step <= strlen(texts[i]); step++) {
            struct json_scan scan;
            json_scan_init(&scan);
            size_t at = 0;
            int err = TG_INCOMPLETE;
            while (err == TG_INCOMPLETE && at < strlen(texts[i])) {
                size_t left = strlen(texts[i]) - at;
                size_t used;
                err = json_scan_feed(&scan, texts[i] + at, left < step ? left : step, &used);
                at += used;
            }
            assert_int_equal(err, 0);
            assert_int_equal(at, ends[i]);
        }
    }
}

static void damaged_documents_are_refused_or_read_but_never_more(void **state)
{
    (void)state;
    const char *seed =
        "{\"k\":[1,-2.5e3,\"s\\u00e9\\n\",{\"x\":null,\"y\":[true,false]}],\"z\":\"\"}";
    size_t len = strlen(seed);
    struct random_seeded seeded;
    random_seeded_init(&seeded, 99);
    struct json_pool *pool = json_pool_open();
    for (int round = 0; round < 20000; round++) {
        /* Of its own size, so that the sanitizer sees a step beyond. */
        char *text = malloc(len);
        assert_non_null(text);
        memcpy(text, seed, len);
        uint64_t changes = 1 + random_below(&seeded.source, 4);
        for (uint64_t i = 0; i < changes; i++) {
            size_t at = (size_t)random_below(&seeded.source, len);
            if (random_below(&seeded.source, 2) == 0)
                text[at] = (char)random_u64(&seeded.source);
            else
                text[at] = seed[random_below(&seeded.source, len)];
        }
        size_t cut = len - (size_t)random_below(&seeded.source, 4);
        struct json_doc *doc = NULL;
        size_t used = 0;
        struct tg_errmsg msg;
        int err = round % 2 == 0 ? json_doc_parse(text, cut, pool, &doc, &msg)
                                 : json_doc_parse_first(text, cut, pool, &doc, &used, &msg);
        assert_true(used <= cut);
        assert_true((err == 0) == (doc != NULL));
        if (err == 0) {
            struct buf out = BUF_INIT;
            json_value_print(json_doc_root(doc), &out);
            assert_int_equal(out.err, 0);
            buf_close(&out);
        }
        free(text);
    }
    json_pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(numbers_keep_every_digit),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(a_zero_byte_is_no_end_of_text),
        cmocka_unit_test(members_and_elements_are_walked_in_order),
        cmocka_unit_test(a_row_is_read_in_one_call),
        cmocka_unit_test(a_pool_serves_documents_of_all_sizes_in_turn),
        cmocka_unit_test(depth_costs_no_stack),
        cmocka_unit_test(concatenated_documents_come_one_by_one),
        cmocka_unit_test(an_unfinished_first_document_is_incomplete),
        cmocka_unit_test(a_scan_finds_the_same_end_in_any_pieces),
        cmocka_unit_test(damaged_documents_are_refused_or_read_but_never_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
