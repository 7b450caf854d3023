/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a column and the choice of its encoding. */
#include "common/model/block_choose.h"

#include "common/base/check.h"
#include "common/model/block_bitpack.h"

enum {
    SAMPLES = 64,        /* neighbours looked at before differences are counted exactly */
    WIDE_PACKED_MAX = 56 /* bits; a 64-bit value is packed only if that saves an eighth */
};

/* Differences to origin of one group of 8-byte values; not zero if one does not fit 32 bits. */
static uint64_t narrow_group8(const any_i64 *restrict values, int64_t origin, int32_t *restrict out)
{
    uint64_t wide = 0;
    for (int i = 0; i < BITPACK_GROUP; i++) {
        uint64_t difference = (uint64_t)values[i] - (uint64_t)origin;
        out[i] = (int32_t)(uint32_t)difference;
        wide |= (difference + 0x80000000u) >> 32;
    }
    return wide;
}

/* False where the values are not narrow. */
static bool narrow8(const any_i64 *values, uint32_t count, int64_t origin, int32_t *out)
{
    /* Differences are taken modulo 2^64: near an end the far end would look close. */
    if (origin < INT64_MIN - (int64_t)INT32_MIN || origin > INT64_MAX - INT32_MAX)
        return false;
    uint32_t at = 0;
    for (; count - at >= BITPACK_GROUP; at += BITPACK_GROUP)
        if (narrow_group8(values + at, origin, out + at) != 0)
            return false;
    for (; at < count; at++) {
        uint64_t difference = (uint64_t)values[at] - (uint64_t)origin;
        if ((difference + 0x80000000u) >> 32 != 0)
            return false;
        out[at] = (int32_t)(uint32_t)difference;
    }
    return true;
}

/* Smaller values are only widened. */
#define WIDEN(bytes, type)                                                                       \
    static void widen_group##bytes(const type *restrict values, int32_t *restrict out)           \
    {                                                                                            \
        for (int i = 0; i < BITPACK_GROUP; i++)                                                  \
            out[i] = values[i];                                                                  \
    }                                                                                            \
    static void widen##bytes(const type *restrict values, uint32_t count, int32_t *restrict out) \
    {                                                                                            \
        uint32_t at = 0;                                                                         \
        for (; count - at >= BITPACK_GROUP; at += BITPACK_GROUP)                                 \
            widen_group##bytes(values + at, out + at);                                           \
        for (; at < count; at++)                                                                 \
            out[at] = values[at];                                                                \
    }
WIDEN(1, any_i8)
WIDEN(2, any_i16)
WIDEN(4, any_i32)
#undef WIDEN

typedef int32_t four __attribute__((vector_size(16)));
typedef int32_t four_at __attribute__((vector_size(16), aligned(1), may_alias));

static inline four four_min(four a, four b)
{
    four a_less = a < b;
    return (a & a_less) | (b & ~a_less);
}

static inline four four_max(four a, four b)
{
    four a_more = a > b;
    return (a & a_more) | (b & ~a_more);
}

/* Least and greatest, and less one for each number that equals the one before it. */
struct figures {
    four min;
    four max;
    four same;
};

static inline void add_figures(struct figures *figures, const int32_t *values)
{
    four v = *(const four_at *)values;
    four before = *(const four_at *)(values - 1);
    figures->min = four_min(figures->min, v);
    figures->max = four_max(figures->max, v);
    figures->same += v == before;
}

/* Least, greatest and number of runs of narrow numbers. Two sets are kept side by side, so that one
 * vector need not wait for the one before. */
static void take_figures_narrow(struct block_numbers *numbers, int32_t *values)
{
    enum { LANES = 4, STRIDE = 2 * LANES };
    uint32_t count = numbers->count;
    values[-1] = values[0];
    for (uint32_t i = count; i % BITPACK_GROUP != 0; i++)
        values[i] = values[count - 1]; /* fills the last group without changing the figures */

    uint32_t filled = (count + BITPACK_GROUP - 1) / BITPACK_GROUP * BITPACK_GROUP;
    four first = *(const four_at *)values;
    struct figures a = {first, first, {0}};
    struct figures b = a;
    for (uint32_t at = 0; at < filled; at += STRIDE) {
        add_figures(&a, values + at);
        add_figures(&b, values + at + LANES);
    }
    a.min = four_min(a.min, b.min);
    a.max = four_max(a.max, b.max);
    a.same += b.same;
    int32_t min = values[0];
    int32_t max = values[0];
    uint32_t changes = filled;
    for (int lane = 0; lane < LANES; lane++) {
        min = a.min[lane] < min ? a.min[lane] : min;
        max = a.max[lane] > max ? a.max[lane] : max;
        changes += (uint32_t)a.same[lane];
    }
    numbers->is_narrow = true;
    numbers->narrow = values;
    numbers->min = (int64_t)((uint64_t)numbers->origin + (uint64_t)(int64_t)min);
    numbers->max = (int64_t)((uint64_t)numbers->origin + (uint64_t)(int64_t)max);
    numbers->runs = changes + 1;
}

static void take_figures_wide(struct block_numbers *numbers, const any_i64 *values)
{
    int64_t min = values[0];
    int64_t max = values[0];
    uint32_t runs = 1;
    for (uint32_t i = 1; i < numbers->count; i++) {
        min = values[i] < min ? values[i] : min;
        max = values[i] > max ? values[i] : max;
        runs += values[i] != values[i - 1];
    }
    numbers->is_narrow = false;
    numbers->wide = values;
    numbers->min = min;
    numbers->max = max;
    numbers->runs = runs;
}

void block_numbers_load(struct block_numbers *numbers, const void *values, unsigned width,
                        uint32_t count, int32_t *scratch)
{
    TG_CHECK(count > 0);
    *numbers = (struct block_numbers){.count = count};
    switch (width) {
    case 1:
        widen1(values, count, scratch);
        break;
    case 2:
        widen2(values, count, scratch);
        break;
    case 4:
        widen4(values, count, scratch);
        break;
    case 8:
        numbers->origin = *(const any_i64 *)values;
        if (!narrow8(values, count, numbers->origin, scratch)) {
            take_figures_wide(numbers, values);
            return;
        }
        break;
    default:
        TG_UNREACHABLE();
    }
    take_figures_narrow(numbers, scratch);
}

void block_numbers_load_codes(struct block_numbers *numbers, uint32_t count, int32_t *scratch)
{
    TG_CHECK(count > 0);
    *numbers = (struct block_numbers){.count = count, .is_codes = true};
    take_figures_narrow(numbers, scratch);
}

/* Least and greatest difference of neighbours over every step-th pair, modulo 2^64. */
#define DIFFERENCES(name, type)                                                               \
    static void name(const type *values, uint32_t count, uint32_t step, int64_t *min,         \
                     int64_t *max)                                                            \
    {                                                                                         \
        for (uint32_t i = 1; i < count; i += step) {                                          \
            uint64_t delta = (uint64_t)(int64_t)values[i] - (uint64_t)(int64_t)values[i - 1]; \
            *min = (int64_t)delta < *min ? (int64_t)delta : *min;                             \
            *max = (int64_t)delta > *max ? (int64_t)delta : *max;                             \
        }                                                                                     \
    }
DIFFERENCES(differences_narrow, int32_t)
DIFFERENCES(differences_wide, any_i64)
#undef DIFFERENCES

/* The bits of (a difference - the least one). */
static unsigned measure_deltas(const struct block_numbers *numbers, uint32_t step, uint64_t *least)
{
    int64_t min = INT64_MAX;
    int64_t max = INT64_MIN;
    if (numbers->is_narrow)
        differences_narrow(numbers->narrow, numbers->count, step, &min, &max);
    else
        differences_wide(numbers->wide, numbers->count, step, &min, &max);
    *least = (uint64_t)min;
    return block_bitpack_width((uint64_t)max - (uint64_t)min);
}

/* Where the runs begin, and the longest run's length. */
static uint32_t find_runs(const struct block_numbers *numbers, uint32_t *starts)
{
    uint32_t runs = 1;
    starts[0] = 0;
    /* Without a branch: the place is written anyway and kept where a run begins. */
    if (numbers->is_narrow) {
        for (uint32_t i = 1; i < numbers->count; i++) {
            starts[runs] = i;
            runs += numbers->narrow[i] != numbers->narrow[i - 1];
        }
    } else {
        for (uint32_t i = 1; i < numbers->count; i++) {
            starts[runs] = i;
            runs += numbers->wide[i] != numbers->wide[i - 1];
        }
    }
    starts[runs] = numbers->count;
    uint32_t longest = 0;
    for (uint32_t i = 0; i < runs; i++)
        longest = starts[i + 1] - starts[i] > longest ? starts[i + 1] - starts[i] : longest;
    return longest;
}

/* Costs are in bits. Start from frame of reference (or plain, where packing gains too little); runs
 * must beat it by an eighth, since they decode slower; differences must beat what is best so far by
 * an eighth and are only counted where a sample promises a quarter. */
struct block_choice block_choose(const struct block_numbers *numbers, unsigned width,
                                 uint32_t *run_starts)
{
    uint64_t n = numbers->count;
    unsigned bits = block_bitpack_width((uint64_t)numbers->max - (uint64_t)numbers->min);
    struct block_choice choice = {.encoding = BLOCK_FOR, .bits = bits};
    if (bits == 0) {
        choice.encoding = BLOCK_CONSTANT;
        return choice;
    }
    if (bits >= 8 * width || (width == 8 && bits > WIDE_PACKED_MAX)) {
        choice.encoding = BLOCK_PLAIN;
        choice.bits = 8 * width;
    }
    uint64_t base_cost = n * choice.bits;
    uint64_t best_cost = base_cost;

    if (numbers->runs <= n / 2) {
        uint64_t runs = numbers->runs;
        uint64_t promised = runs * (bits + block_bitpack_width(n / runs) + 1);
        if (promised < base_cost / 8 * 7) {
            unsigned length_bits = block_bitpack_width(find_runs(numbers, run_starts) - 1);
            uint64_t cost = runs * (bits + length_bits);
            if (cost < base_cost / 8 * 7) {
                choice = (struct block_choice){BLOCK_RLE, bits, length_bits, 0};
                best_cost = cost;
            }
        }
    }
    if (numbers->is_codes || n == 1)
        return choice;
    uint64_t least;
    uint32_t step = n <= SAMPLES ? 1 : (uint32_t)(n / SAMPLES);
    if (n * measure_deltas(numbers, step, &least) < base_cost / 4 * 3) {
        unsigned delta_bits = measure_deltas(numbers, 1, &least);
        if (delta_bits <= BLOCK_DELTA_BITS_MAX && n * delta_bits < best_cost / 8 * 7)
            choice = (struct block_choice){BLOCK_DELTA, delta_bits, 0, least};
    }
    return choice;
}
