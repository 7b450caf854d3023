/* SPDX-License-Identifier: Apache-2.0 */
/* What all message codecs share: the head's array with its version, and lists that are allocated
 * only as far as the bytes at hand can fill them. */
#ifndef TG_COMMON_PROTO_CODEC_H
#define TG_COMMON_PROTO_CODEC_H

#include "common/base/buf.h"
#include "common/model/ids.h"

/* Opens a message of `fields` fields (the version is not counted). */
void codec_begin(struct buf *out, uint32_t fields);

/* The same for reading. A version other than MESSAGE_VERSION: TG_UNSUPPORTED in the cursor. */
void codec_open(struct cursor *cursor, struct slice head, uint32_t fields);

/* Reads an array's count (at most max) and returns that many zeroed items, to be freed by the
 * caller. NULL when the count is 0 or the cursor failed; *count is 0 then. */
void *codec_read_list(struct cursor *cursor, uint32_t max, size_t item_bytes, uint32_t *count);

/* A list of 64-bit numbers. */
void codec_write_ids(struct buf *out, const uint64_t *ids, uint32_t count);
uint64_t *codec_read_ids(struct cursor *cursor, uint32_t max, uint32_t *count);

/* A list of 32-bit numbers. */
void codec_write_u32s(struct buf *out, const uint32_t *values, uint32_t count);
uint32_t *codec_read_u32s(struct cursor *cursor, uint32_t max, uint32_t *count);

/* A replica set: at most REPLICAS_MAX nodes. Returns how many. */
void codec_write_nodes(struct buf *out, const node_id *nodes, uint32_t count);
uint8_t codec_read_nodes(struct cursor *cursor, node_id nodes[REPLICAS_MAX]);

struct digest;
void codec_write_digest(struct buf *out, const struct digest *digest);
void codec_read_digest(struct cursor *cursor, struct digest *digest);

uint32_t codec_read_u32(struct cursor *cursor);

/* Bytes into an initialised, empty buf; fails over max. */
void codec_read_buf(struct cursor *cursor, size_t max, struct buf *out);

#endif
