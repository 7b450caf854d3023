/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up columns. */
#include "tests/lib/sample_columns.h"

#include <stdio.h>
#include <string.h>

#include "common/base/check.h"

enum { LONG_STRING = 300, RUN = 50, FEW = 23, NULL_EVERY = 7 };

const struct column_type sample_types[SAMPLE_TYPES] = {
    {.kind = TYPE_BOOLEAN},
    {.kind = TYPE_TINYINT},
    {.kind = TYPE_SMALLINT},
    {.kind = TYPE_INT},
    {.kind = TYPE_BIGINT},
    {.kind = TYPE_LARGEINT},
    {.kind = TYPE_FLOAT},
    {.kind = TYPE_DOUBLE},
    {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2},
    {.kind = TYPE_DECIMAL, .precision = 38, .scale = 4},
    {.kind = TYPE_DATE},
    {.kind = TYPE_DATETIME},
    {.kind = TYPE_DATETIME, .scale = 6},
    {.kind = TYPE_CHAR, .length = 20},
    {.kind = TYPE_VARCHAR, .length = 300},
    {.kind = TYPE_STRING},
    {.kind = TYPE_JSON},
};

uint64_t sample_mix(uint64_t counter)
{
    uint64_t z = (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Which of the column's values row `row` has: equal numbers give equal values. */
static uint64_t value_number(enum sample_shape shape, uint32_t row, uint64_t seed)
{
    switch (shape) {
    case SAMPLE_CONSTANT:
        return 5;
    case SAMPLE_SORTED:
        return row / 3 + row / 7;
    case SAMPLE_SMALL:
        return sample_mix(seed + row) % FEW;
    case SAMPLE_RUNS:
        return sample_mix(seed + row / RUN) % 1000;
    default:
        return sample_mix(seed + row);
    }
}

static void add_bytes(struct vector *vector, enum sample_shape shape, uint64_t number,
                      uint64_t seed)
{
    char text[LONG_STRING + 1];
    int len;
    if (shape == SAMPLE_WIDE) {
        uint64_t mixed = sample_mix(number ^ seed);
        len = mixed % 5 == 0 ? 0 : (int)(mixed % LONG_STRING);
        for (int i = 0; i < len; i++)
            text[i] = (char)sample_mix(number + (uint64_t)i);
    } else {
        len = snprintf(text, sizeof text, "value-%0*u", (int)(number % 4) * 6, (unsigned)number);
    }
    TG_CHECK(vector_append_bytes(vector, text, (size_t)len) == 0);
}

static void add_fixed(struct vector *vector, enum sample_shape shape, uint64_t number)
{
    union type_value value;
    memset(&value, 0, sizeof value);
    if (vector->type.kind == TYPE_BOOLEAN)
        value.i8 = (int8_t)(number & 1);
    else if (vector->type.kind == TYPE_FLOAT && shape != SAMPLE_WIDE)
        value.f32 = (float)number / 8 - 1;
    else if (vector->type.kind == TYPE_DOUBLE && shape != SAMPLE_WIDE)
        value.f64 = (double)number / 10 - 1;
    else if (vector->width == 16 && shape == SAMPLE_WIDE)
        value.i128 = (__int128)(int64_t)number * ((__int128)1 << 63) + (int64_t)sample_mix(number);
    else
        value.i128 = shape == SAMPLE_WIDE ? (__int128)(int64_t)number : (__int128)number - 10;
    TG_CHECK(vector_append_fixed(vector, &value) == 0);
}

void sample_column(struct vector *vector, enum sample_shape shape, enum sample_nulls nulls,
                   uint32_t rows, uint64_t seed)
{
    for (uint32_t row = 0; row < rows; row++) {
        uint64_t number = value_number(shape, row, seed);
        if (nulls == SAMPLE_ALL_NULL ||
            (nulls == SAMPLE_SOME_NULLS && sample_mix(~(seed + row)) % NULL_EVERY == 0))
            TG_CHECK(vector_append_null(vector) == 0);
        else if (vector->width == 0)
            add_bytes(vector, shape, number, seed);
        else
            add_fixed(vector, shape, number);
    }
}
