/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a rowset: its blocks, and its bytes. */
#include "common/model/rowset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/model/rowset_block.h"

/* `blocks` blocks of 100 + i bytes and 10 + i rows, four to a segment. */
static void fill(struct rowset_meta *meta, uint32_t blocks)
{
    rowset_meta_init(meta);
    meta->tablet = 11;
    meta->rowset = UINT64_MAX;
    meta->table = 12;
    meta->txn = 13;
    meta->schema_id = 14;
    meta->load_no = 15;
    meta->digest = digest_of("content", 7);
    for (uint32_t i = 0; i < blocks; i++) {
        char first[32];
        char last[32];
        snprintf(first, sizeof first, "key %08u", i);
        snprintf(last, sizeof last, "key %08u, last", i);
        assert_int_equal(rowset_meta_add_block(meta, meta->bytes, 100 + i, 10 + i, i / 4,
                                               slice_str(first), slice_str(last)),
                         0);
        meta->bytes += 100 + i;
        meta->rows += 10 + i;
    }
    meta->delete_rows = meta->rows / 2;
}

static void assert_meta_equal(const struct rowset_meta *a, const struct rowset_meta *b)
{
    assert_int_equal(a->tablet, b->tablet);
    assert_int_equal(a->rowset, b->rowset);
    assert_int_equal(a->table, b->table);
    assert_int_equal(a->txn, b->txn);
    assert_int_equal(a->schema_id, b->schema_id);
    assert_int_equal(a->load_no, b->load_no);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->delete_rows, b->delete_rows);
    assert_int_equal(a->bytes, b->bytes);
    assert_true(digest_equal(&a->digest, &b->digest));
    assert_int_equal(a->block_count, b->block_count);
    for (uint32_t i = 0; i < a->block_count; i++) {
        const struct rowset_block_ref *left = &a->blocks[i];
        const struct rowset_block_ref *right = &b->blocks[i];
        assert_int_equal(left->offset, right->offset);
        assert_int_equal(left->len, right->len);
        assert_int_equal(left->rows, right->rows);
        assert_int_equal(left->segment, right->segment);
        assert_true(slice_equal(left->first_key, right->first_key));
        assert_true(slice_equal(left->last_key, right->last_key));
    }
}

static void descriptions_of_any_size_come_back(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 9, 5000};
    struct rowset_meta back;
    rowset_meta_init(&back);
    for (int i = 0; i < 5; i++) {
        struct rowset_meta meta;
        struct buf out = BUF_INIT;
        fill(&meta, counts[i]);
        rowset_meta_encode(&meta, &out);
        assert_int_equal(out.err, 0);
        struct cursor cursor;
        cursor_init(&cursor, out.data, out.len);
        assert_int_equal(rowset_meta_decode(&cursor, &back), 0);
        assert_int_equal(cursor_finish(&cursor), 0);
        assert_meta_equal(&meta, &back);
        /* Some 40 bytes a block: two keys of 12 and 18 bytes and three small numbers. */
        assert_true(out.len < 100 + (size_t)counts[i] * 48);
        buf_close(&out);
        rowset_meta_close(&meta);
    }
    rowset_meta_close(&back);
}

static void long_keys_are_cut(void **state)
{
    (void)state;
    char key[200];
    memset(key, 'k', sizeof key);
    struct rowset_meta meta;
    rowset_meta_init(&meta);
    assert_int_equal(
        rowset_meta_add_block(&meta, 0, 5, 5, 0, slice_of(NULL, 0), slice_of(key, sizeof key)), 0);
    assert_int_equal(meta.blocks[0].first_key.len, 0);
    assert_int_equal(meta.blocks[0].last_key.len, ROWSET_REF_KEY_MAX);
    assert_memory_equal(meta.blocks[0].last_key.data, key, ROWSET_REF_KEY_MAX);
    rowset_meta_close(&meta);
}

static void blocks_out_of_order_are_refused(void **state)
{
    (void)state;
    struct rowset_meta meta;
    rowset_meta_init(&meta);
    struct slice none = slice_of(NULL, 0);
    assert_int_equal(rowset_meta_add_block(&meta, 1, 5, 5, 0, none, none), TG_INVALID);
    assert_int_equal(rowset_meta_add_block(&meta, 0, 5, 5, 2, none, none), 0);
    assert_int_equal(rowset_meta_add_block(&meta, 4, 5, 5, 2, none, none), TG_INVALID);
    assert_int_equal(rowset_meta_add_block(&meta, 5, 5, 5, 1, none, none), TG_INVALID);
    assert_int_equal(rowset_meta_add_block(&meta, 5, 0, 5, 2, none, none), TG_INVALID);
    assert_int_equal(rowset_meta_add_block(&meta, 5, 5, 0, 2, none, none), TG_INVALID);
    assert_int_equal(rowset_meta_add_block(&meta, 5, 5, BLOCK_ROWS_MAX + 1, 2, none, none),
                     TG_INVALID);
    assert_int_equal(rowset_meta_add_block(&meta, 5, 5, 5, ROWSET_SEGMENTS_MAX, none, none),
                     TG_LIMIT);
    assert_int_equal(meta.block_count, 1);
    rowset_meta_close(&meta);
}

static int decode(const struct buf *bytes, size_t len)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    memcpy(exact, bytes->data, len);
    struct cursor cursor;
    cursor_init(&cursor, exact, len);
    struct rowset_meta meta;
    rowset_meta_init(&meta);
    int err = rowset_meta_decode(&cursor, &meta);
    if (err != 0)
        assert_int_equal(meta.block_count, 0);
    assert_int_equal(err, cursor.err);
    rowset_meta_close(&meta);
    free(exact);
    return err;
}

static void sums_that_do_not_match_are_corrupt(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    for (int lie = 0; lie < 4; lie++) {
        struct rowset_meta meta;
        fill(&meta, 3);
        meta.rows += lie == 1;
        meta.bytes += lie == 2;
        if (lie == 3)
            meta.delete_rows = meta.rows + 1;
        buf_clear(&out);
        rowset_meta_encode(&meta, &out);
        assert_int_equal(decode(&out, out.len), lie == 0 ? 0 : TG_CORRUPT);
        rowset_meta_close(&meta);
    }
    buf_close(&out);
}

static void damaged_descriptions_are_found(void **state)
{
    (void)state;
    struct rowset_meta meta;
    struct buf out = BUF_INIT;
    fill(&meta, 5);
    rowset_meta_encode(&meta, &out);
    for (size_t cut = 0; cut < out.len; cut++)
        assert_int_equal(decode(&out, cut), TG_CORRUPT);
    for (size_t at = 0; at < out.len; at++) { /* any result but a crash: keys may be anything */
        for (int value = 0; value < 256; value += 5) {
            uint8_t truth = out.data[at];
            out.data[at] = (uint8_t)value;
            (void)decode(&out, out.len);
            out.data[at] = truth;
        }
    }
    out.data[1] = 2; /* the version */
    assert_int_equal(decode(&out, out.len), TG_UNSUPPORTED);
    rowset_meta_close(&meta);

    /* Four billion blocks in ten bytes. */
    buf_clear(&out);
    mp_array(&out, 12);
    for (int i = 0; i < 10; i++)
        mp_uint(&out, i == 0 ? 1 : 0);
    uint8_t digest[16] = {0};
    mp_bin(&out, digest, sizeof digest);
    mp_array(&out, UINT32_MAX);
    assert_int_equal(decode(&out, out.len), TG_CORRUPT);
    buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptions_of_any_size_come_back),
        cmocka_unit_test(long_keys_are_cut),
        cmocka_unit_test(blocks_out_of_order_are_refused),
        cmocka_unit_test(sums_that_do_not_match_are_corrupt),
        cmocka_unit_test(damaged_descriptions_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
