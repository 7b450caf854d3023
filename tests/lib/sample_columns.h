/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up columns of every type and shape, the same on every run. */
#ifndef TG_TESTS_LIB_SAMPLE_COLUMNS_H
#define TG_TESTS_LIB_SAMPLE_COLUMNS_H

#include <stdint.h>

#include "common/model/vector.h"

enum sample_shape {
    SAMPLE_CONSTANT, /* one value */
    SAMPLE_SORTED,   /* growing by small steps; strings: a prefix and a counter */
    SAMPLE_SMALL,    /* few distinct values at random */
    SAMPLE_WIDE,     /* random over all that the type can hold; strings up to 300 bytes */
    SAMPLE_RUNS,     /* each value some 50 times */
    SAMPLE_SHAPES
};
enum sample_nulls { SAMPLE_NO_NULLS, SAMPLE_SOME_NULLS, SAMPLE_ALL_NULL, SAMPLE_NULLS };

enum { SAMPLE_TYPES = 17 };
/* All kinds, DECIMAL in both widths, DATETIME with and without a fraction. */
extern const struct column_type sample_types[SAMPLE_TYPES];

/* A well-mixed number of a counter. */
uint64_t sample_mix(uint64_t counter);
/* Appends `rows` rows to an initialised vector of any type; aborts when out of memory. */
void sample_column(struct vector *vector, enum sample_shape shape, enum sample_nulls nulls,
                   uint32_t rows, uint64_t seed);

#endif
