/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the block decoder: its scratch memory, and what its files call of each other. */
#ifndef TG_COMMON_MODEL_BLOCK_DECODE_H
#define TG_COMMON_MODEL_BLOCK_DECODE_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/model/block_bitpack.h"
#include "common/model/block_format.h"
#include "common/model/rowset_block.h"

struct block_decoder {
    uint32_t rows; /* that the arrays have room for */
    void *memory;
    uint64_t *run_values;
    uint32_t *run_lengths;
    uint32_t *small;       /* lengths of bytes, codes */
    struct buf dictionary; /* the bytes of a dictionary's values, 16 more behind them */
    uint32_t entry_at[BLOCK_DICTIONARY_MAX]; /* where they are in it */
    uint32_t entry_len[BLOCK_DICTIONARY_MAX];
};

/* Which rows of a column are wanted; the first and the last group are whole. */
struct block_window {
    uint32_t rows; /* of the block */
    uint32_t begin;
    uint32_t count;
};

/* Runs: values (below 2^bits_max) and lengths in decoder->run_values, run_lengths; the lengths are
 * 1 or more and their sum is `rows`. Fails in the cursor. Returns the number of runs. */
uint32_t block_decode_runs(struct block_decoder *decoder, struct cursor *cursor, uint32_t rows,
                           unsigned bits_max);
/* Packed numbers behind a byte that says their bits (1..bits_max): returns where they are and moves
 * the cursor behind them; NULL on failure. */
const uint8_t *block_decode_packed(struct cursor *cursor, uint32_t count, unsigned bits_max,
                                   unsigned *bits);

/* Writes the window's values of a fixed-width column to `to` (count × width bytes); cursor stands
 * behind the null bitmap. */
void block_decode_fixed(struct block_decoder *decoder, const struct block_column *column,
                        struct block_window window, struct cursor *cursor, uint8_t *to);
/* Appends bytes and ends of the window's rows to out, which has room for the rows; nulls (one byte
 * for each of them) may be NULL. out->rows is left to the caller. Errors of memory are returned,
 * those of the data are in the cursor. */
int block_decode_bytes(struct block_decoder *decoder, const struct block_column *column,
                       struct block_window window, const uint8_t *nulls, struct cursor *cursor,
                       struct vector *out);

#endif
