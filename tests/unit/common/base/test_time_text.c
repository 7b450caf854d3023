/* SPDX-License-Identifier: Apache-2.0 */
/* Time texts are read and printed to the microsecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <time.h>

#include "common/base/err.h"
#include "common/base/random.h"
#include "common/base/time_text.h"

static uint64_t parsed(const char *text)
{
    uint64_t us = 0;
    struct tg_errmsg msg = {""};
    if (time_text_parse(text, &us, &msg) != 0)
        fail_msg("%s: %s", text, msg.text);
    return us;
}

static void refused(const char *text, const char *reason)
{
    uint64_t us = 77;
    struct tg_errmsg msg = {""};
    assert_int_equal(time_text_parse(text, &us, &msg), TG_INVALID);
    assert_int_equal(us, 77);
    if (strstr(msg.text, reason) == NULL)
        fail_msg("'%s' does not say '%s'", msg.text, reason);
}

static void texts_of_known_instants(void **state)
{
    (void)state;
    assert_true(parsed("1970-01-01T00:00:00Z") == 0);
    assert_true(parsed("2001-09-09T01:46:40Z") == UINT64_C(1000000000000000));
    assert_true(parsed("2026-01-31T12:00:00.123456+01:00") == UINT64_C(1769857200123456));
    assert_true(parsed("2026-01-31t12:00:00.5z") == UINT64_C(1769860800500000));
    assert_true(parsed("2026-01-31 12:00:00-00:30") == UINT64_C(1769862600000000));
    assert_true(parsed("2000-02-29T23:59:59.999999Z") == UINT64_C(951868799999999));
    assert_true(parsed("1769860800500000") == UINT64_C(1769860800500000));
    assert_true(parsed("0") == 0);
    /* The first minute of 1970 can be named from the east. */
    assert_true(parsed("1970-01-01T01:00:00+01:00") == 0);
}

static void texts_that_are_no_instant_are_refused_with_a_reason(void **state)
{
    (void)state;
    refused("", "neither RFC 3339");
    refused("now", "neither RFC 3339");
    refused("2026-01-31", "neither RFC 3339");
    refused("2026-1-31T12:00:00Z", "neither RFC 3339");
    refused("-5", "neither RFC 3339");
    refused("2026-01-31T12:00Z", "neither RFC 3339");
    refused("2026-01-31T12:00:00", "has no offset");
    refused("2026-01-31T12:00:00.123456", "has no offset");
    refused("2026-01-31T12:00:00.1234567Z", "1 to 6 digits");
    refused("2026-01-31T12:00:00.Z", "1 to 6 digits");
    refused("2026-01-31T12:00:00+0100", "bad offset");
    refused("2026-01-31T12:00:00+24:00", "bad offset");
    refused("2026-01-31T12:00:00+01:60", "bad offset");
    refused("2026-01-31T12:00:00*01:00", "not RFC 3339");
    refused("2026-01-31T12:00:00Zx", "behind its offset");
    refused("2026-02-29T12:00:00Z", "not on the calendar");
    refused("1900-02-29T12:00:00Z", "not on the calendar");
    refused("2026-13-01T12:00:00Z", "not on the calendar");
    refused("2026-00-01T12:00:00Z", "not on the calendar");
    refused("2026-04-31T12:00:00Z", "not on the calendar");
    refused("2026-01-00T12:00:00Z", "not on the calendar");
    refused("2026-01-31T24:00:00Z", "not on the calendar");
    refused("2026-01-31T12:60:00Z", "not on the calendar");
    refused("2026-01-31T12:00:60Z", "not on the calendar");
    refused("1969-12-31T23:59:59Z", "before 1970");
    refused("1970-01-01T00:00:00+00:01", "before 1970");
    refused("9999-01-01T00:00:00Z", "too large");
    refused("99999999999999999999999", "too large");
    refused("4503599627370496", "too large");
    assert_true(parsed("4503599627370495") == (UINT64_C(1) << 52) - 1);
}

static void printing_and_parsing_agree_with_the_system_calendar(void **state)
{
    (void)state;
    struct random_seeded seeded;
    random_seeded_init(&seeded, 7);
    for (int i = 0; i < 20000; i++) {
        uint64_t us = random_below(&seeded.source, UINT64_C(1) << 52);
        char text[TIME_TEXT_SIZE];
        time_text_print(us, text);
        assert_int_equal(strlen(text), 27);
        time_t seconds = (time_t)(us / 1000000);
        struct tm tm;
        char want[TIME_TEXT_SIZE];
        assert_non_null(gmtime_r(&seconds, &tm));
        strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S", &tm);
        assert_memory_equal(text, want, 19);
        assert_true(parsed(text) == us);
    }
}

static void every_day_of_a_long_cycle_is_right(void **state)
{
    (void)state;
    for (uint64_t day = 0; day < 51800; day++) {
        char text[TIME_TEXT_SIZE];
        time_text_print(day * 86400000000, text);
        assert_true(parsed(text) == day * 86400000000);
    }
}

static void even_nonsense_fits_into_the_text(void **state)
{
    (void)state;
    char text[TIME_TEXT_SIZE];
    time_text_print(UINT64_MAX, text);
    assert_int_equal(strlen(text), 27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_known_instants),
        cmocka_unit_test(texts_that_are_no_instant_are_refused_with_a_reason),
        cmocka_unit_test(printing_and_parsing_agree_with_the_system_calendar),
        cmocka_unit_test(every_day_of_a_long_cycle_is_right),
        cmocka_unit_test(even_nonsense_fits_into_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
