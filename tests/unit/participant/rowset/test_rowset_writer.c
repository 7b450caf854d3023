/* SPDX-License-Identifier: Apache-2.0 */
/* What the writer makes opens again: blocks, description, digest. */
#include "participant/rowset/rowset_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/row_key.h"

struct fixture {
    struct schema schema;
    struct vector columns[3]; /* k INT, v STRING, the delete sign */
    const struct vector *pointers[3];
    struct block_encoder *encoder;
    struct rowset_writer writer;
    struct buf content;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct schema_column k = {.name = "k", .type = {.kind = TYPE_INT}, .is_key = true};
    struct schema_column v = {.name = "v", .type = {.kind = TYPE_STRING}, .nullable = true};

    schema_init(&f->schema);
    f->schema.key_model = KEY_UNIQUE;
    assert_int_equal(schema_add_column(&f->schema, &k, NULL), 0);
    assert_int_equal(schema_add_column(&f->schema, &v, NULL), 0);
    for (uint32_t i = 0; i < 3; i++) {
        vector_init(&f->columns[i], schema_stored_type(&f->schema, i));
        f->pointers[i] = &f->columns[i];
    }
    f->encoder = block_encoder_open();
    *state = f;
    return rowset_writer_init(&f->writer, &f->schema);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    rowset_writer_close(&f->writer);
    block_encoder_close(f->encoder);
    buf_close(&f->content);
    for (uint32_t i = 0; i < 3; i++)
        vector_close(&f->columns[i]);
    schema_close(&f->schema);
    free(f);
    return 0;
}

static void fill(struct fixture *f, int32_t from, int32_t count, size_t bytes)
{
    char *text = calloc(1, bytes + 1);
    memset(text, 'x', bytes);
    for (uint32_t i = 0; i < 3; i++)
        vector_clear(&f->columns[i]);
    for (int32_t k = from; k < from + count; k++) {
        int8_t sign = k % 10 == 0;
        assert_int_equal(vector_append_fixed(&f->columns[0], &k), 0);
        assert_int_equal(vector_append_bytes(&f->columns[1], text, bytes), 0);
        assert_int_equal(vector_append_fixed(&f->columns[2], &sign), 0);
    }
    free(text);
}

/* Opens every block where the description says it is; returns the sum of all keys. */
static int64_t read_back(struct fixture *f)
{
    struct rowset_meta *meta = &f->writer.meta;
    struct block_decoder *decoder = block_decoder_open();
    struct tg_errmsg msg;
    struct vector keys;
    int64_t sum = 0;
    uint64_t rows = 0;

    vector_init(&keys, f->columns[0].type);
    for (uint32_t i = 0; i < meta->block_count; i++) {
        const struct rowset_block_ref *ref = &meta->blocks[i];
        struct block block;
        struct buf first = BUF_INIT;
        const struct vector *pointer = &keys;
        assert_int_equal(block_open(&block, f->content.data + ref->offset, ref->len, &msg), 0);
        assert_int_equal(block.rows, ref->rows);
        assert_int_equal(block.column_count, 3);
        assert_true(block_find(&block, COLUMN_ID_DELETE_SIGN) >= 0);
        vector_clear(&keys);
        assert_int_equal(block_decode_column(decoder, &block, 0, &keys, &msg), 0);
        for (uint32_t r = 0; r < keys.rows; r++) {
            int32_t k;
            memcpy(&k, vector_fixed(&keys, r), sizeof k);
            sum += k;
        }
        row_key_encode(&pointer, 1, 0, &first);
        assert_true(slice_equal(ref->first_key, slice_of(first.data, first.len)));
        buf_clear(&first);
        row_key_encode(&pointer, 1, keys.rows - 1, &first);
        assert_true(slice_equal(ref->last_key, slice_of(first.data, first.len)));
        buf_close(&first);
        rows += block.rows;
    }
    assert_int_equal(rows, meta->rows);
    vector_close(&keys);
    block_decoder_close(decoder);
    return sum;
}

static void test_segments_become_blocks_that_open_again(void **state)
{
    struct fixture *f = *state;
    struct digest digest;
    struct buf encoded = BUF_INIT;
    struct cursor cursor;
    struct rowset_meta copy;

    fill(f, 0, 20000, 5);
    assert_int_equal(rowset_writer_segment(&f->writer, f->encoder, f->pointers, 20000, &f->content),
                     0);
    fill(f, 10000, 100, 5);
    assert_int_equal(rowset_writer_segment(&f->writer, f->encoder, f->pointers, 100, &f->content),
                     0);
    rowset_writer_finish(&f->writer);
    struct rowset_meta *meta = &f->writer.meta;
    assert_int_equal(meta->block_count, 4); /* 8192 + 8192 + 3616, 100 */
    assert_int_equal(meta->blocks[2].segment, 0);
    assert_int_equal(meta->blocks[3].segment, 1);
    assert_int_equal(meta->rows, 20100);
    assert_int_equal(meta->delete_rows, 2010);
    assert_int_equal(meta->bytes, f->content.len);
    digest = digest_of(f->content.data, f->content.len);
    assert_true(digest_equal(&digest, &meta->digest));
    assert_int_equal(read_back(f), INT64_C(20000) * 19999 / 2 + 100 * 10000 + 99 * 100 / 2);

    rowset_meta_encode(meta, &encoded);
    rowset_meta_init(&copy);
    cursor_init(&cursor, encoded.data, encoded.len);
    assert_int_equal(rowset_meta_decode(&cursor, &copy), 0);
    rowset_meta_close(&copy);
    buf_close(&encoded);
}

static void test_long_rows_make_blocks_of_fewer_rows(void **state)
{
    struct fixture *f = *state;

    fill(f, 0, 50, 1000000);
    assert_int_equal(rowset_writer_segment(&f->writer, f->encoder, f->pointers, 50, &f->content),
                     0);
    rowset_writer_finish(&f->writer);
    assert_true(f->writer.meta.block_count >= 6);
    assert_int_equal(read_back(f), 50 * 49 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_segments_become_blocks_that_open_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_long_rows_make_blocks_of_fewer_rows, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
