/* SPDX-License-Identifier: Apache-2.0 */
/* A column of values while rows are loaded, merged or read: growth, appending, comparing. */
#include "common/model/vector.h"

#include <stdlib.h>

enum {
    VECTOR_ROWS_MIN = 64,    /* the first allocation */
    VECTOR_BYTES_MIN = 1024, /* the same for bytes */
    VECTOR_SLACK = 16        /* what a 16-byte copy may write behind the end */
};

void vector_init(struct vector *vector, struct column_type type)
{
    memset(vector, 0, sizeof *vector);
    vector->type = type;
    vector->width = (uint8_t)type_width(type);
}

void vector_close(struct vector *vector)
{
    free(vector->fixed);
    free(vector->ends);
    free(vector->bytes);
    free(vector->nulls);
    vector_init(vector, vector->type);
}

void vector_clear(struct vector *vector)
{
    vector->rows = 0;
    vector->bytes_len = 0;
    vector->has_nulls = false;
}

static int grow_rows(struct vector *vector, uint64_t needed)
{
    uint64_t capacity = vector->capacity == 0 ? VECTOR_ROWS_MIN : vector->capacity;
    while (capacity < needed)
        capacity += capacity / 2;
    if (capacity > VECTOR_ROWS_MAX)
        capacity = VECTOR_ROWS_MAX;
    if (vector->width > 0) {
        uint8_t *fixed = realloc(vector->fixed, capacity * vector->width + VECTOR_SLACK);
        if (fixed == NULL)
            return TG_NOMEM;
        vector->fixed = fixed;
    } else {
        uint32_t *ends = realloc(vector->ends, capacity * sizeof *ends);
        if (ends == NULL)
            return TG_NOMEM;
        vector->ends = ends;
    }
    /* The null bytes follow the capacity whether they are in use or only kept from an earlier use.
     */
    if (vector->nulls != NULL) {
        uint8_t *nulls = realloc(vector->nulls, capacity);
        if (nulls == NULL)
            return TG_NOMEM;
        vector->nulls = nulls;
    }
    vector->capacity = (uint32_t)capacity;
    return 0;
}

static int grow_bytes(struct vector *vector, size_t needed)
{
    size_t capacity =
        vector->bytes_capacity < VECTOR_BYTES_MIN ? VECTOR_BYTES_MIN : vector->bytes_capacity;
    while (capacity < needed + VECTOR_SLACK)
        capacity += capacity / 2;
    uint8_t *bytes = realloc(vector->bytes, capacity);
    if (bytes == NULL)
        return TG_NOMEM;
    vector->bytes = bytes;
    vector->bytes_capacity = capacity;
    return 0;
}

int vector_reserve(struct vector *vector, uint32_t rows, size_t bytes)
{
    uint64_t rows_needed = (uint64_t)vector->rows + rows;
    if (rows_needed > VECTOR_ROWS_MAX || bytes > VECTOR_BYTES_MAX - vector->bytes_len)
        return TG_LIMIT;
    if (rows_needed > vector->capacity) {
        int err = grow_rows(vector, rows_needed);
        if (err != 0)
            return err;
    }
    size_t bytes_needed = vector->bytes_len + bytes;
    if (vector->width == 0 && bytes_needed + VECTOR_SLACK > vector->bytes_capacity)
        return grow_bytes(vector, bytes_needed);
    return 0;
}

int vector_use_nulls(struct vector *vector)
{
    if (vector->has_nulls)
        return 0;
    if (vector->nulls == NULL) {
        vector->nulls = malloc(vector->capacity == 0 ? 1 : vector->capacity);
        if (vector->nulls == NULL)
            return TG_NOMEM;
    }
    memset(vector->nulls, 0, vector->rows);
    vector->has_nulls = true;
    return 0;
}

void vector_push_fixed(struct vector *vector, const void *value)
{
    uint8_t *to = vector->fixed + (size_t)vector->rows * vector->width;
    switch (vector->width) {
    case 1:
        memcpy(to, value, 1);
        break;
    case 2:
        memcpy(to, value, 2);
        break;
    case 4:
        memcpy(to, value, 4);
        break;
    case 8:
        memcpy(to, value, 8);
        break;
    default:
        memcpy(to, value, 16);
        break;
    }
    if (vector->has_nulls)
        vector->nulls[vector->rows] = 0;
    vector->rows++;
}

void vector_push_bytes(struct vector *vector, const void *bytes, size_t len)
{
    if (len > 0)
        memcpy(vector->bytes + vector->bytes_len, bytes, len);
    vector->bytes_len += len;
    vector->ends[vector->rows] = (uint32_t)vector->bytes_len;
    if (vector->has_nulls)
        vector->nulls[vector->rows] = 0;
    vector->rows++;
}

int vector_push_null(struct vector *vector)
{
    int err = vector_use_nulls(vector);
    if (err != 0)
        return err;
    if (vector->width > 0)
        memset(vector->fixed + (size_t)vector->rows * vector->width, 0, vector->width);
    else
        vector->ends[vector->rows] = (uint32_t)vector->bytes_len;
    vector->nulls[vector->rows] = 1;
    vector->rows++;
    return 0;
}

int vector_append_fixed(struct vector *vector, const void *value)
{
    int err = vector_reserve(vector, 1, 0);
    if (err == 0)
        vector_push_fixed(vector, value);
    return err;
}

int vector_append_bytes(struct vector *vector, const void *bytes, size_t len)
{
    int err = vector_reserve(vector, 1, len);
    if (err == 0)
        vector_push_bytes(vector, bytes, len);
    return err;
}

int vector_append_null(struct vector *vector)
{
    int err = vector_reserve(vector, 1, 0);
    return err != 0 ? err : vector_push_null(vector);
}

int vector_append_row(struct vector *vector, const struct vector *from, uint32_t row)
{
    if (vector_is_null(from, row))
        return vector_append_null(vector);
    if (from->width > 0)
        return vector_append_fixed(vector, vector_fixed(from, row));
    struct slice bytes = vector_bytes(from, row);
    return vector_append_bytes(vector, bytes.data, bytes.len);
}

/* A loop for each width: the compiler turns the constant-size copies into single moves. */
#define GATHER(width)                    \
    for (uint32_t i = 0; i < count; i++) \
    memcpy(to + (size_t)i * (width), from->fixed + (size_t)order[i] * (width), (width))

static void gather_fixed(struct vector *vector, const struct vector *from, const uint32_t *order,
                         uint32_t count)
{
    uint8_t *to = vector->fixed + (size_t)vector->rows * vector->width;
    switch (vector->width) {
    case 1:
        GATHER(1);
        break;
    case 2:
        GATHER(2);
        break;
    case 4:
        GATHER(4);
        break;
    case 8:
        GATHER(8);
        break;
    default:
        GATHER(16);
        break;
    }
}

#undef GATHER

static void gather_bytes(struct vector *vector, const struct vector *from, const uint32_t *order,
                         uint32_t count)
{
    uint8_t *to = vector->bytes + vector->bytes_len;
    uint32_t *ends = vector->ends + vector->rows;
    for (uint32_t i = 0; i < count; i++) {
        struct slice bytes = vector_bytes(from, order[i]);
        /* Most strings are short: one 16-byte copy, into the slack if need be. Reading over the
         * source's end is safe too, it has the same slack. */
        if (bytes.len <= VECTOR_SLACK)
            memcpy(to, bytes.data, VECTOR_SLACK);
        else
            memcpy(to, bytes.data, bytes.len);
        to += bytes.len;
        ends[i] = (uint32_t)(to - vector->bytes);
    }
    vector->bytes_len = (size_t)(to - vector->bytes);
}

static size_t gather_size(const struct vector *from, const uint32_t *order, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = order[i];
        size += from->ends[row] - (row == 0 ? 0 : from->ends[row - 1]);
    }
    return size;
}

int vector_gather(struct vector *vector, const struct vector *from, const uint32_t *order,
                  uint32_t count)
{
    if (count == 0)
        return 0;
    size_t bytes = from->width > 0 ? 0 : gather_size(from, order, count);
    int err = vector_reserve(vector, count, bytes);
    if (err == 0 && from->has_nulls)
        err = vector_use_nulls(vector);
    if (err != 0)
        return err;
    if (from->width > 0)
        gather_fixed(vector, from, order, count);
    else
        gather_bytes(vector, from, order, count);
    if (from->has_nulls) {
        uint8_t *nulls = vector->nulls + vector->rows;
        for (uint32_t i = 0; i < count; i++)
            nulls[i] = from->nulls[order[i]];
    } else if (vector->has_nulls) {
        memset(vector->nulls + vector->rows, 0, count);
    }
    vector->rows += count;
    return 0;
}

int vector_append_range(struct vector *vector, const struct vector *from, uint32_t begin,
                        uint32_t count)
{
    if (count == 0)
        return 0;
    uint32_t from_byte = from->width > 0 || begin == 0 ? 0 : from->ends[begin - 1];
    size_t bytes = from->width > 0 ? 0 : from->ends[begin + count - 1] - from_byte;
    int err = vector_reserve(vector, count, bytes);
    if (err == 0 && from->has_nulls)
        err = vector_use_nulls(vector);
    if (err != 0)
        return err;
    if (from->width > 0) {
        memcpy(vector->fixed + (size_t)vector->rows * vector->width,
               from->fixed + (size_t)begin * from->width, (size_t)count * from->width);
    } else {
        uint32_t shift = (uint32_t)vector->bytes_len - from_byte;
        if (bytes > 0)
            memcpy(vector->bytes + vector->bytes_len, from->bytes + from_byte, bytes);
        for (uint32_t i = 0; i < count; i++)
            vector->ends[vector->rows + i] = from->ends[begin + i] + shift;
        vector->bytes_len += bytes;
    }
    if (from->has_nulls)
        memcpy(vector->nulls + vector->rows, from->nulls + begin, count);
    else if (vector->has_nulls)
        memset(vector->nulls + vector->rows, 0, count);
    vector->rows += count;
    return 0;
}

int vector_compare(const struct vector *a, uint32_t a_row, const struct vector *b, uint32_t b_row)
{
    bool a_null = vector_is_null(a, a_row);
    bool b_null = vector_is_null(b, b_row);
    if (a_null || b_null)
        return (int)b_null - (int)a_null;
    if (a->width > 0)
        return type_compare(a->type, vector_fixed(a, a_row), vector_fixed(b, b_row));
    return slice_compare(vector_bytes(a, a_row), vector_bytes(b, b_row));
}

size_t vector_memory(const struct vector *vector)
{
    size_t size = vector->bytes_capacity;
    size += (size_t)vector->capacity * (vector->width > 0 ? vector->width : sizeof *vector->ends);
    return size + (vector->nulls != NULL ? vector->capacity : 0);
}
