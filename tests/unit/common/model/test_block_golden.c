/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and descriptions that an earlier build wrote: data written once opens for ever. The files
 * are never written anew; a new format version gets new files beside them
 * (TIDEGATE_WRITE_GOLDEN=<folder> makes this program write what it would compare with). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/check.h"
#include "common/model/rowset.h"
#include "common/model/rowset_block.h"

enum { ROWS = 600, FILE_MAX = 256 * 1024, PATH_BYTES = 4096, COLUMNS_MOST = 32 };

/* The generator must never change: it is what the files hold. */
static uint64_t golden_mix(uint64_t counter)
{
    uint64_t z = (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

enum golden_shape { FIXED_7, RANDOM_9_BITS, RANDOM_40_BITS, RANDOM_ALL, RUNS, STEPS, ONLY_NULLS };

struct golden_column {
    struct column_type type;
    enum golden_shape shape;
    bool has_nulls;
    enum block_encoding encoding;
    uint8_t flags;
};

static const struct golden_column types_file[] = {
    {{.kind = TYPE_BOOLEAN}, RUNS, true, BLOCK_RLE, BLOCK_HAS_NULLS},
    {{.kind = TYPE_TINYINT}, RANDOM_ALL, false, BLOCK_PLAIN, 0},
    {{.kind = TYPE_SMALLINT}, RANDOM_9_BITS, true, BLOCK_FOR, BLOCK_HAS_NULLS},
    {{.kind = TYPE_INT}, RANDOM_9_BITS, false, BLOCK_FOR, 0},
    {{.kind = TYPE_BIGINT}, RANDOM_ALL, true, BLOCK_PLAIN, BLOCK_HAS_NULLS},
    {{.kind = TYPE_LARGEINT}, RANDOM_ALL, true, BLOCK_PLAIN, BLOCK_HAS_NULLS},
    {{.kind = TYPE_FLOAT}, RANDOM_9_BITS, true, BLOCK_FOR, BLOCK_HAS_NULLS},
    {{.kind = TYPE_DOUBLE}, RANDOM_ALL, false, BLOCK_PLAIN, 0},
    {{.kind = TYPE_DECIMAL, .precision = 18, .scale = 4}, RANDOM_40_BITS, false, BLOCK_FOR, 0},
    {{.kind = TYPE_DECIMAL, .precision = 38, .scale = 10}, RUNS, true, BLOCK_RLE, BLOCK_HAS_NULLS},
    {{.kind = TYPE_DATE}, RANDOM_9_BITS, true, BLOCK_FOR, BLOCK_HAS_NULLS},
    {{.kind = TYPE_DATETIME, .scale = 6}, RANDOM_40_BITS, true, BLOCK_FOR, BLOCK_HAS_NULLS},
    {{.kind = TYPE_CHAR, .length = 8}, FIXED_7, true, BLOCK_CONSTANT, BLOCK_HAS_NULLS},
    {{.kind = TYPE_VARCHAR, .length = 64}, RUNS, true, BLOCK_DICTIONARY, BLOCK_HAS_NULLS},
    {{.kind = TYPE_STRING}, RANDOM_ALL, true, BLOCK_PLAIN, BLOCK_HAS_NULLS},
    {{.kind = TYPE_JSON}, RANDOM_40_BITS, false, BLOCK_PLAIN, BLOCK_LZ4},
};
static const struct golden_column encodings_file[] = {
    {{.kind = TYPE_BIGINT}, FIXED_7, false, BLOCK_CONSTANT, 0},
    {{.kind = TYPE_BIGINT}, RANDOM_9_BITS, false, BLOCK_FOR, 0},
    {{.kind = TYPE_BIGINT}, RANDOM_40_BITS, false, BLOCK_FOR, 0},
    {{.kind = TYPE_BIGINT}, RANDOM_ALL, false, BLOCK_PLAIN, 0},
    {{.kind = TYPE_BIGINT}, RUNS, false, BLOCK_RLE, 0},
    {{.kind = TYPE_BIGINT}, STEPS, false, BLOCK_DELTA, 0},
    {{.kind = TYPE_BIGINT}, ONLY_NULLS, true, BLOCK_CONSTANT, BLOCK_ALL_NULL},
    {{.kind = TYPE_LARGEINT}, RANDOM_40_BITS, false, BLOCK_FOR, 0},
    {{.kind = TYPE_LARGEINT}, STEPS, false, BLOCK_DELTA, 0},
    {{.kind = TYPE_STRING}, FIXED_7, false, BLOCK_CONSTANT, 0},
    {{.kind = TYPE_STRING}, RANDOM_9_BITS, false, BLOCK_DICTIONARY, 0},
    {{.kind = TYPE_STRING}, RUNS, false, BLOCK_DICTIONARY, 0},
    {{.kind = TYPE_STRING}, RANDOM_40_BITS, false, BLOCK_PLAIN, BLOCK_LZ4},
    {{.kind = TYPE_STRING}, RANDOM_ALL, false, BLOCK_PLAIN, 0},
    {{.kind = TYPE_STRING}, ONLY_NULLS, true, BLOCK_CONSTANT, BLOCK_ALL_NULL},
};

static uint64_t golden_number(enum golden_shape shape, uint32_t row)
{
    switch (shape) {
    case FIXED_7:
        return 7;
    case RANDOM_9_BITS:
        return golden_mix(row) % 300;
    case RANDOM_40_BITS:
        return golden_mix(row) >> 24;
    case RUNS:
        return golden_mix(row / 40) % 2;
    case STEPS:
        return (uint64_t)row * 86400000000 + golden_mix(row) % 16;
    default:
        return golden_mix(row);
    }
}

static void add_row(struct vector *vector, const struct golden_column *column, uint32_t row)
{
    if (column->shape == ONLY_NULLS ||
        (column->has_nulls && golden_mix(~(uint64_t)row) % 11 == 0)) {
        TG_CHECK(vector_append_null(vector) == 0);
        return;
    }
    uint64_t number = golden_number(column->shape, row);
    if (vector->width > 0) {
        union type_value value = {.i128 = (__int128)number};
        if (vector->width == 16 && column->shape == RANDOM_ALL)
            value.i128 = (__int128)number << 50;
        if (column->type.kind == TYPE_BOOLEAN)
            value.i8 = (int8_t)(number % 2);
        else if (column->type.kind == TYPE_FLOAT)
            value.f32 = (float)number / 4;
        TG_CHECK(vector_append_fixed(vector, &value) == 0);
        return;
    }
    char text[64];
    int len = 0;
    if (column->shape == RANDOM_ALL) {
        for (len = 0; len < (int)(number % 40); len++)
            text[len] = (char)golden_mix(number + (uint64_t)len);
    } else if (column->shape == RANDOM_9_BITS) {
        len = snprintf(text, sizeof text, "the word %u", (unsigned)(number % 60));
    } else {
        len = snprintf(text, sizeof text, "{\"a long common part\": %llu}",
                       (unsigned long long)number);
    }
    if (column->type.kind == TYPE_CHAR)
        len = 8;
    TG_CHECK(vector_append_bytes(vector, text, (size_t)len) == 0);
}

static void make_columns(const struct golden_column *columns, uint32_t count,
                         struct vector *vectors)
{
    for (uint32_t i = 0; i < count; i++) {
        vector_init(&vectors[i], columns[i].type);
        for (uint32_t row = 0; row < ROWS; row++)
            add_row(&vectors[i], &columns[i], row);
    }
}

static void encode_columns(const struct vector *vectors, uint32_t count, struct buf *out)
{
    const struct vector *columns[COLUMNS_MOST];
    uint32_t ids[COLUMNS_MOST];
    for (uint32_t i = 0; i < count; i++) {
        columns[i] = &vectors[i];
        ids[i] = i + 1;
    }
    struct block_encoder *encoder = block_encoder_open();
    TG_CHECK(encoder != NULL && block_encode(encoder, columns, ids, count, 0, ROWS, out) == 0);
    block_encoder_close(encoder);
}

/* Reads a golden file; where writing is asked for, writes `fresh` first. */
static size_t golden_file(const char *name, const struct buf *fresh, uint8_t *bytes)
{
    char path[PATH_BYTES];
    const char *folder = getenv("TIDEGATE_WRITE_GOLDEN");
    if (folder != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, name);
        FILE *file = fopen(path, "wb");
        TG_CHECK(file != NULL && fwrite(fresh->data, 1, fresh->len, file) == fresh->len);
        TG_CHECK(fclose(file) == 0);
    } else {
        const char *source = getenv("TIDEGATE_SOURCE");
        snprintf(path, sizeof path, "%s/tests/golden/%s", source == NULL ? "." : source, name);
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("%s is missing (set TIDEGATE_SOURCE to the top of the tree)", path);
    size_t len = fread(bytes, 1, FILE_MAX, file);
    fclose(file);
    return len;
}

static void check_file(const char *name, const struct golden_column *columns, uint32_t count)
{
    struct vector vectors[COLUMNS_MOST];
    make_columns(columns, count, vectors);
    struct buf fresh = BUF_INIT;
    encode_columns(vectors, count, &fresh);
    static uint8_t bytes[FILE_MAX];
    size_t len = golden_file(name, &fresh, bytes);

    struct block block;
    struct tg_errmsg msg = {0};
    assert_int_equal(block_open(&block, bytes, len, &msg), 0);
    assert_int_equal(block.rows, ROWS);
    assert_int_equal(block.column_count, count);
    struct block_decoder *decoder = block_decoder_open();
    for (uint32_t i = 0; i < count; i++) {
        struct block_column stored;
        block_column_at(&block, i, &stored);
        assert_int_equal(stored.id, i + 1);
        assert_int_equal(stored.type.kind, columns[i].type.kind);
        assert_int_equal(stored.type.precision, columns[i].type.precision);
        assert_int_equal(stored.type.scale, columns[i].type.scale);
        assert_int_equal(stored.type.length, columns[i].type.length);
        assert_int_equal(stored.encoding, columns[i].encoding);
        assert_int_equal(stored.flags, columns[i].flags);
        struct vector back;
        vector_init(&back, columns[i].type);
        assert_int_equal(block_decode_column(decoder, &block, i, &back, &msg), 0);
        assert_int_equal(back.rows, ROWS);
        for (uint32_t row = 0; row < ROWS; row++) {
            assert_int_equal(vector_is_null(&back, row), vector_is_null(&vectors[i], row));
            if (back.width > 0)
                assert_memory_equal(vector_fixed(&back, row), vector_fixed(&vectors[i], row),
                                    back.width);
            else
                assert_true(slice_equal(vector_bytes(&back, row), vector_bytes(&vectors[i], row)));
        }
        vector_close(&back);
        vector_close(&vectors[i]);
    }
    block_decoder_close(decoder);
    buf_close(&fresh);
}

static void all_types_of_version_1_still_open(void **state)
{
    (void)state;
    check_file("block-v1-types.bin", types_file, sizeof types_file / sizeof types_file[0]);
}

static void all_encodings_of_version_1_still_open(void **state)
{
    (void)state;
    check_file("block-v1-encodings.bin", encodings_file,
               sizeof encodings_file / sizeof encodings_file[0]);
}

static void descriptions_of_version_1_still_open(void **state)
{
    (void)state;
    struct rowset_meta meta;
    rowset_meta_init(&meta);
    meta.tablet = 1001;
    meta.rowset = 70000;
    meta.table = 12;
    meta.txn = 5000000000;
    meta.schema_id = 3;
    meta.load_no = 2;
    meta.rows = 8192 + 100;
    meta.delete_rows = 17;
    meta.bytes = 170000 + 2500;
    for (uint8_t i = 0; i < sizeof meta.digest.bytes; i++)
        meta.digest.bytes[i] = (uint8_t)(i * 17);
    const uint8_t keys[] = {1, 0x80, 0, 0, 1, 1, 0x80, 0, 0, 9};
    TG_CHECK(rowset_meta_add_block(&meta, 0, 170000, 8192, 0, slice_of(keys, 5),
                                   slice_of(keys + 5, 5)) == 0);
    TG_CHECK(rowset_meta_add_block(&meta, 170000, 2500, 100, 1, slice_of(keys, 4),
                                   slice_of(keys, 5)) == 0);
    struct buf fresh = BUF_INIT;
    rowset_meta_encode(&meta, &fresh);
    static uint8_t bytes[FILE_MAX];
    size_t len = golden_file("rowset-meta-v1.bin", &fresh, bytes);

    struct cursor cursor;
    cursor_init(&cursor, bytes, len);
    struct rowset_meta back;
    rowset_meta_init(&back);
    assert_int_equal(rowset_meta_decode(&cursor, &back), 0);
    assert_int_equal(cursor_finish(&cursor), 0);
    /* One version has one form, so the same description must give the same bytes. */
    assert_int_equal(len, fresh.len);
    assert_memory_equal(bytes, fresh.data, len);
    assert_int_equal(back.txn, meta.txn);
    assert_int_equal(back.delete_rows, 17);
    assert_int_equal(back.block_count, 2);
    assert_int_equal(back.blocks[1].offset, 170000);
    assert_true(slice_equal(back.blocks[0].last_key, slice_of(keys + 5, 5)));
    rowset_meta_close(&back);
    rowset_meta_close(&meta);
    buf_close(&fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types_of_version_1_still_open),
        cmocka_unit_test(all_encodings_of_version_1_still_open),
        cmocka_unit_test(descriptions_of_version_1_still_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
