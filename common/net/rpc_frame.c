/* SPDX-License-Identifier: Apache-2.0 */
/* Codec of the RPC frame. */
#include "common/net/rpc_frame.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checksum.h"
#include "common/base/endian.h"
#include "common/net/rpc.h"

enum {
    RPC_FRAME_MAGIC = 0x46524754, /* "TGRF" */
    RPC_FRAME_VERSION = 1,
    RPC_READER_DIRECT_MIN = 16 * 1024 /* less than this missing is copied out of a shared buffer */
};

static uint64_t rpc_frame_head_sum(const struct rpc_frame *frame)
{
    uint64_t sum = checksum64(frame->head.data, frame->head.len);
    return frame->text.len == 0 ? sum : sum ^ checksum64(frame->text.data, frame->text.len);
}

static uint64_t rpc_frame_payload_sum(const struct rpc_frame *frame)
{
    return frame->payload.len == 0 ? 0 : checksum64(frame->payload.data, frame->payload.len);
}

void rpc_frame_encode(const struct rpc_frame *frame, uint8_t header[RPC_FRAME_HEADER_BYTES])
{
    store_u32le(header, RPC_FRAME_MAGIC);
    header[4] = RPC_FRAME_VERSION;
    header[5] = frame->flags;
    store_u16le(header + 6, frame->type);
    store_u64le(header + 8, frame->id);
    store_u32le(header + 16, (uint32_t)frame->err);
    store_u32le(header + 20, (uint32_t)frame->text.len);
    store_u32le(header + 24, (uint32_t)frame->head.len);
    store_u32le(header + 28, (uint32_t)frame->payload.len);
    store_u64le(header + 32, rpc_frame_head_sum(frame));
    store_u64le(header + 40, rpc_frame_payload_sum(frame));
    store_u64le(header + 48, checksum64(header, 48));
}

static int rpc_frame_refuse(int err, const char *sentence, const char **why)
{
    *why = sentence;
    return err;
}

int rpc_frame_decode(const uint8_t header[RPC_FRAME_HEADER_BYTES], struct rpc_frame_header *out,
                     const char **why)
{
    if (load_u32le(header) != RPC_FRAME_MAGIC)
        return rpc_frame_refuse(TG_CORRUPT, "not a frame", why);
    if (header[4] != RPC_FRAME_VERSION)
        return rpc_frame_refuse(TG_UNSUPPORTED, "unknown frame version", why);
    if (load_u64le(header + 48) != checksum64(header, 48))
        return rpc_frame_refuse(TG_CORRUPT, "frame header does not match its checksum", why);
    struct rpc_frame *frame = &out->frame;
    frame->flags = header[5];
    frame->type = load_u16le(header + 6);
    frame->id = load_u64le(header + 8);
    frame->err = (int)load_u32le(header + 16);
    frame->text = slice_of(NULL, load_u32le(header + 20));
    frame->head = slice_of(NULL, load_u32le(header + 24));
    frame->payload = slice_of(NULL, load_u32le(header + 28));
    out->head_sum = load_u64le(header + 32);
    out->payload_sum = load_u64le(header + 40);
    if ((frame->flags & ~RPC_FRAME_REPLY) != 0)
        return rpc_frame_refuse(TG_UNSUPPORTED, "unknown frame flag", why);
    if (frame->err > 0 || (frame->err != 0 && frame->flags == 0))
        return rpc_frame_refuse(TG_CORRUPT, "frame with an impossible error", why);
    if (frame->text.len > RPC_FRAME_TEXT_BYTES_MAX)
        return rpc_frame_refuse(TG_TOO_LARGE, "frame's text is too long", why);
    if (frame->head.len > RPC_HEAD_BYTES_MAX)
        return rpc_frame_refuse(TG_TOO_LARGE, "frame's head is too long", why);
    if (frame->payload.len > RPC_PAYLOAD_BYTES_MAX)
        return rpc_frame_refuse(TG_TOO_LARGE, "frame's payload is too long", why);
    return 0;
}

int rpc_frame_open(struct rpc_frame_header *header, const uint8_t *body, const char **why)
{
    struct rpc_frame *frame = &header->frame;
    if (frame->text.len > 0) {
        frame->text.data = body;
        body += frame->text.len;
    }
    if (frame->head.len > 0) {
        frame->head.data = body;
        body += frame->head.len;
    }
    if (frame->payload.len > 0)
        frame->payload.data = body;
    if (rpc_frame_head_sum(frame) != header->head_sum)
        return rpc_frame_refuse(TG_CORRUPT, "frame's head does not match its checksum", why);
    if (rpc_frame_payload_sum(frame) != header->payload_sum)
        return rpc_frame_refuse(TG_CORRUPT, "frame's payload does not match its checksum", why);
    return 0;
}

void rpc_reader_init(struct rpc_reader *reader)
{
    memset(reader, 0, sizeof *reader);
}

void rpc_reader_close(struct rpc_reader *reader)
{
    free(reader->body);
    rpc_reader_init(reader);
}

uint8_t *rpc_reader_space(struct rpc_reader *reader, size_t *len)
{
    size_t missing = reader->body_len - reader->body_have;
    if (reader->body == NULL || missing < RPC_READER_DIRECT_MIN)
        return NULL;
    *len = missing;
    return reader->body + reader->body_have;
}

static size_t rpc_reader_take(uint8_t *to, size_t have, size_t want, const uint8_t *bytes,
                              size_t len)
{
    size_t n = want - have < len ? want - have : len;
    if (n > 0 && to + have != bytes)
        memcpy(to + have, bytes, n);
    return n;
}

static int rpc_reader_begin_body(struct rpc_reader *reader)
{
    int err = rpc_frame_decode(reader->header_bytes, &reader->header, &reader->why);
    if (err != 0)
        return err;
    const struct rpc_frame *frame = &reader->header.frame;
    reader->body_have = 0;
    reader->body_len = frame->text.len + frame->head.len + frame->payload.len;
    if (reader->body_len == 0)
        return 0;
    reader->body = malloc(reader->body_len);
    return reader->body != NULL ? 0
                                : rpc_frame_refuse(TG_NOMEM, "no memory for a frame", &reader->why);
}

int rpc_reader_feed(struct rpc_reader *reader, const uint8_t *bytes, size_t len,
                    rpc_reader_frame *on_frame, void *data)
{
    while (len > 0) {
        if (reader->header_have < RPC_FRAME_HEADER_BYTES) {
            size_t n = rpc_reader_take(reader->header_bytes, reader->header_have,
                                       RPC_FRAME_HEADER_BYTES, bytes, len);
            reader->header_have += n;
            bytes += n;
            len -= n;
            if (reader->header_have < RPC_FRAME_HEADER_BYTES)
                return 0;
            int err = rpc_reader_begin_body(reader);
            if (err != 0)
                return err;
        }
        if (reader->body != NULL) {
            size_t n =
                rpc_reader_take(reader->body, reader->body_have, reader->body_len, bytes, len);
            reader->body_have += n;
            bytes += n;
            len -= n;
        }
        if (reader->body_have < reader->body_len)
            return 0;
        int err = rpc_frame_open(&reader->header, reader->body, &reader->why);
        if (err != 0)
            return err;
        /* The frame leaves with its body before the callee can come back to this reader. */
        struct rpc_frame frame = reader->header.frame;
        uint8_t *body = reader->body;
        reader->body = NULL;
        reader->body_len = 0;
        reader->body_have = 0;
        reader->header_have = 0;
        if (!on_frame(data, &frame, body))
            return 0;
    }
    return 0;
}
