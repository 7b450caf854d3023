/* SPDX-License-Identifier: Apache-2.0 */
/* JSON bodies to rows: forms of documents, keys, values, and independence of where pieces end. */
#include "participant/ingest/json_parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/random.h"

struct fixture {
    struct schema schema;
    struct load_options options;
    struct row_mapping mapping;
};

static const char *lookup(void *ctx, const char *name)
{
    for (const char *const *p = ctx; *p != NULL; p += 2)
        if (strcmp(p[0], name) == 0)
            return p[1];
    return NULL;
}

static void add_column(struct schema *schema, const char *name, bool nullable, const char *def)
{
    struct schema_column column = {.type = {.kind = TYPE_STRING}, .nullable = nullable};
    snprintf(column.name, sizeof column.name, "%s", name);
    column.default_kind = def != NULL ? DEFAULT_TEXT : DEFAULT_NONE;
    column.default_text = (char *)(uintptr_t)def;
    assert_int_equal(schema_add_column(schema, &column, NULL), 0);
}

/* Columns a, b (default dflt), c (not null, default 0). */
static void setup(struct fixture *f, const char *const *headers)
{
    struct tg_errmsg msg = {{0}};
    memset(f, 0, sizeof *f);
    schema_init(&f->schema);
    f->schema.key_model = KEY_DUPLICATE;
    add_column(&f->schema, "a", true, NULL);
    add_column(&f->schema, "b", true, "dflt");
    add_column(&f->schema, "c", false, "0");
    if (load_options_parse(lookup, (void *)(uintptr_t)headers, "L", &f->options, &msg) != 0)
        fail_msg("%s", msg.text);
    assert_int_equal(row_mapping_build(&f->schema, &f->options, 0, &f->mapping, &msg), 0);
}

static void teardown(struct fixture *f)
{
    row_mapping_close(&f->mapping);
    load_options_close(&f->options);
    schema_close(&f->schema);
}

static void print_rows(const struct field_rows *rows, struct buf *out, struct buf *bad)
{
    for (uint32_t r = 0; r < rows->rows; r++) {
        for (uint32_t c = 0; c < rows->columns; c++) {
            uint32_t i = r * rows->columns + c;
            bool literal = false;
            for (uint32_t l = 0; l < rows->literal_count; l++)
                literal |= rows->literals[l].row == r && rows->literals[l].field == c;
            buf_printf(out, literal ? "<!%.*s>" : "<%.*s>", (int)(rows->ends[i] - rows->begins[i]),
                       rows->text + rows->begins[i]);
        }
        buf_append_str(out, "\n");
    }
    for (uint32_t i = 0; i < rows->bad_count; i++)
        buf_printf(bad, "bad %s [%.*s]\n", rows->bad[i].reason, (int)rows->bad[i].line.len,
                   (const char *)rows->bad[i].line.data);
    if (rows->broken)
        buf_append_str(bad, "broken\n");
}

static char *parse(struct fixture *f, const char *body, size_t chunk)
{
    struct json_parser *parser;
    struct buf out = BUF_INIT;
    struct buf bad = BUF_INIT;
    size_t len = strlen(body);
    size_t at = 0;
    bool final = false;
    bool broken = false;

    assert_int_equal(json_parser_open(&f->mapping, &f->options, chunk, &parser), 0);
    while (!final && !broken) {
        uint8_t *to;
        size_t room;
        assert_int_equal(json_parser_room(parser, &to, &room), 0);
        size_t n = len - at < room ? len - at : room;
        memcpy(to, body + at, n);
        json_parser_filled(parser, n);
        at += n;
        final = at == len && n < room;
        struct field_rows rows;
        do {
            assert_int_equal(json_parser_split(parser, final, &rows), 0);
            print_rows(&rows, &out, &bad);
            broken = rows.broken;
        } while (!rows.done && !broken);
    }
    json_parser_close(parser);
    buf_append(&out, bad.data, bad.len);
    buf_close(&bad);
    assert_non_null(buf_cstr(&out));
    return out.data == NULL ? strdup("") : (char *)buf_take(&out, &len);
}

static void check(const char *const *headers, const char *body, const char *expected)
{
    struct fixture f;
    setup(&f, headers);
    for (size_t chunk = 16; chunk < strlen(body) + 20; chunk++) {
        char *got = parse(&f, body, chunk);
        assert_string_equal(got, expected);
        free(got);
    }
    char *got = parse(&f, body, JSON_CHUNK_BYTES);
    assert_string_equal(got, expected);
    free(got);
    teardown(&f);
}

#define HEADERS(...) ((const char *const[]){"format", "json", __VA_ARGS__, NULL, NULL})

static void test_lines_are_documents(void **state)
{
    (void)state;
    check(HEADERS("read_json_by_line", "true"),
          "\xEF\xBB\xBF{\"a\":1,\"b\":\"x\",\"c\":2}\n\n  \r\n{\"b\":\"y\\n\",\"a\":[1, "
          "2],\"c\":{\"k\":null}}\r\n{\"c\":3}",
          "<1><x><2>\n<[1,2]><y\n><{\"k\":null}>\n<\\N><dflt><3>\n");
}

static void test_first_of_equal_keys_counts_and_booleans_are_numbers(void **state)
{
    (void)state;
    check(HEADERS("read_json_by_line", "true"), "{\"a\":true,\"a\":2,\"A\":5,\"b\":false}\n",
          "<1><0><0>\n");
}

static void test_null_is_null_and_refused_where_it_must_not_be(void **state)
{
    (void)state;
    check(HEADERS("read_json_by_line", "true"),
          "{\"a\":null,\"b\":null}\n{\"a\":1,\"c\":null}\n{\"a\":\"\\\\N\"}\n",
          "<\\N><\\N><0>\n<!\\N><dflt><0>\n"
          "bad Json value is null, but the column `c` is not nullable. [{\"a\":1,\"c\":null}]\n");
}

static void test_an_array_is_read_element_by_element(void **state)
{
    (void)state;
    check(HEADERS("strip_outer_array", "true"), " [ {\"a\":\"]\"} , {\"a\":2}\n,{\"x\":1}, 7 ] \n",
          "<]><dflt><0>\n<2><dflt><0>\n"
          "bad There is no column matching jsonpaths in the json file, columns:[a, b, c, ], please "
          "check columns and jsonpaths: [{\"x\":1}]\n"
          "bad Not an json object or json array [7]\n");
}

/* The rows before the fault may come out in several batches: only the end is compared. */
static void check_broken(const char *body)
{
    struct fixture f;
    setup(&f, HEADERS("strip_outer_array", "true"));
    for (size_t chunk = 16; chunk < strlen(body) + 20; chunk++) {
        char *got = parse(&f, body, chunk);
        assert_true(strlen(got) > 7 && strcmp(got + strlen(got) - 7, "broken\n") == 0);
        free(got);
    }
    teardown(&f);
}

static void test_a_malformed_array_breaks_the_load(void **state)
{
    static const char *const BODIES[] = {"[{\"a\":1},{\"a\":\"x\\q\"}]",
                                         "[{\"a\":1},{\"a\":2}",
                                         "[{\"a\":1},]",
                                         "[{\"a\":1} {\"a\":2}]",
                                         "[{\"a\":1}] x",
                                         "[{\"a\":1}][{\"a\":2}]",
                                         "[{\"a\":1},{\"a\":",
                                         "{\"a\":1}",
                                         "[",
                                         "x"};
    (void)state;
    for (size_t i = 0; i < sizeof BODIES / sizeof BODIES[0]; i++)
        check_broken(BODIES[i]);
}

static void test_empty_bodies_have_no_rows(void **state)
{
    (void)state;
    check(HEADERS("strip_outer_array", "true"), "[]", "");
    check(HEADERS("strip_outer_array", "true"), "", "");
    check(HEADERS("strip_outer_array", "true"), " \n", "");
    check(HEADERS("read_json_by_line", "true"), "\n", "");
    check(HEADERS("read_json_by_line", "false"), "", "");
}

static void test_a_whole_body_may_be_one_object(void **state)
{
    (void)state;
    check(HEADERS("read_json_by_line", "false"), "{\"a\":\n1\n}\n", "<1><dflt><0>\n");
    check(HEADERS("read_json_by_line", "false"), "[{\"a\":1}]",
          "bad JSON data is array-object, `strip_outer_array` must be TRUE. [[{\"a\":1}]]\n");
}

static void test_a_root_is_followed_before_rows_are_made(void **state)
{
    (void)state;
    check(HEADERS("read_json_by_line", "true", "json_root", "$.d.r"),
          "{\"d\":{\"r\":{\"a\":1}}}\n{\"d\":null}\n",
          "<1><dflt><0>\nbad JSON Root not found. [{\"d\":null}]\n");
    check(HEADERS("strip_outer_array", "true", "json_root", "$.r"),
          "{\"n\":2,\"r\":[{\"a\":1},{\"z\":1},{\"a\":2}]}",
          "<1><dflt><0>\n<2><dflt><0>\n"
          "bad There is no column matching jsonpaths in the json file, columns:[a, b, c, ], please "
          "check columns and jsonpaths: [{\"z\":1}]\n");
}

static void test_lines_may_be_arrays(void **state)
{
    (void)state;
    check(HEADERS("read_json_by_line", "true", "strip_outer_array", "true"),
          "[{\"a\":1},{\"a\":2}]\n[]\n{\"a\":3}\n",
          "<1><dflt><0>\n<2><dflt><0>\nbad JSON data is not an array-object, `strip_outer_array` "
          "must be FALSE. [{\"a\":3}]\n");
}

static void test_paths_pick_values(void **state)
{
    (void)state;
    check(HEADERS("read_json_by_line", "true", "jsonpaths",
                  "[\"$.x.y\",\"$.z[1]\",\"$.\\\"q.r\\\"\"]"),
          "{\"x\":{\"y\":1},\"z\":[1,\"two\"],\"q.r\":3}\n{\"x\":null,\"z\":[],\"q.r\":4}\n",
          "<1><two><3>\n<\\N><dflt><4>\n");
}

static void test_bad_lines_are_bad_rows(void **state)
{
    (void)state;
    check(HEADERS("read_json_by_line", "true"), "{\"a\":1}\n{\"a\":}\n[1]\n7\n{\"a\":2}\n",
          "<1><dflt><0>\n<2><dflt><0>\n"
          "bad Parse json data for JsonDoc failed. code: 3, error info: JSON at byte 5: unexpected "
          "character, expected a valid JSON value [{\"a\":}]\n"
          "bad JSON data is array-object, `strip_outer_array` must be TRUE. [[1]]\n"
          "bad Not an json object or json array [7]\n");
}

/* ---- lines that are all alike, and those that only look so ---- */

static const char *const VALUES[] = {
    "1",
    "-7",
    "0",
    "12.50",
    "123456789012345678",
    "1e5",
    "-0.0",
    "01",
    "1.",
    "-",
    "+1",
    "null",
    "true",
    "false",
    "nul",
    "tru",
    "\"\"",
    "\"x\"",
    "\"a text of some length\"",
    "\"sixteen bytes ok\"",
    "\"with \\\"escapes\\\"\"",
    "\"\\\\N\"",
    "\"\xC3\xA4\"",
    "\"\xC3\"",
    "\"tab\there\"",
    "\"open",
    "[1,2]",
    "{\"k\":\"v\"}",
    " 5",
    "5 ",
    "",
};

static const char *const KEYS[] = {
    "\"a\"", "\"b\"",       "\"c\"", "\"other\"", "\"a name that is longer than words\"",
    "\"A\"", "\"\\u0061\"",
};

/* A line of some objects' shape: now and then with a value, a key or a mark out of the ordinary. */
static void add_line(struct random_source *random, unsigned order, struct buf *out)
{
    static const unsigned ORDERS[][5] = {{0, 1, 2, 3, 4}, {2, 3, 0, 1, 4}, {1, 0, 2, 4, 3}};
    unsigned count = random_below(random, 30) == 0 ? 4 : 5;
    enum { ORDINARY = 5 }; /* the first values */

    buf_append_str(out, random_below(random, 60) == 0 ? "{ " : "{");
    for (unsigned i = 0; i < count; i++) {
        bool odd_key = random_below(random, 80) == 0;
        bool odd_value = random_below(random, 25) == 0;
        size_t values = sizeof VALUES / sizeof VALUES[0];
        size_t keys = sizeof KEYS / sizeof KEYS[0];

        buf_append_str(out, i == 0 ? "" : random_below(random, 99) == 0 ? ", " : ",");
        buf_append_str(out, KEYS[odd_key ? random_below(random, keys) : ORDERS[order][i]]);
        buf_append_u8(out, ':');
        buf_append_str(out, VALUES[random_below(random, odd_value ? values : ORDINARY)]);
    }
    buf_append_str(out, random_below(random, 70) == 0 ? "}}" : "}");
}

static void append_apart(const char *text, struct buf *rows, struct buf *bad)
{
    const char *at = strncmp(text, "bad ", 4) == 0 ? text : strstr(text, "\nbad ");
    size_t len = at == NULL ? strlen(text) : at == text ? 0 : (size_t)(at - text) + 1;

    buf_append(rows, text, len);
    buf_append_str(bad, text + len);
}

/* A file read as one gives what its lines give, each read by a parser that knows no row before. */
static void test_lines_alike_give_what_each_line_gives(void **state)
{
    struct random_seeded random;
    struct fixture f;

    (void)state;
    random_seeded_init(&random, 7);
    for (unsigned file = 0; file < 60; file++) {
        struct buf body = BUF_INIT;
        struct buf rows = BUF_INIT;
        struct buf bad = BUF_INIT;
        unsigned order = (unsigned)random_below(&random.source, 3);

        setup(&f, HEADERS("read_json_by_line", "true"));
        for (unsigned line = 0; line < 80; line++) {
            size_t begin = body.len;

            if (random_below(&random.source, 40) == 0)
                order = (unsigned)random_below(&random.source, 3);
            add_line(&random.source, order, &body);
            char *alone = parse(&f, buf_cstr(&body) + begin, 4096);
            append_apart(alone, &rows, &bad);
            free(alone);
            buf_append_u8(&body, '\n');
        }
        buf_append(&rows, bad.data, bad.len);
        char *together = parse(&f, buf_cstr(&body), 64 + file * 50);
        assert_string_equal(together, buf_cstr(&rows));
        free(together);
        buf_close(&rows);
        buf_close(&bad);
        buf_close(&body);
        teardown(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_documents),
        cmocka_unit_test(test_first_of_equal_keys_counts_and_booleans_are_numbers),
        cmocka_unit_test(test_null_is_null_and_refused_where_it_must_not_be),
        cmocka_unit_test(test_an_array_is_read_element_by_element),
        cmocka_unit_test(test_a_malformed_array_breaks_the_load),
        cmocka_unit_test(test_empty_bodies_have_no_rows),
        cmocka_unit_test(test_a_whole_body_may_be_one_object),
        cmocka_unit_test(test_a_root_is_followed_before_rows_are_made),
        cmocka_unit_test(test_lines_may_be_arrays),
        cmocka_unit_test(test_paths_pick_values),
        cmocka_unit_test(test_bad_lines_are_bad_rows),
        cmocka_unit_test(test_lines_alike_give_what_each_line_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
