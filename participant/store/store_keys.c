/* SPDX-License-Identifier: Apache-2.0 */
/* Every key and value of the store, byte by byte. */
#include "participant/store/store_keys.h"

#include <string.h>

#include "common/base/endian.h"
#include "common/base/err.h"

enum {
    VALUE_FORMAT = 1,
    NUMBER_BYTES = 8,
    ROWSET_INLINE_FLAG = 1,
    VERSION_REPLACE_FLAG = 1,
    VERSION_ROWSET_BYTES = 8 + 16
};

static void add_number(struct store_key *key, uint64_t number)
{
    store_u64be(key->bytes + key->len, number);
    key->len += NUMBER_BYTES;
}

void store_key_tablet(struct store_key *key, tablet_id tablet)
{
    key->len = 0;
    add_number(key, tablet);
}

void store_key_staged(struct store_key *key, txn_id txn, rowset_id rowset, tablet_id tablet)
{
    key->len = 0;
    add_number(key, txn);
    add_number(key, rowset);
    add_number(key, tablet);
}

void store_key_rowset(struct store_key *key, tablet_id tablet, rowset_id rowset)
{
    key->len = 0;
    add_number(key, tablet);
    add_number(key, rowset);
}

void store_key_version(struct store_key *key, tablet_id tablet, version_t version)
{
    key->len = 0;
    add_number(key, tablet);
    add_number(key, version);
}

void store_key_block(struct store_key *key, tablet_id tablet, rowset_id rowset, uint64_t offset)
{
    key->len = 0;
    add_number(key, tablet);
    add_number(key, rowset);
    add_number(key, offset);
}

int store_key_parse(struct slice key, uint32_t count, uint64_t *numbers)
{
    if (key.len != (size_t)count * NUMBER_BYTES)
        return TG_CORRUPT;
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = load_u64be(key.data + (size_t)i * NUMBER_BYTES);
    return 0;
}

static void append_zeros(struct buf *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_append_u8(out, 0);
}

/* The first byte of every value. */
static void open_value(struct cursor *cursor, struct slice bytes)
{
    cursor_init(cursor, bytes.data, bytes.len);
    uint8_t format = cursor_u8(cursor);
    if (cursor->err == 0 && format != VALUE_FORMAT)
        cursor_fail(cursor, TG_UNSUPPORTED);
}

static void expect_zeros(struct cursor *cursor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cursor_u8(cursor) != 0)
            cursor_fail(cursor, TG_CORRUPT);
    }
}

static void read_digest(struct cursor *cursor, struct digest *digest)
{
    struct slice bytes = cursor_bytes(cursor, sizeof digest->bytes);
    if (bytes.len == sizeof digest->bytes)
        memcpy(digest->bytes, bytes.data, bytes.len);
}

/* │ 1 │ state 1 │ 0 0 │ schema 4 │ table 8 │ partition 8 │ last version 8 │ */
void tablet_value_encode(const struct tablet_value *value, struct buf *out)
{
    buf_append_u8(out, VALUE_FORMAT);
    buf_append_u8(out, value->state);
    append_zeros(out, 2);
    buf_append_u32le(out, value->schema);
    buf_append_u64le(out, value->table);
    buf_append_u64le(out, value->partition);
    buf_append_u64le(out, value->last);
}

int tablet_value_decode(struct slice bytes, struct tablet_value *value)
{
    struct cursor cursor;
    memset(value, 0, sizeof *value);
    open_value(&cursor, bytes);
    value->state = cursor_u8(&cursor);
    expect_zeros(&cursor, 2);
    value->schema = cursor_u32le(&cursor);
    value->table = cursor_u64le(&cursor);
    value->partition = cursor_u64le(&cursor);
    value->last = cursor_u64le(&cursor);
    if (value->state != TABLET_LIVE && value->state != TABLET_DROPPING)
        cursor_fail(&cursor, TG_CORRUPT);
    return cursor_finish(&cursor);
}

/* │ 1 │ state 1 │ extents 1 │ 0 × 5 │ table 8 │ digest 16 │ */
void staged_value_encode(const struct staged_value *value, struct buf *out)
{
    buf_append_u8(out, VALUE_FORMAT);
    buf_append_u8(out, value->state);
    buf_append_u8(out, value->extents ? 1 : 0);
    append_zeros(out, 5);
    buf_append_u64le(out, value->table);
    buf_append(out, value->digest.bytes, sizeof value->digest.bytes);
}

int staged_value_decode(struct slice bytes, struct staged_value *value)
{
    struct cursor cursor;
    memset(value, 0, sizeof *value);
    open_value(&cursor, bytes);
    value->state = cursor_u8(&cursor);
    uint8_t extents = cursor_u8(&cursor);
    expect_zeros(&cursor, 5);
    value->table = cursor_u64le(&cursor);
    read_digest(&cursor, &value->digest);
    value->extents = extents == 1;
    if (value->state < STAGED_OPEN || value->state > STAGED_DROPPING || extents > 1)
        cursor_fail(&cursor, TG_CORRUPT);
    return cursor_finish(&cursor);
}

/* │ 1 │ flags 1 │ 0 0 │ description's length 4 │ its XXH3-64 8 │ txn 8 │ digest 16 │
 * │ description │ content, if inline │ */
void rowset_value_encode(const struct rowset_value *value, struct buf *out)
{
    buf_append_u8(out, VALUE_FORMAT);
    buf_append_u8(out, value->is_inline ? ROWSET_INLINE_FLAG : 0);
    append_zeros(out, 2);
    buf_append_u32le(out, (uint32_t)value->meta.len);
    buf_append_u64le(out, checksum64(value->meta.data, value->meta.len));
    buf_append_u64le(out, value->txn);
    buf_append(out, value->digest.bytes, sizeof value->digest.bytes);
    buf_append(out, value->meta.data, value->meta.len);
    if (value->is_inline)
        buf_append(out, value->content.data, value->content.len);
}

static int rowset_value_read(struct slice bytes, struct rowset_value *value, bool check)
{
    struct cursor cursor;
    memset(value, 0, sizeof *value);
    open_value(&cursor, bytes);
    uint8_t flags = cursor_u8(&cursor);
    expect_zeros(&cursor, 2);
    uint32_t meta_len = cursor_u32le(&cursor);
    uint64_t sum = cursor_u64le(&cursor);
    value->txn = cursor_u64le(&cursor);
    read_digest(&cursor, &value->digest);
    value->meta = cursor_bytes(&cursor, meta_len);
    value->is_inline = flags == ROWSET_INLINE_FLAG;
    if (value->is_inline)
        value->content = cursor_bytes(&cursor, cursor_left(&cursor));
    if (flags > ROWSET_INLINE_FLAG)
        cursor_fail(&cursor, TG_CORRUPT);
    if (check && cursor.err == 0 && checksum64(value->meta.data, value->meta.len) != sum)
        cursor_fail(&cursor, TG_CORRUPT);
    return cursor_finish(&cursor);
}

int rowset_value_decode(struct slice bytes, struct rowset_value *value)
{
    return rowset_value_read(bytes, value, true);
}

int rowset_value_peek(struct slice bytes, struct rowset_value *value)
{
    return rowset_value_read(bytes, value, false);
}

/* │ 1 │ flags 1 │ 0 0 │ rowsets 4 │ prev 8 │ txn 8 │ table 8 │ bound at 8 │
 * │ rowset 8 │ digest 16 │ × rowsets */
void version_value_encode(const struct version_value *value, const struct publish_rowset *rowsets,
                          struct buf *out)
{
    buf_append_u8(out, VALUE_FORMAT);
    buf_append_u8(out, value->replace ? VERSION_REPLACE_FLAG : 0);
    append_zeros(out, 2);
    buf_append_u32le(out, value->rowset_count);
    buf_append_u64le(out, value->prev);
    buf_append_u64le(out, value->txn);
    buf_append_u64le(out, value->table);
    buf_append_u64le(out, value->bound_us);
    for (uint32_t i = 0; i < value->rowset_count; i++) {
        buf_append_u64le(out, rowsets[i].rowset);
        buf_append(out, rowsets[i].digest.bytes, sizeof rowsets[i].digest.bytes);
    }
}

int version_value_decode(struct slice bytes, struct version_value *value)
{
    struct cursor cursor;
    memset(value, 0, sizeof *value);
    open_value(&cursor, bytes);
    uint8_t flags = cursor_u8(&cursor);
    expect_zeros(&cursor, 2);
    uint32_t count = cursor_u32le(&cursor);
    value->prev = cursor_u64le(&cursor);
    value->txn = cursor_u64le(&cursor);
    value->table = cursor_u64le(&cursor);
    value->bound_us = cursor_u64le(&cursor);
    value->replace = flags == VERSION_REPLACE_FLAG;
    if (flags > VERSION_REPLACE_FLAG || count > LOADS_PER_TXN_MAX)
        cursor_fail(&cursor, TG_CORRUPT);
    else
        value->rowsets = cursor_bytes(&cursor, (size_t)count * VERSION_ROWSET_BYTES).data;
    value->rowset_count = cursor.err == 0 ? count : 0;
    return cursor_finish(&cursor);
}

void version_value_rowset(const struct version_value *value, uint32_t index,
                          struct publish_rowset *rowset)
{
    const uint8_t *at = value->rowsets + (size_t)index * VERSION_ROWSET_BYTES;
    rowset->rowset = load_u64le(at);
    memcpy(rowset->digest.bytes, at + NUMBER_BYTES, sizeof rowset->digest.bytes);
}
