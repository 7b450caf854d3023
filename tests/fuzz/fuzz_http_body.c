/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a body in chunks, and as the first bytes of a link between nodes: the same outcome
 * however they are cut. */
#include <stdint.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/net/http_body.h"
#include "common/net/rpc_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The last event and the digest of the content; *used is where the body ended. */
static enum http_body_event read_body(const uint8_t *data, size_t size, size_t piece, size_t *used,
                                      struct digest *digest)
{
    struct http_body body;
    struct digest_stream *stream = digest_stream_open();
    enum http_body_event event = HTTP_BODY_MORE;
    const uint8_t *at = data;
    TG_CHECK(stream != NULL);
    http_body_init(&body, HTTP_BODY_BY_CHUNKS, 0);
    while (event == HTTP_BODY_MORE && at < data + size) {
        size_t left = (size_t)(data + size - at);
        const uint8_t *end = at + (left < piece ? left : piece);
        struct slice content;
        do {
            event = http_body_next(&body, &at, end, &content);
            TG_CHECK(at <= end);
            if (event == HTTP_BODY_PIECE)
                digest_stream_add(stream, content.data, content.len);
        } while (event == HTTP_BODY_PIECE);
        TG_CHECK(event != HTTP_BODY_MORE || at == end);
    }
    TG_CHECK(http_body_is_complete(&body) == (event == HTTP_BODY_DONE));
    *used = (size_t)(at - data);
    *digest = digest_stream_value(stream);
    digest_stream_close(stream);
    return event;
}

static int feed_hello(bool accepting, const uint8_t *data, size_t size, size_t piece)
{
    static const unsigned char nonce[AUTH_NONCE_BYTES] = {1, 2, 3};
    struct rpc_hello hello;
    struct buf out = BUF_INIT;
    int err = TG_INCOMPLETE;
    rpc_hello_init(&hello, "rpc", "secret", accepting, nonce, &out);
    for (size_t at = 0; at < size && err == TG_INCOMPLETE;) {
        size_t n = size - at < piece ? size - at : piece;
        size_t used = 0;
        err = rpc_hello_feed(&hello, data + at, n, &used, &out);
        TG_CHECK(used <= n);
        at += n;
    }
    TG_CHECK(err != 0); /* nobody guesses a proof */
    buf_close(&out);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct digest whole, pieces;
    size_t used, used_again;
    if (size == 0)
        return 0;
    size_t piece = 1 + data[0] % 16;
    data++;
    size--;
    enum http_body_event event = read_body(data, size, SIZE_MAX / 2, &used, &whole);
    TG_CHECK(read_body(data, size, piece, &used_again, &pieces) == event);
    TG_CHECK(event == HTTP_BODY_BROKEN || (used == used_again && digest_equal(&whole, &pieces)));
    for (int accepting = 0; accepting < 2; accepting++)
        TG_CHECK(feed_hello(accepting == 1, data, size, size + 1) ==
                 feed_hello(accepting == 1, data, size, piece));
    return 0;
}
