/* SPDX-License-Identifier: Apache-2.0 */
/* The careful way through a CSV row. */
#include "participant/ingest/csv_row.h"

#include <string.h>

static bool matches(const struct load_separator *separator, const uint8_t *text, size_t at,
                    size_t len)
{
    return len - at >= separator->len && memcmp(text + at, separator->bytes, separator->len) == 0;
}

/* A column separator at `at`, unless a line delimiter begins inside it: lines are cut first. */
static bool is_column(const struct csv_format *format, const uint8_t *text, size_t at, size_t len)
{
    if (!matches(&format->column, text, at, len))
        return false;
    for (size_t i = 1; i < format->column.len; i++)
        if (matches(&format->line, text, at + i, len))
            return false;
    return true;
}

/* From behind the opening quote to behind the closing one; false, and to the end of the text, if it
 * is not there. */
static bool skip_enclosed(const struct csv_format *format, const uint8_t *text, size_t *at,
                          size_t len, bool final)
{
    const int enclose = format->enclose;
    const int escape = format->escape != enclose ? format->escape : -1;
    size_t i = *at;

    while (i < len) {
        int c = text[i];
        if (c == escape) {
            i += 2;
        } else if (c != enclose) {
            i++;
        } else if (i + 1 == len && !final) {
            break; /* closing, or the first half of a doubled one: not known yet */
        } else if (i + 1 < len && text[i + 1] == enclose) {
            i += 2;
        } else {
            *at = i + 1;
            return true;
        }
    }
    *at = len;
    return false;
}

bool csv_row_split(const struct csv_format *format, const uint8_t *text, size_t from, size_t len,
                   bool final, uint32_t *begins, uint32_t *ends, struct csv_row *row)
{
    /* Behind the text there may be the rest of a separator: near its end nothing is decided. */
    const size_t look_ahead = final ? 0 : (size_t)format->column.len + format->line.len - 2;
    const uint8_t column = format->column.bytes[0];
    const uint8_t line = format->line.bytes[0];
    size_t at = from;
    size_t begin = from;

    row->found = 0;
    row->open = false;
    if (from == len)
        return false;
    for (;;) {
        if (at == begin && at < len && text[at] == format->enclose) {
            at++;
            row->open = !skip_enclosed(format, text, &at, len, final);
            if (row->open && !final)
                return false;
        }
        while (at < len && text[at] != column && text[at] != line)
            at++;
        if (!final && (at >= len || len - at <= look_ahead))
            return false;
        bool is_end = at >= len || matches(&format->line, text, at, len);
        if (!is_end && !is_column(format, text, at, len)) {
            at++;
            continue;
        }
        if (row->found < format->columns) {
            begins[row->found] = (uint32_t)begin;
            ends[row->found] = (uint32_t)at;
        }
        row->found++;
        if (is_end) {
            row->end = at;
            row->next = at < len ? at + format->line.len : len;
            return true;
        }
        at += format->column.len;
        begin = at;
    }
}

static bool is_null_text(const uint8_t *text, size_t len)
{
    return len == 2 && text[0] == '\\' && text[1] == 'N';
}

/* Copies from..from+len to `to`: an escape byte gives way to the byte behind it, a doubled quote
 * becomes one. Returns the new length. */
static size_t undo_escapes(const uint8_t *from, size_t len, int escape, int doubled, uint8_t *to)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int c = from[i];
        bool more = i + 1 < len;
        if (more && (c == escape || (c == doubled && from[i + 1] == doubled)))
            i++;
        to[n++] = from[i];
    }
    return n;
}

void csv_field_finish(const struct csv_format *format, uint8_t *text, size_t *side,
                      struct csv_field *field)
{
    const uint8_t *begin = text + field->begin;
    size_t len = field->end - field->begin;
    int escape = format->escape != format->enclose ? format->escape : -1;
    int doubled = -1;
    bool quoted = false;

    field->literal = false;
    if (len > 1 && format->enclose >= 0 && begin[0] == format->enclose) {
        quoted = begin[len - 1] == format->enclose;
        doubled = format->enclose;
    } else if (len > 1 && format->trim_double_quotes && begin[0] == '"') {
        quoted = begin[len - 1] == '"';
    }
    if (quoted) {
        begin++;
        len -= 2;
        field->begin++;
        field->end--;
    } else if (is_null_text(begin, len)) {
        return; /* NULL is NULL before escapes are looked at */
    }
    bool rewrite = (escape >= 0 && memchr(begin, escape, len) != NULL) ||
                   (doubled >= 0 && memchr(begin, doubled, len) != NULL);
    if (rewrite) {
        uint8_t *to = text + *side;
        len = undo_escapes(begin, len, escape, doubled, to);
        field->begin = (uint32_t)*side;
        field->end = (uint32_t)(*side + len);
        *side += len;
        begin = to;
    }
    field->literal = is_null_text(begin, len);
}
