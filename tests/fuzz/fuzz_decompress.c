/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a compressed body: refused, or the same content however the body is cut. The first
 * byte is the kind and the size of the pieces. */
#include <stdint.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "participant/ingest/decompressor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUTPUT_MAX = 1 << 20, READ_BYTES = 7000 };

struct body {
    const uint8_t *bytes;
    size_t len;
    size_t at;
    size_t piece;
};

static int read_body(struct load_source *source, uint8_t *out, size_t cap, uint64_t deadline_ms,
                     size_t *n, struct tg_errmsg *msg)
{
    struct body *body = source->ctx;
    size_t left = body->len - body->at;
    (void)deadline_ms;
    (void)msg;
    *n = left < cap ? left : cap;
    if (*n > body->piece)
        *n = body->piece;
    if (*n > 0)
        memcpy(out, body->bytes + body->at, *n);
    body->at += *n;
    source->received += *n;
    return 0;
}

/* 0 with the content's digest, or why not. Content beyond OUTPUT_MAX is not looked at. */
static int decompress(enum load_compression kind, const uint8_t *bytes, size_t len, size_t piece,
                      struct digest *digest)
{
    struct body body = {.bytes = bytes, .len = len, .piece = piece};
    struct load_source inner = {.read = read_body, .ctx = &body};
    struct decompressor *decompressor;
    struct digest_stream *stream = digest_stream_open();
    struct tg_errmsg msg = {""};
    uint8_t out[READ_BYTES];
    size_t n = 1;
    size_t total = 0;
    TG_CHECK(stream != NULL);
    int err = decompressor_open(kind, &inner, &decompressor);
    if (err == 0) {
        struct load_source *source = decompressor_source(decompressor);
        while (err == 0 && n > 0 && total < OUTPUT_MAX) {
            n = 0;
            err = source->read(source, out, sizeof out, 0, &n, &msg);
            TG_CHECK(n <= sizeof out);
            digest_stream_add(stream, out, total + n > OUTPUT_MAX ? OUTPUT_MAX - total : n);
            total += n;
        }
        TG_CHECK(err == 0 || msg.text[0] != '\0');
        decompressor_close(decompressor);
    }
    *digest = digest_stream_value(stream);
    digest_stream_close(stream);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum load_compression kinds[] = {LOAD_GZ, LOAD_DEFLATE, LOAD_BZ2, LOAD_LZ4};
    struct digest whole, pieces;
    if (size == 0)
        return 0;
    enum load_compression kind = kinds[data[0] % 4];
    size_t piece = 1 + data[0] / 4;
    int err = decompress(kind, data + 1, size - 1, SIZE_MAX, &whole);
    int cut = decompress(kind, data + 1, size - 1, piece, &pieces);
    TG_CHECK((err == 0) == (cut == 0));
    TG_CHECK(err != 0 || digest_equal(&whole, &pieces));
    return 0;
}
