/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of a block's columns: nulls, and all values of a fixed width. A block with a right
 * checksum may still be a lie, so every count, width, length and code is checked before it is used.
 */
#include "common/model/block_decode.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/endian.h"

struct block_decoder *block_decoder_open(void)
{
    return calloc(1, sizeof(struct block_decoder));
}

void block_decoder_close(struct block_decoder *decoder)
{
    if (decoder == NULL)
        return;
    free(decoder->memory);
    buf_close(&decoder->dictionary);
    free(decoder);
}

static int reserve_rows(struct block_decoder *decoder, uint32_t rows)
{
    if (rows <= decoder->rows)
        return 0;
    size_t n = rows <= BLOCK_ROWS ? BLOCK_ROWS : BLOCK_ROWS_MAX;
    uint64_t *memory = malloc(n * (sizeof(uint64_t) + 2 * sizeof(uint32_t)));
    if (memory == NULL)
        return TG_NOMEM;
    free(decoder->memory);
    decoder->memory = memory;
    decoder->rows = (uint32_t)n;
    decoder->run_values = memory;
    decoder->run_lengths = (uint32_t *)(void *)(memory + n);
    decoder->small = decoder->run_lengths + n;
    return 0;
}

const uint8_t *block_decode_packed(struct cursor *cursor, uint32_t count, unsigned bits_max,
                                   unsigned *bits)
{
    *bits = cursor_u8(cursor);
    if (*bits == 0 || *bits > bits_max)
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        return NULL;
    struct slice packed = cursor_bytes(cursor, block_bitpack_size(count, *bits));
    return cursor->err != 0 ? NULL : packed.data;
}

uint32_t block_decode_runs(struct block_decoder *decoder, struct cursor *cursor, uint32_t rows,
                           unsigned bits_max)
{
    uint32_t runs = cursor_u32le(cursor);
    unsigned bits = cursor_u8(cursor);
    unsigned length_bits = cursor_u8(cursor);
    if (runs == 0 || runs > rows || bits == 0 || bits > bits_max || length_bits > 16)
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        return 0;
    struct slice values = cursor_bytes(cursor, block_bitpack_size(runs, bits));
    struct slice lengths = cursor_bytes(cursor, block_bitpack_size(runs, length_bits));
    if (cursor->err != 0)
        return 0;
    block_bitpack_decode64(values.data, runs, bits, decoder->run_values);
    block_bitpack_decode(lengths.data, runs, length_bits, decoder->run_lengths);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < runs; i++)
        sum += ++decoder->run_lengths[i];
    if (sum != rows)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err != 0 ? 0 : runs;
}

/* For each width: packed differences to a base, runs, and steps. Values of 128 bits are in these
 * encodings only where they fit 64 bits: the sum is taken modulo 2^64 and then widened. */
#define DECODE(bytes, type)                                                                       \
    static void add_group##bytes(const uint32_t *restrict rest, uint64_t base, type *restrict to) \
    {                                                                                             \
        for (int i = 0; i < BITPACK_GROUP; i++)                                                   \
            to[i] = (type)(int64_t)(base + rest[i]);                                              \
    }                                                                                             \
    static void add_packed##bytes(const uint8_t *in, uint32_t rows, unsigned bits, uint64_t base, \
                                  type *to)                                                       \
    {                                                                                             \
        uint32_t rest[BITPACK_GROUP];                                                             \
        for (; rows >= BITPACK_GROUP; rows -= BITPACK_GROUP, to += BITPACK_GROUP) {               \
            block_bitpack_decode_group(in, bits, rest);                                           \
            add_group##bytes(rest, base, to);                                                     \
            in += block_bitpack_size(BITPACK_GROUP, bits);                                        \
        }                                                                                         \
        block_bitpack_decode(in, rows, bits, rest);                                               \
        for (uint32_t i = 0; i < rows; i++)                                                       \
            to[i] = (type)(int64_t)(base + rest[i]);                                              \
    }                                                                                             \
    static void repeat##bytes(const uint64_t *values, const uint32_t *lengths, uint32_t rows,     \
                              uint64_t base, type *to)                                            \
    {                                                                                             \
        uint32_t at = 0;                                                                          \
        for (uint32_t run = 0; at < rows; run++) {                                                \
            type value = (type)(int64_t)(base + values[run]);                                     \
            uint32_t length = lengths[run] < rows - at ? lengths[run] : rows - at;                \
            /* Short runs: eight stores without a branch, the next run overwrites what is too     \
             * much. */                                                                           \
            if (length <= 8 && rows - at >= 8) {                                                  \
                for (int i = 0; i < 8; i++)                                                       \
                    to[at + (uint32_t)i] = value;                                                 \
            } else {                                                                              \
                for (uint32_t i = 0; i < length; i++)                                             \
                    to[at + i] = value;                                                           \
            }                                                                                     \
            at += length;                                                                         \
        }                                                                                         \
    }                                                                                             \
    static void add_steps##bytes(const uint8_t *in, uint32_t rows, unsigned bits, uint64_t value, \
                                 uint64_t least, type *to)                                        \
    {                                                                                             \
        uint32_t rest[BITPACK_GROUP];                                                             \
        while (rows > 0) {                                                                        \
            uint32_t n = rows < BITPACK_GROUP ? rows : BITPACK_GROUP;                             \
            block_bitpack_decode(in, n, bits, rest);                                              \
            for (uint32_t i = 0; i < n; i++) {                                                    \
                value += least + rest[i];                                                         \
                to[i] = (type)(int64_t)value;                                                     \
            }                                                                                     \
            in += block_bitpack_size(n, bits);                                                    \
            to += n;                                                                              \
            rows -= n;                                                                            \
        }                                                                                         \
    }                                                                                             \
    static void fill##bytes(const void *value, uint32_t rows, type *to)                           \
    {                                                                                             \
        type one = *(const type *)value;                                                          \
        for (uint32_t i = 0; i < rows; i++)                                                       \
            to[i] = one;                                                                          \
    }                                                                                             \
    static void clear##bytes(const uint8_t *nulls, uint32_t rows, type *to)                       \
    {                                                                                             \
        for (uint32_t i = 0; i < rows; i++)                                                       \
            to[i] = nulls[i] != 0 ? 0 : to[i];                                                    \
    }
DECODE(1, any_i8)
DECODE(2, any_i16)
DECODE(4, any_i32)
DECODE(8, any_i64)
DECODE(16, any_i128)
#undef DECODE

/* Calls name<width>(…) with the destination as its last argument. */
#define BY_WIDTH(width, name, to, ...)                       \
    do {                                                     \
        switch (width) {                                     \
        case 1:                                              \
            name##1(__VA_ARGS__, (any_i8 *)(to));            \
            break;                                           \
        case 2:                                              \
            name##2(__VA_ARGS__, (any_i16 *)(void *)(to));   \
            break;                                           \
        case 4:                                              \
            name##4(__VA_ARGS__, (any_i32 *)(void *)(to));   \
            break;                                           \
        case 8:                                              \
            name##8(__VA_ARGS__, (any_i64 *)(void *)(to));   \
            break;                                           \
        case 16:                                             \
            name##16(__VA_ARGS__, (any_i128 *)(void *)(to)); \
            break;                                           \
        default:                                             \
            TG_UNREACHABLE();                                \
        }                                                    \
    } while (0)

/* Drops what lies before the window from the runs: the first one kept may get shorter. */
static void cut_runs(const struct block_decoder *decoder, uint32_t begin, const uint64_t **values,
                     const uint32_t **lengths)
{
    uint32_t run = 0;

    while (begin >= decoder->run_lengths[run] && begin > 0)
        begin -= decoder->run_lengths[run++];
    decoder->run_lengths[run] -= begin;
    *values = decoder->run_values + run;
    *lengths = decoder->run_lengths + run;
}

/* The value that the window's first step starts from. */
static uint64_t skip_steps(const uint8_t *in, uint32_t rows, unsigned bits, uint64_t value,
                           uint64_t least)
{
    uint32_t rest[BITPACK_GROUP];

    for (uint32_t at = 0; at < rows; at += BITPACK_GROUP) {
        block_bitpack_decode_group(in, bits, rest);
        for (int i = 0; i < BITPACK_GROUP; i++)
            value += least + rest[i];
        in += block_bitpack_size(BITPACK_GROUP, bits);
    }
    return value;
}

/* Frame of reference over more than 32 bits: through the decoder's 64-bit numbers, as runs of one.
 */
static void decode_for_wide(struct block_decoder *decoder, const uint8_t *in,
                            struct block_window window, unsigned bits, uint64_t base,
                            unsigned width, uint8_t *to)
{
    block_bitpack_decode64(in, window.rows, bits, decoder->run_values);
    const uint64_t *values = decoder->run_values + window.begin;
    if (width == 8) {
        any_i64 *out = (any_i64 *)(void *)to;
        for (uint32_t i = 0; i < window.count; i++)
            out[i] = (int64_t)(base + values[i]);
    } else {
        any_i128 *out = (any_i128 *)(void *)to;
        for (uint32_t i = 0; i < window.count; i++)
            out[i] = (int64_t)(base + values[i]);
    }
}

static void decode_runs(struct block_decoder *decoder, struct block_window window,
                        unsigned value_bits, uint64_t base, unsigned width, struct cursor *cursor,
                        uint8_t *to)
{
    const uint64_t *values;
    const uint32_t *lengths;

    (void)block_decode_runs(decoder, cursor, window.rows, value_bits);
    if (cursor->err != 0)
        return;
    cut_runs(decoder, window.begin, &values, &lengths);
    BY_WIDTH(width, repeat, to, values, lengths, window.count, base);
}

static void decode_delta(struct block_window window, unsigned width, const uint8_t *no_steps,
                         struct cursor *cursor, uint8_t *to)
{
    uint64_t before = cursor_u64le(cursor);
    uint64_t least = cursor_u64le(cursor);
    unsigned bits = cursor_u8(cursor);

    if (bits > BLOCK_DELTA_BITS_MAX)
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        return;
    /* Steps of no bits have no bytes, but a place that is not NULL is wanted for them too. */
    struct slice steps = cursor_bytes(cursor, block_bitpack_size(window.rows, bits));
    if (cursor->err != 0)
        return;
    const uint8_t *in = bits == 0 ? no_steps : steps.data;
    before = skip_steps(in, window.begin, bits, before, least);
    in += block_bitpack_size(window.begin, bits);
    BY_WIDTH(width, add_steps, to, in, window.count, bits, before, least);
}

void block_decode_fixed(struct block_decoder *decoder, const struct block_column *column,
                        struct block_window window, struct cursor *cursor, uint8_t *to)
{
    unsigned width = type_width(column->type);
    struct slice min = cursor_bytes(cursor, width);
    struct slice max = cursor_bytes(cursor, width);
    if (cursor->err != 0)
        return;
    unsigned value_bits = width >= 8 ? 64 : 8 * width;
    uint64_t base = 0;
    memcpy(&base, min.data, width < 8 ? width : 8);
    unsigned bits;
    const uint8_t *packed;

    switch (column->encoding) {
    case BLOCK_PLAIN: {
        struct slice plain = cursor_bytes(cursor, (size_t)window.rows * width);
        if (cursor->err == 0)
            memcpy(to, plain.data + (size_t)window.begin * width, (size_t)window.count * width);
        return;
    }
    case BLOCK_CONSTANT:
        if (memcmp(min.data, max.data, width) != 0)
            cursor_fail(cursor, TG_CORRUPT);
        else
            BY_WIDTH(width, fill, to, min.data, window.count);
        return;
    case BLOCK_FOR:
        packed = block_decode_packed(cursor, window.rows, value_bits, &bits);
        if (packed == NULL)
            return;
        if (bits > 32) {
            decode_for_wide(decoder, packed, window, bits, base, width, to);
            return;
        }
        packed += block_bitpack_size(window.begin, bits);
        BY_WIDTH(width, add_packed, to, packed, window.count, bits, base);
        return;
    case BLOCK_RLE:
        decode_runs(decoder, window, value_bits, base, width, cursor, to);
        return;
    case BLOCK_DELTA:
        decode_delta(window, width, min.data, cursor, to);
        return;
    default:
        cursor_fail(cursor, TG_CORRUPT);
    }
}

/* A bitmap's bits become one byte a row, 0 or 1. False where bits behind the last row are set. */
static bool spread_bitmap(const uint8_t *bitmap, uint32_t rows, uint8_t *nulls)
{
    for (uint32_t at = 0; at < rows; at += 8) {
        uint64_t eight = bitmap[at / 8] * UINT64_C(0x0101010101010101);
        eight &= UINT64_C(0x8040201008040201); /* byte k keeps bit k */
        eight = ((eight + UINT64_C(0x7F7F7F7F7F7F7F7F)) | eight) >> 7;
        eight &= UINT64_C(0x0101010101010101);
        uint32_t n = rows - at < 8 ? rows - at : 8;
        memcpy(nulls + at, &eight, n);
        if (n < 8 && eight >> (8 * n) != 0)
            return false;
    }
    return true;
}

/* Nulls of the rows to come, in out->nulls; NULL if there are none in this block. */
static int decode_nulls(const struct block_column *column, struct block_window window,
                        struct cursor *cursor, struct vector *out, const uint8_t **nulls)
{
    *nulls = NULL;
    bool any = (column->flags & (BLOCK_HAS_NULLS | BLOCK_ALL_NULL)) != 0;
    if (any && vector_use_nulls(out) != 0)
        return TG_NOMEM;
    if (!out->has_nulls)
        return 0;
    uint8_t *to = out->nulls + out->rows;
    if ((column->flags & BLOCK_HAS_NULLS) != 0) {
        struct slice bitmap = cursor_bytes(cursor, (window.rows + 7) / 8);
        if (cursor->err == 0 && !spread_bitmap(bitmap.data + window.begin / 8, window.count, to))
            cursor_fail(cursor, TG_CORRUPT);
        *nulls = to;
    } else {
        memset(to, (column->flags & BLOCK_ALL_NULL) != 0, window.count);
    }
    return 0;
}

static void append_all_null(struct vector *out, uint32_t rows)
{
    if (out->width > 0) {
        memset(out->fixed + (size_t)out->rows * out->width, 0, (size_t)rows * out->width);
        return;
    }
    for (uint32_t i = 0; i < rows; i++)
        out->ends[out->rows + i] = (uint32_t)out->bytes_len;
}

/* Values of one type's columns mean the same in another only if that is as wide and as scaled. */
static bool type_fits(struct column_type stored, struct column_type wanted)
{
    if (type_is_bytes(stored) || type_is_bytes(wanted))
        return type_is_bytes(stored) && type_is_bytes(wanted);
    return stored.kind == wanted.kind && type_width(stored) == type_width(wanted) &&
           (stored.kind != TYPE_DECIMAL || stored.scale == wanted.scale);
}

int block_decode_rows(struct block_decoder *decoder, const struct block *block, uint32_t index,
                      uint32_t begin, uint32_t end, struct vector *out, struct tg_errmsg *msg)
{
    struct block_column column;
    TG_CHECK(begin < end && end <= block->rows && begin % BLOCK_WINDOW_ROWS == 0 &&
             (end == block->rows || end % BLOCK_WINDOW_ROWS == 0));
    block_column_at(block, index, &column);
    if (!type_fits(column.type, out->type))
        return tg_fail(msg, TG_INVALID, "block: column %u is of type kind %u, not %u", column.id,
                       column.type.kind, out->type.kind);
    struct block_window window = {.rows = block->rows, .begin = begin, .count = end - begin};
    int err = reserve_rows(decoder, window.rows);
    if (err == 0)
        err = vector_reserve(out, window.count, 0);
    if (err != 0)
        return tg_fail(msg, err, "block: no room for %u rows of column %u", window.count,
                       column.id);

    struct cursor cursor;
    cursor_init(&cursor, block->data + column.offset, column.len);
    size_t bytes_before = out->bytes_len;
    const uint8_t *nulls;
    err = decode_nulls(&column, window, &cursor, out, &nulls);
    if (err == 0 && cursor.err == 0) {
        uint8_t *to = out->width == 0 ? NULL : out->fixed + (size_t)out->rows * out->width;
        if ((column.flags & BLOCK_ALL_NULL) != 0)
            append_all_null(out, window.count);
        else if (out->width == 0)
            err = block_decode_bytes(decoder, &column, window, nulls, &cursor, out);
        else
            block_decode_fixed(decoder, &column, window, &cursor, to);
        if (out->width > 0 && nulls != NULL && cursor.err == 0)
            BY_WIDTH(out->width, clear, to, nulls, window.count);
    }
    if (err == 0)
        err = cursor_finish(&cursor);
    if (err != 0) {
        out->bytes_len = bytes_before;
        return tg_fail(msg, err, "block: column %u (encoding %u) cannot be decoded", column.id,
                       column.encoding);
    }
    out->rows += window.count;
    return 0;
}

int block_decode_column(struct block_decoder *decoder, const struct block *block, uint32_t index,
                        struct vector *out, struct tg_errmsg *msg)
{
    return block_decode_rows(decoder, block, index, 0, block->rows, out, msg);
}
