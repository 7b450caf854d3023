/* SPDX-License-Identifier: Apache-2.0 */
/* Names, widths, bounds and order of the types, and how single values print. */
#include "common/model/types.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define T(k)       ((struct column_type){.kind = TYPE_##k})
#define DEC(p, s)  ((struct column_type){.kind = TYPE_DECIMAL, .precision = (p), .scale = (s)})
#define DTIME(s)   ((struct column_type){.kind = TYPE_DATETIME, .scale = (s)})
#define TEXT(k, n) ((struct column_type){.kind = TYPE_##k, .length = (n)})
#define COUNT(a)   (sizeof(a) / sizeof *(a))

static void test_each_type_has_its_names_and_width(void **state)
{
    (void)state;
    static const struct {
        struct column_type type;
        const char *name, *schema_name;
        unsigned width;
        bool bare;
    } ROWS[] = {
        {T(BOOLEAN), "BOOLEAN", "BOOLEAN", 1, true},
        {T(TINYINT), "TINYINT", "TINYINT", 1, true},
        {T(SMALLINT), "SMALLINT", "SMALLINT", 2, true},
        {T(INT), "INT", "INT", 4, true},
        {T(BIGINT), "BIGINT", "BIGINT", 8, true},
        {T(LARGEINT), "LARGEINT", "LARGEINT", 16, true},
        {T(FLOAT), "FLOAT", "FLOAT", 4, true},
        {T(DOUBLE), "DOUBLE", "DOUBLE", 8, true},
        {DEC(9, 2), "DECIMAL(9,2)", "DECIMAL32", 8, true},
        {DEC(18, 0), "DECIMAL(18,0)", "DECIMAL64", 8, true},
        {DEC(19, 3), "DECIMAL(19,3)", "DECIMAL128I", 16, true},
        {T(DATE), "DATE", "DATEV2", 4, false},
        {DTIME(0), "DATETIME", "DATETIMEV2", 8, false},
        {DTIME(3), "DATETIME(3)", "DATETIMEV2", 8, false},
        {TEXT(CHAR, 5), "CHAR(5)", "CHAR", 0, false},
        {TEXT(VARCHAR, 20), "VARCHAR(20)", "VARCHAR", 0, false},
        {T(STRING), "STRING", "STRING", 0, false},
        {T(JSON), "JSON", "JSONB", 0, false},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct buf name = BUF_INIT;
        type_print_name(ROWS[i].type, &name);
        assert_string_equal(buf_cstr(&name), ROWS[i].name);
        assert_string_equal(type_schema_name(ROWS[i].type), ROWS[i].schema_name);
        assert_int_equal(type_width(ROWS[i].type), ROWS[i].width);
        assert_int_equal(type_is_bytes(ROWS[i].type), ROWS[i].width == 0);
        assert_int_equal(type_json_is_bare(ROWS[i].type), ROWS[i].bare);
        assert_int_equal(type_validate(ROWS[i].type, NULL), 0);
        buf_close(&name);
    }
}

static void test_parameters_out_of_bounds_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        struct column_type type;
        const char *reason;
    } ROWS[] = {
        {{.kind = 0}, "unknown column type number 0"},
        {{.kind = 99}, "unknown column type number 99"},
        {DEC(0, 0), "DECIMAL: precision 0 is not in 1..38"},
        {DEC(39, 0), "DECIMAL: precision 39 is not in 1..38"},
        {DEC(5, 6), "DECIMAL(5,6): scale is larger than precision"},
        {DTIME(7), "DATETIME: 7 digits of fraction are not in 0..6"},
        {TEXT(CHAR, 0), "CHAR: length 0 is not in 1..255 bytes"},
        {TEXT(CHAR, 256), "CHAR: length 256 is not in 1..255 bytes"},
        {TEXT(VARCHAR, 65534), "VARCHAR: length 65534 is not in 1..65533 bytes"},
    };
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct tg_errmsg msg = {""};
        assert_int_equal(type_validate(ROWS[i].type, &msg), TG_INVALID);
        assert_string_equal(msg.text, ROWS[i].reason);
    }
}

static void assert_order(struct column_type type, const void *smaller, const void *larger)
{
    assert_true(type_compare(type, smaller, larger) < 0);
    assert_true(type_compare(type, larger, smaller) > 0);
    assert_int_equal(type_compare(type, smaller, smaller), 0);
}

static void test_values_order_by_their_meaning(void **state)
{
    (void)state;
    assert_order(T(TINYINT), &(int8_t){-1}, &(int8_t){1});
    assert_order(T(SMALLINT), &(int16_t){-300}, &(int16_t){2});
    assert_order(T(INT), &(int32_t){INT32_MIN}, &(int32_t){INT32_MAX});
    assert_order(T(BIGINT), &(int64_t){INT64_MIN}, &(int64_t){0});
    assert_order(T(LARGEINT), &(__int128){(__int128)INT64_MIN * 5}, &(__int128){-1});
    assert_order(DEC(9, 2), &(int64_t){-5}, &(int64_t){5});
    assert_order(T(DATE), &(uint32_t){type_pack_date(1999, 12, 31)},
                 &(uint32_t){type_pack_date(2000, 1, 1)});
    assert_order(DTIME(6),
                 &(int64_t){type_pack_datetime(type_pack_date(1999, 12, 31), 86399999999)},
                 &(int64_t){type_pack_datetime(type_pack_date(2000, 1, 1), 0)});
    assert_order(T(DOUBLE), &(double){-1.5}, &(double){1.5});
    assert_order(T(DOUBLE), &(double){INFINITY}, &(double){NAN});
    assert_order(T(FLOAT), &(float){-INFINITY}, &(float){NAN});
    assert_int_equal(type_compare(T(DOUBLE), &(double){NAN}, &(double){-NAN}), 0);
    assert_int_equal(type_compare(T(DOUBLE), &(double){-0.0}, &(double){0.0}), 0);
}

static void assert_double_prints(double value, const char *expected)
{
    char text[TYPE_TEXT_MAX];
    type_print(T(DOUBLE), &value, text);
    assert_string_equal(text, expected);
}

static void test_doubles_print_with_as_few_digits_as_read_back(void **state)
{
    (void)state;
    assert_double_prints(0.1, "0.1");
    assert_double_prints(0.1 + 0.2, "0.30000000000000004");
    assert_double_prints(1e14, "100000000000000");
    assert_double_prints(1e15, "1e+15");
    assert_double_prints(-1234.5, "-1234.5");
    assert_double_prints(0.0001, "0.0001");
    assert_double_prints(0.00001, "1e-05");
    assert_double_prints(1.0 / 3, "0.3333333333333333");
    assert_double_prints(NAN, "nan");
    assert_double_prints(-INFINITY, "-inf");
}

static void assert_int_prints(int64_t value)
{
    char text[TYPE_TEXT_MAX];
    char expected[TYPE_TEXT_MAX];
    snprintf(expected, sizeof expected, "%" PRId64, value);
    type_print(T(BIGINT), &value, text);
    assert_string_equal(text, expected);
    __int128 wide = value;
    type_print(T(LARGEINT), &wide, text);
    assert_string_equal(text, expected);
    /* The same digits with a dot in every place. */
    for (uint8_t scale = 1; scale <= 18; scale++) {
        uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        uint64_t power = 1;
        for (unsigned i = 0; i < scale; i++)
            power *= 10;
        snprintf(expected, sizeof expected, "%s%" PRIu64 ".%0*" PRIu64, value < 0 ? "-" : "",
                 magnitude / power, (int)scale, magnitude % power);
        type_print(DEC(18, scale), &value, text);
        assert_string_equal(text, expected);
        type_print(DEC(38, scale), &wide, text);
        assert_string_equal(text, expected);
    }
}

static void test_integers_and_decimals_print_at_every_length(void **state)
{
    (void)state;
    assert_int_prints(INT64_MIN);
    assert_int_prints(INT64_MAX);
    for (int64_t power = 1;; power *= 10) {
        for (int64_t near = power - 1; near <= power + 1; near++) {
            assert_int_prints(near);
            assert_int_prints(-near);
        }
        for (int64_t digit = 2; digit <= 9 && power <= INT64_MAX / 10; digit++)
            assert_int_prints(digit * power + digit);
        if (power > INT64_MAX / 10)
            break;
    }
    char text[TYPE_TEXT_MAX];
    __int128 wide = (__int128)UINT64_MAX + 1;
    type_print(T(LARGEINT), &wide, text);
    assert_string_equal(text, "18446744073709551616");
    wide = -wide * 1000000000000;
    type_print(DEC(38, 30), &wide, text);
    assert_string_equal(text, "-18.446744073709551616000000000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_type_has_its_names_and_width),
        cmocka_unit_test(test_parameters_out_of_bounds_are_refused_with_a_reason),
        cmocka_unit_test(test_values_order_by_their_meaning),
        cmocka_unit_test(test_integers_and_decimals_print_at_every_length),
        cmocka_unit_test(test_doubles_print_with_as_few_digits_as_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
