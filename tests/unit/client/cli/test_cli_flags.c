/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the tool's flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/cli_flags.h"

struct parsed {
    const char *text;
    uint64_t number;
    bool flag;
    struct cli_list list;
    struct cli_words words;
};

static int parse(struct parsed *parsed, int argc, char **argv)
{
    const struct cli_flag flags[] = {
        {"text", 't', CLI_TEXT, &parsed->text, 0, "TEXT", "a text"},
        {"number", 0, CLI_UINT, &parsed->number, 100, "N", "a number"},
        {"flag", 'f', CLI_BOOL, &parsed->flag, 0, NULL, "a flag"},
        {"list", 'l', CLI_LIST, &parsed->list, 0, "X", "a list"},
    };
    const struct cli_usage usage = {"test", "A test.", flags, sizeof flags / sizeof flags[0]};

    memset(parsed, 0, sizeof *parsed);
    return cli_flags_parse(&usage, argc, argv, &parsed->words);
}

#define PARSE(parsed, ...) \
    parse(&parsed, (int)(sizeof(char *[]){__VA_ARGS__} / sizeof(char *)), (char *[]){__VA_ARGS__})

static void flags_come_in_every_spelling(void **state)
{
    struct parsed p;

    (void)state;
    assert_int_equal(PARSE(p, "a", "--text", "x", "--number=7", "-f", "-lq", "-l", "r", "b"),
                     CLI_OK);
    assert_string_equal(p.text, "x");
    assert_int_equal(p.number, 7);
    assert_true(p.flag);
    assert_int_equal(p.list.count, 2);
    assert_string_equal(p.list.items[0], "q");
    assert_string_equal(p.list.items[1], "r");
    assert_int_equal(p.words.count, 2);
    assert_string_equal(p.words.items[1], "b");
}

static void a_dash_and_all_behind_two_are_words(void **state)
{
    struct parsed p;

    (void)state;
    assert_int_equal(PARSE(p, "-", "--", "--flag", "-x"), CLI_OK);
    assert_int_equal(p.words.count, 3);
    assert_false(p.flag);
}

static void a_value_may_begin_with_a_dash_or_be_empty(void **state)
{
    struct parsed p;

    (void)state;
    assert_int_equal(PARSE(p, "--text", "-1"), CLI_OK);
    assert_string_equal(p.text, "-1");
    assert_int_equal(PARSE(p, "--text="), CLI_OK);
    assert_string_equal(p.text, "");
}

static void what_is_wrong_is_refused(void **state)
{
    struct parsed p;

    (void)state;
    assert_int_equal(PARSE(p, "--other"), CLI_USAGE);
    assert_int_equal(PARSE(p, "-x"), CLI_USAGE);
    assert_int_equal(PARSE(p, "--text"), CLI_USAGE);
    assert_int_equal(PARSE(p, "--number", "101"), CLI_USAGE);
    assert_int_equal(PARSE(p, "--number", "-1"), CLI_USAGE);
    assert_int_equal(PARSE(p, "--number", "7x"), CLI_USAGE);
    assert_int_equal(PARSE(p, "--flag=yes"), CLI_USAGE);
    assert_int_equal(PARSE(p, "--tex", "x"), CLI_USAGE);
    assert_int_equal(PARSE(p, "--help", "--other"), CLI_HELPED);
}

static void lists_and_words_are_bounded(void **state)
{
    char *argv[CLI_WORDS_MAX + 1];
    char *list[2 * (CLI_LIST_MAX + 1)];
    struct parsed p;
    char word[] = "w";
    char flag[] = "-l";

    (void)state;
    for (int i = 0; i <= CLI_WORDS_MAX; i++)
        argv[i] = word;
    assert_int_equal(parse(&p, CLI_WORDS_MAX, argv), CLI_OK);
    assert_int_equal(parse(&p, CLI_WORDS_MAX + 1, argv), CLI_USAGE);
    for (int i = 0; i <= CLI_LIST_MAX; i++) {
        list[2 * i] = flag;
        list[2 * i + 1] = word;
    }
    assert_int_equal(parse(&p, 2 * CLI_LIST_MAX, list), CLI_OK);
    assert_int_equal(parse(&p, 2 * CLI_LIST_MAX + 2, list), CLI_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_come_in_every_spelling),
        cmocka_unit_test(a_dash_and_all_behind_two_are_words),
        cmocka_unit_test(a_value_may_begin_with_a_dash_or_be_empty),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(lists_and_words_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
