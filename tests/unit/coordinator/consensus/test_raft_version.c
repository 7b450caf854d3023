/* SPDX-License-Identifier: Apache-2.0 */
/* The raft library that really runs: one before 0.22 can lose what it acknowledged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <raft.h>

enum {
    /* raft counts its version as major * 100 * 100 + minor * 100 + patch. */
    RAFT_VERSION_MINIMUM = 22 * 100
};

static void test_raft_at_run_time_is_022_or_newer(void **state)
{
    (void)state;
    int version = raft_version_number();
    print_message("raft at run time: %d.%d.%d\n", version / 10000, version / 100 % 100,
                  version % 100);
    assert_true(version >= RAFT_VERSION_MINIMUM);
}

static void test_headers_and_library_are_of_one_version(void **state)
{
    (void)state;
    int headers = RAFT_VERSION_MAJOR * 10000 + RAFT_VERSION_MINOR * 100 + RAFT_VERSION_RELEASE;
    assert_int_equal(raft_version_number(), headers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raft_at_run_time_is_022_or_newer),
        cmocka_unit_test(test_headers_and_library_are_of_one_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
