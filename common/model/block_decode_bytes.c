/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of bytes columns. */
#include <lz4.h>
#include <string.h>

#include "common/base/endian.h"
#include "common/model/block_decode.h"

enum {
    ROOM_UNCOUNTED = 256 * 1024, /* bytes reserved without counting what is really needed */
    COPY_BYTES = 16,             /* a short value is copied as so many, whatever its length */
    LZ4_EXPANSION = 255,         /* LZ4 cannot expand more, so a longer promise is a lie */
    LZ4_EXPANSION_SLACK = 64
};

/* Least, bits, packed rest; returns the sum of the `count` lengths. */
static uint64_t decode_lengths(struct cursor *cursor, uint32_t count, uint32_t *lengths)
{
    uint32_t least = cursor_u32le(cursor);
    unsigned bits = cursor_u8(cursor);
    if (bits > 32)
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        return 0;
    struct slice packed = cursor_bytes(cursor, block_bitpack_size(count, bits));
    if (cursor->err != 0)
        return 0;
    block_bitpack_decode(packed.data, count, bits, lengths);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t length = (uint64_t)least + lengths[i];
        lengths[i] = (uint32_t)length; /* where this wraps, the sum is over every limit */
        sum += length;
    }
    if (sum > BLOCK_BYTES_MAX)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err != 0 ? 0 : sum;
}

/* Copies one value; up to 16 bytes behind either end are read and written, and both have them. */
static inline uint8_t *copy_value(uint8_t *to, const uint8_t *from, uint32_t len)
{
    memcpy(to, from, COPY_BYTES);
    if (len > COPY_BYTES)
        memcpy(to + COPY_BYTES, from + COPY_BYTES, len - COPY_BYTES);
    return to + len;
}

static int decode_constant(uint32_t rows, const uint8_t *nulls, struct cursor *cursor,
                           struct vector *out)
{
    struct slice value = cursor_bytes(cursor, cursor_left(cursor));
    uint64_t copies = rows;
    for (uint32_t i = 0; nulls != NULL && i < rows; i++)
        copies -= nulls[i];
    if (copies * value.len > BLOCK_BYTES_MAX) {
        cursor_fail(cursor, TG_CORRUPT);
        return 0;
    }
    int err = vector_reserve(out, rows, copies * value.len);
    if (err != 0)
        return err;
    uint32_t *ends = out->ends + out->rows;
    uint8_t *to = out->bytes + out->bytes_len;
    for (uint32_t i = 0; i < rows; i++) {
        if ((nulls == NULL || nulls[i] == 0) && value.len > 0) {
            memcpy(to, value.data, value.len);
            to += value.len;
        }
        ends[i] = (uint32_t)(to - out->bytes);
    }
    out->bytes_len = (size_t)(to - out->bytes);
    return 0;
}

static bool unpack(struct slice stored, uint64_t sum, uint8_t *to)
{
    int got = LZ4_decompress_safe((const char *)stored.data, (char *)to, (int)stored.len, (int)sum);
    return got >= 0 && (uint64_t)got == sum;
}

/* The window's bytes, `len` of them from `skip` on, behind those of out, which has room. */
static int append_bytes(struct block_decoder *decoder, struct slice stored, bool is_lz4,
                        uint64_t sum, uint64_t skip, uint64_t len, struct cursor *cursor,
                        struct vector *out)
{
    uint8_t *to = out->bytes + out->bytes_len;
    if (is_lz4 && len == sum) {
        if (!unpack(stored, sum, to))
            cursor_fail(cursor, TG_CORRUPT);
        return 0;
    }
    if (is_lz4) {
        buf_clear(&decoder->dictionary);
        uint8_t *all = buf_extend(&decoder->dictionary, sum);
        if (all == NULL)
            return TG_NOMEM;
        if (!unpack(stored, sum, all)) {
            cursor_fail(cursor, TG_CORRUPT);
            return 0;
        }
        stored.data = all;
    }
    if (len > 0)
        memcpy(to, stored.data + skip, len);
    return 0;
}

static int decode_plain(struct block_decoder *decoder, bool is_lz4, struct block_window window,
                        const uint8_t *nulls, struct cursor *cursor, struct vector *out)
{
    uint32_t *lengths = decoder->small;
    uint64_t sum = decode_lengths(cursor, window.rows, lengths);
    if (is_lz4 && cursor_u32le(cursor) != sum)
        cursor_fail(cursor, TG_CORRUPT);
    struct slice stored = cursor_bytes(cursor, cursor_left(cursor));
    if (is_lz4 ? sum > (uint64_t)stored.len * LZ4_EXPANSION + LZ4_EXPANSION_SLACK
               : sum != stored.len)
        cursor_fail(cursor, TG_CORRUPT);
    for (uint32_t i = 0; nulls != NULL && cursor->err == 0 && i < window.count; i++)
        if (nulls[i] != 0 && lengths[window.begin + i] != 0)
            cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        return 0;
    uint64_t skip = 0;
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < window.begin; i++)
        skip += lengths[i];
    for (uint32_t i = window.begin; i < window.begin + window.count; i++)
        wanted += lengths[i];
    int err = vector_reserve(out, window.count, wanted);
    if (err == 0)
        err = append_bytes(decoder, stored, is_lz4, sum, skip, wanted, cursor, out);
    if (err != 0 || cursor->err != 0)
        return err;
    uint32_t *ends = out->ends + out->rows;
    uint32_t end = (uint32_t)out->bytes_len;
    for (uint32_t i = 0; i < window.count; i++)
        ends[i] = end += lengths[window.begin + i];
    out->bytes_len += wanted;
    return 0;
}

/* The values of a dictionary into the decoder. All 4,096 places (or as many as codes of 12 bits can
 * name) are defined: those past the count are empty. Returns the count, 0 on failure. */
static uint32_t decode_entries(struct block_decoder *decoder, struct cursor *cursor)
{
    uint32_t count = cursor_u16le(cursor);
    if (count == 0 || count > BLOCK_DICTIONARY_MAX)
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        return 0;
    uint64_t sum = decode_lengths(cursor, count, decoder->entry_len);
    struct slice bytes = cursor_bytes(cursor, sum);
    if (cursor->err != 0)
        return 0;
    /* A copy with room behind it: the block's last bytes may belong to a short value. */
    buf_clear(&decoder->dictionary);
    uint8_t *copy = buf_extend(&decoder->dictionary, bytes.len + COPY_BYTES);
    if (copy == NULL) {
        cursor_fail(cursor, TG_NOMEM);
        return 0;
    }
    if (bytes.len > 0)
        memcpy(copy, bytes.data, bytes.len);
    memset(copy + bytes.len, 0, COPY_BYTES);
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        decoder->entry_at[i] = at;
        at += decoder->entry_len[i];
    }
    return count;
}

/* Not zero where one of 256 codes (of 12 bits) is `count` or more. */
static uint32_t group_reaches(const uint32_t *codes, uint32_t count)
{
    int32_t reached = 0;
    for (int i = 0; i < BITPACK_GROUP; i++)
        reached |= (int32_t)codes[i] >= (int32_t)count;
    return (uint32_t)reached;
}

/* The codes of the window's rows into decoder->small, each below `count`. */
static void decode_codes(struct block_decoder *decoder, struct block_window window, uint32_t count,
                         struct cursor *cursor)
{
    uint32_t *codes = decoder->small;
    uint32_t bad = 0;
    unsigned way = cursor_u8(cursor);
    if (way == CODES_PACKED) {
        unsigned bits;
        const uint8_t *packed =
            block_decode_packed(cursor, window.rows, BLOCK_DICTIONARY_BITS, &bits);
        if (packed == NULL)
            return;
        packed += block_bitpack_size(window.begin, bits);
        block_bitpack_decode(packed, window.count, bits, codes);
        uint32_t row = 0;
        for (; window.count - row >= BITPACK_GROUP; row += BITPACK_GROUP)
            bad |= group_reaches(codes + row, count);
        for (; row < window.count; row++)
            bad |= codes[row] >= count;
    } else if (way == CODES_RUNS) {
        uint32_t runs = block_decode_runs(decoder, cursor, window.rows, BLOCK_DICTIONARY_BITS);
        uint32_t end = window.begin + window.count;
        for (uint32_t run = 0, row = 0; run < runs && row < end; run++) {
            uint32_t code = (uint32_t)decoder->run_values[run];
            bad |= code >= count;
            uint32_t from = row < window.begin ? window.begin : row;
            row += decoder->run_lengths[run];
            for (uint32_t to = row < end ? row : end; from < to; from++)
                codes[from - window.begin] = code;
        }
    } else {
        cursor_fail(cursor, TG_CORRUPT);
    }
    if (bad != 0)
        cursor_fail(cursor, TG_CORRUPT);
}

/* Bytes that the rows need: at most, where that is little anyway; else exactly. */
static uint64_t dictionary_room(const struct block_decoder *decoder, uint32_t rows, uint32_t count,
                                const uint8_t *nulls)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < count; i++)
        longest = decoder->entry_len[i] > longest ? decoder->entry_len[i] : longest;
    if ((uint64_t)longest * rows <= ROOM_UNCOUNTED)
        return (uint64_t)longest * rows;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rows; i++)
        sum += nulls == NULL || nulls[i] == 0 ? decoder->entry_len[decoder->small[i]] : 0;
    return sum;
}

static int decode_dictionary(struct block_decoder *decoder, struct block_window window,
                             const uint8_t *nulls, struct cursor *cursor, struct vector *out)
{
    uint32_t rows = window.count;
    uint32_t count = decode_entries(decoder, cursor);
    if (cursor->err == 0)
        decode_codes(decoder, window, count, cursor);
    if (cursor->err != 0)
        return cursor->err == TG_NOMEM ? TG_NOMEM : 0;
    const uint32_t *codes = decoder->small;
    uint64_t room = dictionary_room(decoder, rows, count, nulls);
    if (room > BLOCK_BYTES_MAX) {
        cursor_fail(cursor, TG_CORRUPT);
        return 0;
    }
    int err = vector_reserve(out, rows, room);
    if (err != 0)
        return err;

    uint32_t *ends = out->ends + out->rows;
    uint8_t *to = out->bytes + out->bytes_len;
    const uint8_t *values = decoder->dictionary.data;
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t code = codes[i];
        if (nulls == NULL || nulls[i] == 0)
            to = copy_value(to, values + decoder->entry_at[code], decoder->entry_len[code]);
        ends[i] = (uint32_t)(to - out->bytes);
    }
    out->bytes_len = (size_t)(to - out->bytes);
    return 0;
}

int block_decode_bytes(struct block_decoder *decoder, const struct block_column *column,
                       struct block_window window, const uint8_t *nulls, struct cursor *cursor,
                       struct vector *out)
{
    switch (column->encoding) {
    case BLOCK_PLAIN:
        return decode_plain(decoder, (column->flags & BLOCK_LZ4) != 0, window, nulls, cursor, out);
    case BLOCK_CONSTANT:
        return decode_constant(window.count, nulls, cursor, out);
    case BLOCK_DICTIONARY:
        return decode_dictionary(decoder, window, nulls, cursor, out);
    default:
        cursor_fail(cursor, TG_CORRUPT);
        return 0;
    }
}
