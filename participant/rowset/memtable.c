/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting and sorting the rows of a segment.
 *
 * Most loads come sorted, so that is looked at first. Otherwise a stable radix sort on the first
 * eight bytes of the encoded key, 11 bits at a time, leaving out digits that are the same in all
 * rows; where these eight bytes do not tell, a merge by whole keys. */
#include "participant/rowset/memtable.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/row_key.h"
#include "participant/rowset/key_order.h"

enum { DIGIT_BITS = 11, DIGIT_VALUES = 1 << DIGIT_BITS, DIGITS = 6 };

struct item {
    uint64_t prefix;
    uint32_t row;
};

struct memtable_scratch {
    uint32_t capacity; /* rows that items have room for */
    struct item *items;
    struct item *other;
    uint32_t *order;
    uint32_t *merge;
    uint8_t *ties;
    uint32_t column_count;
    struct vector *columns;
    const struct vector **pointers;
    uint32_t pointer_count;
    uint32_t (*counts)[DIGIT_VALUES]; /* DIGITS of them; NULL while nothing had to be sorted */
};

void memtable_init(struct memtable *memtable, const struct schema *schema)
{
    *memtable = (struct memtable){.schema = schema, .column_count = schema_stored_count(schema)};
}

static void close_columns(struct vector *columns, uint32_t count)
{
    for (uint32_t i = 0; columns != NULL && i < count; i++)
        vector_close(&columns[i]);
    free(columns);
}

void memtable_close(struct memtable *memtable)
{
    close_columns(memtable->columns, memtable->column_count);
    memtable->columns = NULL;
    memtable->rows = 0;
    memtable->memory = 0;
}

void memtable_clear(struct memtable *memtable)
{
    for (uint32_t i = 0; memtable->columns != NULL && i < memtable->column_count; i++)
        vector_clear(&memtable->columns[i]);
    memtable->rows = 0;
}

int memtable_append(struct memtable *memtable, const struct vector *from, const uint32_t *order,
                    uint32_t count)
{
    struct memtable *m = memtable;

    if (m->columns == NULL) {
        m->columns = calloc(m->column_count, sizeof *m->columns);
        if (m->columns == NULL)
            return TG_NOMEM;
        for (uint32_t i = 0; i < m->column_count; i++)
            vector_init(&m->columns[i], schema_stored_type(m->schema, i));
    }
    m->memory = 0;
    for (uint32_t i = 0; i < m->column_count; i++) {
        int err = order != NULL ? vector_gather(&m->columns[i], &from[i], order, count)
                                : vector_append_range(&m->columns[i], &from[i], 0, count);
        if (err != 0)
            return err;
        m->memory += vector_memory(&m->columns[i]);
    }
    m->rows += count;
    return 0;
}

struct memtable_scratch *memtable_scratch_open(void)
{
    return calloc(1, sizeof(struct memtable_scratch));
}

static void free_items(struct memtable_scratch *scratch)
{
    free(scratch->items);
    free(scratch->other);
    free(scratch->order);
    free(scratch->merge);
    free(scratch->ties);
    scratch->items = scratch->other = NULL;
    scratch->order = scratch->merge = NULL;
    scratch->ties = NULL;
    scratch->capacity = 0;
}

void memtable_scratch_close(struct memtable_scratch *scratch)
{
    if (scratch == NULL)
        return;
    free_items(scratch);
    free(scratch->counts);
    close_columns(scratch->columns, scratch->column_count);
    free(scratch->pointers);
    free(scratch);
}

static int scratch_reserve(struct memtable_scratch *s, uint32_t rows)
{
    if (rows <= s->capacity)
        return 0;
    free_items(s);
    s->items = malloc(rows * sizeof *s->items);
    s->other = malloc(rows * sizeof *s->other);
    s->order = malloc(rows * sizeof *s->order);
    s->merge = malloc(rows * sizeof *s->merge);
    s->ties = malloc(rows);
    if (s->items == NULL || s->other == NULL || s->order == NULL || s->merge == NULL ||
        s->ties == NULL) {
        free_items(s);
        return TG_NOMEM;
    }
    s->capacity = rows;
    return 0;
}

/* ---- sorting ---- */

static void make_items(struct memtable_scratch *s, const struct vector *const *keys,
                       uint32_t key_count, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++)
        s->items[i] = (struct item){row_key_prefix(keys, key_count, i), i};
}

static uint32_t digit_of(uint64_t prefix, unsigned digit)
{
    return (uint32_t)(prefix >> (digit * DIGIT_BITS)) & (DIGIT_VALUES - 1);
}

/* Leaves the sorted items in s->items. */
static void radix_sort(struct memtable_scratch *s, uint32_t rows)
{
    memset(s->counts, 0, DIGITS * sizeof *s->counts);
    for (uint32_t i = 0; i < rows; i++)
        for (unsigned d = 0; d < DIGITS; d++)
            s->counts[d][digit_of(s->items[i].prefix, d)]++;
    for (unsigned d = 0; d < DIGITS; d++) {
        uint32_t *counts = s->counts[d];
        if (counts[digit_of(s->items[0].prefix, d)] == rows)
            continue;
        uint32_t at = 0;
        for (uint32_t v = 0; v < DIGIT_VALUES; v++) {
            uint32_t n = counts[v];
            counts[v] = at;
            at += n;
        }
        for (uint32_t i = 0; i < rows; i++)
            s->other[counts[digit_of(s->items[i].prefix, d)]++] = s->items[i];
        struct item *swap = s->items;
        s->items = s->other;
        s->other = swap;
    }
}

/* Stable merge sort of row numbers by whole keys. */
static void merge_sort(uint32_t *rows, uint32_t *other, uint32_t count,
                       const struct vector *const *keys, uint32_t key_count)
{
    if (count < 2)
        return;
    uint32_t half = count / 2;
    merge_sort(rows, other, half, keys, key_count);
    merge_sort(rows + half, other, count - half, keys, key_count);
    if (row_key_compare(keys, rows[half - 1], keys, rows[half], key_count) <= 0)
        return;
    memcpy(other, rows, half * sizeof *rows);
    uint32_t left = 0;
    uint32_t right = half;
    uint32_t at = 0;
    while (left < half && right < count)
        rows[at++] = row_key_compare(keys, other[left], keys, rows[right], key_count) <= 0
                         ? other[left++]
                         : rows[right++];
    memcpy(rows + at, other + left, (half - left) * sizeof *rows);
}

/* Fills s->order with the row numbers in key order. */
static void sort_rows(struct memtable_scratch *s, const struct vector *const *keys,
                      uint32_t key_count, uint32_t rows)
{
    make_items(s, keys, key_count, rows);
    radix_sort(s, rows);
    for (uint32_t i = 0; i < rows; i++)
        s->order[i] = s->items[i].row;
    for (uint32_t begin = 0; begin < rows;) {
        uint32_t end = begin + 1;
        while (end < rows && s->items[end].prefix == s->items[begin].prefix)
            end++;
        merge_sort(s->order + begin, s->merge, end - begin, keys, key_count);
        begin = end;
    }
}

/* Keeps the last of equal keys; returns how many are left. */
static uint32_t keep_newest(uint32_t *order, uint32_t rows, const struct vector *const *keys,
                            uint32_t key_count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < rows; i++)
        if (i + 1 == rows || row_key_compare(keys, order[i], keys, order[i + 1], key_count) != 0)
            order[kept++] = order[i];
    return kept;
}

static int use_columns(struct memtable_scratch *s, const struct memtable *m)
{
    if (s->pointer_count < m->column_count) {
        free(s->pointers);
        s->pointers = calloc(m->column_count, sizeof *s->pointers);
        s->pointer_count = s->pointers != NULL ? m->column_count : 0;
        if (s->pointers == NULL)
            return TG_NOMEM;
    }
    for (uint32_t i = 0; i < m->column_count; i++)
        s->pointers[i] = &m->columns[i];
    return 0;
}

/* Copies the rows of s->order into the scratch's own columns. */
static int permute(struct memtable_scratch *s, const struct memtable *m, uint32_t rows)
{
    if (s->column_count != m->column_count) {
        close_columns(s->columns, s->column_count);
        s->columns = calloc(m->column_count, sizeof *s->columns);
        s->column_count = s->columns != NULL ? m->column_count : 0;
        if (s->columns == NULL)
            return TG_NOMEM;
        for (uint32_t i = 0; i < m->column_count; i++)
            vector_init(&s->columns[i], m->columns[i].type);
    }
    for (uint32_t i = 0; i < m->column_count; i++) {
        vector_clear(&s->columns[i]);
        int err = vector_gather(&s->columns[i], &m->columns[i], s->order, rows);
        if (err != 0)
            return err;
        s->pointers[i] = &s->columns[i];
    }
    return 0;
}

int memtable_sort(struct memtable *memtable, struct memtable_scratch *scratch,
                  const struct vector *const **columns, uint32_t *rows)
{
    const uint32_t key_count = memtable->schema->key_count;
    const bool unique = memtable->schema->key_model == KEY_UNIQUE;
    uint32_t count = memtable->rows;
    int err = scratch_reserve(scratch, count);

    if (err == 0)
        err = use_columns(scratch, memtable);
    if (err != 0)
        return err;
    const struct vector *const *keys = (const struct vector *const *)scratch->pointers;
    struct key_order order = key_order_look(keys, key_count, count, scratch->ties);
    if (!order.sorted) {
        if (scratch->counts == NULL)
            scratch->counts = malloc(DIGITS * sizeof *scratch->counts);
        if (scratch->counts == NULL)
            return TG_NOMEM;
        sort_rows(scratch, keys, key_count, count);
    } else if (unique && order.duplicates) {
        for (uint32_t i = 0; i < count; i++)
            scratch->order[i] = i;
    }
    if (!order.sorted || (unique && order.duplicates)) {
        if (unique)
            count = keep_newest(scratch->order, count, keys, key_count);
        err = permute(scratch, memtable, count);
    }
    *columns = (const struct vector *const *)scratch->pointers;
    *rows = count;
    return err;
}
