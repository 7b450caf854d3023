/* SPDX-License-Identifier: Apache-2.0 */
/* The hash that sends a row to its bucket. It must never change: rows of one key must meet in one
 * bucket in all versions. */
#include <math.h>

#include "common/base/checksum.h"
#include "common/base/endian.h"
#include "common/model/row_key.h"

/* For each row, h starts as SEED; each column turns it into fold((word ^ A) * (h ^ B)), where fold
 * is high ^ low half of the 128-bit product; at the end h is stirred once more, so that its upper
 * half (which picks the bucket) depends on all bits. The word of a value:
 *
 *   null               NULL_WORD
 *   integers, DECIMAL, the value as a 64-bit two's complement number, whatever its width; one that
 *   DATE, DATETIME     needs more than 64 bits takes two steps, lower half first
 *   FLOAT, DOUBLE      the bits of the value as a double; -0 is 0, every NaN the same
 *   bytes              XXH3-64 of the bytes
 */
#define SEED      UINT64_C(0x9E3779B97F4A7C15)
#define MIX_A     UINT64_C(0xA0761D6478BD642F)
#define MIX_B     UINT64_C(0xE7037ED1A0B428DB)
#define STIR      UINT64_C(0x8EBC6AF09C88C6E3)
#define NULL_WORD UINT64_C(0x6E756C6C6E756C6C)
#define NAN_WORD  UINT64_C(0x7FF8000000000000)

static inline uint64_t step(uint64_t h, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)(word ^ MIX_A) * (h ^ MIX_B);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t stir(uint64_t h)
{
    h ^= h >> 32;
    h *= STIR;
    return h ^ h >> 29;
}

static inline uint64_t real_word(double value)
{
    uint64_t bits;
    if (value == 0)
        value = 0;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? NAN_WORD : bits;
}

static inline uint64_t step_wide(uint64_t h, const uint8_t *at)
{
    uint64_t low = load_u64le(at);
    uint64_t high = load_u64le(at + 8);
    h = step(h, low);
    return high == (uint64_t)((int64_t)low >> 63) ? h : step(h, high);
}

/* One loop a width; `next` is an expression over h (so far) and i (the row). */
#define HASH_LOOP(next)                     \
    for (uint32_t k = 0; k < count; k++) {  \
        uint32_t i = begin + k;             \
        uint64_t h = out[k];                \
        if (nulls != NULL && nulls[i] != 0) \
            out[k] = step(h, NULL_WORD);    \
        else                                \
            out[k] = (next);                \
    }

static void hash_column(const struct vector *column, uint32_t begin, uint32_t count, uint64_t *out)
{
    const uint8_t *nulls = column->has_nulls ? column->nulls : NULL;
    const void *fixed = column->fixed;
    if (column->type.kind == TYPE_FLOAT) {
        HASH_LOOP(step(h, real_word((double)((const float *)fixed)[i])))
        return;
    }
    if (column->type.kind == TYPE_DOUBLE) {
        HASH_LOOP(step(h, real_word(((const double *)fixed)[i])))
        return;
    }
    switch (column->width) {
    case 0:
        for (uint32_t k = 0; k < count; k++) {
            struct slice bytes = vector_bytes(column, begin + k);
            bool null = nulls != NULL && nulls[begin + k] != 0;
            out[k] = step(out[k], null ? NULL_WORD : checksum64(bytes.data, bytes.len));
        }
        break;
    case 1:
        HASH_LOOP(step(h, (uint64_t)((const int8_t *)fixed)[i]))
        break;
    case 2:
        HASH_LOOP(step(h, (uint64_t)((const int16_t *)fixed)[i]))
        break;
    case 4:
        HASH_LOOP(step(h, (uint64_t)((const int32_t *)fixed)[i]))
        break;
    case 8:
        HASH_LOOP(step(h, (uint64_t)((const int64_t *)fixed)[i]))
        break;
    default:
        HASH_LOOP(step_wide(h, (const uint8_t *)fixed + (size_t)i * 16))
        break;
    }
}

void row_key_hash(const struct vector *const *columns, uint32_t column_count, uint32_t begin,
                  uint32_t count, uint64_t *out)
{
    for (uint32_t k = 0; k < count; k++)
        out[k] = SEED;
    for (uint32_t i = 0; i < column_count; i++)
        hash_column(columns[i], begin, count, out);
    for (uint32_t k = 0; k < count; k++)
        out[k] = stir(out[k]);
}
