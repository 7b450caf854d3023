/* SPDX-License-Identifier: Apache-2.0 */
/* Separators, lists of names and time zones of load headers. */
#include "participant/ingest/load_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ANALYSIS "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = "

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int separator_too_long(struct tg_errmsg *msg)
{
    return tg_fail(msg, TG_INVALID, ANALYSIS "a separator is longer than %d bytes",
                   LOAD_SEPARATOR_MAX);
}

/* Every "\x" is dropped wherever it stands; the rest is hex digits in pairs. */
static int separator_hex(const char *value, struct load_separator *separator, struct tg_errmsg *msg)
{
    int high = -1;

    for (const char *p = value; *p != 0; p++) {
        if (p[0] == '\\' && (p[1] == 'x' || p[1] == 'X')) {
            p++;
            continue;
        }
        int digit = hex_digit(*p);
        if (digit < 0)
            return tg_fail(msg, TG_INVALID, ANALYSIS "Hex str format error");
        if (high < 0) {
            high = digit;
            continue;
        }
        if (separator->len == LOAD_SEPARATOR_MAX)
            return separator_too_long(msg);
        separator->bytes[separator->len++] = (uint8_t)(high << 4 | digit);
        high = -1;
    }
    if (high >= 0)
        return tg_fail(msg, TG_INVALID, ANALYSIS "Hex str length error");
    if (separator->len == 0)
        return tg_fail(msg, TG_INVALID, ANALYSIS "Hex str is empty");
    return 0;
}

int load_text_separator(const char *value, struct load_separator *separator, struct tg_errmsg *msg)
{
    separator->len = 0;
    if (value[0] == '\\' && (value[1] == 'x' || value[1] == 'X'))
        return separator_hex(value, separator, msg);
    for (const char *p = value; *p != 0; p++) {
        static const char FROM[] = "tnr\\'\"";
        static const char TO[] = "\t\n\r\\'\"";
        char c = *p;
        if (c == '\\' && p[1] != 0) {
            const char *escape = strchr(FROM, p[1]);
            if (escape != NULL) {
                c = TO[escape - FROM];
                p++;
            }
        }
        if (separator->len == LOAD_SEPARATOR_MAX)
            return separator_too_long(msg);
        separator->bytes[separator->len++] = (uint8_t)c;
    }
    if (separator->len == 0)
        return tg_fail(msg, TG_INVALID, ANALYSIS "a separator is empty");
    return 0;
}

void load_text_print_separator(const struct load_separator *separator, struct buf *out)
{
    for (uint32_t i = 0; i < separator->len; i++) {
        uint8_t c = separator->bytes[i];
        if (c == '\n')
            buf_append_str(out, "\\n");
        else if (c == '\r')
            buf_append_str(out, "\\r");
        else if (c == '\t')
            buf_append_str(out, "\\t");
        else if (c < 0x20 || c >= 0x7F)
            buf_printf(out, "\\x%02x", c);
        else
            buf_append_u8(out, c);
    }
}

void load_names_close(struct load_names *names)
{
    free(names->names);
    names->names = NULL;
    names->count = 0;
}

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
        p++;
    return p;
}

/* Reads one name at *at; moves *at behind it and the blanks that follow. */
static int parse_name(const char **at, char name[NAME_BYTES], struct tg_errmsg *msg)
{
    const char *p = skip_blanks(*at);
    const char *begin = p;
    size_t len;

    if (*p == '`') {
        begin = ++p;
        while (*p != 0 && *p != '`')
            p++;
        if (*p == 0)
            return tg_fail(msg, TG_INVALID, ANALYSIS "columns: a back-quote is not closed");
        len = (size_t)(p - begin);
        p++;
    } else {
        while (*p != 0 && strchr(" \t\r\n,=()`", *p) == NULL)
            p++;
        len = (size_t)(p - begin);
    }
    if (len == 0)
        return tg_fail(msg, TG_INVALID, ANALYSIS "columns: a name is expected at '%.20s'", begin);
    if (len >= NAME_BYTES)
        return tg_fail(msg, TG_INVALID, ANALYSIS "columns: name '%.20s…' is longer than %d bytes",
                       begin, NAME_BYTES - 1);
    memcpy(name, begin, len);
    name[len] = 0;
    *at = skip_blanks(p);
    return 0;
}

int load_names_parse(const char *value, struct load_names *names, struct tg_errmsg *msg)
{
    const char *p = value;
    size_t most = 1;

    for (const char *q = value; *q != 0; q++)
        most += *q == ',';
    if (most > LOAD_COLUMNS_MAX)
        return tg_fail(msg, TG_LIMIT, ANALYSIS "columns: more than %d names", LOAD_COLUMNS_MAX);
    names->names = calloc(most, NAME_BYTES);
    if (names->names == NULL)
        return tg_fail(msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory");
    for (;;) {
        char *name = names->names[names->count];
        int err = parse_name(&p, name, msg);
        if (err != 0)
            return err;
        if (*p == '=')
            return tg_fail(msg, TG_UNSUPPORTED,
                           "[INVALID_ARGUMENT]columns: expressions are not supported (column %s)",
                           name);
        if (*p != ',' && *p != 0)
            return tg_fail(msg, TG_INVALID, ANALYSIS "columns: syntax error at '%.20s'", p);
        names->count++;
        if (*p == 0)
            return 0;
        p++;
    }
}

/* Zones whose offset is the same all year; for others clients give an offset. */
static const struct zone {
    const char *name;
    int minutes;
} ZONES[] = {
    {"UTC", 0},
    {"GMT", 0},
    {"Z", 0},
    {"Etc/UTC", 0},
    {"Etc/GMT", 0},
    {"CST", 480},
    {"PRC", 480},
    {"Asia/Shanghai", 480},
    {"Asia/Chongqing", 480},
    {"Asia/Harbin", 480},
    {"Asia/Urumqi", 360},
    {"Asia/Hong_Kong", 480},
    {"Hongkong", 480},
    {"Asia/Macau", 480},
    {"Asia/Taipei", 480},
    {"Asia/Singapore", 480},
    {"Singapore", 480},
    {"Asia/Kuala_Lumpur", 480},
    {"Asia/Manila", 480},
    {"Australia/Perth", 480},
    {"Asia/Tokyo", 540},
    {"Japan", 540},
    {"Asia/Seoul", 540},
    {"Asia/Bangkok", 420},
    {"Asia/Ho_Chi_Minh", 420},
    {"Asia/Jakarta", 420},
    {"Asia/Dhaka", 360},
    {"Asia/Kolkata", 330},
    {"Asia/Calcutta", 330},
    {"Asia/Kathmandu", 345},
    {"Asia/Karachi", 300},
    {"Asia/Dubai", 240},
    {"Asia/Riyadh", 180},
    {"Asia/Baghdad", 180},
    {"Europe/Moscow", 180},
    {"Europe/Istanbul", 180},
    {"Europe/Minsk", 180},
    {"Africa/Nairobi", 180},
    {"Africa/Johannesburg", 120},
    {"Africa/Lagos", 60},
    {"Africa/Abidjan", 0},
    {"Atlantic/Reykjavik", 0},
    {"America/Sao_Paulo", -180},
    {"America/Argentina/Buenos_Aires", -180},
    {"America/Bogota", -300},
    {"America/Lima", -300},
    {"America/Phoenix", -420},
    {"Pacific/Honolulu", -600},
    {"Australia/Brisbane", 600},
};

enum { ZONE_MINUTES_MIN = -12 * 60, ZONE_MINUTES_MAX = 14 * 60 };

/* "+8:00", "-05:30", "+0800", "+08". */
static bool parse_offset(const char *value, int *minutes)
{
    int digits[4] = {0};
    size_t count = 0;
    size_t before_colon = 0;
    bool colon = false;

    for (const char *p = value + 1; *p != 0; p++) {
        if (*p == ':' && !colon && count > 0) {
            colon = true;
            before_colon = count;
        } else if (*p >= '0' && *p <= '9' && count < 4) {
            digits[count++] = *p - '0';
        } else {
            return false;
        }
    }
    size_t hour_digits = colon ? before_colon : count <= 2 ? count : count - 2;
    if (count == 0 || hour_digits > 2 || (count > hour_digits && count - hour_digits != 2) ||
        (colon && count == hour_digits))
        return false;
    int hours = 0;
    int rest = 0;
    for (size_t i = 0; i < hour_digits; i++)
        hours = hours * 10 + digits[i];
    for (size_t i = hour_digits; i < count; i++)
        rest = rest * 10 + digits[i];
    *minutes = hours * 60 + rest;
    if (*value == '-')
        *minutes = -*minutes;
    return rest < 60 && *minutes >= ZONE_MINUTES_MIN && *minutes <= ZONE_MINUTES_MAX;
}

int load_text_timezone(const char *value, int64_t *offset_us, struct tg_errmsg *msg)
{
    int minutes = 0;
    bool found = false;

    if (*value == '+' || *value == '-') {
        found = parse_offset(value, &minutes);
    } else {
        for (size_t i = 0; i < sizeof ZONES / sizeof ZONES[0] && !found; i++) {
            if (strcasecmp(ZONES[i].name, value) == 0) {
                minutes = ZONES[i].minutes;
                found = true;
            }
        }
    }
    if (!found)
        return tg_fail(msg, TG_INVALID,
                       ANALYSIS "Unknown or incorrect time zone: '%.64s' (an offset such as "
                                "+08:00 or a zone without daylight saving time is expected)",
                       value);
    *offset_us = (int64_t)minutes * 60 * 1000000;
    return 0;
}
