/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: what was encoded is what is decoded, and each shape gets its encoding. */
#include "common/model/rowset_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/sample_columns.h"

struct fixture {
    struct block_encoder *encoder;
    struct block_decoder *decoder;
    struct buf out;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->encoder = block_encoder_open();
    f->decoder = block_decoder_open();
    *state = f;
    return f->encoder == NULL || f->decoder == NULL;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    block_encoder_close(f->encoder);
    block_decoder_close(f->decoder);
    buf_close(&f->out);
    free(f);
    return 0;
}

/* Equal bit for bit (so NaN equals itself), nulls included. */
static void assert_rows_equal(const struct vector *a, uint32_t a_row, const struct vector *b,
                              uint32_t b_row, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(vector_is_null(a, a_row + i), vector_is_null(b, b_row + i));
        if (a->width > 0) {
            assert_memory_equal(vector_fixed(a, a_row + i), vector_fixed(b, b_row + i), a->width);
        } else {
            struct slice left = vector_bytes(a, a_row + i);
            struct slice right = vector_bytes(b, b_row + i);
            assert_true(slice_equal(left, right));
        }
    }
}

/* Encodes rows of one column and opens the block from memory of exactly its size. */
static uint8_t *encode_one(struct fixture *f, const struct vector *vector, uint32_t begin,
                           uint32_t count, struct block *block)
{
    const struct vector *columns[] = {vector};
    const uint32_t ids[] = {77};
    buf_clear(&f->out);
    assert_int_equal(block_encode(f->encoder, columns, ids, 1, begin, count, &f->out), 0);
    uint8_t *exact = malloc(f->out.len);
    memcpy(exact, f->out.data, f->out.len);
    struct tg_errmsg msg = {0};
    assert_int_equal(block_open(block, exact, f->out.len, &msg), 0);
    return exact;
}

/* The first, the last, some in between: what a window gives is what the whole gives there. */
static void windows_come_back(struct fixture *f, const struct block *block,
                              const struct vector *vector, uint32_t begin)
{
    const uint32_t groups = (block->rows + BLOCK_WINDOW_ROWS - 1) / BLOCK_WINDOW_ROWS;
    const uint32_t pairs[][2] = {
        {0, 1}, {groups - 1, groups}, {groups / 2, groups}, {groups / 3, groups / 3 + 1}};
    struct vector back;
    vector_init(&back, vector->type);
    uint32_t before = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        uint32_t from = pairs[i][0] * BLOCK_WINDOW_ROWS;
        uint32_t to = pairs[i][1] * BLOCK_WINDOW_ROWS;
        to = to < block->rows ? to : block->rows;
        assert_int_equal(block_decode_rows(f->decoder, block, 0, from, to, &back, NULL), 0);
        assert_int_equal(back.rows, before + to - from);
        assert_rows_equal(vector, begin + from, &back, before, to - from);
        before = back.rows;
    }
    vector_close(&back);
}

static struct block_column round_trip(struct fixture *f, const struct vector *vector,
                                      uint32_t begin, uint32_t count)
{
    struct block block;
    struct block_column column;
    uint8_t *bytes = encode_one(f, vector, begin, count, &block);
    block_column_at(&block, 0, &column);
    struct vector back;
    vector_init(&back, vector->type);
    struct tg_errmsg msg = {0};
    assert_int_equal(block_decode_column(f->decoder, &block, 0, &back, &msg), 0);
    assert_int_equal(back.rows, count);
    assert_rows_equal(vector, begin, &back, 0, count);
    vector_close(&back);
    windows_come_back(f, &block, vector, begin);
    free(bytes);
    return column;
}

static void every_type_and_shape_comes_back(void **state)
{
    static const uint32_t row_counts[] = {1, 2, 100, 255, 256, 257, 1000, 8192};
    for (int t = 0; t < SAMPLE_TYPES; t++) {
        for (int shape = 0; shape < SAMPLE_SHAPES; shape++) {
            for (int nulls = 0; nulls < SAMPLE_NULLS; nulls++) {
                struct vector vector;
                vector_init(&vector, sample_types[t]);
                sample_column(&vector, shape, nulls, 8192 + 3, (uint64_t)(t * 100 + shape));
                for (size_t r = 0; r < sizeof row_counts / sizeof row_counts[0]; r++)
                    round_trip(*state, &vector, r % 2 == 0 ? 3 : 0, row_counts[r]);
                vector_close(&vector);
            }
        }
    }
}

static void the_largest_blocks_come_back(void **state)
{
    for (int t = 0; t < SAMPLE_TYPES; t++) {
        for (int shape = 0; shape < SAMPLE_SHAPES; shape++) {
            struct vector vector;
            vector_init(&vector, sample_types[t]);
            uint32_t rows = vector.width == 0 && shape == SAMPLE_WIDE ? 20000 : BLOCK_ROWS_MAX;
            sample_column(&vector, shape, shape % 2 == 0 ? SAMPLE_SOME_NULLS : SAMPLE_NO_NULLS,
                          rows, 9);
            round_trip(*state, &vector, 0, rows);
            vector_close(&vector);
        }
    }
}

static struct vector column_of(struct column_type type, const __int128 *values, uint32_t count)
{
    struct vector vector;
    vector_init(&vector, type);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(vector_append_fixed(&vector, &values[i]), 0);
    return vector;
}

/* Extremes side by side: ranges and differences that only fit modulo 2^64. */
static void extreme_numbers_come_back(void **state)
{
    const __int128 huge = (__int128)1 << 126;
    const __int128 values[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MIN, INT64_MAX, 1, huge, -huge};
    const struct column_type bigint = {.kind = TYPE_BIGINT};
    const struct column_type largeint = {.kind = TYPE_LARGEINT};
    for (uint32_t count = 1; count <= 9; count++) {
        struct vector vector = column_of(largeint, values, count);
        round_trip(*state, &vector, 0, count);
        vector_close(&vector);
        vector = column_of(bigint, values, count);
        round_trip(*state, &vector, 0, count);
        vector_close(&vector);
    }
    /* Around the borders of 31, 32 and 33 bits to both sides of the first value. */
    static const int64_t steps[] = {INT32_MAX,  (int64_t)INT32_MAX + 1,
                                    INT32_MIN,  (int64_t)INT32_MIN - 1,
                                    UINT32_MAX, (int64_t)UINT32_MAX + 1};
    static const int64_t firsts[] = {0, -1, INT64_MAX / 2, INT64_MIN + UINT32_MAX + 2};
    for (int s = 0; s < 6; s++) {
        for (int i = 0; i < 4; i++) {
            __int128 pair[600];
            for (int row = 0; row < 600; row++)
                pair[row] = firsts[i] + (sample_mix((uint64_t)row) % 2 == 0 ? 0 : steps[s]);
            struct vector vector = column_of(bigint, pair, 600);
            round_trip(*state, &vector, 0, 600);
            vector_close(&vector);
        }
    }
}

static void strings_of_every_length_come_back(void **state)
{
    static char text[100000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + sample_mix(i) % 26);
    struct vector vector;
    vector_init(&vector, (struct column_type){.kind = TYPE_STRING});
    for (uint32_t len = 0; len < 70; len++) { /* twice, so that a dictionary pays */
        assert_int_equal(vector_append_bytes(&vector, text + len, len), 0);
        assert_int_equal(vector_append_bytes(&vector, text + len, len), 0);
    }
    round_trip(*state, &vector, 0, vector.rows);
    round_trip(*state, &vector, 138, 2);
    assert_int_equal(vector_append_bytes(&vector, text, sizeof text), 0);
    round_trip(*state, &vector, 0, vector.rows);
    round_trip(*state, &vector, 140, 1);
    vector_close(&vector);

    /* Values that differ only behind their first 16 bytes, and only in length. */
    vector_init(&vector, (struct column_type){.kind = TYPE_STRING});
    for (uint32_t i = 0; i < 2000; i++) {
        char value[64] = "the same sixteen bytes, then ";
        value[40 + i % 5] = (char)('0' + i % 7);
        assert_int_equal(vector_append_bytes(&vector, value, 45 + i % 3), 0);
    }
    struct block_column column = round_trip(*state, &vector, 0, 2000);
    assert_int_equal(column.encoding, BLOCK_DICTIONARY);
    vector_close(&vector);

    vector_init(&vector, (struct column_type){.kind = TYPE_STRING});
    for (int i = 0; i < 300; i++) /* nothing but empty strings: no memory of bytes at all */
        assert_int_equal(vector_append_bytes(&vector, "", 0), 0);
    round_trip(*state, &vector, 0, 300);
    assert_int_equal(vector_append_null(&vector), 0);
    round_trip(*state, &vector, 0, 301);
    vector_close(&vector);
}

/* Encoding of 8192 made-up numbers. */
static int encoding_of(struct fixture *f, struct column_type type, int64_t (*value)(uint32_t row))
{
    struct vector vector;
    vector_init(&vector, type);
    for (uint32_t row = 0; row < BLOCK_ROWS; row++) {
        __int128 number = value(row);
        assert_int_equal(vector_append_fixed(&vector, &number), 0);
    }
    struct block_column column = round_trip(f, &vector, 0, BLOCK_ROWS);
    vector_close(&vector);
    return column.encoding;
}

static int64_t seven(uint32_t row)
{
    (void)row;
    return 7;
}
static int64_t small_random(uint32_t row)
{
    return 1000000000000 + (int64_t)(sample_mix(row) % 1000);
}
static int64_t any_random(uint32_t row)
{
    return (int64_t)sample_mix(row);
}
static int64_t forty_bits(uint32_t row)
{
    return (int64_t)(sample_mix(row) >> 24);
}
static int64_t long_runs(uint32_t row)
{
    return (int64_t)(sample_mix(row / 100) % 1000000);
}
static int64_t wide_runs(uint32_t row)
{
    return (int64_t)sample_mix(row / 100);
}
static int64_t counter(uint32_t row)
{
    return 5000000000 + row;
}
static int64_t wide_steps(uint32_t row)
{
    return (int64_t)row * 1000000007 + (int64_t)(sample_mix(row) % 50);
}
static int64_t falling(uint32_t row)
{
    return -(int64_t)row * 1000 - (int64_t)(sample_mix(row) % 100);
}

static void each_shape_gets_its_encoding(void **state)
{
    const struct column_type bigint = {.kind = TYPE_BIGINT};
    const struct column_type largeint = {.kind = TYPE_LARGEINT};
    const struct column_type integer = {.kind = TYPE_INT};
    const struct column_type tinyint = {.kind = TYPE_TINYINT};
    assert_int_equal(encoding_of(*state, bigint, seven), BLOCK_CONSTANT);
    assert_int_equal(encoding_of(*state, largeint, seven), BLOCK_CONSTANT);
    assert_int_equal(encoding_of(*state, bigint, small_random), BLOCK_FOR);
    assert_int_equal(encoding_of(*state, largeint, small_random), BLOCK_FOR);
    assert_int_equal(encoding_of(*state, largeint, any_random), BLOCK_FOR);
    assert_int_equal(encoding_of(*state, bigint, forty_bits), BLOCK_FOR);
    assert_int_equal(encoding_of(*state, bigint, any_random), BLOCK_PLAIN);
    assert_int_equal(encoding_of(*state, integer, any_random), BLOCK_PLAIN);
    assert_int_equal(encoding_of(*state, tinyint, any_random), BLOCK_PLAIN);
    assert_int_equal(encoding_of(*state, integer, long_runs), BLOCK_RLE);
    assert_int_equal(encoding_of(*state, bigint, wide_runs), BLOCK_RLE);
    assert_int_equal(encoding_of(*state, bigint, counter), BLOCK_DELTA);
    assert_int_equal(encoding_of(*state, largeint, counter), BLOCK_DELTA);
    assert_int_equal(encoding_of(*state, bigint, wide_steps), BLOCK_DELTA);
    assert_int_equal(encoding_of(*state, integer, falling), BLOCK_DELTA);
}

enum text_shape { FEW_WORDS, WORDS_IN_RUNS, ONE_WORD, COUNTED, NOISE, MANY_WORDS };

static struct block_column text_column(struct fixture *f, enum text_shape shape)
{
    struct vector vector;
    vector_init(&vector, (struct column_type){.kind = TYPE_VARCHAR, .length = 100});
    for (uint32_t row = 0; row < BLOCK_ROWS; row++) {
        char text[64];
        uint64_t mixed = sample_mix(row);
        if (shape == FEW_WORDS)
            snprintf(text, sizeof text, "word %u", (unsigned)(mixed % 50));
        else if (shape == WORDS_IN_RUNS)
            snprintf(text, sizeof text, "word %u", (unsigned)(sample_mix(row / 64) % 50));
        else if (shape == ONE_WORD)
            snprintf(text, sizeof text, "the only word");
        else if (shape == COUNTED)
            snprintf(text, sizeof text, "customer number %09u", row);
        else if (shape == NOISE)
            for (size_t i = 0; i < sizeof text; i++)
                text[i] = (char)(sample_mix(row * 64 + i) % 255 + 1);
        else
            snprintf(text, sizeof text, "a word of some length %u", (unsigned)(mixed % 2000));
        assert_int_equal(vector_append_bytes(&vector, text, strnlen(text, sizeof text)), 0);
    }
    struct block_column column = round_trip(f, &vector, 0, BLOCK_ROWS);
    vector_close(&vector);
    return column;
}

static void each_kind_of_text_gets_its_encoding(void **state)
{
    assert_int_equal(text_column(*state, FEW_WORDS).encoding, BLOCK_DICTIONARY);
    assert_int_equal(text_column(*state, ONE_WORD).encoding, BLOCK_CONSTANT);
    assert_int_equal(text_column(*state, ONE_WORD).len, strlen("the only word"));
    /* Runs of codes: 128 of them, far less than a code of 6 bits for each row. */
    struct block_column runs = text_column(*state, WORDS_IN_RUNS);
    assert_int_equal(runs.encoding, BLOCK_DICTIONARY);
    assert_true(runs.len < 1000);

    struct block_column counted = text_column(*state, COUNTED);
    assert_int_equal(counted.encoding, BLOCK_PLAIN);
    assert_int_equal(counted.flags, BLOCK_LZ4);
    struct block_column noise = text_column(*state, NOISE);
    assert_int_equal(noise.encoding, BLOCK_PLAIN);
    assert_int_equal(noise.flags, 0);
    /* Of 2,000 words more than half of the first 512 are new: the dictionary is given up. */
    assert_int_equal(text_column(*state, MANY_WORDS).encoding, BLOCK_PLAIN);
}

static void nulls_cost_what_they_should(void **state)
{
    struct vector vector;
    vector_init(&vector, (struct column_type){.kind = TYPE_BIGINT});
    sample_column(&vector, SAMPLE_WIDE, SAMPLE_ALL_NULL, 5000, 1);
    struct block_column column = round_trip(*state, &vector, 0, 5000);
    assert_int_equal(column.len, 0);
    assert_int_equal(column.flags, BLOCK_ALL_NULL);
    vector_close(&vector);

    /* Nulls between equal values: still one value, and the bitmap. */
    vector_init(&vector, (struct column_type){.kind = TYPE_BIGINT});
    sample_column(&vector, SAMPLE_CONSTANT, SAMPLE_SOME_NULLS, 800, 1);
    column = round_trip(*state, &vector, 0, 800);
    assert_int_equal(column.encoding, BLOCK_CONSTANT);
    assert_int_equal(column.flags, BLOCK_HAS_NULLS);
    assert_int_equal(column.len, 2 * 8 + 100);

    /* Rows without a null in a column that has some elsewhere: no bitmap. */
    uint32_t begin = 0;
    uint32_t count = 0;
    for (uint32_t row = 0; row < 800 && count < 3; row++) {
        count = vector_is_null(&vector, row) ? 0 : count + 1;
        begin = row + 1 - count;
    }
    column = round_trip(*state, &vector, begin, count);
    assert_int_equal(column.flags, 0);
    vector_close(&vector);
}

static void ranges_are_those_of_values_that_are_not_null(void **state)
{
    struct fixture *f = *state;
    struct vector vector;
    struct block block;
    union type_value min;
    union type_value max;
    vector_init(&vector, (struct column_type){.kind = TYPE_INT});
    const int32_t values[] = {40, -3, 17};
    assert_int_equal(vector_append_null(&vector), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(vector_append_fixed(&vector, &values[i]), 0);
    assert_int_equal(vector_append_null(&vector), 0);
    uint8_t *bytes = encode_one(f, &vector, 0, 5, &block);
    assert_true(block_column_range(&block, 0, &min, &max));
    assert_int_equal(min.i32, -3);
    assert_int_equal(max.i32, 40);
    free(bytes);
    bytes = encode_one(f, &vector, 4, 1, &block);
    assert_false(block_column_range(&block, 0, &min, &max));
    free(bytes);
    vector_close(&vector);

    vector_init(&vector, (struct column_type){.kind = TYPE_DOUBLE});
    const double doubles[] = {2.5, 0.25, 1e300, -1.0};
    for (int i = 0; i < 4; i++)
        assert_int_equal(vector_append_fixed(&vector, &doubles[i]), 0);
    bytes = encode_one(f, &vector, 0, 3, &block);
    assert_true(block_column_range(&block, 0, &min, &max));
    assert_true(min.f64 == 0.25 && max.f64 == 1e300);
    free(bytes);
    bytes = encode_one(f, &vector, 0, 4, &block); /* below zero the bits order the other way */
    assert_false(block_column_range(&block, 0, &min, &max));
    free(bytes);
    vector_close(&vector);
}

static void blocks_append_to_a_vector_and_find_columns_by_id(void **state)
{
    struct fixture *f = *state;
    struct vector numbers;
    struct vector texts;
    vector_init(&numbers, (struct column_type){.kind = TYPE_INT});
    vector_init(&texts, (struct column_type){.kind = TYPE_STRING});
    sample_column(&numbers, SAMPLE_SMALL, SAMPLE_NO_NULLS, 1000, 1);
    sample_column(&numbers, SAMPLE_SMALL, SAMPLE_SOME_NULLS, 1000, 1);
    sample_column(&texts, SAMPLE_WIDE, SAMPLE_SOME_NULLS, 1000, 2);
    sample_column(&texts, SAMPLE_SMALL, SAMPLE_NO_NULLS, 1000, 2);
    const struct vector *columns[] = {&numbers, &texts};
    const uint32_t ids[] = {3, 0xFFFFFF01u};

    buf_clear(&f->out);
    buf_append_str(&f->out, "what was there before");
    size_t starts[5];
    for (uint32_t i = 0; i < 4; i++) {
        starts[i] = f->out.len;
        assert_int_equal(block_encode(f->encoder, columns, ids, 2, i * 500, 500, &f->out), 0);
    }
    starts[4] = f->out.len;

    struct vector back[2];
    vector_init(&back[0], numbers.type);
    vector_init(&back[1], texts.type);
    for (int i = 0; i < 4; i++) {
        struct block block;
        assert_int_equal(
            block_open(&block, f->out.data + starts[i], starts[i + 1] - starts[i], NULL), 0);
        assert_int_equal(block.rows, 500);
        assert_int_equal(block.column_count, 2);
        assert_int_equal(block_find(&block, 3), 0);
        assert_int_equal(block_find(&block, 0xFFFFFF01u), 1);
        assert_int_equal(block_find(&block, 4), -1);
        for (uint32_t c = 0; c < 2; c++)
            assert_int_equal(block_decode_column(f->decoder, &block, c, &back[c], NULL), 0);
        /* Another type is refused, and the vector keeps its rows. */
        assert_int_equal(block_decode_column(f->decoder, &block, 0, &back[1], NULL), TG_INVALID);
        assert_int_equal(back[1].rows, back[0].rows);
    }
    assert_rows_equal(&numbers, 0, &back[0], 0, 2000);
    assert_rows_equal(&texts, 0, &back[1], 0, 2000);
    vector_close(&back[0]);
    vector_close(&back[1]);
    vector_close(&numbers);
    vector_close(&texts);
}

static void the_same_rows_give_the_same_bytes(void **state)
{
    struct fixture *f = *state;
    struct block_encoder *fresh = block_encoder_open();
    struct buf again = BUF_INIT;
    for (int t = 0; t < SAMPLE_TYPES; t++) {
        struct vector vector;
        vector_init(&vector, sample_types[t]);
        sample_column(&vector, t % SAMPLE_SHAPES, SAMPLE_SOME_NULLS, 3000, 5);
        const struct vector *columns[] = {&vector};
        const uint32_t ids[] = {1};
        buf_clear(&f->out);
        buf_clear(&again);
        assert_int_equal(block_encode(f->encoder, columns, ids, 1, 0, 3000, &f->out), 0);
        assert_int_equal(block_encode(fresh, columns, ids, 1, 0, 3000, &again), 0);
        assert_int_equal(f->out.len, again.len);
        assert_memory_equal(f->out.data, again.data, again.len);
        vector_close(&vector);
    }
    buf_close(&again);
    block_encoder_close(fresh);
}

static void limits_are_kept_and_leave_the_buffer_alone(void **state)
{
    struct fixture *f = *state;
    struct vector vector;
    vector_init(&vector, (struct column_type){.kind = TYPE_TINYINT});
    sample_column(&vector, SAMPLE_SMALL, SAMPLE_NO_NULLS, BLOCK_ROWS_MAX + 1, 5);
    const struct vector *columns[] = {&vector};
    const uint32_t ids[] = {1};
    buf_clear(&f->out);
    buf_append_str(&f->out, "before");
    assert_int_equal(block_encode(f->encoder, columns, ids, 1, 0, 0, &f->out), TG_LIMIT);
    assert_int_equal(block_encode(f->encoder, columns, ids, 0, 0, 1, &f->out), TG_LIMIT);
    assert_int_equal(block_encode(f->encoder, columns, ids, 1, 0, BLOCK_ROWS_MAX + 1, &f->out),
                     TG_LIMIT);
    assert_int_equal(f->out.len, 6);
    vector_close(&vector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_shape_comes_back),
        cmocka_unit_test(the_largest_blocks_come_back),
        cmocka_unit_test(extreme_numbers_come_back),
        cmocka_unit_test(strings_of_every_length_come_back),
        cmocka_unit_test(each_shape_gets_its_encoding),
        cmocka_unit_test(each_kind_of_text_gets_its_encoding),
        cmocka_unit_test(nulls_cost_what_they_should),
        cmocka_unit_test(ranges_are_those_of_values_that_are_not_null),
        cmocka_unit_test(blocks_append_to_a_vector_and_find_columns_by_id),
        cmocka_unit_test(the_same_rows_give_the_same_bytes),
        cmocka_unit_test(limits_are_kept_and_leave_the_buffer_alone),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
