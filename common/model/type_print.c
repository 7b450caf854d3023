/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-width values to the text that reads give and that type_parse takes back. Full scans spend
 * most of their time here: digits in pairs from a table, their number known before they are
 * written, one function a type so that nothing is decided anew for each value. */
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

/* ---- digits ---- */

static inline void put_pair(char *to, uint32_t value)
{
    memcpy(to, PAIRS + (size_t)value * 2, 2);
}

/* How many digits a number has; 1 for 0. */
static inline unsigned count_digits(uint64_t value)
{
    /* log10(2) is a little more than 1233 / 4096: right, or one too few. */
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    unsigned guess = bits * 1233 >> 12;
    return guess + (value >= TYPE_POW10[guess]) + (value == 0);
}

/* The last eight digits, with leading zeros. */
static inline void put_eight(char *to, uint32_t value)
{
    uint32_t high = value / 10000;
    uint32_t low = value % 10000;
    put_pair(to, high / 100);
    put_pair(to + 2, high % 100);
    put_pair(to + 4, low / 100);
    put_pair(to + 6, low % 100);
}

/* A number below 10^digits, with leading zeros. */
static inline void put_digits(char *to, uint64_t value, unsigned digits)
{
    while (digits >= 8 && value >= 100000000) {
        put_eight(to + (digits -= 8), (uint32_t)(value % 100000000));
        value /= 100000000;
    }
    uint32_t rest = (uint32_t)value;
    while (digits >= 2) {
        put_pair(to + (digits -= 2), rest % 100);
        rest /= 100;
    }
    if (digits == 1)
        *to = (char)('0' + rest % 10);
}

static inline char *put_u64(char *to, uint64_t value)
{
    unsigned digits = count_digits(value);
    put_digits(to, value, digits);
    return to + digits;
}

static char *put_u128(char *to, unsigned __int128 value)
{
    if (value <= UINT64_MAX)
        return put_u64(to, (uint64_t)value);
    /* 18 digits at a time keep all but a few divisions in 64 bits. */
    const uint64_t piece = TYPE_POW10[18];
    to = put_u128(to, value / piece);
    put_digits(to, (uint64_t)(value % piece), 18);
    return to + 18;
}

static inline char *put_integer(char *to, int64_t value)
{
    *to = '-';
    to += value < 0;
    return put_u64(to, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* The whole part, the dot, `scale` digits. */
static inline char *put_decimal(char *to, int64_t value, unsigned scale)
{
    *to = '-';
    to += value < 0;
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (scale == 0)
        return put_u64(to, magnitude);
    uint64_t whole = magnitude / TYPE_POW10[scale];
    to = put_u64(to, whole);
    *to++ = '.';
    put_digits(to, magnitude - whole * TYPE_POW10[scale], scale);
    return to + scale;
}

/* Scale 2 is how money is kept: dividing by a constant costs a quarter. */
static inline char *put_decimal_2(char *to, int64_t value)
{
    *to = '-';
    to += value < 0;
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    to = put_u64(to, magnitude / 100);
    *to = '.';
    put_pair(to + 1, (uint32_t)(magnitude % 100));
    return to + 3;
}

static char *put_decimal_wide(char *to, __int128 value, unsigned scale)
{
    char digits[TYPE_TEXT_MAX];
    unsigned __int128 magnitude =
        value < 0 ? 0 - (unsigned __int128)value : (unsigned __int128)value;
    size_t len = (size_t)(put_u128(digits, magnitude) - digits);
    if (value < 0)
        *to++ = '-';
    /* At least one digit before the dot. */
    size_t whole = len > scale ? len - scale : 0;
    if (whole == 0)
        *to++ = '0';
    memcpy(to, digits, whole);
    to += whole;
    if (scale == 0)
        return to;
    *to++ = '.';
    for (size_t zeros = len < scale ? scale - len : 0; zeros > 0; zeros--)
        *to++ = '0';
    memcpy(to, digits + whole, len - whole);
    return to + (len - whole);
}

/* ---- one function a type ---- */

static char *print_boolean(const void *value, unsigned scale, char *to)
{
    (void)scale;
    *to = *(const int8_t *)value != 0 ? '1' : '0';
    return to + 1;
}

#define PRINT_INTEGER(name, c_type)                                \
    static char *name(const void *value, unsigned scale, char *to) \
    {                                                              \
        c_type v;                                                  \
        (void)scale;                                               \
        memcpy(&v, value, sizeof v);                               \
        return put_integer(to, v);                                 \
    }

PRINT_INTEGER(print_tinyint, int8_t)
PRINT_INTEGER(print_smallint, int16_t)
PRINT_INTEGER(print_int, int32_t)
PRINT_INTEGER(print_bigint, int64_t)

static char *print_largeint(const void *value, unsigned scale, char *to)
{
    __int128 v;
    (void)scale;
    memcpy(&v, value, sizeof v);
    return put_decimal_wide(to, v, 0);
}

static char *print_decimal64(const void *value, unsigned scale, char *to)
{
    int64_t v;
    memcpy(&v, value, sizeof v);
    return scale == 2 ? put_decimal_2(to, v) : put_decimal(to, v, scale);
}

static char *print_decimal128(const void *value, unsigned scale, char *to)
{
    __int128 v;
    memcpy(&v, value, sizeof v);
    return put_decimal_wide(to, v, scale);
}

/* Numbers of up to 15 digits with at most six behind the dot, without searching: v = t / 10^k
 * exactly as the reader will compute it. NULL if v is none of these. */
static char *put_short_real(char *to, double v)
{
    double magnitude = fabs(v);
    if (magnitude >= 1e15 || (magnitude < 1e-4 && magnitude != 0))
        return NULL;
    for (unsigned k = 0; k <= 6; k++) {
        double power = (double)TYPE_POW10[k];
        double t = nearbyint(magnitude * power);
        if (t < 1e15 && t / power == magnitude) {
            *to = '-';
            return put_decimal(to + (signbit(v) != 0), (int64_t)t, k);
        }
    }
    return NULL;
}

static char *put_special(char *to, double v)
{
    const char *text = isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
    size_t len = strlen(text);
    memcpy(to, text, len);
    return to + len;
}

/* Fifteen digits, which every short decimal survives, or the one or two more that read back as the
 * same value. */
static char *print_double(const void *value, unsigned scale, char *to)
{
    double v;
    (void)scale;
    memcpy(&v, value, sizeof v);
    if (!isfinite(v))
        return put_special(to, v);
    char *end = put_short_real(to, v);
    for (int digits = 15; end == NULL; digits++) {
        int n = snprintf(to, TYPE_TEXT_MAX, "%.*g", digits, v);
        if (digits >= 17 || strtod(to, NULL) == v)
            end = to + n;
    }
    return end;
}

static char *print_float(const void *value, unsigned scale, char *to)
{
    float v;
    (void)scale;
    memcpy(&v, value, sizeof v);
    if (!isfinite(v))
        return put_special(to, (double)v);
    for (int digits = 6;; digits++) {
        int n = snprintf(to, TYPE_TEXT_MAX, "%.*g", digits, (double)v);
        if (digits >= 9 || strtof(to, NULL) == v)
            return to + n;
    }
}

static inline char *put_date(char *to, uint32_t date)
{
    uint32_t year = (date >> 9) % 10000;
    put_pair(to, year / 100);
    put_pair(to + 2, year % 100);
    to[4] = '-';
    put_pair(to + 5, date >> 5 & 15);
    to[7] = '-';
    put_pair(to + 8, date & 31);
    return to + 10;
}

static char *print_date(const void *value, unsigned scale, char *to)
{
    uint32_t date;
    (void)scale;
    memcpy(&date, value, sizeof date);
    return put_date(to, date);
}

static char *print_datetime(const void *value, unsigned scale, char *to)
{
    int64_t datetime;
    memcpy(&datetime, value, sizeof datetime);
    uint64_t us = type_datetime_us(datetime);
    uint32_t seconds = (uint32_t)(us / 1000000);
    uint32_t fraction = (uint32_t)(us % 1000000);
    to = put_date(to, type_datetime_date(datetime));
    to[0] = ' ';
    put_pair(to + 1, seconds / 3600 % 100);
    to[3] = ':';
    put_pair(to + 4, seconds / 60 % 60);
    to[6] = ':';
    put_pair(to + 7, seconds % 60);
    if (scale == 0)
        return to + 9;
    to[9] = '.';
    put_pair(to + 10, fraction / 10000);
    put_pair(to + 12, fraction / 100 % 100);
    put_pair(to + 14, fraction % 100);
    return to + 10 + (scale < DATETIME_SCALE_MAX ? scale : DATETIME_SCALE_MAX);
}

type_printer *type_printer_of(struct column_type type)
{
    switch (type.kind) {
    case TYPE_BOOLEAN:
        return print_boolean;
    case TYPE_TINYINT:
        return print_tinyint;
    case TYPE_SMALLINT:
        return print_smallint;
    case TYPE_INT:
        return print_int;
    case TYPE_BIGINT:
        return print_bigint;
    case TYPE_LARGEINT:
        return print_largeint;
    case TYPE_FLOAT:
        return print_float;
    case TYPE_DOUBLE:
        return print_double;
    case TYPE_DECIMAL:
        return type_width(type) == 8 ? print_decimal64 : print_decimal128;
    case TYPE_DATE:
        return print_date;
    case TYPE_DATETIME:
        return print_datetime;
    default:
        TG_UNREACHABLE();
    }
}

size_t type_print(struct column_type type, const void *value, char out[TYPE_TEXT_MAX])
{
    char *end = type_printer_of(type)(value, type.scale, out);
    *end = '\0';
    return (size_t)(end - out);
}
