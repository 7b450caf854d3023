/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to text: every type, nulls, quotes, what JSON cannot say as a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "common/base/json.h"
#include "participant/read/result_writer.h"
#include "tests/lib/sample_columns.h"

static void append_text(struct vector *vector, const char *text)
{
    union type_value value;

    if (text == NULL)
        assert_int_equal(vector_append_null(vector), 0);
    else if (type_is_bytes(vector->type))
        assert_int_equal(vector_append_bytes(vector, text, strlen(text)), 0);
    else {
        assert_int_equal(type_parse(vector->type, text, strlen(text), 0, &value), TYPE_PARSED);
        assert_int_equal(vector_append_fixed(vector, &value), 0);
    }
}

static void expect(struct column_type type, const char *text, enum result_format format,
                   const char *expected)
{
    struct result_column column = {.name = "c", .type = type};
    struct result_writer writer;
    struct vector vector;
    struct buf out = BUF_INIT;

    vector_init(&vector, type);
    append_text(&vector, text);
    assert_int_equal(result_writer_open(&writer, format, &column, 1), 0);
    result_writer_row(&writer, &vector, 0, NULL, &out);
    assert_string_equal(buf_cstr(&out), expected);
    result_writer_close(&writer);
    vector_close(&vector);
    buf_close(&out);
}

static void test_values_as_json(void **state)
{
    static const struct {
        struct column_type type;
        const char *text;
        const char *expected;
    } cases[] = {
        {{.kind = TYPE_BOOLEAN}, "1", "{\"c\":1}\n"},
        {{.kind = TYPE_TINYINT}, "-128", "{\"c\":-128}\n"},
        {{.kind = TYPE_BIGINT}, "9223372036854775807", "{\"c\":9223372036854775807}\n"},
        {{.kind = TYPE_LARGEINT},
         "-170141183460469231731687303715884105728",
         "{\"c\":-170141183460469231731687303715884105728}\n"},
        {{.kind = TYPE_DOUBLE}, "0.1", "{\"c\":0.1}\n"},
        {{.kind = TYPE_DOUBLE}, "inf", "{\"c\":\"inf\"}\n"},
        {{.kind = TYPE_DOUBLE}, "-inf", "{\"c\":\"-inf\"}\n"},
        {{.kind = TYPE_FLOAT}, "nan", "{\"c\":\"nan\"}\n"},
        {{.kind = TYPE_DECIMAL, .precision = 10, .scale = 2}, "-0.05", "{\"c\":-0.05}\n"},
        {{.kind = TYPE_DATE}, "2026-01-31", "{\"c\":\"2026-01-31\"}\n"},
        {{.kind = TYPE_DATETIME, .scale = 3},
         "2026-01-31 12:00:00.125",
         "{\"c\":\"2026-01-31 12:00:00.125\"}\n"},
        {{.kind = TYPE_VARCHAR, .length = 20},
         "a\"b\\c\n\x01",
         "{\"c\":\"a\\\"b\\\\c\\n\\u0001\"}\n"},
        {{.kind = TYPE_VARCHAR, .length = 20}, "", "{\"c\":\"\"}\n"},
        {{.kind = TYPE_STRING}, "gr\xC3\xBC\xC3\x9F", "{\"c\":\"gr\xC3\xBC\xC3\x9F\"}\n"},
        {{.kind = TYPE_STRING}, "bad \xFF byte", "{\"c\":\"bad \xEF\xBF\xBD byte\"}\n"},
        {{.kind = TYPE_JSON}, "{\"a\": [1, \"x\"]}", "{\"c\":{\"a\": [1, \"x\"]}}\n"},
        {{.kind = TYPE_JSON}, "{\n \"a\":\r\n 1}", "{\"c\":{  \"a\":   1}}\n"},
        {{.kind = TYPE_JSON}, NULL, "{\"c\":null}\n"},
        {{.kind = TYPE_INT}, NULL, "{\"c\":null}\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(cases[i].type, cases[i].text, RESULT_JSON, cases[i].expected);
}

static void test_values_as_csv(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"plain", "plain\n"},
        {"two words", "two words\n"},
        {"", "\"\"\n"}, /* an empty string is not a null */
        {NULL, "\\N\n"},
        {"\\N", "\"\\N\"\n"},
        {"a,b", "\"a,b\"\n"},
        {"say \"hi\"", "\"say \"\"hi\"\"\"\n"},
        {"two\nlines", "\"two\nlines\"\n"},
        {"\r", "\"\r\"\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect((struct column_type){.kind = TYPE_STRING}, cases[i].text, RESULT_CSV,
               cases[i].expected);
    expect((struct column_type){.kind = TYPE_DOUBLE}, "inf", RESULT_CSV, "inf\n");
    expect((struct column_type){.kind = TYPE_DATE}, "2026-01-31", RESULT_CSV, "2026-01-31\n");
    expect((struct column_type){.kind = TYPE_INT}, NULL, RESULT_CSV, "\\N\n");
    expect((struct column_type){.kind = TYPE_JSON}, "{\"a\":1}", RESULT_CSV, "\"{\"\"a\"\":1}\"\n");
}

static void test_prefixes_stand_before_the_columns(void **state)
{
    const struct result_column columns[] = {{"a\"b", {.kind = TYPE_INT}},
                                            {"c", {.kind = TYPE_VARCHAR, .length = 4}}};
    const struct result_prefix prefix = {"\"_version\":7,", "7,"};
    struct vector vectors[2];
    struct result_writer writer;
    struct buf out = BUF_INIT;

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        vector_init(&vectors[i], columns[i].type);
    append_text(&vectors[0], "1");
    append_text(&vectors[0], "2");
    append_text(&vectors[1], "x");
    append_text(&vectors[1], NULL);
    assert_int_equal(result_writer_open(&writer, RESULT_JSON, columns, 2), 0);
    result_writer_row(&writer, vectors, 1, &prefix, &out);
    result_writer_row(&writer, vectors, 0, NULL, &out);
    assert_string_equal(buf_cstr(&out), "{\"_version\":7,\"a\\\"b\":2,\"c\":null}\n"
                                        "{\"a\\\"b\":1,\"c\":\"x\"}\n");
    result_writer_close(&writer);
    buf_clear(&out);
    assert_int_equal(result_writer_open(&writer, RESULT_CSV, columns, 2), 0);
    result_writer_row(&writer, vectors, 0, &prefix, &out);
    assert_string_equal(buf_cstr(&out), "7,1,x\n");
    result_writer_close(&writer);
    for (unsigned i = 0; i < 2; i++)
        vector_close(&vectors[i]);
    buf_close(&out);
}

/* Whatever is stored, a line of JSON stays one line, and is JSON. */
static void test_every_type_gives_lines_that_parse(void **state)
{
    (void)state;
    for (unsigned t = 0; t < SAMPLE_TYPES; t++) {
        struct result_column column = {.name = "c", .type = sample_types[t]};
        struct result_writer writer;
        struct vector vector;

        if (sample_types[t].kind == TYPE_JSON)
            continue; /* its values are made of any bytes here */
        vector_init(&vector, sample_types[t]);
        sample_column(&vector, type_is_bytes(sample_types[t]) ? SAMPLE_WIDE : SAMPLE_SMALL,
                      SAMPLE_SOME_NULLS, 300, t);
        assert_int_equal(result_writer_open(&writer, RESULT_JSON, &column, 1), 0);
        for (uint32_t row = 0; row < vector.rows; row++) {
            struct buf out = BUF_INIT;
            struct json_doc *doc;

            result_writer_row(&writer, &vector, row, NULL, &out);
            assert_ptr_equal(memchr(out.data, '\n', out.len), out.data + out.len - 1);
            assert_int_equal(json_doc_parse(out.data, out.len, NULL, &doc, NULL), 0);
            json_doc_close(doc);
            buf_close(&out);
        }
        result_writer_close(&writer);
        vector_close(&vector);
    }
}

/* A special character in every place of texts of every length around the words they are copied
 * in, with its like behind the text, where it must not matter. */
static void test_special_characters_are_seen_in_every_place(void **state)
{
    static const char specials[] = {',', '"', '\n', '\r', '\\', '\t', 0x1F, 'a', '\x7F'};
    struct column_type type = {.kind = TYPE_STRING};
    (void)state;
    for (size_t c = 0; c < sizeof specials; c++)
        for (size_t len = 1; len <= 19; len++)
            for (size_t at = 0; at < len; at++) {
                char text[20];
                struct buf json = BUF_INIT;
                struct buf csv = BUF_INIT;
                struct vector vector;
                struct result_column column = {.name = "c", .type = type};
                struct result_writer writer;

                memset(text, 'x', len);
                text[at] = specials[c];
                text[len] = 0;
                vector_init(&vector, type);
                append_text(&vector, text);
                append_text(&vector, ",,\"\"\n\n\\\\");
                buf_append_str(&json, "{\"c\":");
                json_append_cstr(&json, text);
                buf_append_str(&json, "}\n");
                bool quoted = strchr(",\"\n\r", specials[c]) != NULL;
                buf_append_str(&csv, quoted ? "\"" : "");
                for (size_t i = 0; i < len; i++) {
                    if (text[i] == '"')
                        buf_append_u8(&csv, '"');
                    buf_append_u8(&csv, (uint8_t)text[i]);
                }
                buf_append_str(&csv, quoted ? "\"\n" : "\n");
                for (unsigned format = 0; format < 2; format++) {
                    struct buf out = BUF_INIT;
                    assert_int_equal(result_writer_open(&writer,
                                                        format == 0 ? RESULT_JSON : RESULT_CSV,
                                                        &column, 1),
                                     0);
                    result_writer_row(&writer, &vector, 0, NULL, &out);
                    assert_string_equal(buf_cstr(&out), buf_cstr(format == 0 ? &json : &csv));
                    result_writer_close(&writer);
                    buf_close(&out);
                }
                vector_close(&vector);
                buf_close(&json);
                buf_close(&csv);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_as_json),
        cmocka_unit_test(test_values_as_csv),
        cmocka_unit_test(test_prefixes_stand_before_the_columns),
        cmocka_unit_test(test_every_type_gives_lines_that_parse),
        cmocka_unit_test(test_special_characters_are_seen_in_every_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
