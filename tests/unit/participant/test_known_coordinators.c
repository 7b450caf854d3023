/* SPDX-License-Identifier: Apache-2.0 */
/* A participant remembers the coordinators it was told of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "participant/known_coordinators.h"
#include "tests/lib/test_dir.h"

static struct test_dir dir;

static int begin(void **state)
{
    (void)state;
    test_dir_make(&dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_dir_remove(&dir);
    return 0;
}

static void test_what_was_told_is_known_after_a_restart(void **state)
{
    struct known_coordinators known;
    const char told[2][ADDRESS_BYTES] = {"10.0.0.1:9020", "host.example:9021"};

    (void)state;
    known_coordinators_load(&known, dir.path);
    assert_int_equal(known.count, 0);
    known_coordinators_set(&known, told, 2);
    assert_true(known.changed);
    assert_int_equal(known_coordinators_save(&known, dir.path), 0);
    assert_false(known.changed);
    known_coordinators_set(&known, told, 2);
    assert_false(known.changed);
    known_coordinators_load(&known, dir.path);
    assert_int_equal(known.count, 2);
    assert_string_equal(known.list[1], "host.example:9021");
}

static void test_a_damaged_file_says_no_more_than_it_holds(void **state)
{
    struct known_coordinators known;
    char path[sizeof dir.path + 16];

    (void)state;
    snprintf(path, sizeof path, "%s/coordinators", dir.path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "10.0.0.1:9020\n10.0.0.2:90");
    fclose(file);
    known_coordinators_load(&known, dir.path);
    assert_int_equal(known.count, 1);
    file = fopen(path, "w");
    for (int i = 0; i < 500; i++)
        fputc('x', file);
    fclose(file);
    known_coordinators_load(&known, dir.path);
    assert_int_equal(known.count, 0);
}

static void test_a_directory_that_is_gone_is_told(void **state)
{
    struct known_coordinators known = {0};
    const char told[1][ADDRESS_BYTES] = {"a:1"};

    (void)state;
    known_coordinators_set(&known, told, 1);
    assert_int_equal(known_coordinators_save(&known, "/nowhere/at/all"), TG_IO);
    assert_true(known.changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_told_is_known_after_a_restart, begin, end),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_says_no_more_than_it_holds, begin, end),
        cmocka_unit_test(test_a_directory_that_is_gone_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
