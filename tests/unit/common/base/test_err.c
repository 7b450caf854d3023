/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: the list has no gap, and messages are cut, wrapped and optional. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"

static void every_error_has_its_own_name_and_sentence(void **state)
{
    (void)state;
#define CHECK_ONE(name, value, text, http, retry)          \
    assert_string_equal(tg_err_name(TG_##name), #name);    \
    assert_string_equal(tg_err_sentence(TG_##name), text); \
    assert_int_equal(tg_err_http_status(TG_##name), http); \
    assert_int_equal(tg_err_may_retry(TG_##name), retry);
    TG_ERRORS(CHECK_ONE)
#undef CHECK_ONE
}

static void zero_is_ok_and_strangers_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(tg_err_name(0), "OK");
    assert_int_equal(tg_err_http_status(0), 200);
    assert_false(tg_err_may_retry(0));
    const int strangers[] = {1, 17, -1000, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        assert_string_equal(tg_err_name(strangers[i]), "UNKNOWN");
        assert_int_equal(tg_err_http_status(strangers[i]), 500);
    }
}

static void fail_sets_the_message_and_returns_the_error(void **state)
{
    (void)state;
    struct tg_errmsg msg = {"old"};
    assert_int_equal(tg_fail(&msg, TG_INVALID, "bucket count %d", 7), TG_INVALID);
    assert_string_equal(msg.text, "bucket count 7");
    assert_int_equal(tg_fail(NULL, TG_IO, "nobody listens"), TG_IO);
}

static void wrap_puts_a_prefix_before_the_message(void **state)
{
    (void)state;
    struct tg_errmsg msg = {"no space left"};
    assert_int_equal(tg_wrap(&msg, TG_NOSPACE, "open store %s", "a"), TG_NOSPACE);
    assert_int_equal(tg_wrap(&msg, TG_NOSPACE, "start"), TG_NOSPACE);
    assert_string_equal(msg.text, "start: open store a: no space left");
    assert_int_equal(tg_wrap(NULL, TG_IO, "nobody listens"), TG_IO);
}

static void a_message_may_be_made_of_itself(void **state)
{
    (void)state;
    struct tg_errmsg msg = {"inner"};
    tg_fail(&msg, TG_IO, "outer (%s)", msg.text);
    assert_string_equal(msg.text, "outer (inner)");
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    char text[2 * TG_ERRMSG_MAX];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    struct tg_errmsg msg = {""};
    tg_fail(&msg, TG_INVALID, "%s", text);
    assert_int_equal(strlen(msg.text), TG_ERRMSG_MAX - 1);
    tg_wrap(&msg, TG_INVALID, "prefix");
    assert_int_equal(strlen(msg.text), TG_ERRMSG_MAX - 1);
    assert_memory_equal(msg.text, "prefix: xxx", 11);
    tg_wrap(&msg, TG_INVALID, "%s", text);
    assert_int_equal(strlen(msg.text), TG_ERRMSG_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_own_name_and_sentence),
        cmocka_unit_test(zero_is_ok_and_strangers_are_unknown),
        cmocka_unit_test(fail_sets_the_message_and_returns_the_error),
        cmocka_unit_test(wrap_puts_a_prefix_before_the_message),
        cmocka_unit_test(a_message_may_be_made_of_itself),
        cmocka_unit_test(long_messages_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
