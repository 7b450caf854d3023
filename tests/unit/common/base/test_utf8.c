/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: every code point, and the malformed forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/utf8.h"

static size_t encode(uint32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (point & 0x3F));
        point >>= 6;
    }
    out[0] = (char)(leads[n] | point);
    return n;
}

static void every_code_point_but_surrogates_is_valid(void **state)
{
    (void)state;
    for (uint32_t point = 0; point < 0x120000; point++) {
        char text[4];
        size_t n = encode(point, text);
        bool good = point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
        if (utf8_char_len(text, n) != (good ? n : 0) || utf8_valid(text, n) != good)
            fail_msg("code point %x", point);
        if (n > 1 && utf8_valid(text, n - 1))
            fail_msg("cut code point %x", point);
    }
}

static void malformed_forms_are_refused_anywhere(void **state)
{
    (void)state;
    const char *const bad[] = {"\x80",
                               "\xBF",
                               "\xC0\xAF",
                               "\xC1\xBF",
                               "\xE0\x9F\xBF",
                               "\xF0\x8F\xBF\xBF",
                               "\xF4\x90\x80\x80",
                               "\xF5\x80\x80\x80",
                               "\xFE",
                               "\xFF",
                               "\xC3(",
                               "\xE2\x82(",
                               "\xF0\x9F\x98("};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (size_t before = 0; before < 20; before++) {
            char text[64];
            memset(text, 'a', sizeof text);
            memcpy(text + before, bad[i], strlen(bad[i]));
            assert_false(utf8_valid(text, before + strlen(bad[i])));
            assert_false(utf8_valid(text, sizeof text));
        }
    }
}

static void characters_are_counted(void **state)
{
    (void)state;
    const char *text = "a\xC3\xA9\xF0\x9F\x98\x80\xFFz";
    assert_int_equal(utf8_count(text, strlen(text)), 5);
    assert_int_equal(utf8_count("", 0), 0);
    assert_true(utf8_valid(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_but_surrogates_is_valid),
        cmocka_unit_test(malformed_forms_are_refused_anywhere),
        cmocka_unit_test(characters_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
