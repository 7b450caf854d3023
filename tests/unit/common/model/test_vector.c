/* SPDX-License-Identifier: Apache-2.0 */
/* Appending, gathering and comparing in columns of all widths, with and without nulls. */
#include "common/model/vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct column_type TYPES[] = {
    {.kind = TYPE_TINYINT}, {.kind = TYPE_SMALLINT}, {.kind = TYPE_INT},
    {.kind = TYPE_BIGINT},  {.kind = TYPE_LARGEINT}, {.kind = TYPE_VARCHAR, .length = 100},
};

/* Row i of the test data: every seventh is null (if wanted), strings have 0..39 bytes. */
static void append_test_row(struct vector *vector, uint32_t i, bool with_nulls)
{
    if (with_nulls && i % 7 == 3) {
        assert_int_equal(vector_append_null(vector), 0);
    } else if (vector->width > 0) {
        __int128 value = (__int128)i * 7919 - 50;
        assert_int_equal(vector_append_fixed(vector, &value), 0);
    } else {
        char text[64];
        int len = snprintf(text, sizeof text, "%*u", (int)(i % 40), i);
        assert_int_equal(vector_append_bytes(vector, text, (size_t)(i % 40 == 0 ? 0 : len)), 0);
    }
}

static void fill(struct vector *vector, struct column_type type, uint32_t rows, bool with_nulls)
{
    vector_init(vector, type);
    for (uint32_t i = 0; i < rows; i++)
        append_test_row(vector, i, with_nulls);
    assert_int_equal(vector->rows, rows);
}

static void assert_same_row(const struct vector *a, uint32_t a_row, const struct vector *b,
                            uint32_t b_row)
{
    assert_int_equal(vector_is_null(a, a_row), vector_is_null(b, b_row));
    assert_int_equal(vector_compare(a, a_row, b, b_row), 0);
    if (a->width > 0)
        assert_memory_equal(vector_fixed(a, a_row), vector_fixed(b, b_row), a->width);
    else
        assert_true(slice_equal(vector_bytes(a, a_row), vector_bytes(b, b_row)));
}

static void test_appended_values_are_there(void **state)
{
    (void)state;
    struct vector v;
    vector_init(&v, (struct column_type){.kind = TYPE_INT});
    for (int32_t i = 0; i < 1000; i++)
        assert_int_equal(vector_append_fixed(&v, &i), 0);
    for (uint32_t i = 0; i < 1000; i++)
        assert_memory_equal(vector_fixed(&v, i), &i, 4);
    assert_false(v.has_nulls);
    assert_int_equal(vector_append_null(&v), 0);
    assert_false(vector_is_null(&v, 999));
    assert_true(vector_is_null(&v, 1000));
    assert_memory_equal(vector_fixed(&v, 1000), &(int32_t){0}, 4);
    assert_true(vector_memory(&v) >= 5 * 1001);
    vector_clear(&v);
    assert_int_equal(v.rows, 0);
    assert_int_equal(vector_append_fixed(&v, &(int32_t){5}), 0);
    assert_int_equal(vector_append_null(&v), 0);
    assert_false(vector_is_null(&v, 0));
    assert_true(vector_is_null(&v, 1));
    vector_close(&v);
    assert_int_equal(v.capacity, 0);
}

static void test_bytes_keep_their_borders(void **state)
{
    (void)state;
    struct vector v;
    vector_init(&v, (struct column_type){.kind = TYPE_STRING});
    assert_int_equal(vector_append_bytes(&v, "", 0), 0);
    assert_int_equal(vector_append_bytes(&v, "a\0b", 3), 0);
    assert_int_equal(vector_append_null(&v), 0);
    assert_int_equal(vector_append_bytes(&v, "xyz", 3), 0);
    assert_int_equal(vector_bytes(&v, 0).len, 0);
    assert_true(slice_equal(vector_bytes(&v, 1), slice_of("a\0b", 3)));
    assert_int_equal(vector_bytes(&v, 2).len, 0);
    assert_true(vector_is_null(&v, 2));
    assert_true(slice_equal_str(vector_bytes(&v, 3), "xyz"));
    assert_true(v.bytes_capacity >= v.bytes_len + 16);
    vector_close(&v);
}

static void test_gather_takes_the_rows_in_the_given_order(void **state)
{
    (void)state;
    enum { ROWS = 500 };
    for (size_t t = 0; t < COUNT(TYPES); t++) {
        for (int nulls = 0; nulls < 4; nulls++) {
            struct vector from, to;
            uint32_t order[ROWS * 2];
            fill(&from, TYPES[t], ROWS, nulls & 1);
            fill(&to, TYPES[t], 10, nulls & 2);
            for (uint32_t i = 0; i < ROWS * 2; i++)
                order[i] = i * 7777 % ROWS;
            assert_int_equal(vector_gather(&to, &from, order, ROWS * 2), 0);
            assert_int_equal(vector_gather(&to, &from, order, 0), 0);
            assert_int_equal(to.rows, 10 + ROWS * 2);
            for (uint32_t i = 0; i < ROWS * 2; i++)
                assert_same_row(&to, 10 + i, &from, order[i]);
            for (uint32_t i = 0; i < 10; i++)
                assert_int_equal(vector_is_null(&to, i), (nulls & 2) && i % 7 == 3);
            vector_close(&from);
            vector_close(&to);
        }
    }
}

static void test_a_range_is_appended_as_it_is(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(TYPES); t++) {
        for (int nulls = 0; nulls < 4; nulls++) {
            struct vector from, to, single;
            fill(&from, TYPES[t], 300, nulls & 1);
            fill(&to, TYPES[t], 10, nulls & 2);
            fill(&single, TYPES[t], 10, nulls & 2);
            assert_int_equal(vector_append_range(&to, &from, 0, 100), 0);
            assert_int_equal(vector_append_range(&to, &from, 150, 150), 0);
            assert_int_equal(vector_append_range(&to, &from, 300, 0), 0);
            for (uint32_t i = 0; i < 300; i++) {
                if (i < 100 || i >= 150)
                    assert_int_equal(vector_append_row(&single, &from, i), 0);
            }
            assert_int_equal(to.rows, single.rows);
            for (uint32_t i = 0; i < to.rows; i++)
                assert_same_row(&to, i, &single, i);
            vector_close(&from);
            vector_close(&to);
            vector_close(&single);
        }
    }
}

static void test_nulls_come_first_and_equal_each_other(void **state)
{
    (void)state;
    struct vector v;
    vector_init(&v, (struct column_type){.kind = TYPE_BIGINT});
    assert_int_equal(vector_append_fixed(&v, &(int64_t){INT64_MIN}), 0);
    assert_int_equal(vector_append_null(&v), 0);
    assert_int_equal(vector_append_fixed(&v, &(int64_t){3}), 0);
    assert_true(vector_compare(&v, 1, &v, 0) < 0);
    assert_true(vector_compare(&v, 0, &v, 1) > 0);
    assert_int_equal(vector_compare(&v, 1, &v, 1), 0);
    assert_true(vector_compare(&v, 0, &v, 2) < 0);
    vector_close(&v);
}

static void test_a_vector_has_an_end(void **state)
{
    (void)state;
    struct vector v;
    vector_init(&v, (struct column_type){.kind = TYPE_STRING});
    assert_int_equal(vector_reserve(&v, VECTOR_ROWS_MAX + 1, 0), TG_LIMIT);
    assert_int_equal(vector_reserve(&v, 1, (size_t)VECTOR_BYTES_MAX + 1), TG_LIMIT);
    assert_int_equal(vector_append_bytes(&v, "x", 1), 0);
    assert_int_equal(vector_reserve(&v, VECTOR_ROWS_MAX, 0), TG_LIMIT);
    assert_int_equal(vector_reserve(&v, 1, VECTOR_BYTES_MAX), TG_LIMIT);
    vector_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appended_values_are_there),
        cmocka_unit_test(test_bytes_keep_their_borders),
        cmocka_unit_test(test_gather_takes_the_rows_in_the_given_order),
        cmocka_unit_test(test_a_range_is_appended_as_it_is),
        cmocka_unit_test(test_nulls_come_first_and_equal_each_other),
        cmocka_unit_test(test_a_vector_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
