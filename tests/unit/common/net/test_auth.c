/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of credentials and proofs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/base64.h"
#include "common/net/auth.h"

static int parse(const char *credentials, struct auth_basic *basic)
{
    struct buf header = BUF_INIT;
    buf_append_str(&header, "Basic ");
    base64_encode(slice_str(credentials), &header);
    struct tg_errmsg msg = {0};
    int err = auth_parse_basic(buf_cstr(&header), basic, &msg);
    if (err != 0) {
        assert_int_equal(err, TG_DENIED);
        assert_string_equal(msg.text, "no valid Basic authorization");
    }
    buf_close(&header);
    return err;
}

static void test_user_and_password_are_taken_apart(void **state)
{
    (void)state;
    struct auth_basic basic;
    assert_int_equal(parse("root:", &basic), 0);
    assert_string_equal(basic.user, "root");
    assert_string_equal(basic.password, "");
    assert_int_equal(parse("u@cluster:p@s:s/w%rd#1", &basic), 0);
    assert_string_equal(basic.user, "u");
    assert_string_equal(basic.password, "p@s:s/w%rd#1");
    assert_int_equal(auth_parse_basic("bAsIc  cm9vdDo=", &basic, NULL), 0);
    assert_string_equal(basic.user, "root");
}

static void test_everything_else_is_denied(void **state)
{
    (void)state;
    struct auth_basic basic;
    assert_int_equal(auth_parse_basic(NULL, &basic, NULL), TG_DENIED);
    assert_int_equal(auth_parse_basic("", &basic, NULL), TG_DENIED);
    assert_int_equal(auth_parse_basic("Bearer cm9vdDo=", &basic, NULL), TG_DENIED);
    assert_int_equal(auth_parse_basic("Basic !!!!", &basic, NULL), TG_DENIED);
    assert_int_equal(auth_parse_basic("Basic cm9vdDo=x", &basic, NULL), TG_DENIED);
    assert_int_equal(auth_parse_basic("Basic AHI6eA==", &basic, NULL), TG_DENIED); /* \0r:x */
    assert_int_equal(parse("nocolon", &basic), TG_DENIED);
    assert_int_equal(parse(":password", &basic), TG_DENIED);
    assert_int_equal(parse("@cluster:password", &basic), TG_DENIED);
}

static void test_lengths_are_bounded(void **state)
{
    (void)state;
    struct auth_basic basic;
    char text[1024];
    snprintf(text, sizeof text, "%0*d:%0*d", AUTH_USER_BYTES - 1, 1, AUTH_PASSWORD_BYTES - 1, 1);
    assert_int_equal(parse(text, &basic), 0);
    assert_int_equal(strlen(basic.user), AUTH_USER_BYTES - 1);
    assert_int_equal(strlen(basic.password), AUTH_PASSWORD_BYTES - 1);
    snprintf(text, sizeof text, "%0*d:x", AUTH_USER_BYTES, 1);
    assert_int_equal(parse(text, &basic), TG_DENIED);
    snprintf(text, sizeof text, "x:%0*d", AUTH_PASSWORD_BYTES, 1);
    assert_int_equal(parse(text, &basic), TG_DENIED);
}

static void test_equal_compares_lengths_and_bytes(void **state)
{
    (void)state;
    assert_true(auth_equal("abc", 3, "abc", 3));
    assert_false(auth_equal("abc", 3, "abd", 3));
    assert_false(auth_equal("abc", 3, "abcd", 4));
    assert_true(auth_equal("", 0, "", 0));
}

static void test_a_proof_depends_on_secret_role_and_nonces(void **state)
{
    (void)state;
    unsigned char a[AUTH_PROOF_BYTES];
    unsigned char b[AUTH_PROOF_BYTES];
    auth_prove("s", "role", "nonce", 5, a);
    auth_prove("s", "role", "nonce", 5, b);
    assert_memory_equal(a, b, sizeof a);
    auth_prove("t", "role", "nonce", 5, b);
    assert_memory_not_equal(a, b, sizeof a);
    auth_prove("s", "rolf", "nonce", 5, b);
    assert_memory_not_equal(a, b, sizeof a);
    auth_prove("s", "role", "noncf", 5, b);
    assert_memory_not_equal(a, b, sizeof a);
    auth_prove("", "role", "nonce", 5, b);
    assert_memory_not_equal(a, b, sizeof a);
    /* HMAC-SHA256 with key "key" of "role", 0, "data": pinned, since nodes of two releases must
     * agree. */
    auth_prove("key", "role", "data", 4, a);
    char hex[2 * AUTH_PROOF_BYTES + 1];
    for (size_t i = 0; i < AUTH_PROOF_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", a[i]);
    assert_string_equal(hex, "0ad55be8bd2eef447e92f7b9c595cd96443f974527198279cd5719ffa7ede808");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_and_password_are_taken_apart),
        cmocka_unit_test(test_everything_else_is_denied),
        cmocka_unit_test(test_lengths_are_bounded),
        cmocka_unit_test(test_equal_compares_lengths_and_bytes),
        cmocka_unit_test(test_a_proof_depends_on_secret_role_and_nonces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
