/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to a request head. Pure, and the only file that knows the parser library: first a strict
 * scan of our own (line ends, folded lines, control characters, size), then the parser, then the
 * rules it leaves open. */
#ifndef TG_COMMON_NET_HTTP_HEAD_H
#define TG_COMMON_NET_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/http_server.h"

/* Where a scan stands; all zero at the start of a head. */
struct http_head_scan {
    size_t at;         /* bytes looked at */
    size_t line_start; /* where the current line begins */
    bool first_line_done;
    int status;      /* after an error: the HTTP status to answer with */
    const char *why; /* after an error: one sentence */
};

/* bytes begin at the head's first byte and may grow from call to call (at any address). 0: *end is
 * the head's length with its blank line. TG_INCOMPLETE: more is needed. TG_INVALID or TG_TOO_LARGE:
 * scan->status, scan->why. */
int http_head_scan(struct http_head_scan *scan, const uint8_t *bytes, size_t len, size_t *end);

struct http_head {
    struct http_request request;
    unsigned minor_version; /* HTTP/1.0 or 1.1 */
    struct http_header headers[HTTP_HEADERS_MAX];
};

/* How much memory http_head_parse needs at text for a head of len bytes. */
static inline size_t http_head_text_bytes(size_t len)
{
    return 2 * len + 2;
}

/* Parses a head that http_head_scan accepted. text holds its len bytes in http_head_text_bytes(len)
 * of memory and becomes the strings of head. Returns 0, or TG_INVALID or TG_TOO_LARGE with the
 * status to answer and a sentence. request.peer is left empty. */
int http_head_parse(struct http_head *head, char *text, size_t len, int *status, const char **why);

#endif
