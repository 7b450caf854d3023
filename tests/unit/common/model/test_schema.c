/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: built, refused with a reason, found, copied, encoded. */
#include "common/model/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/msgpack.h"

#define T(k)       ((struct column_type){.kind = TYPE_##k})
#define VARCHAR(n) ((struct column_type){.kind = TYPE_VARCHAR, .length = (n)})

static struct schema_column column_of(const char *name, struct column_type type, bool is_key)
{
    struct schema_column column = {.type = type, .is_key = is_key, .nullable = !is_key};
    snprintf(column.name, sizeof column.name, "%s", name);
    return column;
}

static void add(struct schema *schema, const char *name, struct column_type type, bool is_key)
{
    struct schema_column column = column_of(name, type, is_key);
    struct tg_errmsg msg = {""};
    if (schema_add_column(schema, &column, &msg) != 0)
        fail_msg("%s", msg.text);
}

/* A UNIQUE table of four columns, one with a default and a comment. */
static void build(struct schema *schema)
{
    schema_init(schema);
    schema->key_model = KEY_UNIQUE;
    add(schema, "id", T(BIGINT), true);
    add(schema, "Name", VARCHAR(20), true);
    struct schema_column price = column_of(
        "price", (struct column_type){.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}, false);
    price.default_kind = DEFAULT_TEXT;
    price.default_text = (char[]){"1.50"};
    price.comment = (char[]){"in euros, \xE2\x82\xAC"};
    assert_int_equal(schema_add_column(schema, &price, NULL), 0);
    struct schema_column at =
        column_of("at", (struct column_type){.kind = TYPE_DATETIME, .scale = 3}, false);
    at.default_kind = DEFAULT_NOW;
    assert_int_equal(schema_add_column(schema, &at, NULL), 0);
}

static void assert_same_schema(const struct schema *a, const struct schema *b)
{
    struct buf x = BUF_INIT, y = BUF_INIT;
    schema_encode(a, &x);
    schema_encode(b, &y);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.data, y.data, x.len);
    assert_int_equal(a->key_count, b->key_count);
    buf_close(&x);
    buf_close(&y);
}

static void test_columns_get_ids_and_are_found_by_name_in_any_case(void **state)
{
    (void)state;
    struct schema schema;
    build(&schema);
    assert_int_equal(schema_validate(&schema, NULL), 0);
    assert_int_equal(schema.key_count, 2);
    assert_int_equal(schema.columns[0].id, 1);
    assert_int_equal(schema.columns[3].id, 4);
    assert_int_equal(schema.next_column_id, 5);
    assert_int_equal(schema_find(&schema, "NAME", 4), 1);
    assert_int_equal(schema_find(&schema, "namex", 4), 1);
    assert_int_equal(schema_find(&schema, "nam", 3), -1);
    assert_int_equal(schema_find(&schema, "namex", 5), -1);
    assert_int_equal(schema_find_id(&schema, 3), 2);
    assert_int_equal(schema_find_id(&schema, 9), -1);
    schema_close(&schema);
}

static void test_only_unique_tables_store_the_delete_sign(void **state)
{
    (void)state;
    struct schema schema;
    build(&schema);
    assert_int_equal(schema_stored_count(&schema), 5);
    assert_int_equal(schema_stored_id(&schema, 0), 1);
    assert_int_equal(schema_stored_id(&schema, 4), COLUMN_ID_DELETE_SIGN);
    assert_int_equal(schema_stored_type(&schema, 4).kind, TYPE_TINYINT);
    assert_int_equal(schema_stored_type(&schema, 1).kind, TYPE_VARCHAR);
    schema.key_model = KEY_DUPLICATE;
    assert_int_equal(schema_stored_count(&schema), 4);
    schema_close(&schema);
}

static void test_a_schema_reads_back_as_it_was_written(void **state)
{
    (void)state;
    struct schema schema, copy, back;
    struct buf bytes = BUF_INIT;
    build(&schema);
    assert_int_equal(schema_copy(&schema, &copy), 0);
    assert_same_schema(&schema, &copy);
    assert_ptr_not_equal(schema.columns[2].default_text, copy.columns[2].default_text);
    schema_encode(&schema, &bytes);
    schema_init(&back);
    struct cursor cursor;
    cursor_init(&cursor, bytes.data, bytes.len);
    assert_int_equal(schema_decode(&cursor, &back), 0);
    assert_int_equal(cursor_finish(&cursor), 0);
    assert_same_schema(&schema, &back);
    assert_string_equal(back.columns[2].default_text, "1.50");
    assert_null(back.columns[0].comment);
    schema_close(&schema);
    schema_close(&copy);
    schema_close(&back);
    buf_close(&bytes);
}

static void test_cut_or_changed_bytes_are_never_accepted_as_a_broken_schema(void **state)
{
    (void)state;
    struct schema schema, back;
    struct buf bytes = BUF_INIT;
    build(&schema);
    schema_encode(&schema, &bytes);
    schema_init(&back);
    for (size_t len = 0; len < bytes.len; len++) {
        uint8_t *cut = malloc(len > 0 ? len : 1);
        memcpy(cut, bytes.data, len);
        struct cursor cursor;
        cursor_init(&cursor, cut, len);
        assert_int_equal(schema_decode(&cursor, &back), TG_CORRUPT);
        assert_int_equal(back.column_count, 0);
        free(cut);
    }
    for (size_t at = 0; at < bytes.len; at++) {
        for (unsigned byte = 0; byte < 256; byte += 5) {
            uint8_t kept = bytes.data[at];
            bytes.data[at] = (uint8_t)byte;
            struct cursor cursor;
            cursor_init(&cursor, bytes.data, bytes.len);
            if (schema_decode(&cursor, &back) == 0) {
                for (uint32_t i = 0; i < back.column_count; i++) {
                    assert_int_equal(type_validate(back.columns[i].type, NULL), 0);
                    assert_int_equal(back.columns[i].is_key, i < back.key_count);
                }
                schema_close(&back);
            }
            bytes.data[at] = kept;
        }
    }
    schema_close(&schema);
    buf_close(&bytes);
}

static void assert_column_refused(const struct schema_column *column, int err, const char *reason)
{
    struct schema schema;
    struct tg_errmsg msg = {""};
    build(&schema);
    assert_int_equal(schema_add_column(&schema, column, &msg), err);
    if (strstr(msg.text, reason) == NULL)
        fail_msg("'%s' does not say '%s'", msg.text, reason);
    assert_int_equal(schema.column_count, 4);
    schema_close(&schema);
}

static void test_bad_columns_are_refused_with_a_reason(void **state)
{
    (void)state;
    struct schema_column column = column_of("ID", T(INT), false);
    assert_column_refused(&column, TG_EXISTS, "column 'ID' is named twice");
    column = column_of("", T(INT), false);
    assert_column_refused(&column, TG_INVALID, "no name");
    column = column_of("a\tb", T(INT), false);
    assert_column_refused(&column, TG_INVALID, "control character");
    column = column_of("a\xFF", T(INT), false);
    assert_column_refused(&column, TG_INVALID, "not UTF-8");
    column = column_of("__doris_delete_sign__", T(TINYINT), false);
    assert_column_refused(&column, TG_INVALID, "is reserved");
    column = column_of("v", VARCHAR(70000), false);
    assert_column_refused(&column, TG_INVALID, "column 'v': VARCHAR: length 70000");
    memset(column.name, 'x', sizeof column.name);
    assert_column_refused(&column, TG_INVALID, "longer than 64 bytes");
}

/* A table of one INT key and the column; says what schema_validate thinks. */
static int validate_with(const struct schema_column *column, struct tg_errmsg *msg)
{
    struct schema schema;
    schema_init(&schema);
    add(&schema, "k", T(INT), true);
    int err = schema_add_column(&schema, column, msg);
    if (err == 0)
        err = schema_validate(&schema, msg);
    schema_close(&schema);
    return err;
}

static void test_defaults_must_be_values_of_their_columns(void **state)
{
    (void)state;
    static const struct {
        struct column_type type;
        uint8_t kind;
        const char *text;
        bool nullable;
        const char *reason; /* NULL: fine */
    } ROWS[] = {
        {{.kind = TYPE_INT}, DEFAULT_TEXT, "7", true, NULL},
        {{.kind = TYPE_INT}, DEFAULT_TEXT, "x", true, "default 'x' is not a value of its type"},
        {{.kind = TYPE_TINYINT}, DEFAULT_TEXT, "300", true, "is not a value"},
        {{.kind = TYPE_VARCHAR, .length = 3}, DEFAULT_TEXT, "abc", true, NULL},
        {{.kind = TYPE_VARCHAR, .length = 3}, DEFAULT_TEXT, "abcd", true, "4 bytes is too long"},
        {{.kind = TYPE_JSON}, DEFAULT_TEXT, "{", true, "is not a value"},
        {{.kind = TYPE_INT}, DEFAULT_NULL, NULL, true, NULL},
        {{.kind = TYPE_INT}, DEFAULT_NULL, NULL, false, "DEFAULT NULL, but it is NOT NULL"},
        {{.kind = TYPE_DATETIME}, DEFAULT_NOW, NULL, false, NULL},
        {{.kind = TYPE_INT}, DEFAULT_NOW, NULL, false, "only be the default of DATE and DATETIME"},
        {{.kind = TYPE_INT}, DEFAULT_TEXT, NULL, false, "does not fit its kind"},
        {{.kind = TYPE_INT}, 9, NULL, false, "unknown kind of default"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct schema_column column = column_of("v", ROWS[i].type, false);
        struct tg_errmsg msg = {""};
        column.default_kind = ROWS[i].kind;
        column.default_text = (char *)ROWS[i].text;
        column.nullable = ROWS[i].nullable;
        int err = validate_with(&column, &msg);
        assert_int_equal(err, ROWS[i].reason == NULL ? 0 : TG_INVALID);
        if (ROWS[i].reason != NULL && strstr(msg.text, ROWS[i].reason) == NULL)
            fail_msg("'%s' does not say '%s'", msg.text, ROWS[i].reason);
    }
}

static void assert_invalid(const struct schema *schema, int err, const char *reason)
{
    struct tg_errmsg msg = {""};
    assert_int_equal(schema_validate(schema, &msg), err);
    if (strstr(msg.text, reason) == NULL)
        fail_msg("'%s' does not say '%s'", msg.text, reason);
}

static void test_keys_stand_first_and_have_types_that_can_be_keys(void **state)
{
    (void)state;
    struct schema schema;
    schema_init(&schema);
    assert_invalid(&schema, TG_INVALID, "the table has no columns");
    add(&schema, "v", T(INT), false);
    assert_invalid(&schema, TG_INVALID, "no key column");
    add(&schema, "k", T(INT), true);
    assert_invalid(&schema, TG_INVALID, "key column 'k' stands behind column 'v'");
    schema_close(&schema);

    static const uint8_t KINDS[] = {TYPE_FLOAT, TYPE_DOUBLE, TYPE_STRING, TYPE_JSON};
    for (size_t i = 0; i < sizeof KINDS; i++) {
        schema_init(&schema);
        add(&schema, "k", (struct column_type){.kind = KINDS[i]}, true);
        assert_invalid(&schema, TG_INVALID, "cannot be a key column");
        schema_close(&schema);
    }

    schema_init(&schema);
    add(&schema, "a", VARCHAR(VARCHAR_LENGTH_MAX), true);
    add(&schema, "b", VARCHAR(255), true);
    assert_int_equal(schema_validate(&schema, NULL), 0);
    add(&schema, "c", VARCHAR(VARCHAR_LENGTH_MAX), true);
    assert_invalid(&schema, TG_INVALID, "shorten its VARCHAR columns");
    schema.key_model = KEY_AGGREGATE;
    assert_invalid(&schema, TG_UNSUPPORTED, "AGGREGATE KEY");
    schema.key_model = 77;
    assert_invalid(&schema, TG_INVALID, "unknown key model");
    schema_close(&schema);
}

static void test_there_is_a_largest_number_of_columns(void **state)
{
    (void)state;
    struct schema schema;
    schema_init(&schema);
    for (int i = 0; i < COLUMNS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        add(&schema, name, T(INT), i == 0);
    }
    struct schema_column column = column_of("more", T(INT), false);
    assert_int_equal(schema_add_column(&schema, &column, NULL), TG_LIMIT);
    assert_int_equal(schema_validate(&schema, NULL), 0);
    struct buf bytes = BUF_INIT;
    struct schema back;
    struct cursor cursor;
    schema_encode(&schema, &bytes);
    schema_init(&back);
    cursor_init(&cursor, bytes.data, bytes.len);
    assert_int_equal(schema_decode(&cursor, &back), 0);
    assert_same_schema(&schema, &back);
    buf_close(&bytes);
    schema_close(&schema);
    schema_close(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_get_ids_and_are_found_by_name_in_any_case),
        cmocka_unit_test(test_only_unique_tables_store_the_delete_sign),
        cmocka_unit_test(test_a_schema_reads_back_as_it_was_written),
        cmocka_unit_test(test_cut_or_changed_bytes_are_never_accepted_as_a_broken_schema),
        cmocka_unit_test(test_bad_columns_are_refused_with_a_reason),
        cmocka_unit_test(test_defaults_must_be_values_of_their_columns),
        cmocka_unit_test(test_keys_stand_first_and_have_types_that_can_be_keys),
        cmocka_unit_test(test_there_is_a_largest_number_of_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
