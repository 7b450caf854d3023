/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: level, form, quoting, and whole lines from many threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"

enum { THREADS = 4, LINES_EACH = 200 };

struct seen {
    int lines;
    int bad;
    enum log_level level;
    char last[5000];
};

static void remember(void *data, enum log_level level, const char *line)
{
    struct seen *seen = data;
    seen->lines++;
    seen->level = level;
    if (strchr(line, '\n') != NULL || strlen(line) >= sizeof seen->last)
        seen->bad++;
    else
        strcpy(seen->last, line);
}

static void a_line_has_time_level_part_and_event(void **state)
{
    (void)state;
    struct seen seen = {0};
    log_set_sink(remember, &seen);
    log_warn("raft", "elected term=%d leader=%d", 4, 2);
    log_set_sink(NULL, NULL);
    assert_int_equal(seen.lines, 1);
    assert_int_equal(seen.level, LOG_WARN);
    assert_int_equal(strspn(seen.last, "0123456789-T:.Z"), 27);
    assert_int_equal(seen.last[26], 'Z');
    assert_string_equal(seen.last + 27, " WARN raft elected term=4 leader=2");
}

static void lines_below_the_level_are_dropped(void **state)
{
    (void)state;
    struct seen seen = {0};
    log_set_sink(remember, &seen);
    log_debug("x", "not shown");
    assert_int_equal(seen.lines, 0);
    log_set_level(LOG_DEBUG);
    log_debug("x", "shown");
    assert_int_equal(seen.lines, 1);
    log_set_level(LOG_ERROR);
    log_warn("x", "not shown");
    assert_int_equal(seen.lines, 1);
    log_set_level(LOG_INFO);
    log_set_sink(NULL, NULL);
}

static void levels_have_names(void **state)
{
    (void)state;
    enum log_level level;
    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("error", &level), 0);
    assert_int_equal(level, LOG_ERROR);
    assert_int_equal(log_level_parse("ERROR", &level), TG_INVALID);
    assert_int_equal(log_level_parse("", &level), TG_INVALID);
}

static void line_breaks_inside_do_not_break_the_line(void **state)
{
    (void)state;
    struct seen seen = {0};
    log_set_sink(remember, &seen);
    log_info("x", "forged %s", "a\n2026 ERROR y");
    assert_int_equal(seen.bad, 0);
    assert_non_null(strstr(seen.last, "forged a 2026 ERROR y"));
    char text[10000];
    memset(text, 'z', sizeof text);
    text[sizeof text - 1] = '\0';
    log_info("x", "%s", text);
    log_set_sink(NULL, NULL);
    assert_int_equal(seen.bad, 0);
    size_t len = strlen(seen.last);
    assert_true(len > 4000 && len < 4100);
    assert_string_equal(seen.last + len - 4, "z...");
}

static void quoting_escapes_and_cuts(void **state)
{
    (void)state;
    assert_string_equal(log_quote("a \"b\"\n\\\x01\xC3\xA9"),
                        "\"a \\\"b\\\"\\n\\\\\\x01\xC3\xA9\"");
    assert_string_equal(log_quote(NULL), "\"\"");
    char text[1000];
    memset(text, '\x02', sizeof text);
    text[sizeof text - 1] = '\0';
    const char *quoted = log_quote(text);
    assert_int_equal(strlen(quoted), 400 * 4 + 3 + 2);
    text[400] = '\0';
    assert_int_equal(strlen(log_quote(text)), 400 * 4 + 2);
    const char *first = log_quote("first");
    const char *second = log_quote("second");
    assert_string_equal(first, "\"first\"");
    assert_string_equal(second, "\"second\"");
}

static void *write_lines(void *data)
{
    (void)data;
    for (int i = 0; i < LINES_EACH; i++)
        log_info("thread", "line i=%d text=%s", i, log_quote("a b"));
    return NULL;
}

static void lines_of_many_threads_stay_whole(void **state)
{
    (void)state;
    struct seen seen = {0};
    log_set_sink(remember, &seen);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    log_set_sink(NULL, NULL);
    assert_int_equal(seen.lines, THREADS * LINES_EACH);
    assert_int_equal(seen.bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_level_part_and_event),
        cmocka_unit_test(lines_below_the_level_are_dropped),
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(line_breaks_inside_do_not_break_the_line),
        cmocka_unit_test(quoting_escapes_and_cuts),
        cmocka_unit_test(lines_of_many_threads_stay_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
