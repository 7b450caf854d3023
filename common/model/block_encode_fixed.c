/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of columns whose values have a fixed width. */
#include <string.h>

#include "common/base/check.h"
#include "common/base/endian.h"
#include "common/model/block_bitpack.h"
#include "common/model/block_encode.h"

/* Copies values and gives each null the value before it (nulls at the start: the first value there
 * is), so that nulls cost neither range nor runs. At least one row is not null. */
#define FILL(bytes, type)                                                               \
    static void fill##bytes(const type *restrict values, const uint8_t *restrict nulls, \
                            uint32_t count, type *restrict out)                         \
    {                                                                                   \
        uint32_t first = 0;                                                             \
        while (nulls[first] != 0)                                                       \
            first++;                                                                    \
        type last = values[first];                                                      \
        for (uint32_t i = 0; i < count; i++) {                                          \
            last = nulls[i] != 0 ? last : values[i];                                    \
            out[i] = last;                                                              \
        }                                                                               \
    }
FILL(1, any_i8)
FILL(2, any_i16)
FILL(4, any_i32)
FILL(8, any_i64)
FILL(16, any_i128)
#undef FILL

static void fill_nulls(const void *values, const uint8_t *nulls, unsigned width, uint32_t count,
                       void *out)
{
    switch (width) {
    case 1:
        fill1(values, nulls, count, out);
        break;
    case 2:
        fill2(values, nulls, count, out);
        break;
    case 4:
        fill4(values, nulls, count, out);
        break;
    case 8:
        fill8(values, nulls, count, out);
        break;
    case 16:
        fill16(values, nulls, count, out);
        break;
    default:
        TG_UNREACHABLE();
    }
}

/* Whole groups in constant loops: the compiler makes vectors of them. */
static void subtract_group(const int32_t *restrict values, uint32_t min, uint32_t *restrict rest)
{
    for (int i = 0; i < BITPACK_GROUP; i++)
        rest[i] = (uint32_t)values[i] - min;
}

static void step_group(const int32_t *restrict values, uint32_t least, uint32_t *restrict rest)
{
    for (int i = 0; i < BITPACK_GROUP; i++)
        rest[i] = (uint32_t)values[i] - (uint32_t)values[i - 1] - least;
}

/* Frame of reference, group by group: difference to min, then packed. */
static void write_for(const struct block_numbers *numbers, unsigned bits, uint8_t *out)
{
    uint32_t rest[BITPACK_GROUP];
    uint32_t narrow_min = (uint32_t)((uint64_t)numbers->min - (uint64_t)numbers->origin);
    for (uint32_t at = 0; at < numbers->count; at += BITPACK_GROUP) {
        uint32_t left = numbers->count - at;
        if (numbers->is_narrow) {
            subtract_group(numbers->narrow + at, narrow_min, rest);
        } else {
            const any_i64 *restrict from = numbers->wide + at;
            for (uint32_t i = 0; i < BITPACK_GROUP && i < left; i++)
                rest[i] = (uint32_t)((uint64_t)from[i] - (uint64_t)numbers->min);
        }
        if (left < BITPACK_GROUP) {
            block_bitpack_encode(rest, left, bits, out);
            return;
        }
        block_bitpack_encode_group(rest, bits, out);
        out += (size_t)BITPACK_GROUP / 8 * bits;
    }
}

static int append_for(struct block_encoder *encoder, const struct block_numbers *numbers,
                      unsigned bits, struct buf *out)
{
    buf_append_u8(out, (uint8_t)bits);
    uint8_t *to = buf_extend(out, block_bitpack_size(numbers->count, bits));
    if (to == NULL)
        return TG_NOMEM;
    if (bits <= 32) {
        write_for(numbers, bits, to);
        return 0;
    }
    for (uint32_t i = 0; i < numbers->count; i++)
        encoder->run_values[i] = (uint64_t)block_numbers_at(numbers, i) - (uint64_t)numbers->min;
    block_bitpack_encode64(encoder->run_values, numbers->count, bits, to);
    return 0;
}

static int append_runs(struct block_encoder *encoder, const struct block_numbers *numbers,
                       const struct block_choice *choice, struct buf *out)
{
    uint32_t runs = numbers->runs;
    const uint32_t *starts = encoder->run_starts;
    for (uint32_t i = 0; i < runs; i++) {
        encoder->run_values[i] =
            (uint64_t)block_numbers_at(numbers, starts[i]) - (uint64_t)numbers->min;
        encoder->small[i] = starts[i + 1] - starts[i] - 1;
    }
    buf_append_u32le(out, runs);
    buf_append_u8(out, (uint8_t)choice->bits);
    buf_append_u8(out, (uint8_t)choice->length_bits);
    size_t value_bytes = block_bitpack_size(runs, choice->bits);
    size_t length_bytes = block_bitpack_size(runs, choice->length_bits);
    uint8_t *to = buf_extend(out, value_bytes + length_bytes);
    if (to == NULL)
        return TG_NOMEM;
    block_bitpack_encode64(encoder->run_values, runs, choice->bits, to);
    block_bitpack_encode(encoder->small, runs, choice->length_bits, to + value_bytes);
    return 0;
}

/* The start is chosen so that the first row is a step like all others, of the least difference. */
static int append_deltas(const struct block_numbers *numbers, const struct block_choice *choice,
                         struct buf *out)
{
    uint64_t before = (uint64_t)block_numbers_at(numbers, 0) - choice->delta_min;
    buf_append_u64le(out, before);
    buf_append_u64le(out, choice->delta_min);
    buf_append_u8(out, (uint8_t)choice->bits);
    uint8_t *to = buf_extend(out, block_bitpack_size(numbers->count, choice->bits));
    if (to == NULL)
        return TG_NOMEM;
    uint32_t rest[BITPACK_GROUP];
    for (uint32_t at = 0; at < numbers->count; at += BITPACK_GROUP) {
        uint32_t left = numbers->count - at;
        uint32_t n = left < BITPACK_GROUP ? left : BITPACK_GROUP;
        if (numbers->is_narrow) { /* differences do not know the origin */
            step_group(numbers->narrow + at, (uint32_t)choice->delta_min, rest);
        } else {
            for (uint32_t i = at == 0; i < n; i++)
                rest[i] = (uint32_t)((uint64_t)numbers->wide[at + i] -
                                     (uint64_t)numbers->wide[at + i - 1] - choice->delta_min);
        }
        if (at == 0)
            rest[0] = 0;
        block_bitpack_encode(rest, n, choice->bits, to);
        to += block_bitpack_size(n, choice->bits);
    }
    return 0;
}

int block_encode_numbers(struct block_encoder *encoder, const struct block_numbers *numbers,
                         const struct block_choice *choice, struct buf *out)
{
    switch (choice->encoding) {
    case BLOCK_FOR:
        return append_for(encoder, numbers, choice->bits, out);
    case BLOCK_RLE:
        return append_runs(encoder, numbers, choice, out);
    case BLOCK_DELTA:
        return append_deltas(numbers, choice, out);
    default:
        TG_UNREACHABLE();
    }
}

/* 128-bit values: true, with the values in encoder->wide, if all fit 64 bits; else their range. */
static bool narrow_i128(struct block_encoder *encoder, const any_i128 *values, uint32_t count,
                        __int128 range[2])
{
    bool fits = true;
    range[0] = range[1] = values[0];
    for (uint32_t i = 0; i < count; i++) {
        __int128 value = values[i];
        range[0] = value < range[0] ? value : range[0];
        range[1] = value > range[1] ? value : range[1];
        encoder->wide[i] = (int64_t)value;
    }
    if (range[0] < INT64_MIN || range[1] > INT64_MAX)
        fits = false;
    return fits;
}

int block_encode_fixed(struct block_encoder *encoder, const struct vector *vector, uint32_t begin,
                       uint32_t count, bool has_nulls, struct buf *out,
                       struct block_encoded *encoded)
{
    unsigned width = vector->width;
    const void *values = vector->fixed + (size_t)begin * width;
    if (has_nulls) {
        fill_nulls(values, vector->nulls + begin, width, count, encoder->filled);
        values = encoder->filled;
    }

    __int128 range[2];
    struct block_numbers numbers;
    struct block_choice choice = {.encoding = BLOCK_PLAIN};
    if (width != 16) {
        block_numbers_load(&numbers, values, width, count, encoder->narrow);
        range[0] = numbers.min;
        range[1] = numbers.max;
        choice = block_choose(&numbers, width, encoder->run_starts);
    } else if (narrow_i128(encoder, values, count, range)) {
        block_numbers_load(&numbers, encoder->wide, 8, count, encoder->narrow);
        choice = block_choose(&numbers, width, encoder->run_starts);
    } else if (range[0] == range[1]) {
        choice.encoding = BLOCK_CONSTANT;
    }

    encoded->encoding = (uint8_t)choice.encoding;
    buf_append(out, &range[0], width);
    buf_append(out, &range[1], width);
    if (choice.encoding == BLOCK_PLAIN)
        buf_append(out, values, (size_t)count * width);
    else if (choice.encoding != BLOCK_CONSTANT)
        return block_encode_numbers(encoder, &numbers, &choice, out);
    return out->err;
}
