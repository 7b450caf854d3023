/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-width values to the text that reads give and that type_parse takes back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/model/type_fast.h"
#include "common/model/types.h"

static const char PAIRS[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

/* Writes value backwards, ending before `end`; returns where it begins. */
static char *print_u64(uint64_t value, char *end)
{
    while (value >= 100) {
        memcpy(end -= 2, PAIRS + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10)
        memcpy(end -= 2, PAIRS + value * 2, 2);
    else
        *--end = (char)('0' + value);
    return end;
}

static char *print_u128(unsigned __int128 value, char *end)
{
    /* 18 digits at a time keep all but a few divisions in 64 bits. */
    const uint64_t piece = TYPE_POW10[18];
    while (value > UINT64_MAX) {
        char *begin = end - 18;
        char *at = print_u64((uint64_t)(value % piece), end);
        memset(begin, '0', (size_t)(at - begin));
        end = begin;
        value /= piece;
    }
    return print_u64((uint64_t)value, end);
}

static size_t print_integer(__int128 value, char out[TYPE_TEXT_MAX])
{
    char digits[TYPE_TEXT_MAX];
    char *end = digits + sizeof digits;
    unsigned __int128 magnitude =
        value < 0 ? 0 - (unsigned __int128)value : (unsigned __int128)value;
    char *begin = print_u128(magnitude, end);
    if (value < 0)
        *--begin = '-';
    size_t len = (size_t)(end - begin);
    memcpy(out, begin, len);
    out[len] = '\0';
    return len;
}

static size_t print_decimal(__int128 value, unsigned scale, char out[TYPE_TEXT_MAX])
{
    if (scale == 0)
        return print_integer(value, out);
    char digits[TYPE_TEXT_MAX];
    char *end = digits + sizeof digits;
    unsigned __int128 magnitude =
        value < 0 ? 0 - (unsigned __int128)value : (unsigned __int128)value;
    char *begin = print_u128(magnitude, end);
    while ((size_t)(end - begin) <= scale) /* at least one digit before the dot */
        *--begin = '0';
    size_t whole = (size_t)(end - begin) - scale;
    size_t len = 0;
    if (value < 0)
        out[len++] = '-';
    memcpy(out + len, begin, whole);
    len += whole;
    out[len++] = '.';
    memcpy(out + len, begin + whole, scale);
    len += scale;
    out[len] = '\0';
    return len;
}

/* Numbers of up to 15 digits with at most six behind the dot, without searching: v = t / 10^k
 * exactly as the reader will compute it. 0 if v is none of these. */
static size_t print_short_real(double v, char out[TYPE_TEXT_MAX])
{
    double magnitude = fabs(v);
    if (magnitude >= 1e15 || (magnitude < 1e-4 && magnitude != 0))
        return 0;
    for (unsigned k = 0; k <= 6; k++) {
        double power = (double)TYPE_POW10[k];
        double t = nearbyint(magnitude * power);
        if (t < 1e15 && t / power == magnitude) {
            size_t sign = signbit(v) != 0;
            out[0] = '-';
            return sign + print_decimal((__int128)t, k, out + sign);
        }
    }
    return 0;
}

static size_t print_special(double v, char out[TYPE_TEXT_MAX])
{
    const char *text = isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
    strcpy(out, text);
    return strlen(text);
}

/* Fifteen digits, which every short decimal survives, or the one or two more that read back as the
 * same value. */
static size_t print_double(double v, char out[TYPE_TEXT_MAX])
{
    if (!isfinite(v))
        return print_special(v, out);
    size_t len = print_short_real(v, out);
    for (int digits = 15; len == 0; digits++) {
        int n = snprintf(out, TYPE_TEXT_MAX, "%.*g", digits, v);
        if (digits >= 17 || strtod(out, NULL) == v)
            len = (size_t)n;
    }
    return len;
}

static size_t print_float(float v, char out[TYPE_TEXT_MAX])
{
    if (!isfinite(v))
        return print_special((double)v, out);
    for (int digits = 6;; digits++) {
        int n = snprintf(out, TYPE_TEXT_MAX, "%.*g", digits, (double)v);
        if (digits >= 9 || strtof(out, NULL) == v)
            return (size_t)n;
    }
}

static void print_pair(uint32_t value, char *out)
{
    memcpy(out, PAIRS + value % 100 * 2, 2);
}

static size_t print_date(uint32_t date, char out[TYPE_TEXT_MAX])
{
    uint32_t year = (date >> 9) % 10000;
    print_pair(year / 100, out);
    print_pair(year % 100, out + 2);
    out[4] = '-';
    print_pair(date >> 5 & 15, out + 5);
    out[7] = '-';
    print_pair(date & 31, out + 8);
    out[10] = '\0';
    return 10;
}

static size_t print_datetime(int64_t datetime, unsigned scale, char out[TYPE_TEXT_MAX])
{
    uint64_t us = type_datetime_us(datetime);
    uint32_t seconds = (uint32_t)(us / 1000000);
    uint32_t fraction = (uint32_t)(us % 1000000);
    print_date(type_datetime_date(datetime), out);
    out[10] = ' ';
    print_pair(seconds / 3600, out + 11);
    out[13] = ':';
    print_pair(seconds / 60 % 60, out + 14);
    out[16] = ':';
    print_pair(seconds % 60, out + 17);
    size_t len = 19;
    if (scale > 0) {
        out[19] = '.';
        print_pair(fraction / 10000, out + 20);
        print_pair(fraction / 100, out + 22);
        print_pair(fraction, out + 24);
        len = 20 + (scale < DATETIME_SCALE_MAX ? scale : DATETIME_SCALE_MAX);
    }
    out[len] = '\0';
    return len;
}

/* An integer of the type's width, sign-extended. */
static __int128 load_integer(unsigned width, const void *value)
{
    union type_value v;
    memcpy(&v, value, width);
    switch (width) {
    case 1:
        return v.i8;
    case 2:
        return v.i16;
    case 4:
        return v.i32;
    case 8:
        return v.i64;
    default:
        return v.i128;
    }
}

size_t type_print(struct column_type type, const void *value, char out[TYPE_TEXT_MAX])
{
    union type_value v = {0};
    memcpy(&v, value, type_width(type));
    switch (type.kind) {
    case TYPE_BOOLEAN:
        out[0] = v.i8 != 0 ? '1' : '0';
        out[1] = '\0';
        return 1;
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INT:
    case TYPE_BIGINT:
    case TYPE_LARGEINT:
        return print_integer(load_integer(type_width(type), value), out);
    case TYPE_FLOAT:
        return print_float(v.f32, out);
    case TYPE_DOUBLE:
        return print_double(v.f64, out);
    case TYPE_DECIMAL:
        return print_decimal(load_integer(type_width(type), value), type.scale, out);
    case TYPE_DATE:
        return print_date((uint32_t)v.i32, out);
    case TYPE_DATETIME:
        return print_datetime(v.i64, type.scale, out);
    default:
        TG_UNREACHABLE();
    }
}
