/* SPDX-License-Identifier: Apache-2.0 */
/* Keys sort as their numbers do; values come back; their bytes are pinned. */
#include "participant/store/store_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/err.h"

static void assert_bytes(const struct buf *bytes, const char *expected, size_t len)
{
    assert_int_equal(bytes->err, 0);
    assert_int_equal(bytes->len, len);
    assert_memory_equal(bytes->data, expected, len);
}

/* Every cut and every unknown format is refused. */
#define ASSERT_FRAGILE(decode, bytes, value)                                                    \
    do {                                                                                        \
        for (size_t cut_ = 0; cut_ < (bytes).len; cut_++)                                       \
            assert_int_not_equal(decode(slice_of((bytes).data, cut_), (value)), 0);             \
        (bytes).data[0]++;                                                                      \
        assert_int_equal(decode(slice_of((bytes).data, (bytes).len), (value)), TG_UNSUPPORTED); \
    } while (0)

static void test_keys_are_big_endian_and_sort(void **state)
{
    (void)state;
    struct store_key key;
    struct store_key next;
    uint64_t numbers[3];
    store_key_block(&key, 1, 2, 0x0102030405060708);
    assert_int_equal(key.len, 24);
    assert_memory_equal(key.bytes, "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\1\2\3\4\5\6\7\10", 24);
    assert_int_equal(store_key_parse(store_key_slice(&key), 3, numbers), 0);
    assert_int_equal(numbers[0], 1);
    assert_int_equal(numbers[1], 2);
    assert_true(numbers[2] == 0x0102030405060708);
    assert_int_equal(store_key_parse(store_key_slice(&key), 2, numbers), TG_CORRUPT);
    store_key_rowset(&key, 1, 255);
    store_key_rowset(&next, 1, 256);
    assert_true(slice_compare(store_key_slice(&key), store_key_slice(&next)) < 0);
    store_key_version(&next, 2, 0);
    assert_true(slice_compare(store_key_slice(&key), store_key_slice(&next)) < 0);
    store_key_staged(&key, 9, 8, 7);
    assert_int_equal(store_key_parse(store_key_slice(&key), 3, numbers), 0);
    assert_true(numbers[0] == 9 && numbers[1] == 8 && numbers[2] == 7);
    store_key_tablet(&key, 3);
    assert_int_equal(key.len, 8);
}

static void test_a_tablet_value_is_pinned(void **state)
{
    (void)state;
    struct tablet_value value = {
        .state = TABLET_LIVE, .table = 7, .partition = 1, .schema = 2, .last = 0x1234};
    struct tablet_value again;
    struct buf bytes = BUF_INIT;
    tablet_value_encode(&value, &bytes);
    assert_bytes(&bytes, "\1\1\0\0\2\0\0\0\7\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\x34\x12\0\0\0\0\0\0",
                 32);
    assert_int_equal(tablet_value_decode(slice_of(bytes.data, bytes.len), &again), 0);
    assert_int_equal(again.state, TABLET_LIVE);
    assert_true(again.table == 7 && again.partition == 1 && again.schema == 2);
    assert_int_equal(again.last, 0x1234);
    ASSERT_FRAGILE(tablet_value_decode, bytes, &again);
    buf_close(&bytes);
}

static void test_a_staged_value_is_pinned(void **state)
{
    (void)state;
    struct staged_value value = {
        .state = STAGED_SEALED, .extents = true, .table = 7, .digest = {"0123456789abcde"}};
    struct staged_value again;
    struct buf bytes = BUF_INIT;
    staged_value_encode(&value, &bytes);
    assert_bytes(&bytes,
                 "\1\2\1\0\0\0\0\0\7\0\0\0\0\0\0\0"
                 "0123456789abcde",
                 32);
    assert_int_equal(staged_value_decode(slice_of(bytes.data, bytes.len), &again), 0);
    assert_int_equal(again.state, STAGED_SEALED);
    assert_true(again.extents);
    assert_int_equal(again.table, 7);
    assert_true(digest_equal(&again.digest, &value.digest));
    bytes.data[1] = 4;
    assert_int_equal(staged_value_decode(slice_of(bytes.data, bytes.len), &again), TG_CORRUPT);
    ASSERT_FRAGILE(staged_value_decode, bytes, &again);
    buf_close(&bytes);
}

static void test_a_rowset_value_comes_back_and_is_guarded(void **state)
{
    (void)state;
    struct rowset_value value = {.is_inline = true,
                                 .txn = 5,
                                 .digest = {"0123456789abcde"},
                                 .meta = slice_str("description"),
                                 .content = slice_str("content")};
    struct rowset_value again;
    struct buf bytes = BUF_INIT;
    rowset_value_encode(&value, &bytes);
    assert_int_equal(bytes.len, 40 + 11 + 7);
    assert_int_equal(rowset_value_decode(slice_of(bytes.data, bytes.len), &again), 0);
    assert_true(again.is_inline);
    assert_int_equal(again.txn, 5);
    assert_true(slice_equal(again.meta, value.meta));
    assert_true(slice_equal(again.content, value.content));
    bytes.data[42] ^= 1;
    assert_int_equal(rowset_value_decode(slice_of(bytes.data, bytes.len), &again), TG_CORRUPT);
    assert_int_equal(rowset_value_peek(slice_of(bytes.data, bytes.len), &again), 0);
    buf_clear(&bytes);

    value.is_inline = false;
    rowset_value_encode(&value, &bytes);
    assert_int_equal(bytes.len, 40 + 11);
    assert_int_equal(rowset_value_decode(slice_of(bytes.data, bytes.len), &again), 0);
    assert_false(again.is_inline);
    assert_int_equal(again.content.len, 0);
    ASSERT_FRAGILE(rowset_value_decode, bytes, &again);
    buf_close(&bytes);
}

static void test_a_version_value_is_pinned(void **state)
{
    (void)state;
    struct publish_rowset rowsets[] = {{.rowset = 3, .digest = {"0123456789abcde"}},
                                       {.rowset = 9, .digest = {"fedcba987654321"}}};
    struct version_value value = {
        .replace = true, .prev = 1, .txn = 2, .table = 7, .bound_us = 4, .rowset_count = 2};
    struct version_value again;
    struct buf bytes = BUF_INIT;
    version_value_encode(&value, rowsets, &bytes);
    assert_bytes(&bytes,
                 "\1\1\0\0\2\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
                 "\3\0\0\0\0\0\0\0"
                 "0123456789abcde\0"
                 "\11\0\0\0\0\0\0\0"
                 "fedcba987654321",
                 88);
    assert_int_equal(version_value_decode(slice_of(bytes.data, bytes.len), &again), 0);
    assert_true(again.replace);
    assert_int_equal(again.rowset_count, 2);
    struct publish_rowset rowset;
    version_value_rowset(&again, 1, &rowset);
    assert_int_equal(rowset.rowset, 9);
    assert_true(digest_equal(&rowset.digest, &rowsets[1].digest));
    ASSERT_FRAGILE(version_value_decode, bytes, &again);
    bytes.data[0] = 1;
    memset(bytes.data + 4, 0xff, 4);
    assert_int_equal(version_value_decode(slice_of(bytes.data, bytes.len), &again), TG_CORRUPT);
    buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_big_endian_and_sort),
        cmocka_unit_test(test_a_tablet_value_is_pinned),
        cmocka_unit_test(test_a_staged_value_is_pinned),
        cmocka_unit_test(test_a_rowset_value_comes_back_and_is_guarded),
        cmocka_unit_test(test_a_version_value_is_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
