/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 3339 texts, with calendar arithmetic of our own: no locale, no time zone files, no 32-bit
 * time. */
#include "common/base/time_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { US_PER_SECOND = 1000000, SECONDS_PER_DAY = 86400, FRACTION_DIGITS = 6 };

/* Stamps of the log have 52 bits: they reach into the year 2112. */
#define US_MAX (UINT64_MAX >> 12)

/* Days since 1970-01-01 of a date of the Gregorian calendar. The year is counted from March, so
 * that the leap day is its last day and a month's start is a linear formula. */
static int64_t days_of_date(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400; /* years here are never negative */
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void date_of_days(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    days += 719468;
    int64_t era = days / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    *day = day_of_year - (153 * shifted + 2) / 5 + 1;
    *month = shifted + (shifted < 10 ? 3 : -9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Exactly n digits at *text, stepped over; -1 if they are not there. */
static int64_t take_digits(const char **text, int n)
{
    int64_t value = 0;
    for (int i = 0; i < n; i++) {
        if (!is_digit((*text)[i]))
            return -1;
        value = value * 10 + ((*text)[i] - '0');
    }
    *text += n;
    return value;
}

static bool take_char(const char **text, const char *any_of)
{
    if (**text == '\0' || strchr(any_of, **text) == NULL)
        return false;
    (*text)++;
    return true;
}

static int parse_number(const char *text, uint64_t *us, struct tg_errmsg *msg)
{
    uint64_t value = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (value > US_MAX / 10)
            return tg_fail(msg, TG_INVALID, "time '%.64s' is too large", text);
        value = value * 10 + (uint64_t)(*at - '0');
    }
    if (value > US_MAX)
        return tg_fail(msg, TG_INVALID, "time '%.64s' is too large", text);
    *us = value;
    return 0;
}

/* The offset at the end, in seconds. */
static int parse_offset(const char **at, const char *text, int64_t *offset, struct tg_errmsg *msg)
{
    *offset = 0;
    if (**at == '\0')
        return tg_fail(msg, TG_INVALID, "time '%.64s' has no offset: end it with Z or like +01:00",
                       text);
    if (take_char(at, "Zz"))
        return 0;
    bool west = **at == '-';
    if (!take_char(at, "+-"))
        return tg_fail(msg, TG_INVALID, "time '%.64s' is not RFC 3339", text);
    int64_t hours = take_digits(at, 2);
    bool colon = take_char(at, ":");
    int64_t minutes = take_digits(at, 2);
    if (hours < 0 || hours > 23 || !colon || minutes < 0 || minutes > 59)
        return tg_fail(msg, TG_INVALID, "time '%.64s' has a bad offset: write it like +01:00",
                       text);
    *offset = (hours * 60 + minutes) * (west ? -60 : 60);
    return 0;
}

int time_text_parse(const char *text, uint64_t *us, struct tg_errmsg *msg)
{
    size_t digits = strspn(text, "0123456789");
    if (digits > 0 && text[digits] == '\0')
        return parse_number(text, us, msg);

    const char *at = text;
    int64_t year = take_digits(&at, 4);
    bool form = year >= 0 && take_char(&at, "-");
    int64_t month = form ? take_digits(&at, 2) : -1;
    form = form && month >= 0 && take_char(&at, "-");
    int64_t day = form ? take_digits(&at, 2) : -1;
    form = form && day >= 0 && take_char(&at, "Tt ");
    int64_t hour = form ? take_digits(&at, 2) : -1;
    form = form && hour >= 0 && take_char(&at, ":");
    int64_t minute = form ? take_digits(&at, 2) : -1;
    form = form && minute >= 0 && take_char(&at, ":");
    int64_t second = form ? take_digits(&at, 2) : -1;
    if (!form || second < 0)
        return tg_fail(
            msg, TG_INVALID,
            "time '%.64s' is neither RFC 3339 (2026-01-31T12:00:00.123456Z) nor a number "
            "of microseconds",
            text);
    int64_t fraction = 0;
    if (take_char(&at, ".")) {
        size_t len = strspn(at, "0123456789");
        if (len == 0 || len > FRACTION_DIGITS)
            return tg_fail(msg, TG_INVALID, "time '%.64s' must have 1 to 6 digits after the point",
                           text);
        fraction = take_digits(&at, (int)len);
        for (; len < FRACTION_DIGITS; len++)
            fraction *= 10;
    }
    int64_t offset;
    int err = parse_offset(&at, text, &offset, msg);
    if (err != 0)
        return err;
    if (*at != '\0')
        return tg_fail(msg, TG_INVALID, "time '%.64s' has something behind its offset", text);
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
        minute > 59 || second > 59)
        return tg_fail(msg, TG_INVALID, "time '%.64s' is not on the calendar", text);

    int64_t seconds = days_of_date(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 +
                      second - offset;
    if (seconds < 0)
        return tg_fail(msg, TG_INVALID, "time '%.64s' is before 1970", text);
    uint64_t value = (uint64_t)seconds * US_PER_SECOND + (uint64_t)fraction;
    if (value > US_MAX)
        return tg_fail(msg, TG_INVALID, "time '%.64s' is too large", text);
    *us = value;
    return 0;
}

static char *put_digits(char *out, int64_t value, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + n;
}

void time_text_print(uint64_t us, char out[TIME_TEXT_SIZE])
{
    int64_t seconds = (int64_t)(us / US_PER_SECOND);
    int64_t year, month, day;
    date_of_days(seconds / SECONDS_PER_DAY, &year, &month, &day);
    int64_t in_day = seconds % SECONDS_PER_DAY;
    char *at = put_digits(out, year, 4); /* the last four, should the year have more */
    *at++ = '-';
    at = put_digits(at, month, 2);
    *at++ = '-';
    at = put_digits(at, day, 2);
    *at++ = 'T';
    at = put_digits(at, in_day / 3600, 2);
    *at++ = ':';
    at = put_digits(at, in_day / 60 % 60, 2);
    *at++ = ':';
    at = put_digits(at, in_day % 60, 2);
    *at++ = '.';
    at = put_digits(at, (int64_t)(us % US_PER_SECOND), FRACTION_DIGITS);
    *at++ = 'Z';
    *at = '\0';
}
