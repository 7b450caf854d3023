/* SPDX-License-Identifier: Apache-2.0 */
/* The participants' configuration files that are handed out. */
#include "participant/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void set_defaults(struct participant_options *options)
{
    struct tg_errmsg msg;

    assert_int_equal(
        config_defaults(participant_option_table, participant_option_count, options, &msg), 0);
    strcpy(options->data_dir, "d");
}

static const char *config_path(const char *name)
{
    static char path[1024];
    const char *source = getenv("TIDEGATE_SOURCE");

    snprintf(path, sizeof path, "%s/cluster-configs/%s", source != NULL ? source : ".", name);
    return path;
}

static void test_the_files_handed_out_are_good(void **state)
{
    static const char *const names[] = {"participant-1.conf", "participant-2.conf",
                                        "participant-3.conf", "single-participant.conf"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct participant_options options;
        struct tg_errmsg msg = {{0}};

        set_defaults(&options);
        if (config_read_file(participant_option_table, participant_option_count,
                             config_path(names[i]), &options, &msg) != 0 ||
            participant_options_check(&options, &msg) != 0)
            fail_msg("%s: %s", names[i], msg.text);
    }
}

static void test_the_example_is_the_option_table(void **state)
{
    struct buf expected = BUF_INIT;
    static char found[64 * 1024];

    (void)state;
    config_print_example(participant_option_table, participant_option_count, &expected);
    if (getenv("TIDEGATE_WRITE_EXAMPLES") != NULL) {
        FILE *out = fopen(config_path("example-participant.conf"), "w");

        assert_non_null(out);
        fwrite(expected.data, 1, expected.len, out);
        fclose(out);
    }
    FILE *file = fopen(config_path("example-participant.conf"), "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, buf_cstr(&expected));
    buf_close(&expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_files_handed_out_are_good),
        cmocka_unit_test(test_the_example_is_the_option_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
