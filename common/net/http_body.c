/* SPDX-License-Identifier: Apache-2.0 */
/* Body framing: lengths and chunks. */
#include "common/net/http_body.h"

#include <string.h>

/*   SIZE ─digits─▶ EXTENSION ─▶ SIZE_LF ─▶ DATA ─▶ DATA_CR ─▶ DATA_LF ─▶ SIZE …
 *                                  └─ size 0 ─▶ TRAILER ⇄ TRAILER_LF ─ empty line ─▶ DONE
 */
enum { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, TRAILER_LF, DONE, BROKEN };

void http_body_init(struct http_body *body, enum http_body_kind kind, uint64_t length)
{
    memset(body, 0, sizeof *body);
    body->kind = kind;
    body->left = length;
    body->state = SIZE;
    if (kind == HTTP_BODY_BY_LENGTH)
        body->state = length == 0 ? DONE : DATA;
}

static enum http_body_event http_body_break(struct http_body *body, const char *why)
{
    body->state = BROKEN;
    body->why = why;
    return HTTP_BODY_BROKEN;
}

static int http_body_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}

static void http_body_begin_chunk(struct http_body *body)
{
    body->state = SIZE;
    body->left = 0;
    body->digits = 0;
    body->line_bytes = 0;
}

/* One byte of a chunk's size line. */
static bool http_body_size_byte(struct http_body *body, uint8_t byte)
{
    if (++body->line_bytes > HTTP_CHUNK_LINE_BYTES_MAX)
        return http_body_break(body, "chunk size line too long"), false;
    if (body->state == SIZE) {
        int digit = http_body_digit(byte);
        if (digit >= 0) {
            if (++body->digits > HTTP_CHUNK_DIGITS_MAX)
                return http_body_break(body, "chunk size too large"), false;
            body->left = body->left * 16 + (uint64_t)digit;
            return true;
        }
        if (body->digits == 0 || (byte != ';' && byte != '\r'))
            return http_body_break(body, "malformed chunk size"), false;
        body->state = byte == ';' ? EXTENSION : SIZE_LF;
        return true;
    }
    if (byte == '\r')
        body->state = SIZE_LF;
    else if ((byte < ' ' && byte != '\t') || byte == 0x7f)
        return http_body_break(body, "malformed chunk extension"), false;
    return true;
}

/* One byte of the lines behind the last chunk; what they say is ignored. */
static bool http_body_trailer_byte(struct http_body *body, uint8_t byte)
{
    if (++body->trailer_bytes > HTTP_TRAILER_BYTES_MAX)
        return http_body_break(body, "trailers too long"), false;
    if (body->state == TRAILER_LF) {
        if (byte != '\n')
            return http_body_break(body, "malformed trailer"), false;
        body->state = body->trailer_line_empty ? DONE : TRAILER;
        body->trailer_line_empty = true;
        return true;
    }
    if (byte == '\r') {
        body->state = TRAILER_LF;
        return true;
    }
    if ((byte < ' ' && byte != '\t') || byte == 0x7f ||
        (body->trailer_line_empty && (byte == ' ' || byte == '\t')))
        return http_body_break(body, "malformed trailer"), false;
    body->trailer_line_empty = false;
    return true;
}

/* A byte of framing in any state but DATA. */
static bool http_body_frame_byte(struct http_body *body, uint8_t byte)
{
    switch (body->state) {
    case SIZE:
    case EXTENSION:
        return http_body_size_byte(body, byte);
    case SIZE_LF:
        if (byte != '\n')
            return http_body_break(body, "malformed chunk size"), false;
        body->state = body->left > 0 ? DATA : TRAILER;
        body->trailer_line_empty = true;
        return true;
    case DATA_CR:
        if (byte != '\r')
            return http_body_break(body, "chunk longer than its size"), false;
        body->state = DATA_LF;
        return true;
    case DATA_LF:
        if (byte != '\n')
            return http_body_break(body, "chunk longer than its size"), false;
        http_body_begin_chunk(body);
        return true;
    default:
        return http_body_trailer_byte(body, byte);
    }
}

enum http_body_event http_body_next(struct http_body *body, const uint8_t **at, const uint8_t *end,
                                    struct slice *piece)
{
    if (body->kind == HTTP_BODY_UNTIL_END) {
        *piece = slice_of(*at, (size_t)(end - *at));
        *at = end;
        return piece->len > 0 ? HTTP_BODY_PIECE : HTTP_BODY_MORE;
    }
    for (;;) {
        if (body->state == DONE)
            return HTTP_BODY_DONE;
        if (body->state == BROKEN)
            return HTTP_BODY_BROKEN;
        if (*at == end)
            return HTTP_BODY_MORE;
        if (body->state == DATA) {
            size_t have = (size_t)(end - *at);
            size_t n = body->left < have ? (size_t)body->left : have;
            *piece = slice_of(*at, n);
            *at += n;
            body->left -= n;
            if (body->left == 0)
                body->state = body->kind == HTTP_BODY_BY_LENGTH ? DONE : DATA_CR;
            return HTTP_BODY_PIECE;
        }
        if (!http_body_frame_byte(body, *(*at)++))
            return HTTP_BODY_BROKEN;
    }
}

bool http_body_is_complete(const struct http_body *body)
{
    return body->state == DONE;
}
