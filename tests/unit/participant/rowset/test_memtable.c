/* SPDX-License-Identifier: Apache-2.0 */
/* Segments come out sorted, stable, and for UNIQUE tables with the newest row of each key. */
#include "participant/rowset/memtable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/random.h"
#include "common/model/row_key.h"

struct row {
    int64_t a;
    char b[16];
    uint32_t n;
};

static void make_schema(struct schema *schema, uint8_t key_model)
{
    struct schema_column a = {.name = "a", .type = {.kind = TYPE_BIGINT}, .nullable = true};
    struct schema_column b = {.name = "b", .type = {.kind = TYPE_VARCHAR, .length = 15}};
    struct schema_column n = {.name = "n", .type = {.kind = TYPE_INT}};
    schema_init(schema);
    schema->key_model = key_model;
    a.is_key = b.is_key = true;
    assert_int_equal(schema_add_column(schema, &a, NULL), 0);
    assert_int_equal(schema_add_column(schema, &b, NULL), 0);
    assert_int_equal(schema_add_column(schema, &n, NULL), 0);
}

static int compare(const void *left, const void *right)
{
    const struct row *x = left;
    const struct row *y = right;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    int order = strcmp(x->b, y->b);
    return order != 0 ? order : x->n < y->n ? -1 : 1;
}

static void append(struct memtable *memtable, const struct row *rows, uint32_t count)
{
    struct vector columns[4];
    for (uint32_t i = 0; i < memtable->column_count; i++)
        vector_init(&columns[i], schema_stored_type(memtable->schema, i));
    for (uint32_t i = 0; i < count; i++) {
        int8_t sign = 0;
        int32_t n = (int32_t)rows[i].n;
        if (rows[i].a == INT64_MIN)
            assert_int_equal(vector_append_null(&columns[0]), 0);
        else
            assert_int_equal(vector_append_fixed(&columns[0], &rows[i].a), 0);
        assert_int_equal(vector_append_bytes(&columns[1], rows[i].b, strlen(rows[i].b)), 0);
        assert_int_equal(vector_append_fixed(&columns[2], &n), 0);
        if (memtable->column_count == 4)
            assert_int_equal(vector_append_fixed(&columns[3], &sign), 0);
    }
    assert_int_equal(memtable_append(memtable, columns, NULL, count), 0);
    for (uint32_t i = 0; i < memtable->column_count; i++)
        vector_close(&columns[i]);
}

/* Fills a memtable with the rows and compares what comes out with a sort by the book. */
static void check(uint8_t key_model, struct row *rows, uint32_t count,
                  struct memtable_scratch *scratch)
{
    struct schema schema;
    struct memtable memtable;
    const struct vector *const *columns;
    uint32_t sorted;

    make_schema(&schema, key_model);
    memtable_init(&memtable, &schema);
    for (uint32_t i = 0; i < count; i++)
        rows[i].n = i;
    for (uint32_t at = 0; at < count;) {
        uint32_t piece = count - at < 1000 ? count - at : 1000;
        append(&memtable, rows + at, piece);
        at += piece;
    }
    assert_int_equal(memtable_sort(&memtable, scratch, &columns, &sorted), 0);
    qsort(rows, count, sizeof *rows, compare);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool newer =
            i + 1 < count && rows[i].a == rows[i + 1].a && strcmp(rows[i].b, rows[i + 1].b) == 0;
        if (key_model == KEY_UNIQUE && newer)
            continue;
        assert_true(expected < sorted);
        int32_t n;
        memcpy(&n, vector_fixed(columns[2], expected), sizeof n);
        assert_int_equal(n, rows[i].n);
        assert_int_equal(vector_is_null(columns[0], expected), rows[i].a == INT64_MIN);
        expected++;
    }
    assert_int_equal(sorted, expected);
    memtable_close(&memtable);
    schema_close(&schema);
}

static void fill(struct row *rows, uint32_t count, struct random_source *random, uint64_t keys)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t a = random_below(random, keys);
        rows[i] = (struct row){.a = a == 0 ? INT64_MIN : (int64_t)a - (int64_t)keys / 2};
        snprintf(rows[i].b, sizeof rows[i].b, "k%u", (unsigned)random_below(random, 3));
    }
}

static void test_random_rows_come_out_sorted(void **state)
{
    static const uint64_t KEYS[] = {1, 5, 1000, UINT64_C(1) << 40};
    struct random_seeded random;
    struct memtable_scratch *scratch = memtable_scratch_open();
    struct row *rows = calloc(5000, sizeof *rows);

    (void)state;
    random_seeded_init(&random, 3);
    for (size_t k = 0; k < sizeof KEYS / sizeof KEYS[0]; k++) {
        for (uint32_t count = 1; count < 5000; count = count * 7 + 3) {
            fill(rows, count, &random.source, KEYS[k]);
            check(KEY_DUPLICATE, rows, count, scratch);
            fill(rows, count, &random.source, KEYS[k]);
            check(KEY_UNIQUE, rows, count, scratch);
        }
    }
    free(rows);
    memtable_scratch_close(scratch);
}

static void test_sorted_rows_stay_where_they_are(void **state)
{
    struct memtable_scratch *scratch = memtable_scratch_open();
    struct row *rows = calloc(3000, sizeof *rows);

    (void)state;
    for (uint32_t i = 0; i < 3000; i++) {
        rows[i].a = (int64_t)(i / 2) - 700;
        strcpy(rows[i].b, "x");
    }
    check(KEY_DUPLICATE, rows, 3000, scratch);
    for (uint32_t i = 0; i < 3000; i++) {
        rows[i].a = (int64_t)(i / 2) - 700;
        strcpy(rows[i].b, "x");
    }
    check(KEY_UNIQUE, rows, 3000, scratch);
    free(rows);
    memtable_scratch_close(scratch);
}

static void test_a_cleared_table_takes_new_rows(void **state)
{
    struct schema schema;
    struct memtable memtable;
    struct row row = {.a = 5, .b = "x"};

    (void)state;
    make_schema(&schema, KEY_DUPLICATE);
    memtable_init(&memtable, &schema);
    append(&memtable, &row, 1);
    assert_true(memtable.memory > 0);
    memtable_clear(&memtable);
    assert_int_equal(memtable.rows, 0);
    append(&memtable, &row, 1);
    assert_int_equal(memtable.rows, 1);
    memtable_close(&memtable);
    assert_int_equal(memtable.memory, 0);
    append(&memtable, &row, 1);
    memtable_close(&memtable);
    schema_close(&schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_rows_come_out_sorted),
        cmocka_unit_test(test_sorted_rows_stay_where_they_are),
        cmocka_unit_test(test_a_cleared_table_takes_new_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
