/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds since the epoch as people write them, and back. */
#include "coordinator/query/query_time.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "common/base/err.h"

#define US_PER_S UINT64_C(1000000)

static void split(uint64_t us, struct tm *parts)
{
    time_t seconds = (time_t)(us / US_PER_S);

    memset(parts, 0, sizeof *parts);
    gmtime_r(&seconds, parts);
}

void query_time_plain(uint64_t us, char out[QUERY_TIME_BYTES])
{
    struct tm parts;

    split(us, &parts);
    strftime(out, QUERY_TIME_BYTES, "%Y-%m-%d %H:%M:%S", &parts);
}

/* Exactly `digits` digits, moving *at behind them. */
static bool take_number(const char **at, int digits, int *value)
{
    *value = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (!isdigit((unsigned char)**at))
            return false;
        *value = *value * 10 + (**at - '0');
    }
    return true;
}

static bool take_sign(const char **at, const char *signs)
{
    if (**at == '\0' || strchr(signs, **at) == NULL)
        return false;
    (*at)++;
    return true;
}

static bool take_fraction(const char **at, uint64_t *us)
{
    uint64_t unit = US_PER_S / 10;

    if (!isdigit((unsigned char)**at))
        return false;
    for (; isdigit((unsigned char)**at); (*at)++, unit /= 10)
        *us += unit * (uint64_t)(**at - '0');
    return true;
}

/* Z, or +hh:mm: seconds east of UTC. */
static bool take_offset(const char **at, int64_t *offset_s)
{
    int hours;
    int minutes;

    *offset_s = 0;
    if (take_sign(at, "Zz"))
        return true;
    int64_t direction = **at == '-' ? -1 : 1;
    if (!take_sign(at, "+- ") || !take_number(at, 2, &hours) || !take_sign(at, ":") ||
        !take_number(at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *offset_s = direction * (hours * 3600 + minutes * 60);
    return true;
}

static int parse_digits(const char *text, uint64_t *us)
{
    *us = 0;
    for (; isdigit((unsigned char)*text); text++)
        if (__builtin_mul_overflow(*us, UINT64_C(10), us) ||
            __builtin_add_overflow(*us, (uint64_t)(*text - '0'), us))
            return TG_INVALID;
    return *text == '\0' ? 0 : TG_INVALID;
}

static bool is_date(const struct tm *parts)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = parts->tm_year + 1900;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    if (parts->tm_mon < 0 || parts->tm_mon > 11)
        return false;
    int length = lengths[parts->tm_mon] + (parts->tm_mon == 1 && leap);
    return parts->tm_mday >= 1 && parts->tm_mday <= length && parts->tm_hour <= 23 &&
           parts->tm_min <= 59 && parts->tm_sec <= 59;
}

int query_time_parse(const char *text, uint64_t *us)
{
    const char *at = text;
    struct tm parts = {0};
    uint64_t fraction = 0;
    int64_t offset_s;

    if (isdigit((unsigned char)text[0]) && strchr(text, '-') == NULL)
        return parse_digits(text, us);
    if (!take_number(&at, 4, &parts.tm_year) || !take_sign(&at, "-") ||
        !take_number(&at, 2, &parts.tm_mon) || !take_sign(&at, "-") ||
        !take_number(&at, 2, &parts.tm_mday) || !take_sign(&at, "Tt ") ||
        !take_number(&at, 2, &parts.tm_hour) || !take_sign(&at, ":") ||
        !take_number(&at, 2, &parts.tm_min) || !take_sign(&at, ":") ||
        !take_number(&at, 2, &parts.tm_sec))
        return TG_INVALID;
    if (take_sign(&at, ".") && !take_fraction(&at, &fraction))
        return TG_INVALID;
    if (!take_offset(&at, &offset_s) || *at != '\0')
        return TG_INVALID;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    if (!is_date(&parts))
        return TG_INVALID;
    int64_t seconds = (int64_t)timegm(&parts) - offset_s;
    if (seconds < 0)
        return TG_INVALID;
    *us = (uint64_t)seconds * US_PER_S + fraction;
    return 0;
}
