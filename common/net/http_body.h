/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a body out of its framing: a length, chunks, or everything until the connection
 * ends. Pure and strict: the two bytes after a chunk are checked, size lines and trailers are
 * bounded. */
#ifndef TG_COMMON_NET_HTTP_BODY_H
#define TG_COMMON_NET_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"

enum {
    HTTP_CHUNK_LINE_BYTES_MAX = 256, /* size and extensions */
    HTTP_CHUNK_DIGITS_MAX = 15,      /* hexadecimal; fits into 60 bits */
    HTTP_TRAILER_BYTES_MAX = 8 * 1024
};

enum http_body_kind { HTTP_BODY_BY_LENGTH, HTTP_BODY_BY_CHUNKS, HTTP_BODY_UNTIL_END };

enum http_body_event {
    HTTP_BODY_MORE,  /* all bytes are used, more are to come */
    HTTP_BODY_PIECE, /* *piece holds bytes of the body; call again */
    HTTP_BODY_DONE,  /* the body is complete; bytes behind it are left */
    HTTP_BODY_BROKEN /* not a body: body->why */
};

struct http_body {
    enum http_body_kind kind;
    uint64_t left; /* of the length, or of the chunk */
    unsigned state;
    unsigned digits;
    unsigned line_bytes;
    unsigned trailer_bytes;
    bool trailer_line_empty;
    const char *why;
};

/* length is used by HTTP_BODY_BY_LENGTH only. */
void http_body_init(struct http_body *body, enum http_body_kind kind, uint64_t length);
/* Goes on with bytes *at..end, moving *at over what was used. */
enum http_body_event http_body_next(struct http_body *body, const uint8_t **at, const uint8_t *end,
                                    struct slice *piece);
/* True if everything came; the event that says so may still be due. */
bool http_body_is_complete(const struct http_body *body);

#endif
