/* SPDX-License-Identifier: Apache-2.0 */
/* The common text forms of numbers and dates, eight bytes at a time. Each function says true and
 * gives the value, or says false about anything else: then the careful parser (type_parse.h)
 * decides. Private to the type_* files.
 *
 * All of them may read 16 bytes behind the text (what they find there does not matter). */
#ifndef TG_COMMON_MODEL_TYPE_FAST_H
#define TG_COMMON_MODEL_TYPE_FAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/endian.h"
#include "common/model/types.h"

#define FAST_ZEROS UINT64_C(0x3030303030303030) /* "00000000" */
#define FAST_NINES \
    UINT64_C(0x7676767676767676) /* added to 0..9 it leaves bit 7 clear, to more not */
#define FAST_HIGH UINT64_C(0x8080808080808080)
#define FAST_ONES UINT64_C(0x0101010101010101)

/* The compiler finds them too large for a loop's body; a call would cost as much as the work. */
#define FAST_INLINE static inline __attribute__((always_inline))

enum { FAST_POW10_MAX = 19 };
extern const uint64_t TYPE_POW10[FAST_POW10_MAX + 1];

/* Eight bytes that are digits 0..9, first digit lowest, to their number. */
FAST_INLINE uint64_t fast_eight(uint64_t w)
{
    w = w * 10 + (w >> 8);
    return ((w & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064) +
            ((w >> 16) & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001)) >>
           32;
}

/* Non-zero if a byte of w is not in 0..9. */
FAST_INLINE uint64_t fast_not_digits(uint64_t w)
{
    return (w | (w + FAST_NINES)) & FAST_HIGH;
}

/* The first len (1..8) bytes less '0', moved to the top: what is below counts as leading zeros. */
FAST_INLINE uint64_t fast_load(const char *p, uint32_t len)
{
    return (load_u64le(p) ^ FAST_ZEROS) << (64 - 8 * len);
}

/* 1..19 digits without a sign. */
FAST_INLINE bool fast_digits(const char *p, uint32_t len, uint64_t *value)
{
    if (len <= 8) {
        uint64_t w = fast_load(p, len);
        *value = fast_eight(w);
        return fast_not_digits(w) == 0;
    }
    uint64_t low = load_u64le(p + len - 8) ^ FAST_ZEROS;
    if (len <= 16) {
        uint64_t high = fast_load(p, len - 8);
        *value = fast_eight(high) * 100000000 + fast_eight(low);
        return (fast_not_digits(high) | fast_not_digits(low)) == 0;
    }
    uint64_t high = fast_load(p, len - 16);
    uint64_t middle = load_u64le(p + len - 16) ^ FAST_ZEROS;
    *value = (fast_eight(high) * 100000000 + fast_eight(middle)) * 100000000 + fast_eight(low);
    return (fast_not_digits(high) | fast_not_digits(middle) | fast_not_digits(low)) == 0;
}

FAST_INLINE bool fast_integer(const char *p, uint32_t len, int64_t *value)
{
    uint32_t negative = *p == '-';
    p += negative;
    len -= negative;
    if (len - 1 >= 19) /* none, or too many */
        return false;
    uint64_t magnitude;
    if (!fast_digits(p, len, &magnitude) || magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *value = (int64_t)(negative ? 0 - magnitude : magnitude);
    return true;
}

/* Takes the '.' out of digits that lie at the top of w; *fraction gets the number of digits behind
 * it. */
FAST_INLINE uint64_t fast_drop_dot(uint64_t w, uint32_t *fraction)
{
    uint64_t x = w ^ (FAST_ONES * ('.' ^ '0'));
    uint64_t hit = (x - FAST_ONES) & ~x & FAST_HIGH;
    if (hit == 0) {
        *fraction = 0;
        return w;
    }
    /* The lowest hit is the first dot; a second one will fail as a digit. */
    unsigned bit = (unsigned)__builtin_ctzll(hit) & ~7u;
    uint64_t below = (UINT64_C(1) << bit) - 1;
    *fraction = 7 - bit / 8;
    return (w & ~(below << 8 | 0xFF)) | (w & below) << 8;
}

/* The same for two words, `high` holding the first digits. */
FAST_INLINE void fast_drop_dot_wide(uint64_t *high, uint64_t *low, uint32_t *fraction)
{
    uint64_t without = fast_drop_dot(*high, fraction);
    if (without != *high || *fraction > 0) { /* the dot is in the first word */
        *high = without;
        *fraction += 8;
        return;
    }
    /* A dot as first byte of `low` or later: the digits before it move up by one, the last digit of
     * `high` into `low`. Dropping the dot leaves the lowest byte of `low` free for it. */
    without = fast_drop_dot(*low, fraction);
    if (without == *low && *fraction == 0)
        return;
    *low = without | *high >> 56;
    *high <<= 8;
}

/* One to eight digits, the dot, and exactly `scale` (1..8) digits: how programs write most columns.
 * No search for the dot. */
FAST_INLINE bool fast_decimal_full(const char *p, uint32_t len, uint32_t scale, uint64_t *magnitude)
{
    uint32_t whole = len - 1 - scale;
    if (whole - 1 >= 8 || scale - 1 >= 8 || p[whole] != '.')
        return false;
    uint64_t high = fast_load(p, whole);
    uint64_t low = fast_load(p + whole + 1, scale);
    *magnitude = fast_eight(high) * TYPE_POW10[scale] + fast_eight(low);
    return (fast_not_digits(high) | fast_not_digits(low)) == 0;
}

/* Up to 16 characters of digits with at most one dot, brought to the scale. */
static inline bool fast_decimal_any(const char *p, uint32_t len, uint32_t scale,
                                    uint64_t *magnitude)
{
    uint32_t fraction;
    if (len - 1 < 8) {
        uint64_t w = fast_drop_dot(fast_load(p, len), &fraction);
        if (fast_not_digits(w) != 0)
            return false;
        *magnitude = fast_eight(w);
    } else if (len - 9 < 8) {
        uint64_t high = fast_load(p, len - 8);
        uint64_t low = load_u64le(p + len - 8) ^ FAST_ZEROS;
        fast_drop_dot_wide(&high, &low, &fraction);
        if ((fast_not_digits(high) | fast_not_digits(low)) != 0)
            return false;
        *magnitude = fast_eight(high) * 100000000 + fast_eight(low);
    } else {
        return false;
    }
    return fraction <= scale && (len > 1 || *p != '.') &&
           !__builtin_mul_overflow(*magnitude, TYPE_POW10[scale - fraction], magnitude);
}

/* For DECIMAL of at most 18 digits, where no rounding is needed; limit = 10^precision. */
FAST_INLINE bool fast_decimal(const char *p, uint32_t len, uint32_t scale, uint64_t limit,
                              int64_t *value)
{
    uint32_t negative = *p == '-';
    uint64_t magnitude;
    p += negative;
    len -= negative;
    if (!fast_decimal_full(p, len, scale, &magnitude) &&
        !fast_decimal_any(p, len, scale, &magnitude))
        return false;
    *value = (int64_t)(negative ? 0 - magnitude : magnitude);
    return magnitude < limit;
}

/* Leap years too; month and day may be anything below 256. */
FAST_INLINE bool fast_day_exists(uint32_t year, uint32_t month, uint32_t day)
{
    static const uint8_t DAYS[16] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0};
    if (month > 12 || day == 0)
        return false;
    if (day <= DAYS[month])
        return true;
    return month == 2 && day == 29 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* "YYYY-MM-DD": the ten bytes at p. */
FAST_INLINE bool fast_date_at(const char *p, uint32_t *date)
{
    /* Digits become 0..9 and the two dashes 0; a dash's byte must be exactly that. */
    uint64_t w = load_u64le(p) ^ UINT64_C(0x2D30302D30303030);
    uint64_t bad = (w | (w + UINT64_C(0x7F76767F76767676))) & FAST_HIGH;
    uint32_t d1 = (uint32_t)(unsigned char)p[8] - '0';
    uint32_t d2 = (uint32_t)(unsigned char)p[9] - '0';
    if (bad != 0 || d1 > 9 || d2 > 9)
        return false;
    uint64_t pairs = w * 10 + (w >> 8);
    uint32_t year = (uint32_t)(pairs & 0xFF) * 100 + (uint32_t)(pairs >> 16 & 0xFF);
    uint32_t month = (uint32_t)(pairs >> 40 & 0xFF);
    uint32_t day = d1 * 10 + d2;
    *date = type_pack_date(year, month, day);
    return fast_day_exists(year, month, day);
}

FAST_INLINE bool fast_date(const char *p, uint32_t len, uint32_t *date)
{
    return len == 10 && fast_date_at(p, date);
}

/* "YYYY-MM-DD hh:mm:ss" or with T, and a fraction of at most `scale` digits. */
FAST_INLINE bool fast_datetime(const char *p, uint32_t len, uint32_t scale, int64_t *datetime)
{
    uint32_t date;
    if (len - 19 > 7 || len == 20 || (p[10] != ' ' && p[10] != 'T') || !fast_date_at(p, &date))
        return false;
    uint64_t w = load_u64le(p + 11) ^ UINT64_C(0x30303A30303A3030);
    uint64_t bad = (w | (w + UINT64_C(0x76767F76767F7676))) & FAST_HIGH;
    uint64_t pairs = w * 10 + (w >> 8);
    uint32_t hour = (uint32_t)(pairs & 0xFF);
    uint32_t minute = (uint32_t)(pairs >> 24 & 0xFF);
    uint32_t second = (uint32_t)(pairs >> 48 & 0xFF);
    if (bad != 0 || hour > 23 || minute > 59 || second > 59)
        return false;
    uint64_t us = (uint64_t)(hour * 3600 + minute * 60 + second) * 1000000;
    if (len > 20) { /* never 20, see above */
        uint32_t digits = len - 20;
        /* The fraction's digits, then as many zeros as make them microseconds. */
        uint64_t f = fast_load(p + 20, digits) >> (64 - 8 * digits) << 16;
        if (p[19] != '.' || digits > scale || fast_not_digits(f) != 0)
            return false;
        us += fast_eight(f);
    }
    *datetime = type_pack_datetime(date, us);
    return true;
}

#endif
