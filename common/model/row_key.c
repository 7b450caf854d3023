/* SPDX-License-Identifier: Apache-2.0 */
/* Order-preserving key encoding, its eight-byte prefix, and the order itself. */
#include "common/model/row_key.h"

#include "common/base/endian.h"

/* A column's bytes in an encoded key:
 *
 *   null          00
 *   width 1…16    01 value, most significant byte first, the sign bit flipped
 *   FLOAT, DOUBLE 01 IEEE 754, most significant byte first; positive: the sign bit flipped,
 *                 negative: all bits flipped; -0 is 0, every NaN the same and last
 *   bytes         01 bytes, each 00 followed by FF · 00 01
 *
 * Nulls come first because 00 < 01; a string that is another's beginning comes first because its
 * end, 00 01, is less than any byte that could follow there (a zero byte is 00 FF). */
enum { MARK_NULL = 0x00, MARK_VALUE = 0x01, ESCAPE = 0xFF, END = 0x01, KEY_FIXED_MAX = 17 };

static uint64_t ordered_double(double value)
{
    uint64_t bits;
    if (value == 0)
        value = 0;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return UINT64_C(0xFFF8000000000000);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static uint32_t ordered_float(float value)
{
    uint32_t bits;
    if (value == 0)
        value = 0;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return UINT32_C(0xFFC00000);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

/* Eight bytes of a value at the top of a word (first byte highest), narrower ones filled up with
 * zeros. For 16 bytes the first eight. */
static uint64_t ordered_word(const struct vector *column, uint32_t row)
{
    const uint8_t *at = column->fixed + (size_t)row * column->width;
    const uint64_t sign = UINT64_C(1) << 63;
    if (column->type.kind == TYPE_DOUBLE) {
        double value;
        memcpy(&value, at, sizeof value);
        return ordered_double(value);
    }
    if (column->type.kind == TYPE_FLOAT) {
        float value;
        memcpy(&value, at, sizeof value);
        return (uint64_t)ordered_float(value) << 32;
    }
    switch (column->width) {
    case 1:
        return ((uint64_t)*at << 56) ^ sign;
    case 2:
        return ((uint64_t)load_u16le(at) << 48) ^ sign;
    case 4:
        return ((uint64_t)load_u32le(at) << 32) ^ sign;
    case 8:
        return load_u64le(at) ^ sign;
    default:
        return load_u64le(at + 8) ^ sign;
    }
}

static void encode_fixed(const struct vector *column, uint32_t row, struct buf *out)
{
    uint8_t key[KEY_FIXED_MAX];
    key[0] = MARK_VALUE;
    store_u64be(key + 1, ordered_word(column, row));
    if (column->width == 16)
        store_u64be(key + 9, load_u64le(column->fixed + (size_t)row * 16));
    buf_append(out, key, 1 + (size_t)column->width);
}

static void encode_bytes(struct slice bytes, struct buf *out)
{
    static const uint8_t ZERO[2] = {0, ESCAPE};
    static const uint8_t TAIL[2] = {0, END};
    buf_append_u8(out, MARK_VALUE);
    while (bytes.len > 0) {
        const uint8_t *zero = memchr(bytes.data, 0, bytes.len);
        size_t plain = zero != NULL ? (size_t)(zero - bytes.data) : bytes.len;
        buf_append(out, bytes.data, plain);
        if (zero == NULL)
            break;
        buf_append(out, ZERO, sizeof ZERO);
        bytes = slice_of(zero + 1, bytes.len - plain - 1);
    }
    buf_append(out, TAIL, sizeof TAIL);
}

void row_key_encode(const struct vector *const *columns, uint32_t count, uint32_t row,
                    struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (vector_is_null(columns[i], row))
            buf_append_u8(out, MARK_NULL);
        else if (columns[i]->width > 0)
            encode_fixed(columns[i], row, out);
        else
            encode_bytes(vector_bytes(columns[i], row), out);
    }
}

/* A word that is filled from the top, byte by byte or several at a time; what no longer fits is
 * dropped. */
struct prefix {
    uint64_t word;
    unsigned used; /* bits */
};

static void prefix_add(struct prefix *prefix, uint64_t top, unsigned bits)
{
    if (prefix->used < 64)
        prefix->word |= top >> prefix->used;
    prefix->used += bits;
}

static void prefix_add_byte(struct prefix *prefix, uint8_t byte)
{
    prefix_add(prefix, (uint64_t)byte << 56, 8);
}

static void prefix_add_bytes(struct prefix *prefix, struct slice bytes)
{
    prefix_add_byte(prefix, MARK_VALUE);
    for (size_t i = 0; i < bytes.len && prefix->used < 64; i++) {
        prefix_add_byte(prefix, bytes.data[i]);
        if (bytes.data[i] == 0)
            prefix_add_byte(prefix, ESCAPE);
    }
    prefix_add_byte(prefix, 0);
    prefix_add_byte(prefix, END);
}

uint64_t row_key_prefix(const struct vector *const *columns, uint32_t count, uint32_t row)
{
    struct prefix prefix = {0, 0};
    for (uint32_t i = 0; i < count && prefix.used < 64; i++) {
        if (vector_is_null(columns[i], row)) {
            prefix_add_byte(&prefix, MARK_NULL);
        } else if (columns[i]->width > 0) {
            prefix_add_byte(&prefix, MARK_VALUE);
            prefix_add(&prefix, ordered_word(columns[i], row), columns[i]->width * 8u);
        } else {
            prefix_add_bytes(&prefix, vector_bytes(columns[i], row));
        }
    }
    return prefix.word;
}

int row_key_compare(const struct vector *const *a, uint32_t a_row, const struct vector *const *b,
                    uint32_t b_row, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int order = vector_compare(a[i], a_row, b[i], b_row);
        if (order != 0)
            return order;
    }
    return 0;
}
