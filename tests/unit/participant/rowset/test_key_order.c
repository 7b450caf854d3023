/* SPDX-License-Identifier: Apache-2.0 */
/* Whether rows are in key order: compared with looking at whole keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/model/row_key.h"
#include "participant/rowset/key_order.h"
#include "tests/lib/sample_columns.h"

enum { ROWS = 400 };

static struct key_order expected_order(const struct vector *const *keys, uint32_t key_count,
                                       uint32_t rows)
{
    struct key_order order = {.sorted = true};

    for (uint32_t i = 1; i < rows && order.sorted; i++) {
        int compared = row_key_compare(keys, i - 1, keys, i, key_count);

        order.sorted = compared <= 0;
        order.duplicates |= compared == 0;
    }
    return order;
}

static void assert_order(const struct vector *const *keys, uint32_t key_count, uint32_t rows)
{
    uint8_t ties[ROWS];
    struct key_order expected = expected_order(keys, key_count, rows);
    struct key_order order = key_order_look(keys, key_count, rows, ties);

    assert_int_equal(order.sorted, expected.sorted);
    if (expected.sorted)
        assert_int_equal(order.duplicates, expected.duplicates);
}

/* Sorts row numbers by insertion: stable, and of nothing that is under test. */
static void sorted_numbers(const struct vector *const *keys, uint32_t key_count,
                           uint32_t order[ROWS])
{
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t at = i;

        for (; at > 0 && row_key_compare(keys, order[at - 1], keys, i, key_count) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static void check_columns(struct vector *columns, uint32_t key_count)
{
    const struct vector *keys[2] = {&columns[0], &columns[1]};
    struct vector sorted[2];
    const struct vector *sorted_keys[2] = {&sorted[0], &sorted[1]};
    uint32_t order[ROWS];

    assert_order(keys, key_count, ROWS);
    assert_order(keys, key_count, 1);
    sorted_numbers(keys, key_count, order);
    /* In order, and in order but for one row that went elsewhere. */
    for (uint32_t moved = 0; moved < 4; moved++) {
        if (moved > 0) {
            uint32_t a = moved * 97 % (ROWS - 1);
            uint32_t swap = order[a];
            order[a] = order[a + 1];
            order[a + 1] = swap;
        }
        for (uint32_t c = 0; c < key_count; c++) {
            vector_init(&sorted[c], columns[c].type);
            assert_int_equal(vector_gather(&sorted[c], &columns[c], order, ROWS), 0);
        }
        assert_order(sorted_keys, key_count, ROWS);
        for (uint32_t c = 0; c < key_count; c++)
            vector_close(&sorted[c]);
    }
}

static void test_it_says_what_whole_keys_say(void **state)
{
    (void)state;
    for (unsigned first = 0; first < SAMPLE_TYPES; first++)
        for (unsigned nulls = 0; nulls < SAMPLE_NULLS; nulls++)
            for (unsigned shape = 0; shape < SAMPLE_SHAPES; shape++) {
                struct vector columns[2];

                vector_init(&columns[0], sample_types[first]);
                vector_init(&columns[1], sample_types[(first + 5) % SAMPLE_TYPES]);
                sample_column(&columns[0], (int)shape, (int)nulls, ROWS, first + 1);
                sample_column(&columns[1], SAMPLE_SMALL, SAMPLE_NO_NULLS, ROWS, first + 2);
                check_columns(columns, 1);
                check_columns(columns, 2);
                vector_close(&columns[0]);
                vector_close(&columns[1]);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_says_what_whole_keys_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
