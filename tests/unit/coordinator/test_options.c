/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's options, and the configuration files that are handed out. */
#include "coordinator/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void set_defaults(struct coordinator_options *options)
{
    struct tg_errmsg msg;

    assert_int_equal(
        config_defaults(coordinator_option_table, coordinator_option_count, options, &msg), 0);
    strcpy(options->data_dir, "d");
}

static void test_defaults_are_one_coordinator_on_loopback(void **state)
{
    struct coordinator_options options;
    struct coordinator_address list[COORDINATORS_MAX];
    struct tg_errmsg msg;
    uint32_t count;

    (void)state;
    set_defaults(&options);
    assert_int_equal(coordinator_options_check(&options, &msg), 0);
    assert_int_equal(coordinator_options_addresses(&options, list, &count, &msg), 0);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].id, 1);
    assert_string_equal(list[0].raft, "127.0.0.1:9010");
    assert_string_equal(list[0].rpc, "127.0.0.1:9020");
    assert_string_equal(list[0].http, "127.0.0.1:8030");
}

static void test_the_list_names_every_port(void **state)
{
    struct coordinator_options options;
    struct coordinator_address list[COORDINATORS_MAX];
    struct tg_errmsg msg;
    uint32_t count;

    (void)state;
    set_defaults(&options);
    options.coordinator_id = 7;
    strcpy(options.coordinators, "1=a.example:1:2:3, 7=10.0.0.7:4:5:6");
    assert_int_equal(coordinator_options_addresses(&options, list, &count, &msg), 0);
    assert_int_equal(count, 2);
    assert_string_equal(list[0].rpc, "a.example:2");
    assert_int_equal(list[1].id, 7);
    assert_string_equal(list[1].raft, "10.0.0.7:4");
    assert_string_equal(list[1].http, "10.0.0.7:6");
}

static void refuse(const char *coordinators, const char *why)
{
    struct coordinator_options options;
    struct tg_errmsg msg = {{0}};

    set_defaults(&options);
    strcpy(options.coordinators, coordinators);
    assert_int_equal(coordinator_options_check(&options, &msg), TG_INVALID);
    assert_non_null(strstr(msg.text, why));
}

static void test_a_bad_list_is_refused_with_its_reason(void **state)
{
    (void)state;
    refuse("1", "is not id=host");
    refuse("1=h", "is not id=host");
    refuse("1=h:1:2", "is not id=host");
    refuse("1=h:1:2:99999", "is not id=host");
    refuse("0=h:1:2:3", "is not id=host");
    refuse("1=:1:2:3", "is not id=host");
    refuse("1=h:1:2:3,1=h:4:5:6", "given twice");
    refuse("2=h:1:2:3", "is not among them");
    refuse("1=h:1:2:3,2=h:1:2:3,3=h:1:2:3,4=h:1:2:3,5=h:1:2:3,6=h:1:2:3,7=h:1:2:3,8=h:1:2:3,"
           "9=h:1:2:3,10=h:1:2:3",
           "at most 9");
}

static void test_an_empty_password_stays_on_loopback(void **state)
{
    struct coordinator_options options;
    struct tg_errmsg msg = {{0}};

    (void)state;
    set_defaults(&options);
    strcpy(options.host, "0.0.0.0");
    assert_int_equal(coordinator_options_check(&options, &msg), TG_INVALID);
    assert_non_null(strstr(msg.text, "root_password"));
    options.allow_empty_password = true;
    assert_int_equal(coordinator_options_check(&options, &msg), 0);
    options.allow_empty_password = false;
    strcpy(options.root_password, "secret");
    assert_int_equal(coordinator_options_check(&options, &msg), 0);
}

static void test_a_heartbeat_fits_the_election_timeout(void **state)
{
    struct coordinator_options options;
    struct tg_errmsg msg = {{0}};

    (void)state;
    set_defaults(&options);
    options.heartbeat_ms = 250;
    assert_int_equal(coordinator_options_check(&options, &msg), TG_INVALID);
}

/* ---- files ---- */

static const char *config_path(const char *name)
{
    static char path[1024];
    const char *source = getenv("TIDEGATE_SOURCE");

    snprintf(path, sizeof path, "%s/cluster-configs/%s", source != NULL ? source : ".", name);
    return path;
}

static void test_the_files_handed_out_are_good(void **state)
{
    static const char *const names[] = {"coordinator-1.conf", "coordinator-2.conf",
                                        "coordinator-3.conf", "single-coordinator.conf"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct coordinator_options options;
        struct tg_errmsg msg = {{0}};

        set_defaults(&options);
        if (config_read_file(coordinator_option_table, coordinator_option_count,
                             config_path(names[i]), &options, &msg) != 0 ||
            coordinator_options_check(&options, &msg) != 0)
            fail_msg("%s: %s", names[i], msg.text);
        assert_true(options.bootstrap);
    }
}

static void test_the_example_is_the_option_table(void **state)
{
    struct buf expected = BUF_INIT;
    static char found[64 * 1024];

    (void)state;
    config_print_example(coordinator_option_table, coordinator_option_count, &expected);
    if (getenv("TIDEGATE_WRITE_EXAMPLES") != NULL) {
        FILE *out = fopen(config_path("example-coordinator.conf"), "w");

        assert_non_null(out);
        fwrite(expected.data, 1, expected.len, out);
        fclose(out);
    }
    FILE *file = fopen(config_path("example-coordinator.conf"), "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, buf_cstr(&expected));
    buf_close(&expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_one_coordinator_on_loopback),
        cmocka_unit_test(test_the_list_names_every_port),
        cmocka_unit_test(test_a_bad_list_is_refused_with_its_reason),
        cmocka_unit_test(test_an_empty_password_stays_on_loopback),
        cmocka_unit_test(test_a_heartbeat_fits_the_election_timeout),
        cmocka_unit_test(test_the_files_handed_out_are_good),
        cmocka_unit_test(test_the_example_is_the_option_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
