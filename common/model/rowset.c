/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a rowset: its list of blocks, and its msgpack form (docs/formats.md). */
#include "common/model/rowset.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/model/rowset_block.h"

enum { META_VERSION = 1, META_FIELDS = 12, BLOCK_FIELDS = 5, BLOCKS_FIRST_CAPACITY = 8 };

void rowset_meta_init(struct rowset_meta *meta)
{
    *meta = (struct rowset_meta){0};
    buf_init(&meta->key_bytes);
}

void rowset_meta_close(struct rowset_meta *meta)
{
    free(meta->blocks);
    buf_close(&meta->key_bytes);
    rowset_meta_init(meta);
}

/* Room for `bytes` more key bytes; if that moves them, the blocks' keys follow. */
static int reserve_keys(struct rowset_meta *meta, size_t bytes)
{
    uintptr_t before = (uintptr_t)meta->key_bytes.data;
    if (buf_reserve(&meta->key_bytes, bytes) != 0) {
        meta->key_bytes.err = 0; /* what was there is whole */
        return TG_NOMEM;
    }
    if ((uintptr_t)meta->key_bytes.data == before)
        return 0;
    for (uint32_t i = 0; i < meta->block_count; i++) {
        struct slice *keys[] = {&meta->blocks[i].first_key, &meta->blocks[i].last_key};
        for (int k = 0; k < 2; k++)
            if (keys[k]->len > 0)
                keys[k]->data = meta->key_bytes.data + ((uintptr_t)keys[k]->data - before);
    }
    return 0;
}

static int reserve_block(struct rowset_meta *meta)
{
    if (meta->block_count < meta->block_capacity)
        return 0;
    uint32_t capacity =
        meta->block_capacity == 0 ? BLOCKS_FIRST_CAPACITY : meta->block_capacity * 2;
    struct rowset_block_ref *blocks = realloc(meta->blocks, capacity * sizeof *blocks);
    if (blocks == NULL)
        return TG_NOMEM;
    meta->blocks = blocks;
    meta->block_capacity = capacity;
    return 0;
}

/* Room was reserved. Empty keys point nowhere. */
static struct slice keep_key(struct rowset_meta *meta, struct slice key)
{
    if (key.len == 0)
        return slice_of(NULL, 0);
    buf_append(&meta->key_bytes, key.data, key.len);
    return slice_of(meta->key_bytes.data + meta->key_bytes.len - key.len, key.len);
}

static struct slice cut_key(struct slice key)
{
    return slice_of(key.data, key.len < ROWSET_REF_KEY_MAX ? key.len : ROWSET_REF_KEY_MAX);
}

int rowset_meta_add_block(struct rowset_meta *meta, uint64_t offset, uint32_t len, uint32_t rows,
                          uint32_t segment, struct slice first_key, struct slice last_key)
{
    if (meta->block_count == ROWSET_BLOCKS_MAX || segment >= ROWSET_SEGMENTS_MAX)
        return TG_LIMIT;
    const struct rowset_block_ref *last =
        meta->block_count == 0 ? NULL : &meta->blocks[meta->block_count - 1];
    if (offset != (last == NULL ? 0 : last->offset + last->len) || len == 0 ||
        len > BLOCK_BYTES_MAX || rows == 0 || rows > BLOCK_ROWS_MAX)
        return TG_INVALID;
    if (last != NULL && segment < last->segment)
        return TG_INVALID;
    first_key = cut_key(first_key);
    last_key = cut_key(last_key);
    if (reserve_block(meta) != 0 || reserve_keys(meta, first_key.len + last_key.len) != 0)
        return TG_NOMEM;
    struct rowset_block_ref *block = &meta->blocks[meta->block_count];
    *block =
        (struct rowset_block_ref){.offset = offset, .len = len, .rows = rows, .segment = segment};
    block->first_key = keep_key(meta, first_key);
    block->last_key = keep_key(meta, last_key);
    meta->block_count++;
    return 0;
}

/* Offsets are not written: each block begins where the one before ends. */
void rowset_meta_encode(const struct rowset_meta *meta, struct buf *out)
{
    mp_array(out, META_FIELDS);
    mp_uint(out, META_VERSION);
    mp_uint(out, meta->tablet);
    mp_uint(out, meta->rowset);
    mp_uint(out, meta->table);
    mp_uint(out, meta->txn);
    mp_uint(out, meta->schema_id);
    mp_uint(out, meta->load_no);
    mp_uint(out, meta->rows);
    mp_uint(out, meta->delete_rows);
    mp_uint(out, meta->bytes);
    mp_bin(out, meta->digest.bytes, sizeof meta->digest.bytes);
    mp_array(out, meta->block_count);
    for (uint32_t i = 0; i < meta->block_count; i++) {
        const struct rowset_block_ref *block = &meta->blocks[i];
        mp_array(out, BLOCK_FIELDS);
        mp_uint(out, block->len);
        mp_uint(out, block->rows);
        mp_uint(out, block->segment);
        mp_bin(out, block->first_key.data, block->first_key.len);
        mp_bin(out, block->last_key.data, block->last_key.len);
    }
}

static void decode_block(struct cursor *cursor, struct rowset_meta *meta, uint64_t offset)
{
    mp_expect_array(cursor, BLOCK_FIELDS);
    uint32_t len = (uint32_t)mp_read_uint_max(cursor, BLOCK_BYTES_MAX);
    uint32_t rows = (uint32_t)mp_read_uint_max(cursor, BLOCK_ROWS_MAX);
    uint32_t segment = (uint32_t)mp_read_uint_max(cursor, ROWSET_SEGMENTS_MAX - 1);
    struct slice first_key = mp_read_bin(cursor, ROWSET_REF_KEY_MAX);
    struct slice last_key = mp_read_bin(cursor, ROWSET_REF_KEY_MAX);
    if (slice_compare(first_key, last_key) > 0)
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        return;
    int err = rowset_meta_add_block(meta, offset, len, rows, segment, first_key, last_key);
    if (err != 0)
        cursor_fail(cursor, err == TG_NOMEM ? TG_NOMEM : TG_CORRUPT);
}

static void decode_fields(struct cursor *cursor, struct rowset_meta *meta)
{
    meta->tablet = mp_read_uint(cursor);
    meta->rowset = mp_read_uint(cursor);
    meta->table = mp_read_uint(cursor);
    meta->txn = mp_read_uint(cursor);
    meta->schema_id = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    meta->load_no = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    meta->rows = mp_read_uint(cursor);
    meta->delete_rows = mp_read_uint_max(cursor, meta->rows);
    meta->bytes = mp_read_uint(cursor);
    struct slice digest = mp_read_bin(cursor, sizeof meta->digest.bytes);
    if (digest.len == sizeof meta->digest.bytes)
        memcpy(meta->digest.bytes, digest.data, sizeof meta->digest.bytes);
    else
        cursor_fail(cursor, TG_CORRUPT);

    uint32_t count = mp_read_array(cursor, ROWSET_BLOCKS_MAX);
    uint64_t offset = 0;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < count && cursor->err == 0; i++) {
        decode_block(cursor, meta, offset);
        if (cursor->err != 0)
            break;
        offset += meta->blocks[i].len;
        rows += meta->blocks[i].rows;
    }
    if (offset != meta->bytes || rows != meta->rows)
        cursor_fail(cursor, TG_CORRUPT);
}

int rowset_meta_decode(struct cursor *cursor, struct rowset_meta *meta)
{
    rowset_meta_close(meta);
    uint32_t fields = mp_read_array(cursor, UINT32_MAX);
    uint64_t version = mp_read_uint(cursor);
    if (cursor->err == 0 && version != META_VERSION)
        cursor_fail(cursor, TG_UNSUPPORTED);
    if (fields != META_FIELDS)
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err == 0)
        decode_fields(cursor, meta);
    if (cursor->err != 0)
        rowset_meta_close(meta);
    return cursor->err;
}
