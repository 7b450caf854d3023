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
    struct schema text_unique; /* with long keys that begin alike */
    struct schema text_duplicate;
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
    rowset_maker_text_schema(&f->text_unique, true);
    rowset_maker_text_schema(&f->text_duplicate, false);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    store_close(f->store);
    schema_close(&f->unique);
    schema_close(&f->duplicate);
    schema_close(&f->text_unique);
    schema_close(&f->text_duplicate);
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

static int32_t key_of(const struct vector *vector, uint32_t row)
{
    int32_t k;

    if (vector->width > 0) {
        memcpy(&k, vector_fixed(vector, row), sizeof k);
        return k;
    }
    char text[MADE_KEY_BYTES] = "";
    struct slice bytes = vector_bytes(vector, row);
    memcpy(text, bytes.data, bytes.len);
    return (int32_t)strtol(text + bytes.len - 10, NULL, 10);
}

static void append_rows(const struct vector *out, uint32_t rows, struct buf *text)
{
    for (uint32_t i = 0; i < rows; i++) {
        buf_printf(text, "%d=", key_of(&out[0], i));
        if (vector_is_null(&out[1], i))
            buf_append_str(text, "-;");
        else
            buf_printf(text, "%.*s;", (int)vector_bytes(&out[1], i).len,
                       (const char *)vector_bytes(&out[1], i).data);
    }
}

/* Reads everything in pieces of `batch` into text "k=v;" or "k=-;" for null: with one cursor, or a
 * new one at the last one's position for each piece. */
static void read_text(struct fixture *f, const struct merge_input *inputs, uint32_t count,
                      struct merge_options *options, uint32_t batch, bool reopen, struct buf *text)
{
    uint32_t ids[] = {options->schema->columns[0].id, options->schema->columns[1].id};
    struct merge_cursor *cursor = NULL;
    struct buf position = BUF_INIT;
    struct tg_errmsg msg = {{0}};
    struct vector out[2];
    struct vector versions;
    uint32_t rows;

    options->columns = ids;
    options->column_count = 2;
    for (uint32_t i = 0; i < 2; i++)
        vector_init(&out[i], options->schema->columns[i].type);
    vector_init(&versions, (struct column_type){.kind = TYPE_BIGINT});
    do {
        if (cursor == NULL)
            assert_int_equal(merge_cursor_open(f->store, TABLET, inputs, count, options,
                                               slice_of(position.data, position.len), &cursor,
                                               &msg),
                             0);
        for (uint32_t i = 0; i < 2; i++)
            vector_clear(&out[i]);
        vector_clear(&versions);
        assert_int_equal(merge_cursor_next(cursor, batch, out, &versions, &rows, &msg), 0);
        assert_true(rows <= batch);
        assert_int_equal(versions.rows, rows);
        append_rows(out, rows, text);
        if (rows == 0)
            assert_true(merge_cursor_is_done(cursor));
        if (reopen || rows == 0) {
            buf_clear(&position);
            merge_cursor_position(cursor, &position);
            merge_cursor_close(cursor);
            cursor = NULL;
        }
    } while (rows > 0);
    for (uint32_t i = 0; i < 2; i++)
        vector_close(&out[i]);
    vector_close(&versions);
    buf_close(&position);
}

static void expect(struct fixture *f, const struct merge_input *inputs, uint32_t count,
                   struct merge_options options, const char *expected)
{
    for (uint32_t batch = 1; batch < 400; batch = batch * 4 + 1)
        for (int reopen = 0; reopen < 2; reopen++) {
            struct buf text = BUF_INIT;

            read_text(f, inputs, count, &options, batch, reopen == 1, &text);
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

static void encode(const struct schema *schema, int32_t k, struct buf *out)
{
    struct vector vector;
    const struct vector *columns[] = {&vector};

    vector_init(&vector, schema->columns[0].type);
    if (vector.width > 0) {
        assert_int_equal(vector_append_fixed(&vector, &k), 0);
    } else {
        char text[MADE_KEY_BYTES];

        rowset_maker_text_key(k, text);
        assert_int_equal(vector_append_bytes(&vector, text, strlen(text)), 0);
    }
    row_key_encode(columns, 1, 0, out);
    vector_close(&vector);
}

/* Whole, and some ranges, against what the model says of them. */
static void check_ranges(struct fixture *f, struct random_source *random,
                         const struct merge_input *inputs, uint32_t count,
                         struct merge_options options,
                         void (*model)(void *data, int32_t from, int32_t to, struct buf *out),
                         void *data)
{
    for (uint32_t round = 0; round < 4; round++) {
        int32_t from = round == 0 ? 0 : (int32_t)random_below(random, KEYS);
        int32_t to = round == 0 ? KEYS : (int32_t)random_below(random, KEYS + 1);
        struct buf lower = BUF_INIT, upper = BUF_INIT, expected = BUF_INIT;

        if (round > 0) {
            encode(options.schema, from, &lower);
            encode(options.schema, to, &upper);
        }
        options.from = slice_of(lower.data, lower.len);
        options.to = slice_of(upper.data, upper.len);
        model(data, from, to, &expected);
        expect(f, inputs, count, options, buf_cstr(&expected));
        buf_close(&lower);
        buf_close(&upper);
        buf_close(&expected);
    }
}

enum { ROWSETS = 12 };

struct unique_model {
    char value[KEYS][16];
    bool present[KEYS];
};

static void unique_range(void *data, int32_t from, int32_t to, struct buf *out)
{
    const struct unique_model *model = data;

    for (int32_t k = from; k < to; k++)
        if (model->present[k])
            buf_printf(out, "%d=%s;", k, model->value[k]);
}

/* Random rowsets of several segments against an array that the newest row overwrites. Some have no
 * deletes, and some cover a few keys only. */
static void check_unique(struct fixture *f, const struct schema *schema, uint64_t seed)
{
    struct random_seeded random;
    struct unique_model model = {{{0}}, {0}};
    struct merge_input inputs[ROWSETS];
    static char texts[ROWSETS * KEYS * 2][16];
    uint32_t text_count = 0;

    random_seeded_init(&random, seed);
    for (uint32_t n = 0; n < ROWSETS; n++) {
        struct made_row rows[KEYS * 2];
        uint32_t segments[2] = {0, 0};
        uint32_t count = 0;
        bool deletes = random_below(&random.source, 2) == 0;
        bool narrow = random_below(&random.source, 2) == 0;
        int32_t low = narrow ? (int32_t)random_below(&random.source, KEYS - 10) : 0;

        for (uint32_t s = 0; s < 2; s++)
            for (int32_t k = low; k < (narrow ? low + 10 : KEYS); k++) {
                if (!narrow && random_below(&random.source, 3) != 0)
                    continue;
                char *text = texts[text_count++];
                bool deleted = deletes && random_below(&random.source, 3) == 0;

                snprintf(text, 16, "%u.%u.%d", n, s, k);
                rows[count++] = (struct made_row){k, text, deleted};
                segments[s]++;
                model.present[k] = !deleted;
                snprintf(model.value[k], 16, "%s", text);
            }
        rowset_maker_write(f->store, schema, TABLET, 100 + n, rows, segments, 2,
                           1 + (uint32_t)random_below(&random.source, 9));
        inputs[n] = (struct merge_input){n + 1, 100 + n};
        check_ranges(f, &random.source, inputs, n + 1,
                     (struct merge_options){.schema = schema, .merge = true, .newest_wins = true},
                     unique_range, &model);
    }
}

static void test_random_histories_read_like_the_model(void **state)
{
    struct fixture *f = *state;

    check_unique(f, &f->unique, 20260131);
}

static void test_long_keys_that_begin_alike_are_told_apart(void **state)
{
    struct fixture *f = *state;

    check_unique(f, &f->text_unique, 20260201);
}

struct duplicate_model {
    uint32_t count;
    struct {
        int32_t k;
        uint32_t rank; /* of its run */
        uint32_t at;   /* in its run */
    } rows[ROWSETS * KEYS * 2];
};

static int compare_duplicates(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void duplicate_range(void *data, int32_t from, int32_t to, struct buf *out)
{
    struct duplicate_model *model = data;

    for (uint32_t i = 0; i < model->count; i++)
        if (model->rows[i].k >= from && model->rows[i].k < to)
            buf_printf(out, "%d=%u.%u;", model->rows[i].k, model->rows[i].rank, model->rows[i].at);
}

/* Few distinct keys, so that one key fills blocks and spans runs: every row once, equal keys oldest
 * run first. */
static void check_duplicates(struct fixture *f, const struct schema *schema, uint64_t seed)
{
    static struct duplicate_model model;
    static char texts[ROWSETS * KEYS * 2][16];
    struct random_seeded random;
    struct merge_input inputs[ROWSETS];
    uint32_t rank = 0;

    model.count = 0;
    random_seeded_init(&random, seed);
    for (uint32_t n = 0; n < ROWSETS; n++) {
        struct made_row rows[KEYS * 2];
        uint32_t segments[2];
        uint32_t count = 0;

        for (uint32_t s = 0; s < 2; s++, rank++) {
            int32_t k = (int32_t)random_below(&random.source, 5);

            segments[s] = 1 + (uint32_t)random_below(&random.source, KEYS - 1);
            for (uint32_t at = 0; at < segments[s]; at++) {
                k += random_below(&random.source, 6) == 0;
                char *text = texts[model.count];

                snprintf(text, 16, "%u.%u", rank, at);
                rows[count++] = (struct made_row){k, text, false};
                model.rows[model.count].k = k;
                model.rows[model.count].rank = rank;
                model.rows[model.count++].at = at;
            }
        }
        rowset_maker_write(f->store, schema, TABLET, 200 + n, rows, segments, 2,
                           1 + (uint32_t)random_below(&random.source, 9));
        inputs[n] = (struct merge_input){n + 1, 200 + n};
        qsort(model.rows, model.count, sizeof model.rows[0], compare_duplicates);
        check_ranges(f, &random.source, inputs, n + 1,
                     (struct merge_options){.schema = schema, .merge = true}, duplicate_range,
                     &model);
    }
}

static void test_random_duplicates_come_sorted_and_each_once(void **state)
{
    struct fixture *f = *state;

    check_duplicates(f, &f->duplicate, 5);
}

static void test_duplicates_of_long_keys_come_sorted_and_each_once(void **state)
{
    struct fixture *f = *state;

    check_duplicates(f, &f->text_duplicate, 6);
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
        cmocka_unit_test_setup_teardown(test_long_keys_that_begin_alike_are_told_apart, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_random_duplicates_come_sorted_and_each_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_duplicates_of_long_keys_come_sorted_and_each_once,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
