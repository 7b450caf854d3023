/* SPDX-License-Identifier: Apache-2.0 */
/* Rows do not depend on where the body was cut, and are those of a naive reference. */
#include "participant/ingest/csv_splitter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/random.h"
#include "common/base/utf8.h"

static struct csv_format format_of(const char *column, const char *line, uint32_t columns)
{
    struct csv_format format = {.enclose = -1, .escape = -1, .columns = columns};
    assert_int_equal(load_text_separator(column, &format.column, NULL), 0);
    assert_int_equal(load_text_separator(line, &format.line, NULL), 0);
    format.strip_cr = format.line.len == 1 && format.line.bytes[0] == '\n';
    return format;
}

static bool is_literal(const struct field_rows *rows, uint32_t row, uint32_t field)
{
    for (uint32_t i = 0; i < rows->literal_count; i++)
        if (rows->literals[i].row == row && rows->literals[i].field == field)
            return true;
    return false;
}

static void print_rows(const struct field_rows *rows, struct buf *good, struct buf *bad)
{
    for (uint32_t r = 0; r < rows->rows; r++) {
        for (uint32_t f = 0; f < rows->columns; f++) {
            uint32_t i = r * rows->columns + f;
            assert_true(rows->begins[i] <= rows->ends[i]);
            buf_append_str(good, is_literal(rows, r, f) ? "<!" : "<");
            buf_append(good, rows->text + rows->begins[i], rows->ends[i] - rows->begins[i]);
            buf_append_str(good, ">");
        }
        buf_append_str(good, "\n");
    }
    for (uint32_t i = 0; i < rows->bad_count; i++) {
        buf_printf(bad, "%d %u ", (int)rows->bad[i].kind, rows->bad[i].found);
        buf_append(bad, rows->bad[i].line.data, rows->bad[i].line.len);
        buf_append_str(bad, "\n");
    }
}

/* Splits body, given in pieces of `piece` bytes, with chunks of `chunk` bytes: good rows, then bad
 * ones. */
static char *split(const struct csv_format *format, const char *body, size_t len, size_t chunk,
                   size_t piece)
{
    struct csv_splitter *splitter;
    struct buf good = BUF_INIT;
    struct buf bad = BUF_INIT;
    size_t at = 0;
    bool final = false;

    assert_int_equal(csv_splitter_open(format, chunk, &splitter), 0);
    while (!final) {
        uint8_t *to;
        size_t room;
        assert_int_equal(csv_splitter_room(splitter, &to, &room), 0);
        while (room > 0 && at < len) {
            size_t n = piece < room ? piece : room;
            n = n < len - at ? n : len - at;
            memcpy(to, body + at, n);
            csv_splitter_filled(splitter, n);
            to += n;
            room -= n;
            at += n;
        }
        final = at == len;
        struct field_rows rows;
        do {
            assert_int_equal(csv_splitter_split(splitter, final, &rows), 0);
            print_rows(&rows, &good, &bad);
        } while (!rows.done);
    }
    csv_splitter_close(splitter);
    buf_append_str(&good, "--\n");
    buf_append(&good, bad.data, bad.len);
    buf_close(&bad);
    assert_non_null(buf_cstr(&good));
    return (char *)buf_take(&good, &len);
}

static void check(const struct csv_format *format, const char *body, const char *expected)
{
    size_t len = strlen(body);
    for (size_t chunk = 16; chunk <= len + 20; chunk++) {
        char *got = split(format, body, len, chunk, 1 + chunk % 7);
        assert_string_equal(got, expected);
        free(got);
    }
    char *got = split(format, body, len, CSV_CHUNK_BYTES, len);
    assert_string_equal(got, expected);
    free(got);
}

static void test_a_last_row_needs_no_delimiter_and_half_a_delimiter_is_data(void **state)
{
    (void)state;
    struct csv_format format = format_of("|", "@@", 2);
    check(&format, "1|aa@@2|bb@@3|cc", "<1><aa>\n<2><bb>\n<3><cc>\n--\n");
    check(&format, "1|aa@@2|bb@@3|cc@@", "<1><aa>\n<2><bb>\n<3><cc>\n--\n");
    check(&format, "1|aa@@2|bb@@3|cc@", "<1><aa>\n<2><bb>\n<3><cc@>\n--\n");
}

static void test_separators_match_leftmost_and_do_not_overlap(void **state)
{
    (void)state;
    struct csv_format format = format_of("||", "\\n", 4);
    check(&format, "x||y||||\n", "<x><y><><>\n--\n");
    format = format_of("aaaa", "\\n", 4);
    check(&format, "111aaaa2222aaaaaaaa\n", "<111><2222><><>\n--\n");
    format = format_of("##", "\\n", 3);
    check(&format, "a####b\n", "<a><><b>\n--\n");
}

static void test_lines_are_cut_before_columns(void **state)
{
    (void)state;
    struct csv_format format = format_of("|@|", "|@|\\n", 2);
    check(&format, "1|@|a|@|\n2|@|b|@|\n", "<1><a>\n<2><b>\n--\n");
}

static void test_lf_and_crlf_may_be_mixed(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 2);
    check(&format, "1,abc\n2,def\r\n3,qwe\n4,hello\r\n",
          "<1><abc>\n<2><def>\n<3><qwe>\n<4><hello>\n--\n");
    check(&format, "5,a\rb\n", "<5><a\rb>\n--\n");
    format = format_of(",", "\\r\\n", 2);
    check(&format, "1,abc\r\n2,def\r\n", "<1><abc>\n<2><def>\n--\n");
    format = format_of("\\r", "\\n", 2); /* then it is a separator everywhere */
    check(&format, "1\rabc\n2\r\n", "<1><abc>\n<2><>\n--\n");
}

static void test_enclosed_fields_hold_separators_wherever_the_body_is_cut(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 2);
    format.enclose = '"';
    format.escape = '~';
    format.trim_double_quotes = true;
    check(&format, "1,\"{~\"t~\": ~\"v~\", ~\"u~\": 2}\"\n2,\"a\nb\"\n",
          "<1><{\"t\": \"v\", \"u\": 2}>\n<2><a\nb>\n--\n");
}

static void test_quotes_follow_the_four_x_rules(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 2);
    format.enclose = '"';
    check(&format, "1,\"a\"\"b\"\n", "<1><a\"b>\n--\n");
    check(&format, "1,ab\"c\n2,\"x,y\"\n", "<1><ab\"c>\n<2><x,y>\n--\n");
    check(&format, "1,\"g\"hi\n", "<1><\"g\"hi>\n--\n");
    check(&format, "1,\"aa,\"bbb\"\n", "<1><aa,\"bbb>\n--\n");
    check(&format, "\"1\",\"\"\n", "<1><>\n--\n");
    check(&format, "1,\"\n", "--\n4 0 1,\"\n\n");
}

static void test_an_enclosed_field_that_never_ends_takes_the_rest(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 3);
    format.enclose = '"';
    check(&format, "1,\"a,b\n2,c,d\n", "--\n4 0 1,\"a,b\n2,c,d\n\n");
}

static void test_a_quoted_null_mark_is_text(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 3);
    format.enclose = '"';
    check(&format, "\\N,\"\\N\",x\n", "<\\N><!\\N><x>\n--\n");
    format = format_of(",", "\\n", 2);
    format.trim_double_quotes = true;
    check(&format, "\"\\N\",\"a\n", "<!\\N><\"a>\n--\n");
    format = format_of(",", "\\n", 2);
    format.escape = '\\';
    check(&format, "\\N,\\\\N\n", "<\\N><!\\N>\n--\n");
}

static void test_blank_lines_are_no_rows(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 2);
    check(&format, "1,a\n\n2,b\n\n\r\n", "<1><a>\n<2><b>\n--\n");
    check(&format, "1,a\n \n", "<1><a>\n--\n1 1  \n");
    format = format_of(",", "\\n", 1);
    check(&format, "1\n\n2\r\n\r\n3", "<1>\n<2>\n<3>\n--\n");
}

static void test_rows_of_the_wrong_width_are_told(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 2);
    check(&format, "1\n1,2\n1,2,3\n4,5\n", "<1><2>\n<4><5>\n--\n1 1 1\n1 3 1,2,3\n");
}

static void test_a_line_that_is_not_utf8_is_bad_alone(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 2);
    check(&format, "1,\xC3\xA4\n2,\xFF\n3,c\n", "<1><\xC3\xA4>\n<3><c>\n--\n2 0 2,\xFF\n");
    format = format_of("||", "\\n", 2);
    check(&format, "1||\xC3\xA4\n2||\xFF\n3||c\n", "<1><\xC3\xA4>\n<3><c>\n--\n2 0 2||\xFF\n");
}

static void test_a_byte_order_mark_goes_and_lines_are_skipped(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 2);
    check(&format,
          "\xEF\xBB\xBF"
          "1,a\n",
          "<1><a>\n--\n");
    format.skip_lines = 2;
    check(&format, "k,v\nINT,INT,INT\n1,a\n", "<1><a>\n--\n");
    check(&format, "k,v", "--\n");
}

static void test_a_row_of_very_many_fields_is_one_bad_row(void **state)
{
    (void)state;
    struct csv_format format = format_of(",", "\\n", 2);
    size_t len = 300000;
    char *body = malloc(len + 4);
    memset(body, ',', len);
    memcpy(body + len, "\n1,2", 4);
    char *got = split(&format, body, len + 4, 64 * 1024, len);
    assert_true(strncmp(got, "<1><2>\n--\n1 300001 ,,,", 20) == 0);
    free(got);
    free(body);
}

/* ---- against a naive reference ---- */

static bool at_text(const struct load_separator *s, const char *text, size_t at, size_t len)
{
    return at + s->len <= len && memcmp(text + at, s->bytes, s->len) == 0;
}

/* The same rules without enclose, written as simply as can be. */
static char *reference(const struct csv_format *format, const char *body, size_t len)
{
    struct buf good = BUF_INIT;
    struct buf bad = BUF_INIT;
    size_t from = 0;

    while (from < len) {
        size_t end = from;
        while (end < len && !at_text(&format->line, body, end, len))
            end++;
        size_t next = end < len ? end + format->line.len : len;
        struct buf row = BUF_INIT;
        uint32_t found = 0;
        size_t begin = from;
        size_t text_end = end;
        if (format->strip_cr && text_end > from && body[text_end - 1] == '\r')
            text_end--;
        for (size_t at = from; at <= end;) {
            if (at == end || at_text(&format->column, body, at, end)) {
                size_t stop = at == end ? text_end : at;
                buf_append_str(&row, "<");
                buf_append(&row, body + begin, stop - begin);
                buf_append_str(&row, ">");
                found++;
                if (at == end)
                    break;
                at += format->column.len;
                begin = at;
            } else {
                at++;
            }
        }
        if (text_end > from) {
            if (found != format->columns) {
                buf_printf(&bad, "1 %u ", found);
                buf_append(&bad, body + from, text_end - from);
                buf_append_str(&bad, "\n");
            } else {
                buf_append(&good, row.data, row.len);
                buf_append_str(&good, "\n");
            }
        }
        buf_close(&row);
        from = next;
    }
    buf_append_str(&good, "--\n");
    buf_append(&good, bad.data, bad.len);
    buf_close(&bad);
    assert_non_null(buf_cstr(&good));
    return (char *)buf_take(&good, &len);
}

static void test_random_bodies_split_as_the_reference_does(void **state)
{
    (void)state;
    static const struct {
        const char *column, *line;
    } CASES[] = {{",", "\\n"}, {"||", "\\n"}, {"|@|", "\\r\\n"},
                 {"aa", "ab"}, {",", "@@"},   {"aab", "aa"}};
    static const char LETTERS[] = "aab,,||@@\n\n\r\r12";
    struct random_seeded random;

    random_seeded_init(&random, 7);
    for (int round = 0; round < 4000; round++) {
        size_t c = random_below(&random.source, sizeof CASES / sizeof CASES[0]);
        struct csv_format format = format_of(CASES[c].column, CASES[c].line,
                                             1 + (uint32_t)random_below(&random.source, 3));
        char body[400];
        size_t len = random_below(&random.source, sizeof body);
        for (size_t i = 0; i < len; i++)
            body[i] = LETTERS[random_below(&random.source, sizeof LETTERS - 1)];
        char *expected = reference(&format, body, len);
        char *got = split(&format, body, len, 16 + random_below(&random.source, 300),
                          1 + random_below(&random.source, 50));
        assert_string_equal(got, expected);
        free(expected);
        free(got);
    }
}

/* Quoted bodies: masks (big chunks) and the byte machine (an escape byte that never escapes
 * anything, put far away) agree. */
static void test_random_quoted_bodies_do_not_depend_on_the_way_they_are_read(void **state)
{
    (void)state;
    static const char LETTERS[] = "a\"\"\"\",,\n\nb\r";
    struct random_seeded random;

    random_seeded_init(&random, 11);
    for (int round = 0; round < 4000; round++) {
        struct csv_format format =
            format_of(",", "\\n", 1 + (uint32_t)random_below(&random.source, 3));
        format.enclose = '"';
        char body[400];
        size_t len = random_below(&random.source, sizeof body - 8);
        for (size_t i = 0; i < len; i++)
            body[i] = LETTERS[random_below(&random.source, sizeof LETTERS - 1)];
        char *whole = split(&format, body, len, 4096, len + 1);
        char *pieces = split(&format, body, len, 16 + random_below(&random.source, 100), 3);
        assert_string_equal(pieces, whole);
        /* With an escape byte in sight the chunk is read row by row: here behind the last row. */
        struct csv_format wide = format;
        wide.escape = '\x01';
        char more[sizeof body + 8];
        memcpy(more, body, len);
        memcpy(more + len, "\"\n\x01", 3);
        memcpy(body + len, "\"\n\x02", 3);
        char *masks = split(&format, body, len + 3, 4096, len + 3);
        char *careful = split(&wide, more, len + 3, 4096, len + 3);
        for (char *c = masks; *c != 0; c++)
            if (*c == '\x02')
                *c = '\x01';
        assert_string_equal(careful, masks);
        free(masks);
        free(whole);
        free(pieces);
        free(careful);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_last_row_needs_no_delimiter_and_half_a_delimiter_is_data),
        cmocka_unit_test(test_separators_match_leftmost_and_do_not_overlap),
        cmocka_unit_test(test_lines_are_cut_before_columns),
        cmocka_unit_test(test_lf_and_crlf_may_be_mixed),
        cmocka_unit_test(test_enclosed_fields_hold_separators_wherever_the_body_is_cut),
        cmocka_unit_test(test_quotes_follow_the_four_x_rules),
        cmocka_unit_test(test_an_enclosed_field_that_never_ends_takes_the_rest),
        cmocka_unit_test(test_a_quoted_null_mark_is_text),
        cmocka_unit_test(test_blank_lines_are_no_rows),
        cmocka_unit_test(test_rows_of_the_wrong_width_are_told),
        cmocka_unit_test(test_a_line_that_is_not_utf8_is_bad_alone),
        cmocka_unit_test(test_a_byte_order_mark_goes_and_lines_are_skipped),
        cmocka_unit_test(test_a_row_of_very_many_fields_is_one_bad_row),
        cmocka_unit_test(test_random_bodies_split_as_the_reference_does),
        cmocka_unit_test(test_random_quoted_bodies_do_not_depend_on_the_way_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
