/* SPDX-License-Identifier: Apache-2.0 */
/* A column of values while rows are loaded, merged or read: fixed-width values or bytes, with
 * nulls. */
#ifndef TG_COMMON_MODEL_VECTOR_H
#define TG_COMMON_MODEL_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/types.h"

struct vector {
    struct column_type type;
    uint8_t width;  /* bytes of a fixed value; 0 = bytes column */
    bool has_nulls; /* nulls is in use: one byte a row, 1 = null */
    uint32_t rows;
    uint32_t capacity; /* rows that fixed, ends and nulls have room for */
    uint8_t *fixed;    /* rows × width; a null's value is zero */
    uint32_t *ends;    /* bytes column: end offset of row i in bytes; a null is empty */
    uint8_t *bytes;
    size_t bytes_len;
    size_t bytes_capacity; /* at least 16 more than bytes_len are allocated, so that 16-byte copies
                              may overrun */
    uint8_t *nulls;
};

enum { VECTOR_ROWS_MAX = 16 * 1024 * 1024, VECTOR_BYTES_MAX = 1 << 30 };

void vector_init(struct vector *vector, struct column_type type);
void vector_close(struct vector *vector);
void vector_clear(struct vector *vector); /* rows = 0; keeps the memory */
/* Room for `rows` more rows and `bytes` more bytes. 0, TG_NOMEM or TG_LIMIT. */
int vector_reserve(struct vector *vector, uint32_t rows, size_t bytes);
/* Switches nulls on, all existing rows not null. 0 or TG_NOMEM. */
int vector_use_nulls(struct vector *vector);

/* Append one row; room must have been reserved. */
void vector_push_fixed(struct vector *vector, const void *value);
void vector_push_bytes(struct vector *vector, const void *bytes, size_t len);
/* vector_use_nulls is called if needed: 0 or TG_NOMEM. */
int vector_push_null(struct vector *vector);
/* The same with reservation: 0, TG_NOMEM or TG_LIMIT. */
int vector_append_fixed(struct vector *vector, const void *value);
int vector_append_bytes(struct vector *vector, const void *bytes, size_t len);
int vector_append_null(struct vector *vector);
/* Appends row `row` of from (same type). */
int vector_append_row(struct vector *vector, const struct vector *from, uint32_t row);
/* Appends rows order[0..count) of from. */
int vector_gather(struct vector *vector, const struct vector *from, const uint32_t *order,
                  uint32_t count);
/* Appends rows [begin, begin+count) of from. */
int vector_append_range(struct vector *vector, const struct vector *from, uint32_t begin,
                        uint32_t count);

static inline bool vector_is_null(const struct vector *vector, uint32_t row)
{
    return vector->has_nulls && vector->nulls[row] != 0;
}
static inline const void *vector_fixed(const struct vector *vector, uint32_t row)
{
    return vector->fixed + (size_t)row * vector->width;
}
static inline struct slice vector_bytes(const struct vector *vector, uint32_t row)
{
    uint32_t begin = row == 0 ? 0 : vector->ends[row - 1];
    return slice_of(vector->bytes + begin, vector->ends[row] - begin);
}
/* Nulls first, then by value. Vectors of the same type. */
int vector_compare(const struct vector *a, uint32_t a_row, const struct vector *b, uint32_t b_row);
/* Bytes of memory the vector holds. */
size_t vector_memory(const struct vector *vector);

#endif
