/* SPDX-License-Identifier: Apache-2.0 */
/* Text to DATE and DATETIME: delimited and compact forms, two-digit years, a fraction, an offset
 * from UTC. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/model/type_fast.h"
#include "common/model/type_parse.h"

#define US_PER_SECOND INT64_C(1000000)
#define US_PER_DAY    (INT64_C(86400) * US_PER_SECOND)

enum {
    YEAR_PIVOT = 70,             /* two-digit years below are 20xx */
    OFFSET_MINUTES_MAX = 14 * 60 /* the widest offset in use is +14:00 */
};

/* What a text says, field by field. */
struct date_text {
    uint32_t year, month, day, hour, minute, second;
    uint32_t fraction; /* microseconds, rounded to the wanted scale: up to 1,000,000 */
    bool has_offset;
    int32_t offset_minutes; /* east of UTC */
};

struct scanner {
    const char *text;
    size_t len;
    size_t at;
};

static char peek(const struct scanner *s)
{
    return s->at < s->len ? s->text[s->at] : '\0';
}

static size_t digit_run(const struct scanner *s)
{
    size_t n = 0;
    while (s->at + n < s->len && type_is_digit(s->text[s->at + n]))
        n++;
    return n;
}

/* Takes n digits, which are there. */
static uint32_t take(struct scanner *s, size_t n)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value * 10 + (uint32_t)(s->text[s->at++] - '0');
    return value;
}

/* Takes a field of one or two digits. */
static bool take_field(struct scanner *s, uint32_t *value)
{
    size_t n = digit_run(s);
    if (n < 1 || n > 2)
        return false;
    *value = take(s, n);
    return true;
}

static bool take_separator(struct scanner *s)
{
    if (!ispunct((unsigned char)peek(s)))
        return false;
    s->at++;
    return true;
}

static void skip_blanks(struct scanner *s)
{
    while (s->at < s->len && type_is_blank(s->text[s->at]))
        s->at++;
}

static uint32_t full_year(uint32_t year, size_t digits)
{
    if (digits == 4)
        return year;
    return year < YEAR_PIVOT ? 2000 + year : 1900 + year;
}

/* The fraction behind the dot, rounded half up at `scale` digits. */
static void take_fraction(struct scanner *s, unsigned scale, struct date_text *date)
{
    size_t n = digit_run(s);
    uint32_t value = 0;
    for (size_t i = 0; i < scale; i++)
        value = value * 10 + (i < n ? (uint32_t)(s->text[s->at + i] - '0') : 0);
    if (n > scale && s->text[s->at + scale] >= '5')
        value++;
    date->fraction = value * (uint32_t)TYPE_POW10[DATETIME_SCALE_MAX - scale];
    s->at += n;
}

/* "Z", "UTC", "GMT", "+08:00", "+0800", "+8", "-05:30". */
static bool take_offset(struct scanner *s, struct date_text *date)
{
    date->has_offset = true;
    size_t left = s->len - s->at;
    const char *rest = s->text + s->at;
    if ((left == 1 && (rest[0] | 0x20) == 'z') ||
        (left == 3 && (strncasecmp(rest, "UTC", 3) == 0 || strncasecmp(rest, "GMT", 3) == 0))) {
        s->at = s->len;
        return true;
    }
    char sign = peek(s);
    if (sign != '+' && sign != '-')
        return false;
    s->at++;
    size_t n = digit_run(s);
    uint32_t hours, minutes = 0;
    if (n == 4) {
        hours = take(s, 2);
        minutes = take(s, 2);
    } else {
        if (!take_field(s, &hours))
            return false;
        if (peek(s) == ':') {
            s->at++;
            if (digit_run(s) != 2)
                return false;
            minutes = take(s, 2);
        }
    }
    int32_t offset = (int32_t)(hours * 60 + minutes);
    if (minutes > 59 || offset > OFFSET_MINUTES_MAX)
        return false;
    date->offset_minutes = sign == '-' ? -offset : offset;
    return true;
}

/* The time behind the date's end: hh[:mm[:ss]] or hhmmss, then a fraction and an offset. */
static bool take_time(struct scanner *s, unsigned scale, struct date_text *date)
{
    bool seconds = false;
    if (digit_run(s) == 6) {
        date->hour = take(s, 2);
        date->minute = take(s, 2);
        date->second = take(s, 2);
        seconds = true;
    } else {
        if (!take_field(s, &date->hour))
            return false;
        if (peek(s) == ':') {
            s->at++;
            if (!take_field(s, &date->minute))
                return false;
            if (peek(s) == ':') {
                s->at++;
                if (!take_field(s, &date->second))
                    return false;
                seconds = true;
            }
        }
    }
    if (seconds && peek(s) == '.') {
        s->at++;
        take_fraction(s, scale, date);
    }
    skip_blanks(s);
    return s->at == s->len || take_offset(s, date);
}

/* The digits in one piece: YYYYMMDD or YYMMDD, and hhmmss at once or later. */
static bool take_compact(struct scanner *s, size_t digits, bool *time_follows,
                         struct date_text *date)
{
    size_t year_digits = digits == 8 || digits == 14 ? 4 : 2;
    date->year = full_year(take(s, year_digits), year_digits);
    date->month = take(s, 2);
    date->day = take(s, 2);
    *time_follows = digits >= 12;
    return true;
}

static bool take_delimited(struct scanner *s, size_t digits, struct date_text *date)
{
    date->year = full_year(take(s, digits), digits);
    return take_separator(s) && take_field(s, &date->month) && take_separator(s) &&
           take_field(s, &date->day);
}

static bool take_all(struct scanner *s, unsigned scale, struct date_text *date)
{
    size_t digits = digit_run(s);
    bool time_follows = false, ok = false;
    if (digits == 8 || digits == 6 || digits == 14 || digits == 12)
        ok = take_compact(s, digits, &time_follows, date);
    else if (digits == 4 || digits == 2)
        ok = take_delimited(s, digits, date);
    if (!ok)
        return false;
    if (time_follows)
        return take_time(s, scale, date);
    if (s->at == s->len)
        return true;
    if ((peek(s) | 0x20) == 't')
        s->at++;
    else if (type_is_blank(peek(s)))
        skip_blanks(s);
    else
        return false;
    return take_time(s, scale, date) && s->at == s->len;
}

static bool read_date_text(const char *text, size_t len, unsigned scale, struct date_text *date)
{
    memset(date, 0, sizeof *date);
    type_trim(&text, &len);
    struct scanner s = {text, len, 0};
    return take_all(&s, scale, date) && s.at == s.len &&
           fast_day_exists(date->year, date->month, date->day) && date->hour < 24 &&
           date->minute < 60 && date->second < 60;
}

/* Days since 0000-03-01, a calendar in which the leap day comes last. */
static int64_t day_number(uint32_t year, uint32_t month, uint32_t day)
{
    int64_t y = (int64_t)year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t m = (int64_t)month + (month > 2 ? -3 : 9);
    int64_t day_of_year = (153 * m + 2) / 5 + (int64_t)day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
}

/* And back; false outside of the years 0..9999. */
static bool date_of_day_number(int64_t number, uint32_t *date)
{
    int64_t era = (number >= 0 ? number : number - 146096) / 146097;
    int64_t day_of_era = number - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t m = (5 * day_of_year + 2) / 153;
    int64_t day = day_of_year - (153 * m + 2) / 5 + 1;
    int64_t month = m + (m < 10 ? 3 : -9);
    int64_t year = year_of_era + era * 400 + (month <= 2);
    if (year < 0 || year > 9999)
        return false;
    *date = type_pack_date((uint32_t)year, (uint32_t)month, (uint32_t)day);
    return true;
}

/* The moment in the load's zone, carried over days where rounding or the zone moves it. */
static bool resolve(const struct date_text *text, int64_t tz_offset_us, uint32_t *date,
                    uint64_t *us_of_day)
{
    int64_t us = (int64_t)(text->hour * 3600 + text->minute * 60 + text->second) * US_PER_SECOND +
                 text->fraction;
    if (text->has_offset)
        us += tz_offset_us - text->offset_minutes * 60 * US_PER_SECOND;
    if (us >= 0 && us < US_PER_DAY) {
        *date = type_pack_date(text->year, text->month, text->day);
        *us_of_day = (uint64_t)us;
        return true;
    }
    int64_t days = us >= 0 ? us / US_PER_DAY : -((US_PER_DAY - 1 - us) / US_PER_DAY);
    *us_of_day = (uint64_t)(us - days * US_PER_DAY);
    return date_of_day_number(day_number(text->year, text->month, text->day) + days, date);
}

bool type_parse_date(const char *text, size_t len, int64_t tz_offset_us, uint32_t *date)
{
    /* Cut, not rounded: 23:59:59.99999999 is still that day. Rounding at six digits could carry, so
     * the fraction is dropped. */
    struct date_text parts;
    uint64_t us_of_day;
    if (!read_date_text(text, len, DATETIME_SCALE_MAX, &parts))
        return false;
    parts.fraction = 0;
    return resolve(&parts, tz_offset_us, date, &us_of_day);
}

bool type_parse_datetime(const char *text, size_t len, unsigned scale, int64_t tz_offset_us,
                         int64_t *datetime)
{
    struct date_text parts;
    uint32_t date;
    uint64_t us_of_day;
    if (!read_date_text(text, len, scale, &parts) ||
        !resolve(&parts, tz_offset_us, &date, &us_of_day))
        return false;
    *datetime = type_pack_datetime(date, us_of_day);
    return true;
}
