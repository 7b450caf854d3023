/* SPDX-License-Identifier: Apache-2.0 */
/* Text to BOOLEAN, integers, FLOAT and DOUBLE. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/model/type_fast.h"
#include "common/model/type_parse.h"

const uint64_t TYPE_POW10[FAST_POW10_MAX + 1] = {
    UINT64_C(1),
    UINT64_C(10),
    UINT64_C(100),
    UINT64_C(1000),
    UINT64_C(10000),
    UINT64_C(100000),
    UINT64_C(1000000),
    UINT64_C(10000000),
    UINT64_C(100000000),
    UINT64_C(1000000000),
    UINT64_C(10000000000),
    UINT64_C(100000000000),
    UINT64_C(1000000000000),
    UINT64_C(10000000000000),
    UINT64_C(100000000000000),
    UINT64_C(1000000000000000),
    UINT64_C(10000000000000000),
    UINT64_C(100000000000000000),
    UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000),
};

static bool equals_word(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

bool type_parse_boolean(const char *text, size_t len, int8_t *value)
{
    type_trim(&text, &len);
    bool yes = equals_word(text, len, "true") || equals_word(text, len, "1");
    *value = yes;
    return yes || equals_word(text, len, "false") || equals_word(text, len, "0");
}

bool type_parse_exponent(const char *text, size_t len, int64_t *exponent)
{
    size_t at = len > 0 && (text[0] == '-' || text[0] == '+');
    if (at >= len)
        return false;
    int64_t value = 0;
    for (size_t i = at; i < len; i++) {
        if (!type_is_digit(text[i]))
            return false;
        if (value < TYPE_EXPONENT_CAP)
            value = value * 10 + (text[i] - '0');
    }
    if (value > TYPE_EXPONENT_CAP)
        value = TYPE_EXPONENT_CAP;
    *exponent = text[0] == '-' ? -value : value;
    return true;
}

/* ".", and digits if any, to the end: such a suffix of an integer is cut off, not rounded. */
static bool is_fraction(const char *text, size_t len)
{
    if (len == 0 || text[0] != '.')
        return false;
    for (size_t i = 1; i < len; i++) {
        if (!type_is_digit(text[i]))
            return false;
    }
    return true;
}

bool type_parse_integer(const char *text, size_t len, unsigned bits, __int128 *value)
{
    type_trim(&text, &len);
    bool negative = len > 0 && text[0] == '-';
    if (len > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        len--;
    }
    unsigned __int128 limit = ((unsigned __int128)1 << (bits - 1)) - (negative ? 0 : 1);
    unsigned __int128 magnitude = 0;
    size_t i = 0;
    for (; i < len && type_is_digit(text[i]); i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (magnitude > limit / 10 || magnitude * 10 > limit - digit)
            return false;
        magnitude = magnitude * 10 + digit;
    }
    if (i == 0 || (i < len && !is_fraction(text + i, len - i)))
        return false;
    *value = (__int128)(negative ? 0 - magnitude : magnitude);
    return true;
}

/* A decimal text taken apart: digits × 10^exponent. */
enum { REAL_DIGITS_MAX = 800, REAL_EXACT_DIGITS = 19 };

struct real_text {
    bool negative;
    bool special; /* inf or nan, in `value` */
    double value;
    const char *digits; /* with at most one dot */
    size_t digits_len;
    int64_t exponent;  /* the one written */
    uint64_t mantissa; /* of the first REAL_EXACT_DIGITS significant digits */
    uint32_t significant;
    int64_t scale; /* mantissa × 10^scale is the number, if significant ≤ REAL_EXACT_DIGITS */
};

static bool real_special(const char *text, size_t len, struct real_text *real)
{
    real->special = true;
    if (equals_word(text, len, "inf") || equals_word(text, len, "infinity"))
        real->value = real->negative ? -(double)INFINITY : (double)INFINITY;
    else if (equals_word(text, len, "nan"))
        real->value = (double)NAN;
    else
        return false;
    return true;
}

static bool real_read(const char *text, size_t len, struct real_text *real)
{
    memset(real, 0, sizeof *real);
    type_trim(&text, &len);
    real->negative = len > 0 && text[0] == '-';
    if (len > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        len--;
    }
    bool dot = false, any = false;
    size_t i = 0;
    for (; i < len; i++) {
        if (text[i] == '.' && !dot) {
            dot = true;
            continue;
        }
        if (!type_is_digit(text[i]))
            break;
        any = true;
        real->scale -= dot;
        if (real->significant == 0 && text[i] == '0')
            continue;
        if (real->significant < REAL_EXACT_DIGITS)
            real->mantissa = real->mantissa * 10 + (uint64_t)(text[i] - '0');
        real->significant++;
    }
    if (!any)
        return i == 0 && real_special(text, len, real);
    real->digits = text;
    real->digits_len = i;
    if (i < len && ((text[i] | 0x20) != 'e' ||
                    !type_parse_exponent(text + i + 1, len - i - 1, &real->exponent)))
        return false;
    real->scale += real->exponent;
    return true;
}

/* Exact inputs and one rounding. False where the result might be off by a rounding: then real_slow
 * decides. */
static bool real_fast(const struct real_text *real, double *value)
{
    static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    static const long double LONG_POWERS[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                              1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                              1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                              1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    int64_t scale = real->scale;
    if (real->significant > REAL_EXACT_DIGITS)
        return false;
    if (real->mantissa <= UINT64_C(1) << 53 && scale >= -22 && scale <= 22) {
        double m = (double)real->mantissa;
        *value = scale < 0 ? m / POWERS[-scale] : m * POWERS[scale];
        return true;
    }
    /* x86's 80-bit format holds any 64-bit integer and 10^27; its one rounding is to 64 bits. Only
     * a result that lies half-way between two doubles could then be rounded to the wrong side. */
    if (LDBL_MANT_DIG != 64 || scale < -27 || scale > 27)
        return false;
    long double m = (long double)real->mantissa;
    long double x = scale < 0 ? m / LONG_POWERS[-scale] : m * LONG_POWERS[scale];
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *value = (double)x;
    return (bits & 0x7FF) != 0x400;
}

/* Writes all digits that can matter as one integer with an exponent: no dot, so that strtod's
 * answer does not depend on the locale. Digits beyond REAL_DIGITS_MAX only say "a bit more", which
 * one last digit does too. */
static void real_normalise(const struct real_text *real, char out[REAL_DIGITS_MAX + 32])
{
    size_t n = 0;
    int64_t exponent = real->exponent;
    bool dot = false, more = false;
    for (size_t i = 0; i < real->digits_len; i++) {
        char c = real->digits[i];
        if (c == '.') {
            dot = true;
            continue;
        }
        exponent -= dot;
        if (n == 0 && c == '0')
            continue;
        if (n < REAL_DIGITS_MAX) {
            out[n++] = c;
        } else {
            more = more || c != '0';
            exponent++;
        }
    }
    if (more) {
        out[n++] = '1';
        exponent--;
    }
    if (n == 0)
        out[n++] = '0';
    snprintf(out + n, 32, "e%lld", (long long)exponent);
}

bool type_parse_double(const char *text, size_t len, double *value)
{
    struct real_text real;
    if (!real_read(text, len, &real))
        return false;
    if (real.special) {
        *value = real.value;
        return true;
    }
    double magnitude;
    if (!real_fast(&real, &magnitude)) {
        char digits[REAL_DIGITS_MAX + 32];
        real_normalise(&real, digits);
        magnitude = strtod(digits, NULL);
    }
    *value = real.negative ? -magnitude : magnitude;
    return isfinite(magnitude);
}

bool type_parse_float(const char *text, size_t len, float *value)
{
    struct real_text real;
    if (!real_read(text, len, &real))
        return false;
    if (real.special) {
        *value = (float)real.value;
        return true;
    }
    /* A double rounds once more to the right float unless it is half-way between two floats, or in
     * the range where floats have fewer bits. */
    double wide;
    uint64_t bits = 0;
    bool exact = real_fast(&real, &wide);
    if (exact)
        memcpy(&bits, &wide, sizeof bits);
    float magnitude;
    if (exact &&
        (real.mantissa == 0 || (wide >= (double)FLT_MIN && (bits & 0x1FFFFFFF) != 0x10000000))) {
        magnitude = (float)wide;
    } else {
        char digits[REAL_DIGITS_MAX + 32];
        real_normalise(&real, digits);
        magnitude = strtof(digits, NULL);
    }
    *value = real.negative ? -magnitude : magnitude;
    return isfinite(magnitude);
}
