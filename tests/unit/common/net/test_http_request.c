/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of query parameters and percent escapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/net/http_server.h"

static void test_query_parameters_are_found_and_decoded(void **state)
{
    (void)state;
    struct http_request request = {.query =
                                       "key=a&key=b%20c&where=x+%3D+1&flag&e=&=v&%6Bey=d&bad=%4"};
    char out[16];
    assert_int_equal(http_request_query(&request, "key", 0, out, sizeof out), 0);
    assert_string_equal(out, "a");
    assert_int_equal(http_request_query(&request, "key", 1, out, sizeof out), 0);
    assert_string_equal(out, "b c");
    assert_int_equal(http_request_query(&request, "key", 2, out, sizeof out), 0);
    assert_string_equal(out, "d");
    assert_int_equal(http_request_query(&request, "key", 3, out, sizeof out), TG_NOT_FOUND);
    assert_int_equal(http_request_query(&request, "where", 0, out, sizeof out), 0);
    assert_string_equal(out, "x = 1");
    assert_int_equal(http_request_query(&request, "flag", 0, out, sizeof out), 0);
    assert_string_equal(out, "");
    assert_int_equal(http_request_query(&request, "e", 0, out, sizeof out), 0);
    assert_string_equal(out, "");
    assert_int_equal(http_request_query(&request, "bad", 0, out, sizeof out), TG_INVALID);
    assert_int_equal(http_request_query(&request, "where", 0, out, 5), TG_TOO_LARGE);
    assert_int_equal(http_request_query(&request, "where", 0, out, 6), 0);
    request.query = "";
    assert_int_equal(http_request_query(&request, "key", 0, out, sizeof out), TG_NOT_FOUND);
}

static void test_the_first_parameter_that_nobody_knows_is_named(void **state)
{
    (void)state;
    static const char *const known[] = {"key", "as_of"};
    struct http_request request = {.query = "key=a&as_of=b&&%6Bey=d"};
    char out[8];
    assert_int_equal(http_request_stranger(&request, known, 2, out, sizeof out), TG_NOT_FOUND);
    assert_int_equal(http_request_stranger(&request, known, 1, out, sizeof out), 0);
    assert_string_equal(out, "as_of");
    request.query = "key=a&a_rather_long_name=b&x";
    assert_int_equal(http_request_stranger(&request, known, 2, out, sizeof out), 0);
    assert_string_equal(out, "a_rathe");
    request.query = "%4=1";
    assert_int_equal(http_request_stranger(&request, known, 2, out, sizeof out), 0);
    request.query = "";
    assert_int_equal(http_request_stranger(&request, known, 2, out, sizeof out), TG_NOT_FOUND);
}

static int decode(const char *text, char *out, size_t cap)
{
    return http_decode_segment(slice_str(text), out, cap);
}

static void test_segments_keep_their_plus(void **state)
{
    (void)state;
    char out[8];
    assert_int_equal(decode("a+b", out, sizeof out), 0);
    assert_string_equal(out, "a+b");
    assert_int_equal(decode("%e8%A1%a8", out, sizeof out), 0);
    assert_string_equal(out, "\xe8\xa1\xa8");
    assert_int_equal(decode("%", out, sizeof out), TG_INVALID);
    assert_int_equal(decode("%4", out, sizeof out), TG_INVALID);
    assert_int_equal(decode("%g0", out, sizeof out), TG_INVALID);
    assert_int_equal(decode("%00", out, sizeof out), TG_INVALID);
    assert_int_equal(decode("1234567", out, sizeof out), 0);
    assert_int_equal(decode("12345678", out, sizeof out), TG_TOO_LARGE);
    assert_int_equal(decode("", out, 0), TG_TOO_LARGE);
}

static void test_userinfo_survives_a_round_trip(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    http_encode_userinfo("p@s:s/w%rd#1 \xc3\xa4-._~", &out);
    assert_string_equal(buf_cstr(&out), "p%40s%3As%2Fw%25rd%231%20%C3%A4-._~");
    char back[64];
    assert_int_equal(http_decode_segment(slice_of(out.data, out.len), back, sizeof back), 0);
    assert_string_equal(back, "p@s:s/w%rd#1 \xc3\xa4-._~");
    buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query_parameters_are_found_and_decoded),
        cmocka_unit_test(test_the_first_parameter_that_nobody_knows_is_named),
        cmocka_unit_test(test_segments_keep_their_plus),
        cmocka_unit_test(test_userinfo_survives_a_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
