/* SPDX-License-Identifier: Apache-2.0 */
/* Many runs read as one, compared with a plain model: newest wins, deletes, ranges, positions. */
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
#include "participant/rowset/merge_cursor.h"
#include "tests/lib/rowset_maker.h"
#include "tests/lib/test_dir.h"

enum { TABLET = 5, KEYS = 60 };

struct fixture {
    struct test_dir dir;
    struct store *store;
    struct schema unique;
    struct schema duplicate;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct store_options options;
    struct tg_errmsg msg;

    test_dir_make(&f->dir);
    store_options_init(&options);
    options.meta_map_bytes = 64 << 20;
    options.blocks_map_bytes = 64 << 20;
    options.disk_reserve_bytes = 0;
    assert_int_equal(store_open(f->dir.path, &options, &f->store, &msg), 0);
    rowset_maker_schema(&f->unique, true);
    rowset_maker_schema(&f->duplicate, false);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    store_close(f->store);
    schema_close(&f->unique);
    schema_close(&f->duplicate);
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

/* Reads everything in pieces of `batch`, with a new cursor for each, into text "k=v;" or "k=-;" for
 * null. */
static void read_text(struct fixture *f, const struct merge_input *inputs, uint32_t count,
                      struct merge_options *options, uint32_t batch, struct buf *text)
{
    uint32_t ids[] = {options->schema->columns[0].id, options->schema->columns[1].id};
    struct buf position = BUF_INIT;
    struct tg_errmsg msg = {{0}};
    uint32_t rows;

    options->columns = ids;
    options->column_count = 2;
    do {
        struct merge_cursor *cursor;
        struct vector out[2];
        struct vector versions;

        assert_int_equal(merge_cursor_open(f->store, TABLET, inputs, count, options,
                                           slice_of(position.data, position.len), &cursor, &msg),
                         0);
        for (uint32_t i = 0; i < 2; i++)
            vector_init(&out[i], merge_cursor_type(cursor, i));
        vector_init(&versions, (struct column_type){.kind = TYPE_BIGINT});
        assert_int_equal(merge_cursor_next(cursor, batch, out, &versions, &rows, &msg), 0);
        assert_true(rows <= batch);
        assert_int_equal(versions.rows, rows);
        for (uint32_t i = 0; i < rows; i++) {
            int32_t k;

            memcpy(&k, vector_fixed(&out[0], i), sizeof k);
            buf_printf(text, "%d=", k);
            if (vector_is_null(&out[1], i))
                buf_append_str(text, "-;");
            else
                buf_printf(text, "%.*s;", (int)vector_bytes(&out[1], i).len,
                           (const char *)vector_bytes(&out[1], i).data);
        }
        buf_clear(&position);
        merge_cursor_position(cursor, &position);
        merge_cursor_close(cursor);
        for (uint32_t i = 0; i < 2; i++)
            vector_close(&out[i]);
        vector_close(&versions);
    } while (rows > 0);
    buf_close(&position);
}

static void expect(struct fixture *f, const struct merge_input *inputs, uint32_t count,
                   struct merge_options options, const char *expected)
{
    for (uint32_t batch = 1; batch < 8192; batch = batch * 3 + 1) {
        struct buf text = BUF_INIT;

        read_text(f, inputs, count, &options, batch, &text);
        assert_string_equal(buf_cstr(&text), expected);
        buf_close(&text);
    }
}

static void test_the_newest_row_of_a_key_wins_and_deletes_take_effect(void **state)
{
    struct fixture *f = *state;
    const struct made_row old[] = {{1, "a", 0}, {2, "b", 0}, {3, "c", 0}, {4, NULL, 0}};
    const struct made_row new[] = {{2, "B", 0}, {3, "", 1}, {5, "e", 0}};
    const struct made_row newest[] = {{3, "C", 0}, {5, "", 1}};
    const uint32_t four = 4, three = 3, two = 2;
    const struct merge_input inputs[] = {{1, 10}, {2, 11}, {3, 12}};
    struct merge_options options = {.schema = &f->unique, .merge = true, .newest_wins = true};

    rowset_maker_write(f->store, &f->unique, TABLET, 10, old, &four, 1, 3);
    rowset_maker_write(f->store, &f->unique, TABLET, 11, new, &three, 1, 1);
    rowset_maker_write(f->store, &f->unique, TABLET, 12, newest, &two, 1, 8);
    expect(f, inputs, 1, options, "1=a;2=b;3=c;4=-;");
    expect(f, inputs, 2, options, "1=a;2=B;4=-;5=e;");
    expect(f, inputs, 3, options, "1=a;2=B;3=C;4=-;");
    options.include_deleted = true;
    expect(f, inputs, 3, options, "1=a;2=B;3=C;4=-;5=;");
}

static void test_a_later_segment_of_a_load_is_newer(void **state)
{
    struct fixture *f = *state;
    const struct made_row rows[] = {{1, "a", 0}, {7, "x", 0}, {1, "b", 0}, {2, "y", 0}};
    const uint32_t segments[] = {2, 2};
    const struct merge_input inputs[] = {{1, 20}};

    rowset_maker_write(f->store, &f->unique, TABLET, 20, rows, segments, 2, 1);
    expect(f, inputs, 1,
           (struct merge_options){.schema = &f->unique, .merge = true, .newest_wins = true},
           "1=b;2=y;7=x;");
}

static void test_a_table_of_duplicates_keeps_every_row(void **state)
{
    struct fixture *f = *state;
    const struct made_row a[] = {{1, "a", 0}, {1, "a", 0}, {9, "z", 0}};
    const struct made_row b[] = {{1, "b", 0}, {5, "m", 0}};
    const uint32_t three = 3, two = 2;
    const struct merge_input inputs[] = {{1, 30}, {2, 31}};

    rowset_maker_write(f->store, &f->duplicate, TABLET, 30, a, &three, 1, 2);
    rowset_maker_write(f->store, &f->duplicate, TABLET, 31, b, &two, 1, 2);
    expect(f, inputs, 2, (struct merge_options){.schema = &f->duplicate}, "1=a;1=a;9=z;1=b;5=m;");
    expect(f, inputs, 2, (struct merge_options){.schema = &f->duplicate, .merge = true},
           "1=a;1=a;1=b;5=m;9=z;");
}

static void test_a_missing_rowset_and_a_foreign_position_are_errors(void **state)
{
    struct fixture *f = *state;
    const struct made_row rows[] = {{1, "a", 0}};
    const uint32_t one = 1;
    const struct merge_input inputs[] = {{1, 40}, {2, 41}};
    uint32_t id = f->unique.columns[0].id;
    struct merge_options options = {
        .schema = &f->unique, .merge = true, .column_count = 1, .columns = &id};
    struct merge_cursor *cursor;
    struct tg_errmsg msg;

    rowset_maker_write(f->store, &f->unique, TABLET, 40, rows, &one, 1, 1);
    assert_int_equal(
        merge_cursor_open(f->store, TABLET, inputs, 2, &options, slice_of(NULL, 0), &cursor, &msg),
        TG_NOT_FOUND);
    assert_int_equal(
        merge_cursor_open(f->store, TABLET, inputs, 1, &options, slice_str("xx"), &cursor, &msg),
        TG_CORRUPT);
    id = 77;
    assert_int_equal(
        merge_cursor_open(f->store, TABLET, inputs, 1, &options, slice_of(NULL, 0), &cursor, &msg),
        TG_INVALID);
}

static void encode(int32_t k, struct buf *out)
{
    struct vector vector;
    const struct vector *columns[] = {&vector};

    vector_init(&vector, (struct column_type){.kind = TYPE_INT});
    assert_int_equal(vector_append_fixed(&vector, &k), 0);
    row_key_encode(columns, 1, 0, out);
    vector_close(&vector);
}

/* Random rowsets of several segments against an array that the newest row overwrites. */
static void test_random_histories_read_like_the_model(void **state)
{
    struct fixture *f = *state;
    struct random_seeded random;
    char model[KEYS][16] = {{0}};
    bool present[KEYS] = {false};
    struct merge_input inputs[12];
    static char texts[12 * KEYS * 2][16];
    uint32_t text_count = 0;

    random_seeded_init(&random, 20260131);
    for (uint32_t n = 0; n < 12; n++) {
        struct made_row rows[KEYS * 2];
        uint32_t segments[2] = {0, 0};
        uint32_t count = 0;

        for (uint32_t s = 0; s < 2; s++)
            for (int32_t k = 0; k < KEYS; k++) {
                if (random_below(&random.source, 3) != 0)
                    continue;
                char *text = texts[text_count++];
                bool deleted = random_below(&random.source, 4) == 0;

                snprintf(text, 16, "%u.%u.%d", n, s, k);
                rows[count++] = (struct made_row){k, text, deleted};
                segments[s]++;
                present[k] = !deleted;
                snprintf(model[k], 16, "%s", text);
            }
        rowset_maker_write(f->store, &f->unique, TABLET, 100 + n, rows, segments, 2,
                           1 + (uint32_t)random_below(&random.source, 9));
        inputs[n] = (struct merge_input){n + 1, 100 + n};
        for (uint32_t round = 0; round < 4; round++) {
            int32_t from = (int32_t)random_below(&random.source, KEYS);
            int32_t to = (int32_t)random_below(&random.source, KEYS + 1);
            struct merge_options options = {
                .schema = &f->unique, .merge = true, .newest_wins = true};
            struct buf lower = BUF_INIT, upper = BUF_INIT, expected = BUF_INIT;

            if (round == 0) {
                from = 0;
                to = KEYS;
            } else {
                encode(from, &lower);
                encode(to, &upper);
                options.from = slice_of(lower.data, lower.len);
                options.to = slice_of(upper.data, upper.len);
            }
            for (int32_t k = from; k < to; k++)
                if (present[k])
                    buf_printf(&expected, "%d=%s;", k, model[k]);
            expect(f, inputs, n + 1, options, buf_cstr(&expected));
            buf_close(&lower);
            buf_close(&upper);
            buf_close(&expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_newest_row_of_a_key_wins_and_deletes_take_effect,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_later_segment_of_a_load_is_newer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_table_of_duplicates_keeps_every_row, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_missing_rowset_and_a_foreign_position_are_errors,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_histories_read_like_the_model, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
