/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers grow and stay in error; cursors never leave their memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/endian.h"
#include "common/base/err.h"

static void appended_bytes_come_out_in_order(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_append(&buf, "ab", 2);
    buf_append_str(&buf, "cd");
    buf_append_u8(&buf, 'e');
    buf_append(&buf, NULL, 0);
    assert_int_equal(buf.len, 5);
    assert_memory_equal(buf.data, "abcde", 5);
    assert_string_equal(buf_cstr(&buf), "abcde");
    assert_int_equal(buf.len, 5);
    buf_close(&buf);
}

static void integers_have_the_byte_order_that_they_are_named_after(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_append_u16le(&buf, 0x0102);
    buf_append_u32le(&buf, 0x01020304);
    buf_append_u64le(&buf, 0x0102030405060708);
    buf_append_u32be(&buf, 0x01020304);
    buf_append_u64be(&buf, 0x0102030405060708);
    const uint8_t want[] = {2, 1, 4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2,
                            1, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(buf.len, sizeof want);
    assert_memory_equal(buf.data, want, sizeof want);

    struct cursor cursor;
    cursor_init(&cursor, buf.data, buf.len);
    assert_int_equal(cursor_u16le(&cursor), 0x0102);
    assert_int_equal(cursor_u32le(&cursor), 0x01020304);
    assert_int_equal(cursor_u64le(&cursor), 0x0102030405060708);
    assert_int_equal(cursor_u32be(&cursor), 0x01020304);
    assert_int_equal(cursor_u64be(&cursor), 0x0102030405060708);
    assert_int_equal(cursor_finish(&cursor), 0);
    buf_close(&buf);
}

static void loads_and_stores_work_at_odd_addresses(void **state)
{
    (void)state;
    uint8_t bytes[16] = {0};
    store_u64be(bytes + 3, 0x0102030405060708);
    assert_int_equal(bytes[3], 1);
    assert_int_equal(load_u64be(bytes + 3), 0x0102030405060708);
    assert_int_equal(load_u64le(bytes + 3), 0x0807060504030201);
    store_u16be(bytes + 1, 0xABCD);
    assert_int_equal(bytes[1], 0xAB);
    assert_int_equal(load_u16le(bytes + 1), 0xCDAB);
    store_u32le(bytes + 5, 0x11223344);
    assert_int_equal(load_u32be(bytes + 5), 0x44332211);
}

static void printf_grows_as_far_as_the_text_needs(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'y', sizeof text);
    text[sizeof text - 1] = '\0';
    struct buf buf = BUF_INIT;
    buf_printf(&buf, "<%d>", 5);
    buf_printf(&buf, "%s", text);
    assert_int_equal(buf.len, 3 + 999);
    assert_memory_equal(buf.data, "<5>yyy", 6);
    assert_string_equal(buf_cstr(&buf) + 3, text);
    /* Exactly as many bytes as there is room for, in every size around the first capacity. */
    for (int n = 50; n < 140; n++) {
        buf_close(&buf);
        buf_printf(&buf, "%.*s", n, text);
        assert_int_equal(buf.len, n);
        assert_int_equal(buf.data[n - 1], 'y');
    }
    buf_close(&buf);
}

static void an_empty_buf_gives_an_empty_text(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    assert_string_equal(buf_cstr(&buf), "");
    buf_close(&buf);
    assert_non_null(buf_extend(&buf, 0));
    buf_close(&buf);
    buf_consume(&buf, 0);
    assert_int_equal(buf.len, 0);
}

static void a_buf_that_ran_out_of_memory_stays_in_error_until_cleared(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_append_str(&buf, "kept");
    assert_int_equal(buf_reserve(&buf, SIZE_MAX - 2), TG_NOMEM);
    assert_null(buf_extend(&buf, 1));
    buf_append_str(&buf, "lost");
    buf_printf(&buf, "%d", 1);
    assert_null(buf_cstr(&buf));
    assert_int_equal(buf.len, 4);
    assert_int_equal(buf.err, TG_NOMEM);
    buf_clear(&buf);
    buf_append_str(&buf, "again");
    assert_string_equal(buf_cstr(&buf), "again");
    buf_close(&buf);
}

static void take_and_consume_move_bytes_out(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_append_str(&buf, "headtail");
    buf_consume(&buf, 4);
    assert_string_equal(buf_cstr(&buf), "tail");
    size_t len;
    uint8_t *bytes = buf_take(&buf, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(bytes, "tail", 4);
    assert_int_equal(buf.capacity, 0);
    free(bytes);
}

static void slices_compare_like_memcmp_and_then_by_length(void **state)
{
    (void)state;
    assert_true(slice_equal(slice_str("a"), slice_of("ab", 1)));
    assert_true(slice_equal(slice_of(NULL, 0), slice_str("")));
    assert_false(slice_equal_str(slice_str("a"), "b"));
    assert_true(slice_compare(slice_str("a"), slice_str("ab")) < 0);
    assert_true(slice_compare(slice_str("b"), slice_str("ab")) > 0);
    assert_true(slice_compare(slice_of("\xFF", 1), slice_of("\x01", 1)) > 0);
    assert_int_equal(slice_compare(slice_of(NULL, 0), slice_str("")), 0);
}

static void a_cursor_stops_at_the_first_failure(void **state)
{
    (void)state;
    const uint8_t bytes[] = {1, 2, 3};
    struct cursor cursor;
    cursor_init(&cursor, bytes, sizeof bytes);
    assert_int_equal(cursor_u16le(&cursor), 0x0201);
    assert_int_equal(cursor_left(&cursor), 1);
    assert_int_equal(cursor_u32le(&cursor), 0);
    assert_int_equal(cursor.err, TG_CORRUPT);
    assert_int_equal(cursor_u8(&cursor), 0);
    assert_int_equal(cursor_left(&cursor), 0);
    assert_int_equal(cursor_finish(&cursor), TG_CORRUPT);
}

static void a_cursor_refuses_lengths_that_would_wrap(void **state)
{
    (void)state;
    const uint8_t bytes[] = {1, 2, 3};
    struct cursor cursor;
    cursor_init(&cursor, bytes, sizeof bytes);
    cursor_u8(&cursor);
    struct slice slice = cursor_bytes(&cursor, SIZE_MAX);
    assert_int_equal(slice.len, 0);
    assert_int_equal(cursor.err, TG_CORRUPT);
}

static void a_cursor_with_bytes_left_is_not_finished(void **state)
{
    (void)state;
    struct cursor cursor;
    cursor_init(&cursor, "xy", 2);
    struct slice slice = cursor_bytes(&cursor, 1);
    assert_true(slice_equal_str(slice, "x"));
    assert_int_equal(cursor_finish(&cursor), TG_CORRUPT);
    cursor_u8(&cursor);
    assert_int_equal(cursor_finish(&cursor), 0);
    cursor_fail(&cursor, TG_UNSUPPORTED);
    cursor_fail(&cursor, TG_IO);
    assert_int_equal(cursor_finish(&cursor), TG_UNSUPPORTED);
    cursor_init(&cursor, NULL, 0);
    assert_int_equal(cursor_finish(&cursor), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_bytes_come_out_in_order),
        cmocka_unit_test(integers_have_the_byte_order_that_they_are_named_after),
        cmocka_unit_test(loads_and_stores_work_at_odd_addresses),
        cmocka_unit_test(printf_grows_as_far_as_the_text_needs),
        cmocka_unit_test(an_empty_buf_gives_an_empty_text),
        cmocka_unit_test(a_buf_that_ran_out_of_memory_stays_in_error_until_cleared),
        cmocka_unit_test(take_and_consume_move_bytes_out),
        cmocka_unit_test(slices_compare_like_memcmp_and_then_by_length),
        cmocka_unit_test(a_cursor_stops_at_the_first_failure),
        cmocka_unit_test(a_cursor_refuses_lengths_that_would_wrap),
        cmocka_unit_test(a_cursor_with_bytes_left_is_not_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
