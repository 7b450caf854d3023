/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of an answer's head. Pure. */
#ifndef TG_COMMON_NET_HTTP_ANSWER_H
#define TG_COMMON_NET_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/base/buf.h"

enum http_answer_framing {
    HTTP_ANSWER_LENGTH,
    HTTP_ANSWER_CHUNKED,
    HTTP_ANSWER_UNTIL_END, /* HTTP/1.0: the end of the connection is the end of the answer */
    HTTP_ANSWER_NO_BODY    /* 204, 304 */
};

struct http_answer {
    int status;
    const char *content_type; /* may be NULL */
    const char *headers;      /* whole lines, or NULL */
    enum http_answer_framing framing;
    size_t length;
    bool keep_alive;
    time_t now;
};

const char *http_status_text(int status);
void http_answer_head(struct buf *out, const struct http_answer *answer);
void http_answer_chunk_begin(struct buf *out, size_t len);

#endif
