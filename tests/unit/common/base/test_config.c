/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration: defaults, files, flags, and errors that name what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/config.h"
#include "tests/lib/test_dir.h"

struct options {
    char data_dir[32];
    char peers[1000];
    uint64_t http_port;
    uint64_t memory;
    bool verbose;
};

static const struct config_option table[] = {
    {"data_dir", CONFIG_STRING, offsetof(struct options, data_dir), 32, 0, 0, "data",
     "Directory of the store.", "Files"},
    {"peers", CONFIG_STRING, offsetof(struct options, peers), 1000, 0, 0, "", "All coordinators.",
     "Network"},
    {"http_port", CONFIG_UINT, offsetof(struct options, http_port), 0, 1, 65535, "8030",
     "Port of HTTP.", NULL},
    {"memory_max", CONFIG_BYTES, offsetof(struct options, memory), 0, 1024, UINT64_MAX, "64m",
     "Memory for loads.", "Limits"},
    {"verbose", CONFIG_BOOL, offsetof(struct options, verbose), 0, 0, 0, "false", "Say more.",
     NULL},
};
enum { COUNT = sizeof table / sizeof table[0] };

static struct options defaults(void)
{
    struct options options;
    memset(&options, 0xAA, sizeof options);
    struct tg_errmsg msg = {""};
    assert_int_equal(config_defaults(table, COUNT, &options, &msg), 0);
    return options;
}

static int read_text(const char *text, struct options *options, struct tg_errmsg *msg)
{
    struct test_dir dir;
    char path[TEST_PATH_SIZE];
    test_dir_make(&dir);
    test_dir_write(&dir, "a.conf", text, strlen(text));
    int err = config_read_file(table, COUNT, test_dir_path(&dir, "a.conf", path), options, msg);
    test_dir_remove(&dir);
    return err;
}

static void file_refused(const char *text, const char *reason)
{
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    int err = read_text(text, &options, &msg);
    if (err != TG_INVALID || strstr(msg.text, reason) == NULL)
        fail_msg("%s: '%s' does not say '%s'", tg_err_name(err), msg.text, reason);
    assert_non_null(strstr(msg.text, "a.conf"));
}

static int read_flags(char **argv, struct options *options, struct tg_errmsg *msg)
{
    int argc = 0;
    while (argv[argc] != NULL)
        argc++;
    bool help;
    bool version;
    int err = config_read_flags(table, COUNT, argc, argv, options, &help, &version, msg);
    assert_false(help || version);
    return err;
}

static void flags_refused(char **argv, const char *reason)
{
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    int err = read_flags(argv, &options, &msg);
    if (err != TG_INVALID || strstr(msg.text, reason) == NULL)
        fail_msg("%s: '%s' does not say '%s'", tg_err_name(err), msg.text, reason);
}

static void defaults_are_set_from_their_text(void **state)
{
    (void)state;
    struct options options = defaults();
    assert_string_equal(options.data_dir, "data");
    assert_string_equal(options.peers, "");
    assert_int_equal(options.http_port, 8030);
    assert_int_equal(options.memory, 64 * 1024 * 1024);
    assert_false(options.verbose);
    static const struct config_option broken = {"n", CONFIG_UINT, 0, 0, 1, 5, "6", "", NULL};
    struct tg_errmsg msg = {""};
    assert_int_equal(config_defaults(&broken, 1, &options, &msg), TG_INVALID);
    assert_string_equal(msg.text, "default: n: 6 is not in 1..5");
}

static void a_file_sets_options(void **state)
{
    (void)state;
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    int err = read_text("\xEF\xBB\xBF# comment\n; another\n\n"
                        "data_dir = /var/lib/a b \r\n"
                        "  http_port=9\n"
                        "peers = a:1,b:2 ; # = kept\n"
                        "memory_max = 3G\n"
                        "verbose = 1",
                        &options, &msg);
    assert_string_equal(msg.text, "");
    assert_int_equal(err, 0);
    assert_string_equal(options.data_dir, "/var/lib/a b");
    assert_int_equal(options.http_port, 9);
    assert_string_equal(options.peers, "a:1,b:2 ; # = kept");
    assert_true(options.memory == UINT64_C(3) << 30);
    assert_true(options.verbose);
}

static void bad_files_are_refused_with_line_and_key(void **state)
{
    (void)state;
    file_refused("\n\nhttp_prot = 5\n", "a.conf:3: unknown option 'http_prot'; did you mean "
                                        "'http_port'?");
    file_refused("colour = red\n", "a.conf:1: unknown option 'colour'");
    file_refused("verbose = true\nhttp_port = 1\nverbose = true\n",
                 "a.conf:3: verbose is set already in line 1");
    file_refused("http_port = 0\n", "a.conf:1: http_port: 0 is not in 1..65535");
    file_refused("http_port = 65536\n", "http_port: 65536 is not in 1..65535");
    file_refused("http_port = 99999999999999999999999\n", "is not in 1..65535");
    file_refused("http_port = 80x\n", "'80x' is not a whole number");
    file_refused("http_port = 8k\n", "'8k' is not a whole number");
    file_refused("http_port = -1\n", "'-1' is not a whole number");
    file_refused("http_port =\n", "'' is not a whole number");
    file_refused("memory_max = 17179869184g\n", "is not in");
    file_refused("memory_max = 1kb\n", "is not a number of bytes");
    file_refused("verbose = yes\n", "verbose: 'yes' is neither true nor false");
    file_refused("data_dir = 0123456789012345678901234567890x\n", "longer than 31 bytes");
    file_refused("http_port = 1\njust words\n", "a.conf:2: not a 'key = value' line");
    file_refused("[server]\nhttp_port = 1\n", "sections are not used");
}

static void long_lines_are_whole_or_an_error(void **state)
{
    (void)state;
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    struct buf text = BUF_INIT;
    buf_append_str(&text, "peers = ");
    for (int i = 0; i < 999; i++)
        buf_append_u8(&text, 'p');
    buf_append_str(&text, "\nhttp_port = 12\n");
    assert_int_equal(read_text(buf_cstr(&text), &options, &msg), 0);
    assert_int_equal(strlen(options.peers), 999);
    assert_int_equal(options.http_port, 12);

    buf_clear(&text);
    buf_append_str(&text, "http_port = 1\n#");
    for (int i = 0; i < CONFIG_LINE_MAX; i++)
        buf_append_u8(&text, 'c');
    buf_append_str(&text, "\n");
    file_refused(buf_cstr(&text), "a.conf:2: the line is too long");
    buf_close(&text);
}

static void files_that_cannot_be_read_say_so(void **state)
{
    (void)state;
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    assert_int_equal(config_read_file(table, COUNT, "/nonexistent/x.conf", &options, &msg),
                     TG_NOT_FOUND);
    assert_non_null(strstr(msg.text, "/nonexistent/x.conf: No such file"));
    assert_int_equal(config_read_file(table, COUNT, "/", &options, &msg), TG_IO);
    struct test_dir dir;
    char path[TEST_PATH_SIZE];
    test_dir_make(&dir);
    test_dir_write(&dir, "b", "http_port = 1\0", 14);
    assert_int_equal(config_read_file(table, COUNT, test_dir_path(&dir, "b", path), &options, &msg),
                     TG_INVALID);
    assert_non_null(strstr(msg.text, "zero byte"));
    test_dir_remove(&dir);
}

static void flags_in_every_spelling(void **state)
{
    (void)state;
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    char *argv[] = {"prog",  "--http-port", "5", "--memory_max=2k", "--verbose", "--peers",
                    "--odd", "--data-dir=", NULL};
    assert_int_equal(read_flags(argv, &options, &msg), 0);
    assert_int_equal(options.http_port, 5);
    assert_int_equal(options.memory, 2048);
    assert_true(options.verbose);
    assert_string_equal(options.peers, "--odd");
    assert_string_equal(options.data_dir, "");
    char *off[] = {"prog", "--verbose", "false", NULL};
    assert_int_equal(read_flags(off, &options, &msg), 0);
    assert_false(options.verbose);
    char *on[] = {"prog", "--verbose=1", "--verbose", "--http-port=6", NULL};
    assert_int_equal(read_flags(on, &options, &msg), 0);
    assert_true(options.verbose);
    assert_int_equal(options.http_port, 6);
}

static void bad_flags_are_refused(void **state)
{
    (void)state;
    flags_refused((char *[]){"prog", "stray", NULL}, "unexpected argument 'stray'");
    flags_refused((char *[]){"prog", "-v", NULL}, "unexpected argument '-v'");
    flags_refused((char *[]){"prog", "--", NULL}, "unexpected argument '--'");
    flags_refused((char *[]){"prog", "--http-port", NULL}, "--http-port needs a value");
    flags_refused((char *[]){"prog", "--config", NULL}, "--config needs a value");
    flags_refused((char *[]){"prog", "--config=a", "--config=b", NULL}, "given twice");
    flags_refused((char *[]){"prog", "--htp-port=1", NULL}, "did you mean 'http_port'?");
    flags_refused((char *[]){"prog", "--verbose=maybe", NULL}, "neither true nor false");
    flags_refused((char *[]){"prog", "--=1", NULL}, "unknown option ''");
}

static void flags_win_over_the_file_wherever_it_is_named(void **state)
{
    (void)state;
    struct test_dir dir;
    char path[TEST_PATH_SIZE];
    test_dir_make(&dir);
    const char *text = "http_port = 1\ndata_dir = filed\n";
    test_dir_write(&dir, "c", text, strlen(text));
    test_dir_path(&dir, "c", path);
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    char *argv[] = {"prog", "--http-port=7", "--config", path, "--verbose", NULL};
    assert_int_equal(read_flags(argv, &options, &msg), 0);
    assert_int_equal(options.http_port, 7);
    assert_string_equal(options.data_dir, "filed");
    assert_true(options.verbose);
    test_dir_remove(&dir);
}

static void help_and_version_are_noticed_before_the_file_is_read(void **state)
{
    (void)state;
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    bool help;
    bool version;
    char *argv[] = {"prog", "--config=/nonexistent", "--help", NULL};
    assert_int_equal(config_read_flags(table, COUNT, 3, argv, &options, &help, &version, &msg), 0);
    assert_true(help);
    assert_false(version);
    argv[2] = "--version";
    assert_int_equal(config_read_flags(table, COUNT, 3, argv, &options, &help, &version, &msg), 0);
    assert_true(version);
}

static void the_table_prints_help(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    config_print_help(table, COUNT, "prog", "Does things.", &out);
    const char *text = buf_cstr(&out);
    assert_non_null(strstr(text, "Usage: prog "));
    assert_non_null(strstr(text, "\nLimits:\n  --memory-max BYTES\n"
                                 "        Memory for loads. (1k or more, default 64m)\n"));
    assert_non_null(strstr(text, "  --http-port NUMBER\n"
                                 "        Port of HTTP. (1..65535, default 8030)\n"));
    assert_non_null(strstr(text, "  --verbose\n        Say more. (default false)\n"));
    assert_non_null(strstr(text, "  --peers TEXT\n        All coordinators. (default empty)\n"));
    buf_close(&out);
}

static void the_example_file_reads_back_as_the_defaults(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    config_print_example(table, COUNT, &out);
    assert_non_null(strstr(buf_cstr(&out), "\n# Port of HTTP. (1..65535)\n#http_port = 8030\n"));
    struct options want = defaults();
    struct options options = defaults();
    struct tg_errmsg msg = {""};
    assert_int_equal(read_text(buf_cstr(&out), &options, &msg), 0);
    /* Also with every option's # taken away. */
    for (size_t i = 0; i + 1 < out.len; i++) {
        if (out.data[i] == '#' && out.data[i + 1] != ' ')
            out.data[i] = ' ';
    }
    assert_int_equal(read_text(buf_cstr(&out), &options, &msg), 0);
    assert_string_equal(options.data_dir, want.data_dir);
    assert_int_equal(options.http_port, want.http_port);
    assert_int_equal(options.memory, want.memory);
    buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_set_from_their_text),
        cmocka_unit_test(a_file_sets_options),
        cmocka_unit_test(bad_files_are_refused_with_line_and_key),
        cmocka_unit_test(long_lines_are_whole_or_an_error),
        cmocka_unit_test(files_that_cannot_be_read_say_so),
        cmocka_unit_test(flags_in_every_spelling),
        cmocka_unit_test(bad_flags_are_refused),
        cmocka_unit_test(flags_win_over_the_file_wherever_it_is_named),
        cmocka_unit_test(help_and_version_are_noticed_before_the_file_is_read),
        cmocka_unit_test(the_table_prints_help),
        cmocka_unit_test(the_example_file_reads_back_as_the_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
