/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs: version bits, text both ways, strictness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/uuid.h"

static void random_bytes_become_a_version_4_text(void **state)
{
    (void)state;
    uint8_t bytes[16];
    memset(bytes, 0xFF, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    char text[UUID_TEXT_SIZE];
    uuid_print(&uuid, text);
    assert_string_equal(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    memset(bytes, 0, sizeof bytes);
    uuid = uuid_v4(bytes);
    uuid_print(&uuid, text);
    assert_string_equal(text, "00000000-0000-4000-8000-000000000000");
}

static void text_comes_back_in_either_case(void **state)
{
    (void)state;
    struct uuid a;
    struct uuid b;
    char text[UUID_TEXT_SIZE];
    assert_int_equal(uuid_parse("01234567-89ab-cdef-0123-456789abcdef", &a), 0);
    assert_int_equal(uuid_parse("01234567-89AB-CDEF-0123-456789ABCDEF", &b), 0);
    assert_true(uuid_equal(&a, &b));
    uuid_print(&b, text);
    assert_string_equal(text, "01234567-89ab-cdef-0123-456789abcdef");
    b.bytes[15] ^= 1;
    assert_false(uuid_equal(&a, &b));
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"",
                               "0",
                               "01234567-89ab-cdef-0123-456789abcde",
                               "01234567-89ab-cdef-0123-456789abcdef0",
                               "01234567-89ab-cdef-0123-456789abcdeg",
                               "0123456789abcdef0123456789abcdef",
                               "0123456-789ab-cdef-0123-456789abcdef",
                               "{01234567-89ab-cdef-0123-456789abcdef",
                               " 01234567-89ab-cdef-0123-456789abcdef",
                               "01234567_89ab_cdef_0123_456789abcdef",
                               "01234567-89ab-cdef-0123-456789abcde\x01"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct uuid uuid = {{7}};
        assert_int_equal(uuid_parse(bad[i], &uuid), TG_INVALID);
        assert_int_equal(uuid.bytes[0], 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_bytes_become_a_version_4_text),
        cmocka_unit_test(text_comes_back_in_either_case),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
