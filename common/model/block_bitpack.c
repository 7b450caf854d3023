/* SPDX-License-Identifier: Apache-2.0 */
/* Bit packing: one unrolled routine per width, in vectors of the compiler. */
#include "common/model/block_bitpack.h"

#include <assert.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/endian.h"

static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "packed words are little-endian in memory");

/* A group is 32 rows of 8 lanes: number i lies in row i / 8, lane i % 8. Each lane is packed as if
 * it were alone, so a routine is the same straight line for all lanes at once: two vectors of four
 * lanes, one after the other. A packed row of word k is at byte 32 k. */
typedef uint32_t lanes __attribute__((vector_size(16)));
typedef uint32_t lanes_at __attribute__((vector_size(16), aligned(1), may_alias));

enum { ROW_VECTORS = 2 };

#define MASK(bits) ((bits) == 32 ? UINT32_MAX : (1u << ((bits) % 32)) - 1)

/* Steps of a routine; W and J are constants, so that every condition vanishes. */
#define UNPACK(W, J)                                                                       \
    {                                                                                      \
        enum { WORD = (J) * (W) / 32, SHIFT = (J) * (W) % 32 };                            \
        lanes v = from[WORD * ROW_VECTORS] >> SHIFT;                                       \
        if (SHIFT + (W) > 32)                                                              \
            v |= from[(WORD + 1) * ROW_VECTORS * (SHIFT + (W) > 32)] << (32 - SHIFT) % 32; \
        to[(J)*ROW_VECTORS] = v & MASK(W);                                                 \
    }
#define PACK(W, J)                                                   \
    {                                                                \
        enum { WORD = (J) * (W) / 32, SHIFT = (J) * (W) % 32 };      \
        lanes v = from[(J)*ROW_VECTORS];                             \
        word |= v << SHIFT;                                          \
        if (SHIFT + (W) >= 32) {                                     \
            to[WORD * ROW_VECTORS] = word;                           \
            word = SHIFT + (W) > 32 ? v >> (32 - SHIFT) % 32 : zero; \
        }                                                            \
    }
#define ROWS8(STEP, W, J) \
    STEP(W, (J))          \
    STEP(W, (J) + 1)      \
    STEP(W, (J) + 2)      \
    STEP(W, (J) + 3) STEP(W, (J) + 4) STEP(W, (J) + 5) STEP(W, (J) + 6) STEP(W, (J) + 7)
#define ROWS32(STEP, W) ROWS8(STEP, W, 0) ROWS8(STEP, W, 8) ROWS8(STEP, W, 16) ROWS8(STEP, W, 24)

#define ROUTINES(W)                                                                        \
    static void pack_##W(const uint32_t *restrict values, uint8_t *restrict out)           \
    {                                                                                      \
        const lanes zero = {0};                                                            \
        for (int half = 0; half < ROW_VECTORS; half++) {                                   \
            const lanes_at *restrict from = (const lanes_at *)(const void *)values + half; \
            lanes_at *restrict to = (lanes_at *)(void *)out + half;                        \
            lanes word = zero;                                                             \
            ROWS32(PACK, W)                                                                \
        }                                                                                  \
    }                                                                                      \
    static void unpack_##W(const uint8_t *restrict in, uint32_t *restrict values)          \
    {                                                                                      \
        for (int half = 0; half < ROW_VECTORS; half++) {                                   \
            const lanes_at *restrict from = (const lanes_at *)(const void *)in + half;     \
            lanes_at *restrict to = (lanes_at *)(void *)values + half;                     \
            ROWS32(UNPACK, W)                                                              \
        }                                                                                  \
    }

#define WIDTHS8(X, A, B, C, D, E, F, G, H) X(A) X(B) X(C) X(D) X(E) X(F) X(G) X(H)
#define WIDTHS(X)                              \
    WIDTHS8(X, 1, 2, 3, 4, 5, 6, 7, 8)         \
    WIDTHS8(X, 9, 10, 11, 12, 13, 14, 15, 16)  \
    WIDTHS8(X, 17, 18, 19, 20, 21, 22, 23, 24) \
    WIDTHS8(X, 25, 26, 27, 28, 29, 30, 31, 32)

/* clang-format off */
WIDTHS(ROUTINES)

#define PACK_ENTRY(W) pack_##W,
#define UNPACK_ENTRY(W) unpack_##W,
static void (*const packers[])(const uint32_t *, uint8_t *) = {NULL, WIDTHS(PACK_ENTRY)};
static void (*const unpackers[])(const uint8_t *, uint32_t *) = {NULL, WIDTHS(UNPACK_ENTRY)};
/* clang-format on */

size_t block_bitpack_size(uint32_t count, unsigned bits)
{
    if (bits > 32)
        return block_bitpack_size(count, 32) + block_bitpack_size(count, bits - 32);
    size_t groups = count / BITPACK_GROUP;
    size_t rest = count % BITPACK_GROUP;
    return groups * BITPACK_GROUP / 8 * bits + (rest * bits + 7) / 8;
}

void block_bitpack_encode_group(const uint32_t *values, unsigned bits, uint8_t *out)
{
    TG_CHECK(bits <= 32);
    if (bits > 0)
        packers[bits](values, out);
}

void block_bitpack_decode_group(const uint8_t *in, unsigned bits, uint32_t *values)
{
    TG_CHECK(bits <= 32);
    if (bits > 0)
        unpackers[bits](in, values);
    else
        memset(values, 0, BITPACK_GROUP * sizeof *values);
}

/* The last, shorter group: number after number, lowest bit first. */
static void encode_rest(const uint32_t *values, uint32_t count, unsigned bits, uint8_t *out)
{
    uint64_t pending = 0;
    unsigned held = 0;
    for (uint32_t i = 0; i < count; i++) {
        pending |= (uint64_t)values[i] << held;
        held += bits;
        for (; held >= 8; held -= 8) {
            *out++ = (uint8_t)pending;
            pending >>= 8;
        }
    }
    if (held > 0)
        *out = (uint8_t)pending;
}

static void decode_rest(const uint8_t *in, uint32_t count, unsigned bits, uint32_t *values)
{
    uint64_t pending = 0;
    unsigned held = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (; held < bits; held += 8)
            pending |= (uint64_t)*in++ << held;
        values[i] = (uint32_t)pending & MASK(bits);
        pending >>= bits;
        held -= bits;
    }
}

void block_bitpack_encode(const uint32_t *values, uint32_t count, unsigned bits, uint8_t *out)
{
    TG_CHECK(bits <= 32);
    if (bits == 0)
        return;
    uint32_t at = 0;
    for (; count - at >= BITPACK_GROUP; at += BITPACK_GROUP) {
        packers[bits](values + at, out);
        out += (size_t)BITPACK_GROUP / 8 * bits;
    }
    encode_rest(values + at, count - at, bits, out);
}

void block_bitpack_decode(const uint8_t *in, uint32_t count, unsigned bits, uint32_t *values)
{
    TG_CHECK(bits <= 32);
    if (bits == 0) {
        memset(values, 0, count * sizeof *values);
        return;
    }
    uint32_t at = 0;
    for (; count - at >= BITPACK_GROUP; at += BITPACK_GROUP) {
        unpackers[bits](in, values + at);
        in += (size_t)BITPACK_GROUP / 8 * bits;
    }
    decode_rest(in, count - at, bits, values + at);
}

void block_bitpack_encode64(const uint64_t *values, uint32_t count, unsigned bits, uint8_t *out)
{
    TG_CHECK(bits <= 64);
    unsigned low_bits = bits < 32 ? bits : 32;
    unsigned high_bits = bits - low_bits;
    uint8_t *out_high = out + block_bitpack_size(count, low_bits);
    uint32_t low[BITPACK_GROUP];
    uint32_t high[BITPACK_GROUP];
    for (uint32_t at = 0; at < count; at += BITPACK_GROUP) {
        uint32_t n = count - at < BITPACK_GROUP ? count - at : BITPACK_GROUP;
        for (uint32_t i = 0; i < n; i++)
            low[i] = (uint32_t)values[at + i];
        for (uint32_t i = 0; i < n && high_bits > 0; i++)
            high[i] = (uint32_t)(values[at + i] >> 32);
        block_bitpack_encode(low, n, low_bits, out);
        block_bitpack_encode(high, n, high_bits, out_high);
        out += block_bitpack_size(n, low_bits);
        out_high += block_bitpack_size(n, high_bits);
    }
}

static void widen_group(const uint32_t *restrict low, uint64_t *restrict values)
{
    for (int i = 0; i < BITPACK_GROUP; i++)
        values[i] = low[i];
}

void block_bitpack_decode64(const uint8_t *in, uint32_t count, unsigned bits, uint64_t *values)
{
    TG_CHECK(bits <= 64);
    unsigned low_bits = bits < 32 ? bits : 32;
    unsigned high_bits = bits - low_bits;
    const uint8_t *in_high = in + block_bitpack_size(count, low_bits);
    uint32_t low[BITPACK_GROUP];
    uint32_t high[BITPACK_GROUP];
    for (uint32_t at = 0; at < count; at += BITPACK_GROUP) {
        uint32_t n = count - at < BITPACK_GROUP ? count - at : BITPACK_GROUP;
        block_bitpack_decode(in, n, low_bits, low);
        if (high_bits == 0) {
            if (n == BITPACK_GROUP)
                widen_group(low, values + at);
            else
                for (uint32_t i = 0; i < n; i++)
                    values[at + i] = low[i];
        } else {
            block_bitpack_decode(in_high, n, high_bits, high);
            for (uint32_t i = 0; i < n; i++)
                values[at + i] = (uint64_t)high[i] << 32 | low[i];
        }
        in += block_bitpack_size(n, low_bits);
        in_high += block_bitpack_size(n, high_bits);
    }
}
