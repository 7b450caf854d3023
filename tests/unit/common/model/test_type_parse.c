/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of every type and the values they become, by what reads would print. */
#include "common/model/types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T(k)      ((struct column_type){.kind = TYPE_##k})
#define DEC(p, s) ((struct column_type){.kind = TYPE_DECIMAL, .precision = (p), .scale = (s)})
#define DTIME(s)  ((struct column_type){.kind = TYPE_DATETIME, .scale = (s)})
#define HOURS(n)  ((int64_t)(n)*3600 * 1000000)
#define COUNT(a)  (sizeof(a) / sizeof *(a))

struct sample {
    struct column_type type;
    const char *text;
    const char *printed; /* NULL: bad */
};

static void check_sample(const struct sample *sample, int64_t tz_offset_us)
{
    /* An exact copy, so that a sanitizer sees any read behind the text. */
    size_t len = strlen(sample->text);
    char *text = malloc(len > 0 ? len : 1);
    union type_value value;
    char printed[TYPE_TEXT_MAX] = "";
    memcpy(text, sample->text, len);
    enum type_parse_result result = type_parse(sample->type, text, len, tz_offset_us, &value);
    free(text);
    if (result == TYPE_PARSED) {
        size_t n = type_print(sample->type, &value, printed);
        assert_int_equal(n, strlen(printed));
    }
    bool right = sample->printed == NULL
                     ? result == TYPE_BAD
                     : result == TYPE_PARSED && strcmp(printed, sample->printed) == 0;
    if (!right)
        fail_msg("kind %d '%s': expected %s, got %s", sample->type.kind, sample->text,
                 sample->printed != NULL ? sample->printed : "bad",
                 result == TYPE_PARSED ? printed : "bad");
}

static void check_all(const struct sample *samples, size_t count, int64_t tz_offset_us)
{
    for (size_t i = 0; i < count; i++)
        check_sample(&samples[i], tz_offset_us);
}

static void test_booleans(void **state)
{
    (void)state;
    static const struct sample SAMPLES[] = {
        {T(BOOLEAN), "true", "1"}, {T(BOOLEAN), "FALSE", "0"},  {T(BOOLEAN), "True", "1"},
        {T(BOOLEAN), "1", "1"},    {T(BOOLEAN), "0", "0"},      {T(BOOLEAN), " 1 ", "1"},
        {T(BOOLEAN), "2", NULL},   {T(BOOLEAN), "-1", NULL},    {T(BOOLEAN), "", NULL},
        {T(BOOLEAN), "yes", NULL}, {T(BOOLEAN), "truex", NULL},
    };
    check_all(SAMPLES, COUNT(SAMPLES), 0);
}

static void test_integers(void **state)
{
    (void)state;
    static const struct sample SAMPLES[] = {
        {T(TINYINT), "127", "127"},
        {T(TINYINT), "128", NULL},
        {T(TINYINT), "-128", "-128"},
        {T(TINYINT), "-129", NULL},
        {T(SMALLINT), "32767", "32767"},
        {T(SMALLINT), "32768", NULL},
        {T(INT), "2147483647", "2147483647"},
        {T(INT), "-2147483648", "-2147483648"},
        {T(INT), "2147483648", NULL},
        {T(INT), "0", "0"},
        {T(INT), "-0", "0"},
        {T(INT), "+7", "7"},
        {T(INT), "12345678", "12345678"},
        {T(INT), "123456789", "123456789"},
        {T(INT), "0000000000000000000000012", "12"},
        {T(INT), "  42\t", "42"},
        {T(INT), "\r\n-42 ", "-42"},
        {T(INT), "3.12", "3"},
        {T(INT), "-3.99", "-3"},
        {T(INT), "3.", "3"},
        {T(INT), ".5", NULL},
        {T(INT), "3.1.2", NULL},
        {T(INT), "3.1x", NULL},
        {T(INT), "1e3", NULL},
        {T(INT), "2e+128", NULL},
        {T(INT), "12a", NULL},
        {T(INT), "1 2", NULL},
        {T(INT), "- 1", NULL},
        {T(INT), "--1", NULL},
        {T(INT), "+-1", NULL},
        {T(INT), "", NULL},
        {T(INT), " ", NULL},
        {T(INT), "-", NULL},
        {T(INT), "+", NULL},
        {T(INT), "\"3\"", NULL},
        {T(INT), "null", NULL},
        {T(INT), "0x10", NULL},
        {T(INT), "12/45678", NULL},
        {T(INT), "1234:678", NULL},
        {T(BIGINT), "9223372036854775807", "9223372036854775807"},
        {T(BIGINT), "-9223372036854775808", "-9223372036854775808"},
        {T(BIGINT), "9223372036854775808", NULL},
        {T(BIGINT), "-9223372036854775809", NULL},
        {T(BIGINT), "99999999999999999999", NULL},
        {T(BIGINT), "1234567890123456", "1234567890123456"},
        {T(BIGINT), "12345678901234567", "12345678901234567"},
        {T(BIGINT), "12345678x01234567", NULL},
        {T(BIGINT), "9223372036854775807.999", "9223372036854775807"},
        {T(LARGEINT), "170141183460469231731687303715884105727",
         "170141183460469231731687303715884105727"},
        {T(LARGEINT), "-170141183460469231731687303715884105728",
         "-170141183460469231731687303715884105728"},
        {T(LARGEINT), "170141183460469231731687303715884105728", NULL},
        {T(LARGEINT), "-170141183460469231731687303715884105729", NULL},
        {T(LARGEINT), "37778931862957161709568", "37778931862957161709568"},
        {T(LARGEINT), "100000000000000000000000000000000000000",
         "100000000000000000000000000000000000000"},
        {T(LARGEINT), "-5", "-5"},
    };
    check_all(SAMPLES, COUNT(SAMPLES), 0);
}

static void test_reals(void **state)
{
    (void)state;
    static const struct sample SAMPLES[] = {
        {T(DOUBLE), "1.5", "1.5"},
        {T(DOUBLE), "-0.1", "-0.1"},
        {T(DOUBLE), "0", "0"},
        {T(DOUBLE), "-0", "-0"},
        {T(DOUBLE), "1e3", "1000"},
        {T(DOUBLE), "1E+3", "1000"},
        {T(DOUBLE), " 12 ", "12"},
        {T(DOUBLE), ".5", "0.5"},
        {T(DOUBLE), "5.", "5"},
        {T(DOUBLE), "+2.25", "2.25"},
        {T(DOUBLE), "123456789.123456", "123456789.123456"},
        {T(DOUBLE), "0.1234567890123456789", "0.12345678901234568"},
        {T(DOUBLE), "9007199254740993", "9007199254740992"},
        {T(DOUBLE), "9007199254740993.0000000000000000000000000000001", "9007199254740994"},
        {T(DOUBLE), "1.7976931348623157e308", "1.7976931348623157e+308"},
        {T(DOUBLE), "1.79769e+309", NULL},
        {T(DOUBLE), "-1e400", NULL},
        {T(DOUBLE), "1e999999999999999999999", NULL},
        {T(DOUBLE), "0e999999999999999999999", "0"},
        {T(DOUBLE), "5e-324", "4.94065645841247e-324"},
        {T(DOUBLE), "1e-400", "0"},
        {T(DOUBLE), "inf", "inf"},
        {T(DOUBLE), "-Infinity", "-inf"},
        {T(DOUBLE), "NaN", "nan"},
        {T(DOUBLE), "", NULL},
        {T(DOUBLE), ".", NULL},
        {T(DOUBLE), "1e", NULL},
        {T(DOUBLE), "1e+", NULL},
        {T(DOUBLE), "1.2.3", NULL},
        {T(DOUBLE), "0x1p3", NULL},
        {T(DOUBLE), "1,5", NULL},
        {T(DOUBLE), "12abc", NULL},
        {T(DOUBLE), "infx", NULL},
        {T(FLOAT), "1.1", "1.1"},
        {T(FLOAT), "3.40282e+38", "3.40282e+38"},
        {T(FLOAT), "3.40282e+39", NULL},
        {T(FLOAT), "16777217", "16777216"},
        {T(FLOAT), "16777217.0000000000000000001", "16777218"},
        {T(FLOAT), "0.3333333333333333", "0.33333334"},
        {T(FLOAT), "1e-45", "1.4013e-45"},
        {T(FLOAT), "1e-60", "0"},
        {T(FLOAT), "-INF", "-inf"},
    };
    check_all(SAMPLES, COUNT(SAMPLES), 0);
}

static void test_decimals(void **state)
{
    (void)state;
    static const struct sample SAMPLES[] = {
        {DEC(3, 1), "12.25", "12.3"},
        {DEC(3, 1), "-12.25", "-12.3"},
        {DEC(3, 1), "12.24999999999999999999999", "12.2"},
        {DEC(3, 1), "99.99", NULL},
        {DEC(3, 1), "99.94", "99.9"},
        {DEC(3, 1), "-99.95", NULL},
        {DEC(1, 0), "28", NULL},
        {DEC(1, 0), "9.4", "9"},
        {DEC(1, 0), "9.5", NULL},
        {DEC(9, 1), "100000000.11", NULL},
        {DEC(9, 2), "1234567.89", "1234567.89"},
        {DEC(9, 2), "12345678.9", NULL},
        {DEC(9, 2), "0.005", "0.01"},
        {DEC(9, 2), "-0.004", "0.00"},
        {DEC(9, 2), "5", "5.00"},
        {DEC(9, 2), "5.", "5.00"},
        {DEC(9, 2), ".5", "0.50"},
        {DEC(9, 2), "+.5", "0.50"},
        {DEC(9, 2), "-.5", "-0.50"},
        {DEC(9, 2), " 7.1 ", "7.10"},
        {DEC(9, 2), ".", NULL},
        {DEC(9, 2), "-", NULL},
        {DEC(9, 2), "-.", NULL},
        {DEC(9, 2), "", NULL},
        {DEC(9, 2), "1..2", NULL},
        {DEC(9, 2), "1.2.3", NULL},
        {DEC(9, 2), "12345.67.", NULL},
        {DEC(9, 2), "1.3456789.", NULL},
        {DEC(9, 2), "12abc", NULL},
        {DEC(9, 2), "NULL", NULL},
        {DEC(9, 2), "1e2", "100.00"},
        {DEC(9, 2), "1.5E-1", "0.15"},
        {DEC(9, 2), "1e", NULL},
        {DEC(9, 2), "1e10", NULL},
        {DEC(9, 2), "1e-99999999999999", "0.00"},
        {DEC(9, 2), "0e99999999999999", "0.00"},
        {DEC(9, 2), "00000000000000000000000000001.5", "1.50"},
        {DEC(15, 2), "1234567890.12", "1234567890.12"},
        {DEC(15, 2), "12345678.9", "12345678.90"},
        {DEC(15, 2), "1234567.8", "1234567.80"},
        {DEC(15, 2), "123456.78", "123456.78"},
        {DEC(15, 2), "-9999999999999.99", "-9999999999999.99"},
        {DEC(15, 2), "9999999999999.995", NULL},
        {DEC(15, 6), "12345678.123456", "12345678.123456"},
        {DEC(18, 18), "0.123456789012345678", "0.123456789012345678"},
        {DEC(18, 18), "1", NULL},
        {DEC(18, 0), "999999999999999999", "999999999999999999"},
        {DEC(18, 0), "-999999999999999999.5", NULL},
        {DEC(38, 2), "123456789012345678901234567890.12", "123456789012345678901234567890.12"},
        {DEC(38, 0), "99999999999999999999999999999999999999",
         "99999999999999999999999999999999999999"},
        {DEC(38, 0), "99999999999999999999999999999999999999.5", NULL},
        {DEC(38, 0), "100000000000000000000000000000000000000", NULL},
        {DEC(38, 38), "0.00000000000000000000000000000000000001",
         "0.00000000000000000000000000000000000001"},
        {DEC(38, 38), "0.000000000000000000000000000000000000005",
         "0.00000000000000000000000000000000000001"},
        {DEC(38, 38), "-0.99999999999999999999999999999999999999",
         "-0.99999999999999999999999999999999999999"},
    };
    check_all(SAMPLES, COUNT(SAMPLES), 0);
}

static void test_dates(void **state)
{
    (void)state;
    static const struct sample SAMPLES[] = {
        {T(DATE), "2024-02-29", "2024-02-29"},
        {T(DATE), "2023-02-29", NULL},
        {T(DATE), "1900-02-29", NULL},
        {T(DATE), "2000-02-29", "2000-02-29"},
        {T(DATE), "2024-04-31", NULL},
        {T(DATE), "2024-13-01", NULL},
        {T(DATE), "2024-00-01", NULL},
        {T(DATE), "2024-01-00", NULL},
        {T(DATE), "0000-01-01", "0000-01-01"},
        {T(DATE), "0000-00-00", NULL},
        {T(DATE), "9999-12-31", "9999-12-31"},
        {T(DATE), "10000-01-01", NULL},
        {T(DATE), "2024-4-1", "2024-04-01"},
        {T(DATE), "2024/04/01", "2024-04-01"},
        {T(DATE), "2024.4.01", "2024-04-01"},
        {T(DATE), "20240401", "2024-04-01"},
        {T(DATE), "240401", "2024-04-01"},
        {T(DATE), "690401", "2069-04-01"},
        {T(DATE), "700401", "1970-04-01"},
        {T(DATE), "24-04-01", "2024-04-01"},
        {T(DATE), "99-4-1", "1999-04-01"},
        {T(DATE), " 2024-04-01 ", "2024-04-01"},
        {T(DATE), "2024-04-01 23:59:59", "2024-04-01"},
        {T(DATE), "2024-04-01T23:59:59.9999999", "2024-04-01"},
        {T(DATE), "20240401235959", "2024-04-01"},
        {T(DATE), "2024-04-01 24:00:00", NULL},
        {T(DATE), "2024-04-011", NULL},
        {T(DATE), "2024-04", NULL},
        {T(DATE), "2024-04-0a", NULL},
        {T(DATE), "2024-04-01x", NULL},
        {T(DATE), "2024 04 01", NULL},
        {T(DATE), "2024-04-01Z", NULL},
        {T(DATE), "", NULL},
        {T(DATE), "today", NULL},
    };
    check_all(SAMPLES, COUNT(SAMPLES), 0);
}

static void test_datetimes(void **state)
{
    (void)state;
    static const struct sample SAMPLES[] = {
        {DTIME(0), "2024-04-01 10:20:30", "2024-04-01 10:20:30"},
        {DTIME(0), "2024-04-01T10:20:30", "2024-04-01 10:20:30"},
        {DTIME(0), "2024-04-01", "2024-04-01 00:00:00"},
        {DTIME(0), "20240401102030", "2024-04-01 10:20:30"},
        {DTIME(0), "20240401T102030", "2024-04-01 10:20:30"},
        {DTIME(0), "240401102030", "2024-04-01 10:20:30"},
        {DTIME(0), "2024-4-1 1:2:3", "2024-04-01 01:02:03"},
        {DTIME(0), "2024-04-01 10:20", "2024-04-01 10:20:00"},
        {DTIME(0), "2024-04-01 10", "2024-04-01 10:00:00"},
        {DTIME(0), "2024-04-01 10:20:30.5", "2024-04-01 10:20:31"},
        {DTIME(0), "2024-04-01 10:20:30.4999", "2024-04-01 10:20:30"},
        {DTIME(0), "2024-12-31 23:59:59.9", "2025-01-01 00:00:00"},
        {DTIME(0), "9999-12-31 23:59:59.9", NULL},
        {DTIME(3), "2024-04-01 10:20:30.1234", "2024-04-01 10:20:30.123"},
        {DTIME(3), "2024-04-01 10:20:30.1235", "2024-04-01 10:20:30.124"},
        {DTIME(3), "2024-04-01 10:20:30.9996", "2024-04-01 10:20:31.000"},
        {DTIME(3), "2024-04-01 10:20:30.1", "2024-04-01 10:20:30.100"},
        {DTIME(6), "2024-04-01 10:20:30.123456", "2024-04-01 10:20:30.123456"},
        {DTIME(6), "2024-04-01 10:20:30.12345", "2024-04-01 10:20:30.123450"},
        {DTIME(6), "2024-04-01 10:20:30.1234567", "2024-04-01 10:20:30.123457"},
        {DTIME(6), "2024-02-28 23:59:59.9999999", "2024-02-29 00:00:00.000000"},
        {DTIME(6), "20240401102030.25", "2024-04-01 10:20:30.250000"},
        {DTIME(6), "2024-04-01 10:20:30.", "2024-04-01 10:20:30.000000"},
        {DTIME(6), "2024-04-01 10:20:30.12x", NULL},
        {DTIME(0), "2024-04-01 25:00:00", NULL},
        {DTIME(0), "2024-04-01 10:60:00", NULL},
        {DTIME(0), "2024-04-01 10:00:60", NULL},
        {DTIME(0), "2024-02-30 10:00:00", NULL},
        {DTIME(0), "2024-04-01x10:00:00", NULL},
        {DTIME(0), "2024-04-01 10:00:0a", NULL},
        {DTIME(0), "", NULL},
    };
    check_all(SAMPLES, COUNT(SAMPLES), 0);
}

static void test_offsets_are_converted_into_the_zone_of_the_load(void **state)
{
    (void)state;
    static const struct sample IN_UTC[] = {
        {DTIME(3), "2023-06-15T10:00:00.000Z", "2023-06-15 10:00:00.000"},
        {DTIME(3), "2023-06-15T18:00:00.000+08:00", "2023-06-15 10:00:00.000"},
        {DTIME(3), "2023-06-15 18:00:00 +0800", "2023-06-15 10:00:00.000"},
        {DTIME(3), "2023-06-15 18:00:00+8", "2023-06-15 10:00:00.000"},
        {DTIME(3), "2023-06-15 04:30:00-05:30", "2023-06-15 10:00:00.000"},
        {DTIME(3), "2023-06-15 10:00:00 UTC", "2023-06-15 10:00:00.000"},
        {DTIME(3), "2023-06-15 10:00:00+15:00", NULL},
        {DTIME(3), "2023-06-15 10:00:00+08:61", NULL},
        {DTIME(3), "2023-06-15 10:00:00+", NULL},
        {DTIME(3), "2023-06-15 10:00:00 Mars", NULL},
        {DTIME(0), "0000-01-01 00:00:00+01:00", NULL},
        {DTIME(0), "0001-01-01 00:00:00+01:00", "0000-12-31 23:00:00"},
        {DTIME(0), "9999-12-31 23:30:00-01:00", NULL},
        {T(DATE), "2024-04-11T06:00:13+08:00", "2024-04-10"},
        {T(DATE), "2024-03-01T06:00:13+08:00", "2024-02-29"},
        {T(DATE), "2024-04-10", "2024-04-10"},
    };
    static const struct sample IN_SHANGHAI[] = {
        {DTIME(0), "2023-12-31T23:00:00Z", "2024-01-01 07:00:00"},
        {DTIME(0), "2023-12-31 23:00:00", "2023-12-31 23:00:00"},
        {T(DATE), "2023-12-31T23:00:00Z", "2024-01-01"},
    };
    check_all(IN_UTC, COUNT(IN_UTC), 0);
    check_all(IN_SHANGHAI, COUNT(IN_SHANGHAI), HOURS(8));
}

static void test_bytes_are_limited_and_cut_between_characters(void **state)
{
    (void)state;
    struct column_type four = {.kind = TYPE_VARCHAR, .length = 4};
    assert_int_equal(type_check_bytes(four, "abcd", 4), TYPE_PARSED);
    assert_int_equal(type_check_bytes(four, "abcde", 5), TYPE_TOO_LONG);
    assert_int_equal(type_cut_bytes(four, "abcde", 5), 4);
    assert_int_equal(type_cut_bytes(four, "ab", 2), 2);
    assert_int_equal(type_cut_bytes(four, "abc\xC3\xA4", 5), 3);
    assert_int_equal(type_cut_bytes(four, "a\xE2\x82\xAC\xE2\x82\xAC", 7), 4);
    assert_int_equal(type_cut_bytes(four, "abc\xF0\x9F\x98\x80", 7), 3);
    assert_int_equal(type_cut_bytes(four, "\x80\x80\x80\x80\x80\x80", 6), 4);
    assert_int_equal(type_check_bytes(T(STRING), "", 0), TYPE_PARSED);
}

static void test_json_must_be_well_formed(void **state)
{
    (void)state;
    static const char *const GOOD[] = {"{}",    "[1,2.5,\"x\"]", "null",
                                       "\"a\"", " 12 ",          "{\"a\":{\"b\":[true]}}"};
    static const char *const BAD[] = {"", "{", "{a:1}", "[1,]", "nul", "'a'", "{} x"};
    for (size_t i = 0; i < COUNT(GOOD); i++)
        assert_int_equal(type_check_bytes(T(JSON), GOOD[i], strlen(GOOD[i])), TYPE_PARSED);
    for (size_t i = 0; i < COUNT(BAD); i++)
        assert_int_equal(type_check_bytes(T(JSON), BAD[i], strlen(BAD[i])), TYPE_BAD);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* A random value of a type, of all magnitudes. */
static union type_value random_value(struct column_type type, uint64_t *seed)
{
    union type_value value = {0};
    unsigned shift = (unsigned)(next_random(seed) % 127);
    __int128 wide = (__int128)((unsigned __int128)next_random(seed) << 64 | next_random(seed));
    wide >>= shift;
    value.i128 = wide;
    if (type.kind == TYPE_BOOLEAN) {
        value.i128 = wide & 1;
    } else if (type.kind == TYPE_DECIMAL) {
        __int128 limit = 1;
        for (unsigned i = 0; i < type.precision; i++)
            limit *= 10;
        value.i128 = wide % limit;
    } else if (type.kind == TYPE_DATE || type.kind == TYPE_DATETIME) {
        uint32_t date = type_pack_date((uint32_t)(next_random(seed) % 10000),
                                       (uint32_t)(next_random(seed) % 12 + 1),
                                       (uint32_t)(next_random(seed) % 28 + 1));
        uint64_t unit = 1;
        for (unsigned i = type.scale; i < DATETIME_SCALE_MAX; i++)
            unit *= 10;
        uint64_t us = next_random(seed) % UINT64_C(86400000000);
        if (type.kind == TYPE_DATE)
            value.i32 = (int32_t)date;
        else
            value.i64 = type_pack_datetime(date, us - us % unit);
    }
    return value;
}

static void test_every_printed_value_reads_back(void **state)
{
    (void)state;
    static const struct column_type TYPES[] = {
        T(BOOLEAN), T(TINYINT),  T(SMALLINT), T(INT),     T(BIGINT),  T(LARGEINT), T(FLOAT),
        T(DOUBLE),  DEC(1, 0),   DEC(9, 2),   DEC(15, 2), DEC(18, 9), DEC(18, 18), DEC(27, 9),
        DEC(38, 0), DEC(38, 38), T(DATE),     DTIME(0),   DTIME(3),   DTIME(6),
    };
    uint64_t seed = 42;
    for (size_t t = 0; t < COUNT(TYPES); t++) {
        for (int i = 0; i < 5000; i++) {
            union type_value value = random_value(TYPES[t], &seed), back = {0};
            char text[TYPE_TEXT_MAX];
            size_t len = type_print(TYPES[t], &value, text);
            assert_true(len < TYPE_TEXT_MAX && text[len] == '\0');
            if (type_parse(TYPES[t], text, len, 0, &back) != TYPE_PARSED ||
                type_compare(TYPES[t], &value, &back) != 0)
                fail_msg("kind %d: '%s' does not read back", TYPES[t].kind, text);
        }
    }
}

static void test_doubles_agree_with_the_c_library(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 100000; i++) {
        char text[64];
        uint64_t digits = next_random(&seed) >> (next_random(&seed) % 60);
        int exponent = (int)(next_random(&seed) % 60) - 30;
        int len = snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
        union type_value d, f;
        assert_int_equal(type_parse(T(DOUBLE), text, (size_t)len, 0, &d), TYPE_PARSED);
        double wide = strtod(text, NULL);
        assert_memory_equal(&d.f64, &wide, sizeof wide);
        float narrow = strtof(text, NULL);
        if (type_parse(T(FLOAT), text, (size_t)len, 0, &f) == TYPE_PARSED)
            assert_memory_equal(&f.f32, &narrow, sizeof narrow);
        else
            assert_true(narrow > 3.4e38f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_booleans),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_datetimes),
        cmocka_unit_test(test_offsets_are_converted_into_the_zone_of_the_load),
        cmocka_unit_test(test_bytes_are_limited_and_cut_between_characters),
        cmocka_unit_test(test_json_must_be_well_formed),
        cmocka_unit_test(test_every_printed_value_reads_back),
        cmocka_unit_test(test_doubles_agree_with_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
