/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of fields give what type_parse gives field by field, with nulls and bad fields marked. */
#include "common/model/type_convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T(k)       ((struct column_type){.kind = TYPE_##k})
#define DEC(p, s)  ((struct column_type){.kind = TYPE_DECIMAL, .precision = (p), .scale = (s)})
#define DTIME(s)   ((struct column_type){.kind = TYPE_DATETIME, .scale = (s)})
#define VARCHAR(n) ((struct column_type){.kind = TYPE_VARCHAR, .length = (n)})
#define COUNT(a)   (sizeof(a) / sizeof *(a))

enum { FIELDS_MAX = 64, READABLE = 16 };

/* Fields laid one after another, as between separators. */
struct fields {
    char *text;
    uint32_t begins[FIELDS_MAX];
    uint32_t ends[FIELDS_MAX];
    uint32_t count;
};

static void fields_make(struct fields *fields, const char *const *texts, uint32_t count)
{
    size_t len = 0, at = 0;
    for (uint32_t i = 0; i < count; i++)
        len += strlen(texts[i]) + 1;
    fields->text = malloc(len + READABLE);
    memset(fields->text, '7',
           len + READABLE); /* digits behind the end must not become part of a value */
    for (uint32_t i = 0; i < count; i++) {
        size_t n = strlen(texts[i]);
        memcpy(fields->text + at, texts[i], n);
        fields->begins[i] = (uint32_t)at;
        fields->ends[i] = (uint32_t)(at + n);
        fields->text[at + n] = i % 2 ? ',' : '9';
        at += n + 1;
    }
    fields->count = count;
}

static const char *const ODD_TEXTS[] = {
    "1",
    "0",
    "-1",
    "+1",
    "12",
    "127",
    "128",
    "-128",
    "-129",
    "1234567",
    "12345678",
    "123456789",
    "1234567890123456",
    "12345678901234567",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "170141183460469231731687303715884105727",
    "",
    "\\N",
    "-",
    ".",
    "3.12",
    "-0.5",
    "1.",
    ".5",
    "12345.67",
    "1234567.8",
    "12345678.9",
    "123456789012.34",
    "1234567890.1234567",
    "99999999999999999",
    "1e3",
    "nan",
    "inf",
    " 5 ",
    "x",
    "12a",
    "true",
    "FALSE",
    "2024-02-29",
    "2023-02-29",
    "20240102",
    "2024-1-2",
    "2024-01-02 03:04:05",
    "2024-01-02T03:04:05.1",
    "2024-01-02 03:04:05.123456",
    "2024-01-02 03:04:05.9999999",
    "2024-01-02T03:04:05Z",
    "2024-01-02 03:04:05+08:00",
    "2024-01-02 99:04:05",
    "\\n",
    "\\NN",
};

static void check_column(struct column_type type, const struct fields *fields)
{
    struct vector out;
    uint8_t bad[FIELDS_MAX] = {0};
    uint64_t expected_flags = 0;
    vector_init(&out, type);
    uint64_t flags = type_convert_column(type, fields->text, fields->begins, fields->ends, 1,
                                         fields->count, 0, &out, bad);
    assert_int_equal(out.rows, fields->count);
    for (uint32_t i = 0; i < fields->count; i++) {
        const char *p = fields->text + fields->begins[i];
        size_t len = fields->ends[i] - fields->begins[i];
        union type_value value;
        bool null = len == 2 && memcmp(p, "\\N", 2) == 0;
        bool parsed = !null && type_parse(type, p, len, 0, &value) == TYPE_PARSED;
        if (vector_is_null(&out, i) != !parsed || bad[i] != (null || parsed ? 0 : 1))
            fail_msg("kind %d '%.*s'", type.kind, (int)len, p);
        if (parsed && type_compare(type, &value, vector_fixed(&out, i)) != 0)
            fail_msg("kind %d '%.*s': another value", type.kind, (int)len, p);
        expected_flags |= parsed ? 0 : CONVERT_NULL;
        expected_flags |= bad[i] ? CONVERT_BAD : 0;
    }
    assert_int_equal(flags, expected_flags);
    vector_close(&out);
}

static void test_a_column_equals_its_fields_read_one_by_one(void **state)
{
    (void)state;
    static const struct column_type TYPES[] = {
        T(BOOLEAN), T(TINYINT),  T(SMALLINT), T(INT),     T(BIGINT),  T(LARGEINT),
        T(FLOAT),   T(DOUBLE),   DEC(4, 2),   DEC(15, 2), DEC(18, 6), DEC(27, 9),
        DEC(38, 0), DEC(38, 30), T(DATE),     DTIME(0),   DTIME(3),   DTIME(6),
    };
    struct fields fields;
    fields_make(&fields, ODD_TEXTS, COUNT(ODD_TEXTS));
    for (size_t t = 0; t < COUNT(TYPES); t++)
        check_column(TYPES[t], &fields);
    free(fields.text);
}

static void test_a_clean_column_has_no_nulls_and_no_flags(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"5", "6", "-7"};
    struct fields fields;
    struct vector out;
    fields_make(&fields, TEXTS, 3);
    vector_init(&out, T(INT));
    assert_int_equal(
        type_convert_column(T(INT), fields.text, fields.begins, fields.ends, 1, 3, 0, &out, NULL),
        0);
    assert_false(out.has_nulls);
    assert_memory_equal(out.fixed, ((int32_t[]){5, 6, -7}), 12);
    assert_int_equal(
        type_convert_column(T(INT), fields.text, fields.begins, fields.ends, 1, 0, 0, &out, NULL),
        0);
    assert_int_equal(out.rows, 3);
    vector_close(&out);
    free(fields.text);
}

/* Every odd text alone among plain ones: a tile of rows that is read in one go must notice it
 * wherever it stands, and what comes before and behind must stay right. */
static void test_one_odd_field_is_noticed_among_plain_ones(void **state)
{
    static const struct column_type types[] = {
        {.kind = TYPE_TINYINT},
        {.kind = TYPE_SMALLINT},
        {.kind = TYPE_INT},
        {.kind = TYPE_BIGINT},
        {.kind = TYPE_LARGEINT},
        {.kind = TYPE_DECIMAL, .precision = 4, .scale = 2},
        {.kind = TYPE_DECIMAL, .precision = 9, .scale = 7},
        {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2},
        {.kind = TYPE_DECIMAL, .precision = 18, .scale = 8},
        {.kind = TYPE_DECIMAL, .precision = 30, .scale = 1},
    };
    enum { MANY = 700 };
    static const uint32_t places[] = {0, 1, 255, 256, 511, 512, MANY - 1};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t o = 0; o < sizeof ODD_TEXTS / sizeof ODD_TEXTS[0]; o++) {
            size_t place = places[o % (sizeof places / sizeof places[0])];
            bool decimal = types[t].kind == TYPE_DECIMAL;
            char plain[16];
            struct buf text = BUF_INIT;
            uint32_t begins[MANY], ends[MANY];
            uint8_t bad[MANY] = {0};
            struct vector out;

            snprintf(plain, sizeof plain, decimal ? "1.%0*d" : "12", (int)types[t].scale, 5);
            for (uint32_t i = 0; i < MANY; i++) {
                begins[i] = (uint32_t)text.len;
                buf_append_str(&text, i == place ? ODD_TEXTS[o] : plain);
                ends[i] = (uint32_t)text.len;
                buf_append_u8(&text, i % 2 == 0 ? ',' : '9');
            }
            buf_append_str(&text, "7777777777777777");
            vector_init(&out, types[t]);
            (void)type_convert_column(types[t], (const char *)text.data, begins, ends, 1, MANY, 0,
                                      &out, bad);
            assert_int_equal(out.rows, MANY);
            for (uint32_t i = 0; i < MANY; i++) {
                const char *one = i == place ? ODD_TEXTS[o] : plain;
                union type_value value = {0};
                bool null = strcmp(one, "\\N") == 0;
                bool parsed =
                    !null && type_parse(types[t], one, strlen(one), 0, &value) == TYPE_PARSED;
                assert_int_equal(vector_is_null(&out, i), !parsed);
                assert_int_equal(bad[i] != 0, !parsed && !null);
                if (parsed)
                    assert_memory_equal(vector_fixed(&out, i), &value, out.width);
            }
            vector_close(&out);
            buf_close(&text);
        }
}

static void test_the_stride_picks_one_column_of_a_table_of_separators(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"1", "a", "2", "bb", "\\N", "ccc", "4", ""};
    struct fields fields;
    struct vector numbers, names;
    uint8_t bad[4] = {0};
    fields_make(&fields, TEXTS, 8);
    vector_init(&numbers, T(SMALLINT));
    vector_init(&names, VARCHAR(9));
    assert_int_equal(vector_append_fixed(&numbers, &(int16_t){100}), 0);
    assert_int_equal(type_convert_column(T(SMALLINT), fields.text, fields.begins, fields.ends, 2, 4,
                                         0, &numbers, bad),
                     CONVERT_NULL);
    assert_int_equal(type_convert_column(VARCHAR(9), fields.text, fields.begins + 1,
                                         fields.ends + 1, 2, 4, 0, &names, bad),
                     0);
    assert_int_equal(numbers.rows, 5);
    assert_memory_equal(numbers.fixed, ((int16_t[]){100, 1, 2, 0, 4}), 10);
    assert_memory_equal(numbers.nulls, ((uint8_t[]){0, 0, 0, 1, 0}), 5);
    assert_true(slice_equal_str(vector_bytes(&names, 0), "a"));
    assert_true(slice_equal_str(vector_bytes(&names, 2), "ccc"));
    assert_true(slice_equal_str(vector_bytes(&names, 3), ""));
    assert_false(names.has_nulls);
    vector_close(&numbers);
    vector_close(&names);
    free(fields.text);
}

static void test_long_strings_are_cut_between_characters_and_marked(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"ok", "too long", "\xC3\xA4\xC3\xB6", "\\N", "", "a"};
    struct fields fields;
    struct vector out;
    uint8_t bad[6] = {0};
    fields_make(&fields, TEXTS, 6);
    vector_init(&out, VARCHAR(3));
    assert_int_equal(type_convert_column(VARCHAR(3), fields.text, fields.begins, fields.ends, 1, 6,
                                         0, &out, bad),
                     CONVERT_BAD | CONVERT_NULL);
    assert_memory_equal(bad, ((uint8_t[]){0, 2, 2, 0, 0, 0}), 6);
    assert_true(slice_equal_str(vector_bytes(&out, 0), "ok"));
    assert_true(slice_equal_str(vector_bytes(&out, 1), "too"));
    assert_true(slice_equal_str(vector_bytes(&out, 2), "\xC3\xA4"));
    assert_true(vector_is_null(&out, 3));
    assert_false(vector_is_null(&out, 4));
    assert_true(slice_equal_str(vector_bytes(&out, 5), "a"));
    vector_close(&out);

    /* NULL's two bytes do not have to fit the column. */
    vector_init(&out, VARCHAR(1));
    assert_int_equal(type_convert_column(VARCHAR(1), fields.text, fields.begins + 3,
                                         fields.ends + 3, 1, 1, 0, &out, bad),
                     CONVERT_NULL);
    vector_close(&out);
    free(fields.text);
}

static void test_bad_json_becomes_null(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"{\"a\": 1}", "{", "\\N", "", "[1,2,3,4,5,6,7,8,9,10]"};
    struct fields fields;
    struct vector out;
    uint8_t bad[5] = {0};
    fields_make(&fields, TEXTS, 5);
    vector_init(&out, T(JSON));
    assert_int_equal(
        type_convert_column(T(JSON), fields.text, fields.begins, fields.ends, 1, 5, 0, &out, bad),
        CONVERT_BAD | CONVERT_NULL);
    assert_memory_equal(bad, ((uint8_t[]){0, 1, 0, 1, 0}), 5);
    assert_memory_equal(out.nulls, ((uint8_t[]){0, 1, 1, 1, 0}), 5);
    assert_true(slice_equal_str(vector_bytes(&out, 0), "{\"a\": 1}"));
    assert_true(slice_equal_str(vector_bytes(&out, 4), TEXTS[4]));
    vector_close(&out);
    free(fields.text);
}

static void test_a_full_vector_takes_nothing(void **state)
{
    (void)state;
    static const uint32_t BEGINS[1] = {0}, ENDS[1] = {0};
    struct vector out;
    vector_init(&out, T(TINYINT));
    assert_int_equal(
        type_convert_column(T(TINYINT), "", BEGINS, ENDS, 0, VECTOR_ROWS_MAX + 1, 0, &out, NULL),
        CONVERT_LIMIT);
    assert_int_equal(out.rows, 0);
    vector_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_column_equals_its_fields_read_one_by_one),
        cmocka_unit_test(test_a_clean_column_has_no_nulls_and_no_flags),
        cmocka_unit_test(test_one_odd_field_is_noticed_among_plain_ones),
        cmocka_unit_test(test_the_stride_picks_one_column_of_a_table_of_separators),
        cmocka_unit_test(test_long_strings_are_cut_between_characters_and_marked),
        cmocka_unit_test(test_bad_json_becomes_null),
        cmocka_unit_test(test_a_full_vector_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
