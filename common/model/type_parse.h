/* SPDX-License-Identifier: Apache-2.0 */
/* The careful parsers, one for each family of types: every accepted form, no speed. They read only
 * the text they are given. Private to the type_* files. */
#ifndef TG_COMMON_MODEL_TYPE_PARSE_H
#define TG_COMMON_MODEL_TYPE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/types.h"

/* What counts as a blank around a value. */
static inline bool type_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool type_is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
}

/* Moves *text and *len past surrounding blanks. */
static inline void type_trim(const char **text, size_t *len)
{
    while (*len > 0 && type_is_blank(**text)) {
        (*text)++;
        (*len)--;
    }
    while (*len > 0 && type_is_blank((*text)[*len - 1]))
        (*len)--;
}

/* Digits behind an 'e': a sign and at least one digit to the end of the text; held at
 * ±EXPONENT_CAP, beyond any type's range. */
enum { TYPE_EXPONENT_CAP = 100000000 };
bool type_parse_exponent(const char *text, size_t len, int64_t *exponent);

/* Each: true with a value, false if the text is none or lies beyond the range. */
bool type_parse_boolean(const char *text, size_t len, int8_t *value);
/* bits: 8 … 128. */
bool type_parse_integer(const char *text, size_t len, unsigned bits, __int128 *value);
bool type_parse_float(const char *text, size_t len, float *value);
bool type_parse_double(const char *text, size_t len, double *value);
bool type_parse_decimal(const char *text, size_t len, unsigned precision, unsigned scale,
                        __int128 *value);
bool type_parse_date(const char *text, size_t len, int64_t tz_offset_us, uint32_t *date);
bool type_parse_datetime(const char *text, size_t len, unsigned scale, int64_t tz_offset_us,
                         int64_t *datetime);

#endif
