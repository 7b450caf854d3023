/* SPDX-License-Identifier: Apache-2.0 */
/* Base64: the RFC's vectors, and only one spelling for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/base64.h"
#include "common/base/err.h"

static void the_vectors_of_the_rfc_hold_both_ways(void **state)
{
    (void)state;
    const char *const pairs[][2] = {{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {"\xFF\xEF\xBE", "/+++"},
                                    {"admin:secret", "YWRtaW46c2VjcmV0"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct buf out = BUF_INIT;
        base64_encode(slice_str(pairs[i][0]), &out);
        assert_string_equal(buf_cstr(&out), pairs[i][1]);
        buf_clear(&out);
        assert_int_equal(base64_decode(slice_str(pairs[i][1]), &out), 0);
        assert_string_equal(buf_cstr(&out), pairs[i][0]);
        buf_close(&out);
    }
}

static void other_spellings_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {
        "Z",    "Zg",     "Zg=",  "Zg===",    "====", "=g==",    "Z===", "Zh==",
        "Zm9=", "Zm9v\n", "Zm 9", "Zg==Zg==", "Zm-_", "Zm9\xFF", "Zg=a", "Zm8=Zm8="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct buf out = BUF_INIT;
        buf_append_str(&out, "kept");
        if (base64_decode(slice_str(bad[i]), &out) != TG_INVALID)
            fail_msg("'%s' was taken", bad[i]);
        assert_string_equal(buf_cstr(&out), "kept");
        buf_close(&out);
    }
    struct buf out = BUF_INIT;
    assert_int_equal(base64_decode(slice_of("Zm9\0", 4), &out), TG_INVALID);
    buf_close(&out);
}

static void all_bytes_come_back(void **state)
{
    (void)state;
    uint8_t bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t len = 0; len <= sizeof bytes; len++) {
        struct buf text = BUF_INIT;
        struct buf out = BUF_INIT;
        base64_encode(slice_of(bytes, len), &text);
        assert_int_equal(base64_decode(slice_of(text.data, text.len), &out), 0);
        assert_true(slice_equal(slice_of(out.data, out.len), slice_of(bytes, len)));
        buf_close(&text);
        buf_close(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_rfc_hold_both_ways),
        cmocka_unit_test(other_spellings_are_refused),
        cmocka_unit_test(all_bytes_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
