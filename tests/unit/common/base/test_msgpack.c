/* SPDX-License-Identifier: Apache-2.0 */
/* Msgpack: the bytes are fixed, every value comes back, and no input leads outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/base/random.h"

static void bytes_are(const struct buf *buf, const char *want, size_t len)
{
    assert_int_equal(buf->err, 0);
    assert_int_equal(buf->len, len);
    assert_memory_equal(buf->data, want, len);
}

static void a_message_has_exactly_these_bytes(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    mp_array(&buf, 9);
    mp_uint(&buf, 1);
    mp_uint(&buf, 300);
    mp_int(&buf, -1);
    mp_bool(&buf, true);
    mp_bool(&buf, false);
    mp_nil(&buf);
    mp_str(&buf, "abc");
    mp_bin(&buf, "\x00\xFF", 2);
    mp_double(&buf, 1.5);
    static const char want[] = "\x99\x01\xCD\x01\x2C\xFF\xC3\xC2\xC0\xA3"
                               "abc\xC4\x02\x00\xFF\xCB\x3F\xF8\x00\x00\x00\x00\x00\x00";
    bytes_are(&buf, want, sizeof want - 1);
    buf_close(&buf);
}

static void integers_take_the_shortest_form(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *bytes;
        size_t len;
    } cases[] = {
        {0, "\x00", 1},
        {127, "\x7F", 1},
        {128, "\xCC\x80", 2},
        {255, "\xCC\xFF", 2},
        {256, "\xCD\x01\x00", 3},
        {65536, "\xCE\x00\x01\x00\x00", 5},
        {4294967296, "\xCF\x00\x00\x00\x01\x00\x00\x00\x00", 9},
        {-32, "\xE0", 1},
        {-33, "\xD0\xDF", 2},
        {-129, "\xD1\xFF\x7F", 3},
        {-32769, "\xD2\xFF\xFF\x7F\xFF", 5},
        {INT64_MIN, "\xD3\x80\x00\x00\x00\x00\x00\x00\x00", 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf buf = BUF_INIT;
        mp_int(&buf, cases[i].value);
        bytes_are(&buf, cases[i].bytes, cases[i].len);
        struct cursor cursor;
        cursor_init(&cursor, buf.data, buf.len);
        assert_true(mp_read_int(&cursor) == cases[i].value);
        assert_int_equal(cursor_finish(&cursor), 0);
        cursor_init(&cursor, buf.data, buf.len);
        uint64_t value = mp_read_uint(&cursor);
        assert_int_equal(cursor_finish(&cursor), cases[i].value < 0 ? TG_CORRUPT : 0);
        assert_true(value == (cases[i].value < 0 ? 0 : (uint64_t)cases[i].value));
        buf_close(&buf);
    }
}

static void the_largest_unsigned_number_comes_back_and_is_no_signed_one(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    mp_uint(&buf, UINT64_MAX);
    struct cursor cursor;
    cursor_init(&cursor, buf.data, buf.len);
    assert_true(mp_read_uint(&cursor) == UINT64_MAX);
    assert_int_equal(cursor_finish(&cursor), 0);
    cursor_init(&cursor, buf.data, buf.len);
    assert_int_equal(mp_read_int(&cursor), 0);
    assert_int_equal(cursor.err, TG_CORRUPT);
    cursor_init(&cursor, buf.data, buf.len);
    assert_int_equal(mp_read_uint_max(&cursor, UINT64_MAX - 1), 0);
    assert_int_equal(cursor.err, TG_CORRUPT);
    buf_close(&buf);
}

static void texts_and_bytes_of_every_length_form_come_back(void **state)
{
    (void)state;
    static char text[70001];
    memset(text, 't', sizeof text - 1);
    const size_t lengths[] = {0, 31, 32, 255, 256, 65535, 65536, 70000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct buf buf = BUF_INIT;
        mp_str_slice(&buf, slice_of(text, lengths[i]));
        mp_bin(&buf, text, lengths[i]);
        struct cursor cursor;
        cursor_init(&cursor, buf.data, buf.len);
        assert_int_equal(mp_read_str(&cursor, lengths[i]).len, lengths[i]);
        assert_int_equal(mp_read_bin(&cursor, lengths[i]).len, lengths[i]);
        assert_int_equal(cursor_finish(&cursor), 0);
        if (lengths[i] > 0) {
            cursor_init(&cursor, buf.data, buf.len);
            assert_int_equal(mp_read_str(&cursor, lengths[i] - 1).len, 0);
            assert_int_equal(cursor.err, TG_CORRUPT);
        }
        buf_close(&buf);
    }
}

static void other_values_come_back(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    mp_array(&buf, 70000);
    mp_bool(&buf, true);
    mp_nil(&buf);
    mp_double(&buf, -0.1);
    mp_str(&buf, NULL);
    struct cursor cursor;
    cursor_init(&cursor, buf.data, buf.len);
    /* 70,000 elements cannot be in so few bytes. */
    assert_int_equal(mp_read_array(&cursor, UINT32_MAX), 0);
    assert_int_equal(cursor.err, TG_CORRUPT);
    cursor_init(&cursor, buf.data + 5, buf.len - 5);
    assert_false(mp_read_nil(&cursor));
    assert_true(mp_read_bool(&cursor));
    assert_true(mp_read_nil(&cursor));
    assert_true(mp_read_double(&cursor) == -0.1);
    char text[4] = "old";
    mp_read_cstr(&cursor, text, sizeof text);
    assert_string_equal(text, "");
    assert_false(mp_read_nil(&cursor));
    assert_int_equal(cursor_finish(&cursor), 0);
    buf_close(&buf);
}

static void an_array_must_have_the_expected_length(void **state)
{
    (void)state;
    struct cursor cursor;
    cursor_init(&cursor, "\x93\x01\x02\x03", 4);
    mp_expect_array(&cursor, 3);
    assert_int_equal(cursor.err, 0);
    cursor_init(&cursor, "\x93\x01\x02\x03", 4);
    mp_expect_array(&cursor, 4);
    assert_int_equal(cursor.err, TG_CORRUPT);
    cursor_init(&cursor, "\x93\x01\x02\x03", 4);
    assert_int_equal(mp_read_array(&cursor, 2), 0);
    assert_int_equal(cursor.err, TG_CORRUPT);
}

static void a_short_message_cannot_ask_for_gigabytes(void **state)
{
    (void)state;
    static const char *const liars[] = {"\xDD\xFF\xFF\xFF\xFF", "\xDF\xFF\xFF\xFF\xFF",
                                        "\xC6\xFF\xFF\xFF\xFF", "\xDB\xFF\xFF\xFF\xFF",
                                        "\xC9\xFF\xFF\xFF\xFF"};
    for (size_t i = 0; i < sizeof liars / sizeof liars[0]; i++) {
        struct cursor cursor;
        cursor_init(&cursor, liars[i], 5);
        mp_skip(&cursor);
        assert_int_equal(cursor.err, TG_CORRUPT);
        cursor_init(&cursor, liars[i], 5);
        mp_read_array(&cursor, UINT32_MAX);
        assert_int_equal(cursor.err, TG_CORRUPT);
        cursor_init(&cursor, liars[i], 5);
        mp_read_bin(&cursor, SIZE_MAX);
        assert_int_equal(cursor.err, TG_CORRUPT);
        cursor_init(&cursor, liars[i], 5);
        mp_read_str(&cursor, SIZE_MAX);
        assert_int_equal(cursor.err, TG_CORRUPT);
    }
}

static void a_c_string_fits_and_holds_no_zero(void **state)
{
    (void)state;
    char text[4];
    struct cursor cursor;
    cursor_init(&cursor, "\xA3xyz", 4);
    mp_read_cstr(&cursor, text, sizeof text);
    assert_string_equal(text, "xyz");
    cursor_init(&cursor, "\xA4xyzw", 5);
    mp_read_cstr(&cursor, text, sizeof text);
    assert_int_equal(cursor.err, TG_CORRUPT);
    assert_string_equal(text, "");
    cursor_init(&cursor, "\xA3x\0z", 4);
    mp_read_cstr(&cursor, text, sizeof text);
    assert_int_equal(cursor.err, TG_CORRUPT);
    assert_string_equal(text, "");
}

static void skip_steps_over_one_item_of_every_kind(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } items[] = {
        {"\x05", 1},
        {"\xE0", 1},
        {"\xC0", 1},
        {"\xC2", 1},
        {"\xA2zz", 3},
        {"\xD9\x02zz", 4},
        {"\xDA\x00\x01z", 4},
        {"\xC4\x01z", 3},
        {"\xC5\x00\x01z", 4},
        {"\xCA\x00\x00\x00\x00", 5},
        {"\xCB\x00\x00\x00\x00\x00\x00\x00\x00", 9},
        {"\xCC\x01", 2},
        {"\xCD\x01\x01", 3},
        {"\xD0\x01", 2},
        {"\xD3\x00\x00\x00\x00\x00\x00\x00\x00", 9},
        {"\xD4\x01z", 3},
        {"\xD8\x01zzzzzzzzzzzzzzzz", 18},
        {"\xC7\x02\x01zz", 5},
        {"\x90", 1},
        {"\x80", 1},
        {"\x92\x01\x91\xA1z", 5},
        {"\x82\x01\x02\x03\x93\x01\x02\x03", 8},
        {"\xDC\x00\x02\x01\x02", 5},
        {"\xDE\x00\x01\x01\x02", 5},
    };
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        struct buf buf = BUF_INIT;
        buf_append(&buf, items[i].bytes, items[i].len);
        mp_uint(&buf, 42);
        struct cursor cursor;
        cursor_init(&cursor, buf.data, buf.len);
        mp_skip(&cursor);
        assert_int_equal(mp_read_uint(&cursor), 42);
        assert_int_equal(cursor_finish(&cursor), 0);
        /* Every cut of it is noticed. */
        for (size_t cut = 0; cut < items[i].len; cut++) {
            cursor_init(&cursor, items[i].bytes, cut);
            mp_skip(&cursor);
            assert_int_equal(cursor.err, TG_CORRUPT);
        }
        buf_close(&buf);
    }
    struct cursor cursor;
    cursor_init(&cursor, "\xC1", 1);
    mp_skip(&cursor);
    assert_int_equal(cursor.err, TG_CORRUPT);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    uint8_t bytes[MP_DEPTH_MAX + 2];
    struct cursor cursor;
    memset(bytes, 0x91, sizeof bytes);
    bytes[MP_DEPTH_MAX] = 0x01;
    cursor_init(&cursor, bytes, MP_DEPTH_MAX + 1);
    mp_skip(&cursor);
    assert_int_equal(cursor_finish(&cursor), 0);
    bytes[MP_DEPTH_MAX] = 0x91;
    bytes[MP_DEPTH_MAX + 1] = 0x01;
    cursor_init(&cursor, bytes, sizeof bytes);
    mp_skip(&cursor);
    assert_int_equal(cursor.err, TG_CORRUPT);
}

/* Every reader on every kind of damage: the address sanitizer is the judge. */
static void random_bytes_never_lead_outside(void **state)
{
    (void)state;
    struct random_seeded seeded;
    random_seeded_init(&seeded, 20260131);
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[24];
        size_t len = (size_t)random_below(&seeded.source, sizeof bytes + 1);
        random_fill(&seeded.source, bytes, len);
        char text[8];
        for (int reader = 0; reader < 9; reader++) {
            struct cursor cursor;
            cursor_init(&cursor, bytes, len);
            while (cursor.err == 0 && cursor_left(&cursor) > 0) {
                size_t before = cursor.at;
                switch (reader) {
                case 0:
                    assert_true(mp_read_array(&cursor, 100) <= 100);
                    break;
                case 1:
                    mp_read_uint(&cursor);
                    break;
                case 2:
                    mp_read_int(&cursor);
                    break;
                case 3:
                    mp_read_bool(&cursor);
                    break;
                case 4:
                    mp_read_double(&cursor);
                    break;
                case 5:
                    assert_true(mp_read_str(&cursor, 10).len <= 10);
                    break;
                case 6:
                    assert_true(mp_read_bin(&cursor, 10).len <= 10);
                    break;
                case 7:
                    mp_read_cstr(&cursor, text, sizeof text);
                    assert_true(strlen(text) < sizeof text);
                    break;
                default:
                    mp_skip(&cursor);
                    break;
                }
                assert_true(cursor.at <= len);
                assert_true(cursor.err != 0 || cursor.at > before);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_has_exactly_these_bytes),
        cmocka_unit_test(integers_take_the_shortest_form),
        cmocka_unit_test(the_largest_unsigned_number_comes_back_and_is_no_signed_one),
        cmocka_unit_test(texts_and_bytes_of_every_length_form_come_back),
        cmocka_unit_test(other_values_come_back),
        cmocka_unit_test(an_array_must_have_the_expected_length),
        cmocka_unit_test(a_short_message_cannot_ask_for_gigabytes),
        cmocka_unit_test(a_c_string_fits_and_holds_no_zero),
        cmocka_unit_test(skip_steps_over_one_item_of_every_kind),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(random_bytes_never_lead_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
