/* SPDX-License-Identifier: Apache-2.0 */
/* Which encoding a column of numbers gets: its figures (least, greatest, runs) in one pass, then
 * the rule of the cheapest. Deterministic: replicas and reruns choose alike. */
#ifndef TG_COMMON_MODEL_BLOCK_CHOOSE_H
#define TG_COMMON_MODEL_BLOCK_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/block_format.h"
#include "common/model/rowset_block.h"

/* Numbers ready to be encoded. Where all lie within 31 bits of the first, `narrow` holds them as
 * differences to `origin`: half the memory, and the compiler's vectors work on it. */
struct block_numbers {
    uint32_t count;
    bool is_narrow;
    bool is_codes;         /* of a dictionary: no series, so DELTA is not tried */
    const int32_t *narrow; /* value - origin; one more before it and up to a whole group after it */
    int64_t origin;
    const any_i64 *wide; /* the values themselves, where they are not narrow */
    int64_t min;
    int64_t max;
    uint32_t runs;
};

/* Reads `count` numbers of `width` bytes (1, 2, 4, 8) and takes their figures. `scratch` has room
 * for one int32 before it and count rounded up to whole groups. */
void block_numbers_load(struct block_numbers *numbers, const void *values, unsigned width,
                        uint32_t count, int32_t *scratch);
/* The same for numbers ≥ 0 that stand in scratch already (codes of a dictionary). */
void block_numbers_load_codes(struct block_numbers *numbers, uint32_t count, int32_t *scratch);

static inline int64_t block_numbers_at(const struct block_numbers *numbers, uint32_t i)
{
    if (numbers->is_narrow)
        return (int64_t)((uint64_t)numbers->origin + (uint64_t)(int64_t)numbers->narrow[i]);
    return numbers->wide[i];
}

struct block_choice {
    enum block_encoding encoding; /* PLAIN, CONSTANT, FOR, RLE or DELTA */
    unsigned bits;                /* of value - min, or of a difference for DELTA */
    unsigned length_bits;         /* RLE: of run length - 1 */
    uint64_t delta_min;           /* DELTA: the least difference of neighbours, modulo 2^64 */
};

/* Takes the cheapest for values of `width` bytes. For RLE the runs' first rows are in run_starts
 * (room for numbers->runs + 1). */
struct block_choice block_choose(const struct block_numbers *numbers, unsigned width,
                                 uint32_t *run_starts);

#endif
