/* SPDX-License-Identifier: Apache-2.0 */
/* What all message codecs share. */
#include "common/proto/codec.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checksum.h"
#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/message.h"

/* A head with more fields than any version of ours ever had is refused before its version. */
enum { FIELDS_MAX = 255 };

void codec_begin(struct buf *out, uint32_t fields)
{
    mp_array(out, fields + 1);
    mp_uint(out, MESSAGE_VERSION);
}

void codec_open(struct cursor *cursor, struct slice head, uint32_t fields)
{
    cursor_init(cursor, head.data, head.len);
    uint32_t count = mp_read_array(cursor, FIELDS_MAX);
    uint64_t version = mp_read_uint(cursor);
    if (version != MESSAGE_VERSION)
        cursor_fail(cursor, TG_UNSUPPORTED);
    if (count != fields + 1)
        cursor_fail(cursor, TG_CORRUPT);
}

void *codec_read_list(struct cursor *cursor, uint32_t max, size_t item_bytes, uint32_t *count)
{
    *count = 0;
    uint32_t claimed = mp_read_array(cursor, max);
    if (claimed == 0)
        return NULL;
    void *items = calloc(claimed, item_bytes);
    if (items == NULL) {
        cursor_fail(cursor, TG_NOMEM);
        return NULL;
    }
    *count = claimed;
    return items;
}

void codec_write_ids(struct buf *out, const uint64_t *ids, uint32_t count)
{
    mp_array(out, count);
    for (uint32_t i = 0; i < count; i++)
        mp_uint(out, ids[i]);
}

uint64_t *codec_read_ids(struct cursor *cursor, uint32_t max, uint32_t *count)
{
    uint64_t *ids = codec_read_list(cursor, max, sizeof *ids, count);
    for (uint32_t i = 0; i < *count; i++)
        ids[i] = mp_read_uint(cursor);
    return ids;
}

void codec_write_u32s(struct buf *out, const uint32_t *values, uint32_t count)
{
    mp_array(out, count);
    for (uint32_t i = 0; i < count; i++)
        mp_uint(out, values[i]);
}

uint32_t *codec_read_u32s(struct cursor *cursor, uint32_t max, uint32_t *count)
{
    uint32_t *values = codec_read_list(cursor, max, sizeof *values, count);
    for (uint32_t i = 0; i < *count; i++)
        values[i] = codec_read_u32(cursor);
    return values;
}

void codec_write_nodes(struct buf *out, const node_id *nodes, uint32_t count)
{
    codec_write_u32s(out, nodes, count);
}

uint8_t codec_read_nodes(struct cursor *cursor, node_id nodes[REPLICAS_MAX])
{
    uint32_t count = mp_read_array(cursor, REPLICAS_MAX);
    for (uint32_t i = 0; i < count; i++)
        nodes[i] = codec_read_u32(cursor);
    return (uint8_t)count;
}

void codec_write_digest(struct buf *out, const struct digest *digest)
{
    mp_bin(out, digest->bytes, sizeof digest->bytes);
}

void codec_read_digest(struct cursor *cursor, struct digest *digest)
{
    struct slice bytes = mp_read_bin(cursor, sizeof digest->bytes);
    if (bytes.len != sizeof digest->bytes) {
        cursor_fail(cursor, TG_CORRUPT);
        return;
    }
    memcpy(digest->bytes, bytes.data, sizeof digest->bytes);
}

uint32_t codec_read_u32(struct cursor *cursor)
{
    return (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
}

void codec_read_buf(struct cursor *cursor, size_t max, struct buf *out)
{
    struct slice bytes = mp_read_bin(cursor, max);
    buf_append(out, bytes.data, bytes.len);
    if (out->err != 0)
        cursor_fail(cursor, out->err);
}
