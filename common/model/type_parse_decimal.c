/* SPDX-License-Identifier: Apache-2.0 */
/* Text to DECIMAL: any number of digits, an exponent, half away from zero. */
#include "common/model/type_fast.h"
#include "common/model/type_parse.h"

/* Reads the digits of a text with at most one dot, stepping over the dot. */
struct digit_reader {
    const char *text;
    size_t len;
    size_t at;
};

/* The next digit, 0 once there are none (a number may be read on into zeros). */
static unsigned next_digit(struct digit_reader *reader)
{
    if (reader->at < reader->len && reader->text[reader->at] == '.')
        reader->at++;
    if (reader->at >= reader->len)
        return 0;
    return (unsigned)(reader->text[reader->at++] - '0');
}

/* The value is 0.d1d2d3… × 10^point with d1 ≠ 0, digits from `digits` on. All that is asked of it:
 * its first point + scale digits as an integer, and the digit behind them for rounding. */
static bool round_to_scale(struct digit_reader digits, int64_t point, unsigned precision,
                           unsigned scale, unsigned __int128 *magnitude)
{
    int64_t keep = point + (int64_t)scale;
    *magnitude = 0;
    if (keep < 0)
        return true;
    if (keep > (int64_t)precision) /* d1 alone is worth 10^precision or more */
        return false;
    for (int64_t i = 0; i < keep; i++)
        *magnitude = *magnitude * 10 + next_digit(&digits);
    if (next_digit(&digits) >= 5)
        *magnitude += 1;
    unsigned __int128 limit = 1;
    for (unsigned i = 0; i < precision; i++)
        limit *= 10;
    return *magnitude < limit;
}

bool type_parse_decimal(const char *text, size_t len, unsigned precision, unsigned scale,
                        __int128 *value)
{
    type_trim(&text, &len);
    bool negative = len > 0 && text[0] == '-';
    if (len > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        len--;
    }
    size_t i = 0;
    size_t first = 0; /* where the first digit that is not zero stands */
    bool dot = false, any = false, significant = false;
    /* Digits from the first significant one to the dot; negative: zeros behind the dot. */
    int64_t point = 0;
    for (; i < len; i++) {
        if (text[i] == '.' && !dot) {
            dot = true;
            continue;
        }
        if (!type_is_digit(text[i]))
            break;
        any = true;
        if (!significant && text[i] != '0') {
            significant = true;
            first = i;
        }
        if (significant && !dot)
            point++;
        if (!significant && dot)
            point--;
    }
    int64_t exponent = 0;
    if (!any || (i < len && ((text[i] | 0x20) != 'e' ||
                             !type_parse_exponent(text + i + 1, len - i - 1, &exponent))))
        return false;
    unsigned __int128 magnitude = 0;
    struct digit_reader digits = {text + first, i - first, 0};
    if (significant && !round_to_scale(digits, point + exponent, precision, scale, &magnitude))
        return false;
    *value = negative ? -(__int128)magnitude : (__int128)magnitude;
    return true;
}
