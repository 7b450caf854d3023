/* SPDX-License-Identifier: Apache-2.0 */
/* Where a JSON document ends, found by counting brackets outside of strings. */
#include <string.h>

#include "common/base/json.h"

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* What ends a number or a word. */
static bool is_delimiter(uint8_t c)
{
    return is_blank(c) || (c != 0 && strchr(",:[]{}\"", c) != NULL);
}

void json_scan_init(struct json_scan *scan)
{
    *scan = (struct json_scan){0};
}

/* The rest of a string: returns where it ends, len if it does not. */
static size_t scan_string(struct json_scan *scan, const uint8_t *text, size_t at, size_t len)
{
    for (; at < len; at++) {
        if (scan->escaped) {
            scan->escaped = false;
        } else if (text[at] == '\\') {
            scan->escaped = true;
        } else if (text[at] == '"') {
            scan->in_string = false;
            return at + 1;
        }
    }
    return len;
}

static size_t scan_start(struct json_scan *scan, const uint8_t *text, size_t at, size_t len)
{
    while (at < len && is_blank(text[at]))
        at++;
    if (at == len)
        return at;
    scan->started = true;
    scan->in_string = text[at] == '"';
    scan->depth = text[at] == '{' || text[at] == '[';
    scan->scalar = !scan->in_string && scan->depth == 0;
    return at + 1; /* also over a byte that starts nothing: whoever scans goes on */
}

int json_scan_feed(struct json_scan *scan, const void *piece, size_t len, size_t *used)
{
    const uint8_t *text = piece;
    size_t at = 0;
    *used = len;
    if (!scan->started) {
        at = scan_start(scan, text, at, len);
        if (!scan->started)
            return TG_INCOMPLETE;
    }
    if (scan->scalar) {
        while (at < len && !is_delimiter(text[at]))
            at++;
        *used = at;
        return at < len ? 0 : TG_INCOMPLETE;
    }
    for (;;) {
        if (scan->in_string) {
            at = scan_string(scan, text, at, len);
            if (scan->in_string)
                return TG_INCOMPLETE;
        }
        if (scan->depth == 0) {
            *used = at;
            return 0;
        }
        if (at == len)
            return TG_INCOMPLETE;
        uint8_t c = text[at++];
        if (c == '"') {
            scan->in_string = true;
        } else if (c == '{' || c == '[') {
            if (++scan->depth > JSON_SCAN_DEPTH_MAX)
                return TG_LIMIT;
        } else if (c == '}' || c == ']') {
            scan->depth--;
        }
    }
}
