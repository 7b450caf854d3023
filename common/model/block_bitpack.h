/* SPDX-License-Identifier: Apache-2.0 */
/* Bit packing of small unsigned numbers: groups of 256 in eight interleaved lanes of 32 bits, and a
 * shorter last group bit after bit. Part of the block format (docs/formats.md). */
#ifndef TG_COMMON_MODEL_BLOCK_BITPACK_H
#define TG_COMMON_MODEL_BLOCK_BITPACK_H

#include <stddef.h>
#include <stdint.h>

enum { BITPACK_GROUP = 256 };

/* How many bits hold `value`: 0 for 0, 64 at most. */
static inline unsigned block_bitpack_width(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

/* Bytes that `count` numbers of `bits` (0..64) take. */
size_t block_bitpack_size(uint32_t count, unsigned bits);

/* One whole group of 256 numbers, each below 2^bits (0..32): 32 * bits bytes. */
void block_bitpack_encode_group(const uint32_t *values, unsigned bits, uint8_t *out);
void block_bitpack_decode_group(const uint8_t *in, unsigned bits, uint32_t *values);

/* Any count; bits 0..32. Exactly block_bitpack_size bytes are written or read. */
void block_bitpack_encode(const uint32_t *values, uint32_t count, unsigned bits, uint8_t *out);
void block_bitpack_decode(const uint8_t *in, uint32_t count, unsigned bits, uint32_t *values);

/* The same for bits 0..64: above 32 the low halves of all numbers come first, then the rest. */
void block_bitpack_encode64(const uint64_t *values, uint32_t count, unsigned bits, uint8_t *out);
void block_bitpack_decode64(const uint8_t *in, uint32_t count, unsigned bits, uint64_t *values);

#endif
