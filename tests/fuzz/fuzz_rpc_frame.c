/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: a stream of bytes as RPC frames, whole and cut, as they are and with their checksums made
 * right (so that the fuzzer gets past them), and as a hello. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/endian.h"
#include "common/net/rpc.h"
#include "common/net/rpc_frame.h"
#include "common/net/rpc_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    unsigned frames;
    uint64_t sum;
};

static bool seen_frame(void *data, const struct rpc_frame *frame, uint8_t *body)
{
    struct seen *seen = data;
    size_t len = frame->text.len + frame->head.len + frame->payload.len;
    TG_CHECK(frame->text.len <= RPC_FRAME_TEXT_BYTES_MAX);
    TG_CHECK(frame->head.len <= RPC_HEAD_BYTES_MAX);
    TG_CHECK(frame->payload.len <= RPC_PAYLOAD_BYTES_MAX);
    TG_CHECK((len == 0) == (body == NULL));
    seen->frames++;
    seen->sum = seen->sum * 31 + frame->id + checksum64(len == 0 ? "" : (char *)body, len);
    free(body);
    return true;
}

static int read_all(const uint8_t *data, size_t size, size_t step, struct seen *seen)
{
    struct rpc_reader reader;
    rpc_reader_init(&reader);
    int err = 0;
    for (size_t from = 0; from < size && err == 0; from += step) {
        size_t n = size - from < step ? size - from : step;
        err = rpc_reader_feed(&reader, data + from, n, seen_frame, seen);
    }
    rpc_reader_close(&reader);
    return err;
}

static void check_stream(const uint8_t *data, size_t size)
{
    struct seen whole = {0};
    struct seen cut = {0};
    int err = read_all(data, size, size + 1, &whole);
    TG_CHECK(err == read_all(data, size, 7, &cut));
    TG_CHECK(whole.frames == cut.frames && whole.sum == cut.sum);
}

static void check_hello(const uint8_t *data, size_t size, bool accepting)
{
    static const unsigned char nonce[AUTH_NONCE_BYTES] = {1, 2, 3};
    struct rpc_hello hello;
    struct buf out = BUF_INIT;
    size_t used = 0;
    rpc_hello_init(&hello, "rpc", "secret", accepting, nonce, &out);
    int err = rpc_hello_feed(&hello, data, size, &used, &out);
    TG_CHECK(err != 0); /* nobody guesses a proof */
    TG_CHECK(used <= size);
    buf_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_stream(data, size);
    check_hello(data, size, true);
    check_hello(data, size, false);
    if (size < RPC_FRAME_HEADER_BYTES)
        return 0;
    uint8_t *fixed = malloc(size);
    TG_CHECK(fixed != NULL);
    memcpy(fixed, data, size);
    /* one frame over all the bytes there are, so that its sums can be right */
    size_t body = size - RPC_FRAME_HEADER_BYTES;
    size_t text = load_u32le(fixed + 20) % (body + 1);
    size_t head = load_u32le(fixed + 24) % (body - text + 1);
    size_t rest = body - text - head;
    const uint8_t *at = fixed + RPC_FRAME_HEADER_BYTES;
    struct rpc_frame frame = {.flags = fixed[5],
                              .type = load_u16le(fixed + 6),
                              .id = load_u64le(fixed + 8),
                              .err = (int)load_u32le(fixed + 16),
                              .text = slice_of(at, text),
                              .head = slice_of(at + text, head),
                              .payload = slice_of(at + text + head, rest)};
    rpc_frame_encode(&frame, fixed);
    check_stream(fixed, size);
    free(fixed);
    return 0;
}
