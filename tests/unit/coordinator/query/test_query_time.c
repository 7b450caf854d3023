/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds as people write them. */
#include "coordinator/query/query_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/err.h"
#include "common/base/time_text.h"

static void is(const char *text, uint64_t expected)
{
    uint64_t us = 0;

    assert_int_equal(query_time_parse(text, &us), 0);
    assert_int_equal(us, expected);
}

static void is_none(const char *text)
{
    uint64_t us;

    assert_int_equal(query_time_parse(text, &us), TG_INVALID);
}

static void test_both_forms_are_read(void **state)
{
    (void)state;
    is("0", 0);
    is("1769860800000001", 1769860800000001);
    is("2026-01-31T12:00:00Z", 1769860800000000);
    is("2026-01-31t12:00:00.5z", 1769860800500000);
    is("2026-01-31T14:00:00.000001+02:00", 1769860800000001);
    is("2026-01-31T14:00:00 02:00", 1769860800000000); /* a '+' that became a blank */
    is("2026-01-31T06:30:00-05:30", 1769860800000000);
    is("2026-01-31 12:00:00.1234567Z", 1769860800123456);
    is("2024-02-29T00:00:00Z", 1709164800000000);
}

static void test_nonsense_is_none(void **state)
{
    static const char *const texts[] = {"",
                                        "-1",
                                        "12x",
                                        "99999999999999999999",
                                        "2026-01-31",
                                        "2026-01-31T12:00:00",
                                        "2026-02-29T12:00:00Z",
                                        "2026-13-01T12:00:00Z",
                                        "2026-01-31T24:00:00Z",
                                        "2026-01-31T12:00:00.Z",
                                        "2026-01-31T12:00:00+2:00",
                                        "2026-01-31T12:00:00Zx",
                                        "1969-12-31T23:59:59Z"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        is_none(texts[i]);
}

static void test_what_is_printed_is_read_back(void **state)
{
    char text[QUERY_TIME_BYTES];

    (void)state;
    time_text_print(1769860800000042, text);
    assert_string_equal(text, "2026-01-31T12:00:00.000042Z");
    is(text, 1769860800000042);
    query_time_plain(1769860800999999, text);
    assert_string_equal(text, "2026-01-31 12:00:00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms_are_read),
        cmocka_unit_test(test_nonsense_is_none),
        cmocka_unit_test(test_what_is_printed_is_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
