/* SPDX-License-Identifier: Apache-2.0 */
/* Order-preserving key encoding: memcmp order of encoded keys is the order of the rows' key columns
 * (nulls first). And the hash that sends a row to its bucket. Both are formats for ever: pinned by
 * golden tests, described in docs/formats.md. */
#ifndef TG_COMMON_MODEL_ROW_KEY_H
#define TG_COMMON_MODEL_ROW_KEY_H

#include <stdint.h>

#include "common/model/schema.h"
#include "common/model/vector.h"

/* The longest encoded key: schema_validate refuses keys whose worst case is longer. */
enum { ROW_KEY_BYTES_MAX = 256 * 1024 };

/* Appends the encoding of columns[0..count) at row; the table of bytes is in row_key.c and in
 * docs/formats.md. Out of memory: out's sticky error. */
void row_key_encode(const struct vector *const *columns, uint32_t count, uint32_t row,
                    struct buf *out);
/* The first eight bytes of that encoding as a big-endian number (padded with zeros), without
 * building it: the sort prefix. */
uint64_t row_key_prefix(const struct vector *const *columns, uint32_t count, uint32_t row);
/* <0, 0, >0 over `count` columns, rows of two sets of vectors of the same types. */
int row_key_compare(const struct vector *const *a, uint32_t a_row, const struct vector *const *b,
                    uint32_t b_row, uint32_t count);

/* Hash of the distribution columns at rows [begin, begin+count): out[i] gets row begin+i's.
 * Independent of batch borders. */
void row_key_hash(const struct vector *const *columns, uint32_t column_count, uint32_t begin,
                  uint32_t count, uint64_t *out);
/* Multiply-shift: which of `buckets` the hash belongs to. */
static inline uint32_t row_key_bucket(uint64_t hash, uint32_t buckets)
{
    return (uint32_t)(((hash >> 32) * buckets) >> 32);
}

#endif
