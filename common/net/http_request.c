/* SPDX-License-Identifier: Apache-2.0 */
/* Looking things up in a request: headers, query parameters, percent escapes. */
#include <stdio.h>
#include <string.h>

#include "common/net/http_server.h"

enum { HTTP_QUERY_NAME_BYTES = 128 };

const char *http_request_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcmp(request->headers[i].name, name) == 0)
            return request->headers[i].value[0] == '\0' ? NULL : request->headers[i].value;
    return NULL;
}

static int http_hex(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static int http_decode(struct slice text, bool plus_is_blank, char *out, size_t cap)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = text.data[i];
        if (byte == '%') {
            int high = i + 2 < text.len ? http_hex(text.data[i + 1]) : -1;
            int low = i + 2 < text.len ? http_hex(text.data[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0)
                return TG_INVALID; /* %00 would cut the text short */
            byte = (uint8_t)(high * 16 + low);
            i += 2;
        } else if (byte == '+' && plus_is_blank) {
            byte = ' ';
        }
        if (len + 1 >= cap)
            return TG_TOO_LARGE;
        out[len++] = (char)byte;
    }
    if (cap == 0)
        return TG_TOO_LARGE;
    out[len] = '\0';
    return 0;
}

int http_decode_segment(struct slice text, char *out, size_t cap)
{
    return http_decode(text, false, out, cap);
}

int http_request_query(const struct http_request *request, const char *name, unsigned nth,
                       char *out, size_t cap)
{
    const char *at = request->query;
    while (*at != '\0') {
        size_t len = strcspn(at, "&");
        size_t name_len = strcspn(at, "=&");
        char found[HTTP_QUERY_NAME_BYTES];
        if (http_decode(slice_of(at, name_len), true, found, sizeof found) == 0 &&
            strcmp(found, name) == 0 && nth-- == 0) {
            const char *value = at + name_len + (name_len < len ? 1 : 0);
            return http_decode(slice_of(value, (size_t)(at + len - value)), true, out, cap);
        }
        at += len;
        if (*at == '&')
            at++;
    }
    return TG_NOT_FOUND;
}

static bool is_known(struct slice name, const char *const *known, size_t count)
{
    char decoded[HTTP_QUERY_NAME_BYTES];
    if (http_decode(name, true, decoded, sizeof decoded) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(decoded, known[i]) == 0)
            return true;
    }
    return false;
}

int http_request_stranger(const struct http_request *request, const char *const *known,
                          size_t count, char *out, size_t cap)
{
    for (const char *at = request->query; *at != '\0'; at += *at == '&') {
        size_t len = strcspn(at, "&");
        size_t name_len = strcspn(at, "=&");
        if (len > 0 && !is_known(slice_of(at, name_len), known, count)) {
            snprintf(out, cap, "%.*s", (int)name_len, at);
            return 0;
        }
        at += len;
    }
    return TG_NOT_FOUND;
}

void http_encode_userinfo(const char *text, struct buf *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text != '\0'; text++) {
        uint8_t byte = (uint8_t)*text;
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || strchr("-._~", byte) != NULL;
        if (plain) {
            buf_append_u8(out, byte);
        } else {
            buf_append_u8(out, '%');
            buf_append_u8(out, (uint8_t)digits[byte >> 4]);
            buf_append_u8(out, (uint8_t)digits[byte & 15]);
        }
    }
}
