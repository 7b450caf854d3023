/* SPDX-License-Identifier: Apache-2.0 */
/* A request in the terms of a schema: columns, keys, the bucket that can hold a key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/row_key.h"
#include "participant/read/read_request.h"

enum { BUCKETS = 16 };

/* t(day DATE key, id BIGINT key, name VARCHAR(10) key, amount DECIMAL(10,2)), hashed by id and day.
 */
static int setup(void **state)
{
    struct msg_read_point_reply *point = calloc(1, sizeof *point);
    const struct schema_column columns[] = {
        {.name = "day", .type = {.kind = TYPE_DATE}, .is_key = true},
        {.name = "id", .type = {.kind = TYPE_BIGINT}, .is_key = true, .nullable = true},
        {.name = "name", .type = {.kind = TYPE_VARCHAR, .length = 10}, .is_key = true},
        {.name = "amount", .type = {.kind = TYPE_DECIMAL, .precision = 10, .scale = 2}},
    };

    msg_read_point_reply_init(point);
    point->schema.key_model = KEY_UNIQUE;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(schema_add_column(&point->schema, &columns[i], NULL), 0);
    point->schema.key_count = 3;
    point->distribution_count = 2;
    point->distribution = calloc(2, sizeof *point->distribution);
    point->distribution[0] = 1;
    point->distribution[1] = 0;
    point->tablet_count = BUCKETS;
    point->tablets = calloc(BUCKETS, sizeof *point->tablets);
    *state = point;
    return 0;
}

static int teardown(void **state)
{
    msg_read_point_reply_close(*state);
    free(*state);
    return 0;
}

static void add_text(struct buf *texts, uint32_t *count, const char *text)
{
    buf_append_str(&texts[(*count)++], text);
}

static int make(struct msg_read_point_reply *point, struct read_request *request,
                struct read_terms *terms, struct tg_errmsg *msg)
{
    msg->text[0] = 0;
    int err = read_terms_make(request, point, terms, msg);
    read_request_close(request);
    return err;
}

static void test_all_visible_columns_are_shown_by_default(void **state)
{
    struct msg_read_point_reply *point = *state;
    struct read_request request = {.kind = READ_SCAN};
    struct read_terms terms;
    struct tg_errmsg msg;

    assert_int_equal(make(point, &request, &terms, &msg), 0);
    assert_int_equal(terms.shown_count, 4);
    assert_int_equal(terms.column_count, 4);
    assert_int_equal(terms.delete_sign, -1);
    assert_string_equal(terms.shown[3].name, "amount");
    assert_int_equal(terms.ids[3], point->schema.columns[3].id);
    assert_int_equal(terms.bucket, -1);
    assert_int_equal(terms.from.len + terms.to.len, 0);
    read_terms_close(&terms);
}

static void test_columns_are_found_by_name_in_the_order_asked(void **state)
{
    struct msg_read_point_reply *point = *state;
    struct read_request request = {.kind = READ_SCAN, .columns = " AMOUNT, `day` ,"};
    struct read_terms terms;
    struct tg_errmsg msg;

    assert_int_equal(make(point, &request, &terms, &msg), 0);
    assert_int_equal(terms.shown_count, 2);
    assert_string_equal(terms.shown[0].name, "amount");
    assert_string_equal(terms.shown[1].name, "day");
    read_terms_close(&terms);
    strcpy(request.columns, "day,nothing");
    assert_int_equal(make(point, &request, &terms, &msg), TG_INVALID);
    assert_non_null(strstr(msg.text, "no column 'nothing'"));
    read_terms_close(&terms);
    strcpy(request.columns, "day,id,Day");
    assert_int_equal(make(point, &request, &terms, &msg), TG_INVALID);
    assert_non_null(strstr(msg.text, "named twice"));
    read_terms_close(&terms);
    strcpy(request.columns, "__DORIS_DELETE_SIGN__");
    assert_int_equal(make(point, &request, &terms, &msg), TG_INVALID);
    read_terms_close(&terms);
}

static void test_the_delete_sign_is_read_where_deletions_are_told(void **state)
{
    struct msg_read_point_reply *point = *state;
    struct read_request scan = {.kind = READ_SCAN, .include_deleted = true};
    struct read_request changes = {.kind = READ_CHANGES};
    struct read_terms terms;
    struct tg_errmsg msg;

    assert_int_equal(make(point, &scan, &terms, &msg), 0);
    assert_int_equal(terms.delete_sign, 4);
    assert_int_equal(terms.ids[4], COLUMN_ID_DELETE_SIGN);
    assert_int_equal(terms.shown_count, 4);
    read_terms_close(&terms);
    assert_int_equal(make(point, &changes, &terms, &msg), 0);
    assert_int_equal(terms.delete_sign, 4);
    read_terms_close(&terms);
    point->schema.key_model = KEY_DUPLICATE;
    assert_int_equal(make(point, &changes, &terms, &msg), 0);
    assert_int_equal(terms.delete_sign, -1);
    read_terms_close(&terms);
}

static void encode(struct msg_read_point_reply *point, const char *const *texts, uint32_t count,
                   struct buf *out, uint64_t *hash)
{
    struct vector vectors[3];
    const struct vector *columns[3];

    for (uint32_t i = 0; i < count; i++) {
        union type_value value;
        struct column_type type = point->schema.columns[i].type;

        vector_init(&vectors[i], type);
        columns[i] = &vectors[i];
        if (type_is_bytes(type)) {
            assert_int_equal(vector_append_bytes(&vectors[i], texts[i], strlen(texts[i])), 0);
        } else {
            assert_int_equal(type_parse(type, texts[i], strlen(texts[i]), 0, &value), TYPE_PARSED);
            assert_int_equal(vector_append_fixed(&vectors[i], &value), 0);
        }
    }
    row_key_encode(columns, count, 0, out);
    if (count >= 2) {
        const struct vector *hashed[] = {columns[1], columns[0]};

        row_key_hash(hashed, 2, 0, 1, hash);
    }
    for (uint32_t i = 0; i < count; i++)
        vector_close(&vectors[i]);
}

static void test_a_get_covers_all_keys_that_begin_with_it(void **state)
{
    static const char *const texts[] = {"2026-01-31", "42", "x"};
    struct msg_read_point_reply *point = *state;

    for (uint32_t given = 1; given <= 3; given++) {
        struct read_request request = {.kind = READ_GET};
        struct read_terms terms;
        struct tg_errmsg msg;
        struct buf prefix = BUF_INIT;
        uint64_t hash = 0;

        for (uint32_t i = 0; i < given; i++)
            add_text(request.from, &request.from_count, texts[i]);
        assert_int_equal(make(point, &request, &terms, &msg), 0);
        encode(point, texts, given, &prefix, &hash);
        assert_true(slice_equal(slice_of(terms.from.data, terms.from.len),
                                slice_of(prefix.data, prefix.len)));
        assert_int_equal(terms.to.len, terms.from.len + 1);
        /* The bucket is known once all columns that it hangs on are. */
        if (given >= 2)
            assert_int_equal(terms.bucket, row_key_bucket(hash, BUCKETS));
        else
            assert_int_equal(terms.bucket, -1);
        read_terms_close(&terms);
        buf_close(&prefix);
    }
}

static void test_a_range_is_two_prefixes(void **state)
{
    static const char *const low[] = {"2026-01-31", "5"};
    static const char *const high[] = {"2026-02-28"};
    struct msg_read_point_reply *point = *state;
    struct read_request request = {.kind = READ_RANGE};
    struct read_terms terms;
    struct tg_errmsg msg;
    struct buf from = BUF_INIT, to = BUF_INIT;
    uint64_t hash;

    add_text(request.from, &request.from_count, low[0]);
    add_text(request.from, &request.from_count, low[1]);
    add_text(request.to, &request.to_count, high[0]);
    assert_int_equal(make(point, &request, &terms, &msg), 0);
    encode(point, low, 2, &from, &hash);
    encode(point, high, 1, &to, &hash);
    assert_true(
        slice_equal(slice_of(terms.from.data, terms.from.len), slice_of(from.data, from.len)));
    assert_true(slice_equal(slice_of(terms.to.data, terms.to.len), slice_of(to.data, to.len)));
    assert_int_equal(terms.bucket, -1);
    read_terms_close(&terms);
    buf_close(&from);
    buf_close(&to);
}

static void test_keys_that_are_no_keys_are_refused(void **state)
{
    struct msg_read_point_reply *point = *state;
    struct read_request request = {.kind = READ_GET};
    struct read_terms terms;
    struct tg_errmsg msg;

    add_text(request.from, &request.from_count, "tomorrow");
    assert_int_equal(make(point, &request, &terms, &msg), TG_INVALID);
    assert_non_null(strstr(msg.text, "'tomorrow' is not a value of key column day"));
    read_terms_close(&terms);
    request.from_count = 0;
    for (unsigned i = 0; i < 4; i++)
        add_text(request.from, &request.from_count, "1");
    assert_int_equal(make(point, &request, &terms, &msg), TG_INVALID);
    assert_non_null(strstr(msg.text, "4 key values are given, the table has 3"));
    read_terms_close(&terms);
}

static void test_a_null_in_a_key_is_written_as_in_csv(void **state)
{
    struct msg_read_point_reply *point = *state;
    struct read_request request = {.kind = READ_GET};
    struct read_terms terms;
    struct tg_errmsg msg;

    add_text(request.from, &request.from_count, "2026-01-31");
    add_text(request.from, &request.from_count, "\\N");
    assert_int_equal(make(point, &request, &terms, &msg), 0);
    assert_int_equal(terms.from.data[terms.from.len - 1], 0);
    assert_true(terms.bucket >= 0);
    read_terms_close(&terms);
}

static void test_a_key_longer_than_any_stored_one_is_refused(void **state)
{
    struct msg_read_point_reply *point = *state;
    struct read_request request = {.kind = READ_GET};
    struct read_terms terms;
    struct tg_errmsg msg;

    add_text(request.from, &request.from_count, "2026-01-31");
    add_text(request.from, &request.from_count, "1");
    memset(buf_extend(&request.from[request.from_count++], ROW_KEY_BYTES_MAX), 'x',
           ROW_KEY_BYTES_MAX);
    assert_int_equal(make(point, &request, &terms, &msg), TG_INVALID);
    assert_non_null(strstr(msg.text, "longer than"));
    read_terms_close(&terms);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_visible_columns_are_shown_by_default),
        TEST(test_columns_are_found_by_name_in_the_order_asked),
        TEST(test_the_delete_sign_is_read_where_deletions_are_told),
        TEST(test_a_get_covers_all_keys_that_begin_with_it),
        TEST(test_a_range_is_two_prefixes),
        TEST(test_keys_that_are_no_keys_are_refused),
        TEST(test_a_null_in_a_key_is_written_as_in_csv),
        TEST(test_a_key_longer_than_any_stored_one_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
