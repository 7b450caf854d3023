/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a text to a column of values, many rows in one call: what a CSV load does with each
 * chunk, column by column. */
#ifndef TG_COMMON_MODEL_TYPE_CONVERT_H
#define TG_COMMON_MODEL_TYPE_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include "common/model/types.h"
#include "common/model/vector.h"

/* What happened, as bits of the answer. */
enum type_convert_flags {
    CONVERT_BAD = 1,   /* some bad[i] is not 0 */
    CONVERT_NULL = 2,  /* some row is null, by \N or because it is bad */
    CONVERT_NOMEM = 4, /* out of memory: nothing was appended */
    /* The vector is full (VECTOR_ROWS_MAX, VECTOR_BYTES_MAX): nothing was appended. */
    CONVERT_LIMIT = 8
};

/* What bad[i] says. */
enum type_convert_bad {
    CONVERT_BAD_VALUE = 1, /* not a value of the type, or beyond its range: the row got null */
    /* Bytes beyond the type's length: cut at a UTF-8 border (JSON: null). */
    CONVERT_BAD_TOO_LONG = 2
};

/* Appends `count` rows to out, whose type is `type`. Row i's field is text[begins[i * stride] ..
 * ends[i * stride]): with a stride (in elements) a row-major table of separator positions is used
 * as it is. \N alone is null. An empty field is '' in a bytes column and a bad value elsewhere.
 *   tz_offset_us: see type_parse.
 *   bad: `count` bytes that the caller has zeroed; bytes of bad fields are set. May be NULL.
 * At least 16 bytes behind the last field must be readable. Answers with type_convert_flags; 0 =
 * all values are there. */
uint64_t type_convert_column(struct column_type type, const char *text, const uint32_t *begins,
                             const uint32_t *ends, size_t stride, uint32_t count,
                             int64_t tz_offset_us, struct vector *out, uint8_t *bad);

#endif
