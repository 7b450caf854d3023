/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: a connection's bytes as head and body. Whatever they are, the outcome must not depend on
 * where they were cut, and what a head lets through must obey our rules. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/net/http_body.h"
#include "common/net/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_head(const struct http_head *head)
{
    const struct http_request *request = &head->request;
    TG_CHECK(head->minor_version <= 1);
    TG_CHECK(request->header_count <= HTTP_HEADERS_MAX);
    TG_CHECK(strlen(request->target) <= HTTP_TARGET_BYTES_MAX);
    TG_CHECK(request->path[0] == '/' || strcmp(request->path, "*") == 0);
    TG_CHECK(strncmp(request->target, request->path, strlen(request->path)) == 0);
    unsigned hosts = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        const char *name = request->headers[i].name;
        TG_CHECK(name[0] != '\0' && strpbrk(name, " \t\r\n:ABCXYZ") == NULL);
        TG_CHECK(strpbrk(request->headers[i].value, "\r\n") == NULL);
        hosts += strcmp(name, "host") == 0;
    }
    TG_CHECK(hosts == 1 || (hosts == 0 && head->minor_version == 0));
    char out[64];
    http_request_query(request, "a", 0, out, sizeof out);
    http_decode_segment(slice_str(request->path), out, sizeof out);
}

/* The body's bytes in pieces of `step`, summed up. */
static uint64_t decode_body(enum http_body_kind kind, uint64_t length, const uint8_t *data,
                            size_t size, size_t step, enum http_body_event *event)
{
    struct http_body body;
    uint64_t sum = 17;
    http_body_init(&body, kind, length);
    *event = HTTP_BODY_MORE;
    for (size_t from = 0; from < size && *event == HTTP_BODY_MORE; from += step) {
        const uint8_t *at = data + from;
        const uint8_t *end = data + (size - from < step ? size : from + step);
        struct slice piece;
        while ((*event = http_body_next(&body, &at, end, &piece)) == HTTP_BODY_PIECE) {
            TG_CHECK(piece.len > 0 && piece.data + piece.len <= end);
            for (size_t i = 0; i < piece.len; i++)
                sum = sum * 31 + piece.data[i];
        }
        TG_CHECK(at <= end);
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_head head;
    struct http_head_scan whole = {0};
    struct http_head_scan pieces = {0};
    size_t end = 0;
    size_t pieces_end = 0;
    int err = http_head_scan(&whole, data, size, &end);
    int pieces_err = TG_INCOMPLETE;
    for (size_t len = 1; len <= size && pieces_err == TG_INCOMPLETE; len++)
        pieces_err = http_head_scan(&pieces, data, len, &pieces_end);
    TG_CHECK(err == pieces_err && end == pieces_end && whole.status == pieces.status);
    if (err != 0)
        return 0;
    char *text = malloc(http_head_text_bytes(end));
    TG_CHECK(text != NULL);
    memcpy(text, data, end);
    int status = 0;
    const char *why = NULL;
    if (http_head_parse(&head, text, end, &status, &why) == 0)
        check_head(&head);
    else
        TG_CHECK(status >= 400 && why != NULL);
    free(text);

    enum http_body_event at_once;
    enum http_body_event bytewise;
    uint64_t sum = decode_body(HTTP_BODY_BY_CHUNKS, 0, data + end, size - end, size + 1, &at_once);
    TG_CHECK(sum == decode_body(HTTP_BODY_BY_CHUNKS, 0, data + end, size - end, 1, &bytewise));
    TG_CHECK(at_once == bytewise);
    return 0;
}
