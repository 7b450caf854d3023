/* SPDX-License-Identifier: Apache-2.0 */
/* Packing through the msgpack library (what is one byte, by itself); reading with a bounded cursor.
 */
#include "common/base/msgpack.h"

#include <msgpack/pack.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/endian.h"
#include "common/base/err.h"

/* The bytes that start an item, by the msgpack specification. */
enum mp_tag {
    MP_FIXINT_MAX = 0x7F,
    MP_FIXMAP = 0x80,
    MP_FIXARRAY = 0x90,
    MP_FIXSTR = 0xA0,
    MP_NIL = 0xC0,
    MP_NEVER = 0xC1,
    MP_FALSE = 0xC2,
    MP_TRUE = 0xC3,
    MP_BIN8 = 0xC4,
    MP_BIN16 = 0xC5,
    MP_BIN32 = 0xC6,
    MP_EXT8 = 0xC7,
    MP_EXT16 = 0xC8,
    MP_EXT32 = 0xC9,
    MP_FLOAT32 = 0xCA,
    MP_FLOAT64 = 0xCB,
    MP_UINT8 = 0xCC,
    MP_UINT16 = 0xCD,
    MP_UINT32 = 0xCE,
    MP_UINT64 = 0xCF,
    MP_INT8 = 0xD0,
    MP_INT16 = 0xD1,
    MP_INT32 = 0xD2,
    MP_INT64 = 0xD3,
    MP_FIXEXT1 = 0xD4,
    MP_FIXEXT16 = 0xD8,
    MP_STR8 = 0xD9,
    MP_STR16 = 0xDA,
    MP_STR32 = 0xDB,
    MP_ARRAY16 = 0xDC,
    MP_ARRAY32 = 0xDD,
    MP_MAP16 = 0xDE,
    MP_MAP32 = 0xDF,
    MP_NEGATIVE_FIXINT = 0xE0
};

static int append_packed(void *data, const char *bytes, size_t n)
{
    struct buf *buf = data;
    buf_append(buf, bytes, n);
    return buf->err == 0 ? 0 : -1;
}

static msgpack_packer packer_of(struct buf *buf)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, buf, append_packed);
    return packer;
}

/* Most numbers, lengths and counts of ours are small, and a small one is its only byte: snapshots
 * of a million labels are made of these. */
enum { FIXARRAY_COUNT_MAX = 15, FIXSTR_BYTES_MAX = 31 };

void mp_array(struct buf *buf, uint32_t count)
{
    if (count <= FIXARRAY_COUNT_MAX) {
        buf_append_u8(buf, (uint8_t)(MP_FIXARRAY | count));
        return;
    }
    msgpack_packer packer = packer_of(buf);
    msgpack_pack_array(&packer, count);
}

void mp_uint(struct buf *buf, uint64_t value)
{
    if (value <= MP_FIXINT_MAX) {
        buf_append_u8(buf, (uint8_t)value);
        return;
    }
    msgpack_packer packer = packer_of(buf);
    msgpack_pack_uint64(&packer, value);
}

void mp_int(struct buf *buf, int64_t value)
{
    msgpack_packer packer = packer_of(buf);
    msgpack_pack_int64(&packer, value);
}

void mp_bool(struct buf *buf, bool value)
{
    buf_append_u8(buf, value ? MP_TRUE : MP_FALSE);
}

void mp_nil(struct buf *buf)
{
    msgpack_packer packer = packer_of(buf);
    msgpack_pack_nil(&packer);
}

void mp_str(struct buf *buf, const char *text)
{
    mp_str_slice(buf, text == NULL ? slice_of(NULL, 0) : slice_str(text));
}

void mp_str_slice(struct buf *buf, struct slice text)
{
    TG_CHECK(text.len <= UINT32_MAX);
    if (text.len <= FIXSTR_BYTES_MAX) {
        buf_append_u8(buf, (uint8_t)(MP_FIXSTR | text.len));
    } else {
        msgpack_packer packer = packer_of(buf);
        msgpack_pack_str(&packer, text.len);
    }
    buf_append(buf, text.data, text.len);
}

void mp_bin(struct buf *buf, const void *data, size_t len)
{
    TG_CHECK(len <= UINT32_MAX);
    msgpack_packer packer = packer_of(buf);
    msgpack_pack_bin(&packer, len);
    buf_append(buf, data, len);
}

void mp_double(struct buf *buf, double value)
{
    msgpack_packer packer = packer_of(buf);
    msgpack_pack_double(&packer, value);
}

static uint8_t peek(const struct cursor *cursor)
{
    return cursor_left(cursor) == 0 ? MP_NEVER : cursor->data[cursor->at];
}

static uint16_t read_u16(struct cursor *cursor)
{
    struct slice bytes = cursor_bytes(cursor, sizeof(uint16_t));
    return bytes.len == 0 ? 0 : load_u16be(bytes.data);
}

/* A length field of 1, 2 or 4 bytes: width 0, 1, 2. */
static uint32_t read_length(struct cursor *cursor, int width)
{
    switch (width) {
    case 0:
        return cursor_u8(cursor);
    case 1:
        return read_u16(cursor);
    default:
        return cursor_u32be(cursor);
    }
}

uint32_t mp_read_array(struct cursor *cursor, uint32_t max)
{
    uint8_t tag = cursor_u8(cursor);
    uint32_t count = 0;
    if ((tag & 0xF0) == MP_FIXARRAY)
        count = tag & 0x0F;
    else if (tag == MP_ARRAY16 || tag == MP_ARRAY32)
        count = read_length(cursor, tag - MP_ARRAY16 + 1);
    else
        cursor_fail(cursor, TG_CORRUPT);
    /* Each element takes a byte at least, so a count over what is left is a lie. */
    if (count > max || count > cursor_left(cursor))
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err != 0 ? 0 : count;
}

void mp_expect_array(struct cursor *cursor, uint32_t count)
{
    if (mp_read_array(cursor, count) != count)
        cursor_fail(cursor, TG_CORRUPT);
}

/* Any integer: its bits in two's complement, and whether it is below zero. */
static uint64_t read_integer(struct cursor *cursor, bool *negative)
{
    uint8_t tag = cursor_u8(cursor);
    int64_t value = 0;
    *negative = false;
    if (tag <= MP_FIXINT_MAX)
        return cursor->err != 0 ? 0 : tag;
    if (tag >= MP_NEGATIVE_FIXINT) {
        value = (int8_t)tag;
    } else {
        switch (tag) {
        case MP_UINT8:
            return cursor_u8(cursor);
        case MP_UINT16:
            return read_u16(cursor);
        case MP_UINT32:
            return cursor_u32be(cursor);
        case MP_UINT64:
            return cursor_u64be(cursor);
        case MP_INT8:
            value = (int8_t)cursor_u8(cursor);
            break;
        case MP_INT16:
            value = (int16_t)read_u16(cursor);
            break;
        case MP_INT32:
            value = (int32_t)cursor_u32be(cursor);
            break;
        case MP_INT64:
            value = (int64_t)cursor_u64be(cursor);
            break;
        default:
            cursor_fail(cursor, TG_CORRUPT);
        }
    }
    *negative = value < 0;
    return (uint64_t)value;
}

uint64_t mp_read_uint(struct cursor *cursor)
{
    return mp_read_uint_max(cursor, UINT64_MAX);
}

uint64_t mp_read_uint_max(struct cursor *cursor, uint64_t max)
{
    bool negative;
    uint64_t value = read_integer(cursor, &negative);
    if (negative || value > max)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err != 0 ? 0 : value;
}

int64_t mp_read_int(struct cursor *cursor)
{
    bool negative;
    uint64_t value = read_integer(cursor, &negative);
    if (!negative && value > INT64_MAX)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err != 0 ? 0 : (int64_t)value;
}

bool mp_read_bool(struct cursor *cursor)
{
    uint8_t tag = cursor_u8(cursor);
    if (tag != MP_TRUE && tag != MP_FALSE)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err == 0 && tag == MP_TRUE;
}

double mp_read_double(struct cursor *cursor)
{
    if (cursor_u8(cursor) != MP_FLOAT64)
        cursor_fail(cursor, TG_CORRUPT);
    uint64_t bits = cursor_u64be(cursor);
    double value;
    memcpy(&value, &bits, sizeof value);
    return cursor->err != 0 ? 0 : value;
}

bool mp_read_nil(struct cursor *cursor)
{
    if (peek(cursor) != MP_NIL)
        return false;
    cursor->at++;
    return true;
}

/* len bytes if that is allowed and there are so many. */
static struct slice read_bounded(struct cursor *cursor, size_t len, size_t max)
{
    if (len > max)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor_bytes(cursor, len);
}

struct slice mp_read_str(struct cursor *cursor, size_t max)
{
    uint8_t tag = cursor_u8(cursor);
    size_t len = 0;
    if ((tag & 0xE0) == MP_FIXSTR)
        len = tag & 0x1F;
    else if (tag >= MP_STR8 && tag <= MP_STR32)
        len = read_length(cursor, tag - MP_STR8);
    else
        cursor_fail(cursor, TG_CORRUPT);
    return read_bounded(cursor, len, max);
}

struct slice mp_read_bin(struct cursor *cursor, size_t max)
{
    uint8_t tag = cursor_u8(cursor);
    size_t len = 0;
    if (tag >= MP_BIN8 && tag <= MP_BIN32)
        len = read_length(cursor, tag - MP_BIN8);
    else
        cursor_fail(cursor, TG_CORRUPT);
    return read_bounded(cursor, len, max);
}

void mp_read_cstr(struct cursor *cursor, char *out, size_t cap)
{
    TG_CHECK(cap > 0);
    struct slice text = mp_read_str(cursor, cap - 1);
    if (text.len > 0 && memchr(text.data, 0, text.len) != NULL) {
        cursor_fail(cursor, TG_CORRUPT);
        text.len = 0;
    }
    if (text.len > 0)
        memcpy(out, text.data, text.len);
    out[text.len] = '\0';
}

/* Steps over the head of an item and its plain bytes; returns how many items are nested in it. */
static uint64_t skip_head(struct cursor *cursor)
{
    uint8_t tag = cursor_u8(cursor);
    if (cursor->err != 0 || tag <= MP_FIXINT_MAX || tag >= MP_NEGATIVE_FIXINT)
        return 0;
    if (tag < MP_FIXARRAY)
        return 2 * (uint64_t)(tag & 0x0F);
    if (tag < MP_FIXSTR)
        return tag & 0x0F;
    if (tag < MP_NIL) {
        (void)cursor_bytes(cursor, tag & 0x1F);
        return 0;
    }
    switch (tag) {
    case MP_NIL:
    case MP_FALSE:
    case MP_TRUE:
        return 0;
    case MP_BIN8:
    case MP_BIN16:
    case MP_BIN32:
        (void)cursor_bytes(cursor, read_length(cursor, tag - MP_BIN8));
        return 0;
    case MP_EXT8:
    case MP_EXT16:
    case MP_EXT32: {
        uint32_t len = read_length(cursor, tag - MP_EXT8);
        (void)cursor_u8(cursor); /* the extension's type */
        (void)cursor_bytes(cursor, len);
        return 0;
    }
    case MP_FLOAT32:
        (void)cursor_bytes(cursor, 4);
        return 0;
    case MP_FLOAT64:
        (void)cursor_bytes(cursor, 8);
        return 0;
    case MP_STR8:
    case MP_STR16:
    case MP_STR32:
        (void)cursor_bytes(cursor, read_length(cursor, tag - MP_STR8));
        return 0;
    case MP_ARRAY16:
    case MP_ARRAY32:
        return read_length(cursor, tag - MP_ARRAY16 + 1);
    case MP_MAP16:
    case MP_MAP32:
        return 2 * (uint64_t)read_length(cursor, tag - MP_MAP16 + 1);
    case MP_NEVER:
        cursor_fail(cursor, TG_CORRUPT);
        return 0;
    default:
        break;
    }
    if (tag >= MP_UINT8 && tag <= MP_UINT64)
        (void)cursor_bytes(cursor, (size_t)1 << (tag - MP_UINT8));
    else if (tag >= MP_INT8 && tag <= MP_INT64)
        (void)cursor_bytes(cursor, (size_t)1 << (tag - MP_INT8));
    else if (tag >= MP_FIXEXT1) /* a type byte, then 1, 2, 4, 8 or 16 bytes */
        (void)cursor_bytes(cursor, 1 + ((size_t)1 << (tag - MP_FIXEXT1)));
    return 0;
}

void mp_skip(struct cursor *cursor)
{
    /* Without recursion: how many items are still to come on each level. */
    uint64_t left[MP_DEPTH_MAX + 1] = {1};
    int depth = 0;
    while (depth >= 0) {
        if (left[depth] == 0) {
            depth--;
            continue;
        }
        left[depth]--;
        uint64_t nested = skip_head(cursor);
        if (nested > cursor_left(cursor))
            cursor_fail(cursor, TG_CORRUPT);
        if (cursor->err != 0)
            return;
        if (nested == 0)
            continue;
        if (depth == MP_DEPTH_MAX) {
            cursor_fail(cursor, TG_CORRUPT);
            return;
        }
        left[++depth] = nested;
    }
}
