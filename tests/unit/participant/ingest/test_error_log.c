/* SPDX-License-Identifier: Apache-2.0 */
/* Files of refused rows: what they say, who may read what, how long they stay. */
#include "participant/ingest/error_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/fake_clock.h"
#include "tests/lib/test_dir.h"

struct fixture {
    struct test_dir dir;
    struct fake_clock clock;
    struct error_logs *logs;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_dir_make(&f->dir);
    fake_clock_init(&f->clock);
    *state = f;
    return error_logs_open(f->dir.path, &f->clock.clock, random_system(), &f->logs, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    error_logs_close(f->logs);
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

static void write_one(struct fixture *f, char name[ERROR_LOG_NAME_BYTES])
{
    struct error_log log;
    error_log_init(&log, f->logs);
    error_log_add(&log, "bad", slice_str("1,x"));
    strcpy(name, error_log_finish(&log));
    error_log_close(&log);
}

static void test_a_row_is_told_with_its_reason(void **state)
{
    struct fixture *f = *state;
    char name[ERROR_LOG_NAME_BYTES];
    struct buf text = BUF_INIT;

    write_one(f, name);
    assert_int_equal(error_logs_read(f->logs, name, &text), 0);
    assert_string_equal(buf_cstr(&text), "Reason: bad. src line [1,x]; \n");
    buf_close(&text);
}

static void test_a_load_without_bad_rows_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct error_log log;

    error_log_init(&log, f->logs);
    assert_null(error_log_finish(&log));
    error_log_close(&log);
}

static void test_rows_and_lines_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct error_log log;
    struct buf text = BUF_INIT;
    char *line = calloc(1, ERROR_LOG_LINE_MAX + 10);

    memset(line, 'x', ERROR_LOG_LINE_MAX + 9);
    error_log_init(&log, f->logs);
    for (int i = 0; i < 100; i++)
        error_log_add(&log, "bad", i == 0 ? slice_str(line) : slice_str("r"));
    assert_int_equal(log.rows, ERROR_LOG_ROWS_MAX);
    assert_int_equal(error_logs_read(f->logs, error_log_finish(&log), &text), 0);
    assert_true(text.len < 2 * ERROR_LOG_LINE_MAX);
    assert_non_null(strstr(buf_cstr(&text), "error log is too long]"));
    error_log_close(&log);
    buf_close(&text);
    free(line);
}

static void test_no_name_leads_out_of_the_folder(void **state)
{
    static const char *const NAMES[] = {"",
                                        ".",
                                        "..",
                                        "../secret",
                                        "/etc/passwd",
                                        "0000000000000000_000000000000000",
                                        "0000000000000000_000000000000000/",
                                        "0000000000000000/0000000000000000"};
    struct fixture *f = *state;
    struct buf text = BUF_INIT;

    test_dir_write(&f->dir, "secret", "s", 1);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        assert_int_equal(error_logs_read(f->logs, NAMES[i], &text), TG_NOT_FOUND);
    buf_close(&text);
}

static void test_old_files_go_when_a_new_one_comes_also_after_a_restart(void **state)
{
    struct fixture *f = *state;
    char old[ERROR_LOG_NAME_BYTES];
    char young[ERROR_LOG_NAME_BYTES];
    struct buf text = BUF_INIT;

    write_one(f, old);
    fake_clock_advance_us(&f->clock, ERROR_LOG_KEEP_US - 1000000);
    error_logs_close(f->logs);
    assert_int_equal(error_logs_open(f->dir.path, &f->clock.clock, random_system(), &f->logs, NULL),
                     0);
    assert_int_equal(error_logs_read(f->logs, old, &text), 0);
    fake_clock_advance_us(&f->clock, 2000000);
    write_one(f, young);
    assert_int_equal(error_logs_read(f->logs, old, &text), TG_NOT_FOUND);
    assert_int_equal(error_logs_read(f->logs, young, &text), 0);
    buf_close(&text);
}

static void test_the_number_of_files_is_bounded(void **state)
{
    struct fixture *f = *state;
    char first[ERROR_LOG_NAME_BYTES];
    char name[ERROR_LOG_NAME_BYTES];
    struct buf text = BUF_INIT;

    write_one(f, first);
    for (int i = 0; i < ERROR_LOG_FILES_MAX; i++) {
        fake_clock_advance_ms(&f->clock, 1);
        write_one(f, name);
    }
    assert_int_equal(error_logs_read(f->logs, first, &text), TG_NOT_FOUND);
    assert_int_equal(error_logs_read(f->logs, name, &text), 0);
    buf_close(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_row_is_told_with_its_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_load_without_bad_rows_leaves_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_rows_and_lines_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_name_leads_out_of_the_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_files_go_when_a_new_one_comes_also_after_a_restart,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_number_of_files_is_bounded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
