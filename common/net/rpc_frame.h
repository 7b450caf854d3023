/* SPDX-License-Identifier: Apache-2.0 */
/* The RPC frame: a fixed header, then text, head and payload. Pure: bytes in, frames out.
 *
 *   offset  bytes  little-endian
 *        0      4  magic "TGRF"
 *        4      1  version, 1
 *        5      1  flags: bit 0 = reply; all others 0
 *        6      2  type
 *        8      8  request id
 *       16      4  error: 0 or an enum tg_err (replies only)
 *       20      4  length of text
 *       24      4  length of head
 *       28      4  length of payload
 *       32      8  XXH3 of head, xor XXH3 of text if there is any
 *       40      8  XXH3 of payload, 0 if there is none
 *       48      8  XXH3 of bytes 0..47
 *       56         text, head, payload
 *
 * The header guards itself, so its lengths are trusted (and still held against their caps) before
 * memory is taken for what follows. */
#ifndef TG_COMMON_NET_RPC_FRAME_H
#define TG_COMMON_NET_RPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

enum {
    RPC_FRAME_HEADER_BYTES = 56,
    RPC_FRAME_TEXT_BYTES_MAX = TG_ERRMSG_MAX,
    RPC_FRAME_REPLY = 1 /* flag */
};

struct rpc_frame {
    uint8_t flags;
    uint16_t type;
    uint64_t id;
    int err;
    struct slice text;
    struct slice head;
    struct slice payload;
};

/* Header of a frame whose parts are given; each part must be within its cap. */
void rpc_frame_encode(const struct rpc_frame *frame, uint8_t header[RPC_FRAME_HEADER_BYTES]);

struct rpc_frame_header {
    struct rpc_frame frame; /* parts have their lengths, data is NULL */
    uint64_t head_sum;
    uint64_t payload_sum;
};
/* Reads and checks a header. TG_CORRUPT or TG_UNSUPPORTED (version) or TG_TOO_LARGE, *why a
 * sentence. */
int rpc_frame_decode(const uint8_t header[RPC_FRAME_HEADER_BYTES], struct rpc_frame_header *out,
                     const char **why);
/* Points the frame's parts into body (as long as the lengths say) and checks their sums:
 * TG_CORRUPT. */
int rpc_frame_open(struct rpc_frame_header *header, const uint8_t *body, const char **why);

/* Frames out of a stream of bytes, cut anywhere. */
struct rpc_reader {
    uint8_t header_bytes[RPC_FRAME_HEADER_BYTES];
    size_t header_have;
    struct rpc_frame_header header;
    uint8_t *body; /* of the frame that is coming in */
    size_t body_len;
    size_t body_have;
    const char *why; /* after an error */
};

/* frame's parts lie in body, which is the callee's to free() (NULL if the frame has none). Return
 * false to stop reading for good. */
typedef bool rpc_reader_frame(void *data, const struct rpc_frame *frame, uint8_t *body);

void rpc_reader_init(struct rpc_reader *reader);
void rpc_reader_close(struct rpc_reader *reader);
/* Where the next bytes of a large body should be read to, so that they need no copy; NULL:
 * anywhere. */
uint8_t *rpc_reader_space(struct rpc_reader *reader, size_t *len);
/* Takes len bytes (perhaps read to rpc_reader_space). 0, or the error that ends the stream. */
int rpc_reader_feed(struct rpc_reader *reader, const uint8_t *bytes, size_t len,
                    rpc_reader_frame *on_frame, void *data);

#endif
