/* SPDX-License-Identifier: Apache-2.0 */
/* A few thousand rows, column by column: encoded once at ingest, stored and shipped as they are,
 * checked on every read. Layout: docs/formats.md and the drawing in rowset_block.c. */
#ifndef TG_COMMON_MODEL_ROWSET_BLOCK_H
#define TG_COMMON_MODEL_ROWSET_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/vector.h"

enum {
    BLOCK_ROWS = 8192,
    BLOCK_ROWS_MAX = 65536,
    BLOCK_BYTES_MAX = 256 * 1024 * 1024,
    BLOCK_WINDOW_ROWS = 256 /* rows that are packed together: fewer cannot be decoded alone */
};

/* How a column's values are laid out. The numbers are part of the format: append only. */
enum block_encoding {
    BLOCK_PLAIN = 1,     /* values as in memory; bytes columns: lengths, then bytes */
    BLOCK_CONSTANT = 2,  /* one value for all rows that are not null */
    BLOCK_FOR = 3,       /* frame of reference: value - min, bit-packed */
    BLOCK_RLE = 4,       /* runs: value - min and length, both bit-packed */
    BLOCK_DELTA = 5,     /* differences of neighbours - the least difference, bit-packed */
    BLOCK_DICTIONARY = 6 /* bytes columns: distinct values, then their numbers packed or as runs */
};
enum block_flag {
    BLOCK_HAS_NULLS = 1, /* a null bitmap lies before the values */
    BLOCK_ALL_NULL = 2,  /* all rows are null: no bitmap, no values */
    BLOCK_LZ4 = 4        /* the bytes of a plain bytes column are LZ4-compressed */
};

struct block_encoder; /* scratch memory that is kept from block to block; one a thread */
struct block_encoder *block_encoder_open(void);
void block_encoder_close(struct block_encoder *encoder);

/* Encodes rows [begin, begin+count) of the columns (ids[i] names columns[i]) and appends the block
 * to out; the same rows always give the same bytes. Returns 0, TG_NOMEM, or TG_LIMIT where count is
 * not in 1..BLOCK_ROWS_MAX, there are no or too many columns, or the block (or one column's bytes)
 * would exceed BLOCK_BYTES_MAX; out is unchanged on failure. Vectors of bytes must keep the promise
 * of vector.h that 16 bytes behind their end may be read. */
int block_encode(struct block_encoder *encoder, const struct vector *const *columns,
                 const uint32_t *ids, uint32_t column_count, uint32_t begin, uint32_t count,
                 struct buf *out);

/* An opened block: a view on bytes that must outlive it. */
struct block_column {
    uint32_t id;
    struct column_type type;
    uint8_t encoding;
    uint8_t flags;
    uint32_t offset; /* of its data in the block */
    uint32_t len;
};
struct block {
    const uint8_t *data;
    uint32_t len;
    uint32_t rows;
    uint32_t column_count;
    const uint8_t *directory;
};

/* Checks magic, version, length, the XXH3 checksum over the whole block, and every offset.
 * TG_CORRUPT with what is wrong; TG_UNSUPPORTED for an unknown version. */
int block_open(struct block *block, const void *data, size_t len, struct tg_errmsg *msg);
/* Index of a column id in this block, -1 if it has none (a column added later: the reader fills its
 * default). */
int block_find(const struct block *block, uint32_t column_id);
void block_column_at(const struct block *block, uint32_t index, struct block_column *column);
/* Least and greatest non-null value of a fixed-width column (the low type_width bytes count). False
 * where the block has none: bytes columns, columns of nulls only, and FLOAT or DOUBLE with values
 * below zero or NaN. */
bool block_column_range(const struct block *block, uint32_t index, union type_value *min,
                        union type_value *max);
/* Appends all rows of column `index` to out (whose type must fit the stored one). Bad bytes:
 * TG_CORRUPT, never a crash, also for blocks with a right checksum; TG_INVALID where the types
 * differ, TG_NOMEM, TG_LIMIT. On failure out has the rows it had. */
struct block_decoder; /* scratch */
struct block_decoder *block_decoder_open(void);
void block_decoder_close(struct block_decoder *decoder);
int block_decode_column(struct block_decoder *decoder, const struct block *block, uint32_t index,
                        struct vector *out, struct tg_errmsg *msg);
/* The same for some rows, for readers that want few: [begin, end), where begin is a multiple of
 * BLOCK_WINDOW_ROWS and end one too or the block's number of rows. What is not needed for them is
 * not looked at, so damage elsewhere in the column may stay unseen. */
int block_decode_rows(struct block_decoder *decoder, const struct block *block, uint32_t index,
                      uint32_t begin, uint32_t end, struct vector *out, struct tg_errmsg *msg);

#endif
