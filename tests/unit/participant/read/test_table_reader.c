/* SPDX-License-Identifier: Apache-2.0 */
/* Whole tables read from several nodes: every version equals a model, whoever reads and whoever
 * fails meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/random.h"
#include "common/model/row_key.h"
#include "tests/lib/read_node.h"

enum { KEYS = 50, HISTORY = 14, TEXTS = HISTORY * KEYS };

struct fixture {
    struct loop_thread thread;
    struct read_node nodes[2];
    struct read_table table;
};

static int open_fixture(void **state, bool unique, uint32_t tablets)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct read_node *nodes[] = {&f->nodes[0], &f->nodes[1]};

    loop_thread_open(&f->thread);
    for (node_id i = 0; i < 2; i++)
        read_node_open(&f->nodes[i], &f->thread, i + 1);
    read_table_open(&f->table, unique, tablets, nodes, 2);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return open_fixture(state, true, 4);
}

static int setup_duplicate(void **state)
{
    return open_fixture(state, false, 3);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    read_table_close(&f->table);
    for (unsigned i = 0; i < 2; i++)
        read_node_close(&f->nodes[i]);
    loop_thread_close(&f->thread);
    free(f);
    return 0;
}

/* ---- reading into text ---- */

struct taking {
    struct buf text;
    uint32_t rows, calls;
    uint32_t fail_after; /* rows; 0: never */
    bool changes;
    atomic_bool stop;
    uint32_t stop_after;     /* rows; 0: never */
    struct read_node *fails; /* goes down after the first rows */
};

static int take(void *data, const struct vector *columns, const struct vector *versions,
                uint32_t rows)
{
    struct taking *t = data;

    t->calls++;
    assert_int_equal(versions != NULL, t->changes);
    for (uint32_t i = 0; i < rows; i++) {
        int32_t k;

        memcpy(&k, vector_fixed(&columns[0], i), sizeof k);
        if (t->changes)
            buf_printf(&t->text, "%ld:", *(const int64_t *)vector_fixed(versions, i));
        if (vector_is_null(&columns[1], i))
            buf_printf(&t->text, "%d=-;", k);
        else
            buf_printf(&t->text, "%d=%.*s;", k, (int)vector_bytes(&columns[1], i).len,
                       (const char *)vector_bytes(&columns[1], i).data);
    }
    t->rows += rows;
    if (t->stop_after > 0 && t->rows >= t->stop_after)
        atomic_store(&t->stop, true);
    if (t->fails != NULL)
        read_node_down(t->fails);
    t->fails = NULL;
    return t->fail_after > 0 && t->rows >= t->fail_after ? TG_NOSPACE : 0;
}

static int run(struct fixture *f, unsigned reader, version_t version, version_t after,
               struct table_read read, struct taking *t, struct tg_errmsg *msg)
{
    struct msg_read_point_reply point;
    uint32_t ids[] = {f->table.schema.columns[0].id, f->table.schema.columns[1].id};

    read_table_point(&f->table, version, after, &point);
    read.point = &point;
    read.columns = ids;
    read.column_count = 2;
    read.stop = &t->stop;
    t->changes = read.mode == READ_TABLET_CHANGES;
    int err = table_reader_run(&f->nodes[reader].context, &read, take, t, msg);
    msg_read_point_reply_close(&point);
    return err;
}

static void expect(struct fixture *f, unsigned reader, version_t version, version_t after,
                   struct table_read read, const char *expected)
{
    struct taking t = {.rows = 0};
    struct tg_errmsg msg = {{0}};

    int err = run(f, reader, version, after, read, &t, &msg);
    if (err != 0)
        fail_msg("%s", msg.text);
    assert_string_equal(buf_cstr(&t.text), expected);
    buf_close(&t.text);
}

static const struct table_read ORDERED = {.in_key_order = true, .bucket = -1};

/* ---- random histories ---- */

struct history {
    struct random_seeded random;
    char texts[TEXTS][16];
    uint32_t text_count;
    /* the table at each version */
    bool present[HISTORY + 1][KEYS];
    const char *value[HISTORY + 1][KEYS];
    struct buf changes[HISTORY + 1]; /* of each version, in order of tablets, then keys */
};

/* A load of random keys, on both nodes or (if `gaps`) sometimes on one only. */
static void add_load(struct fixture *f, struct history *h, uint32_t on)
{
    struct made_row rows[KEYS];
    uint32_t count = 0;
    version_t v = f->table.version + 1;

    memcpy(h->present[v], h->present[v - 1], sizeof h->present[v]);
    memcpy(h->value[v], h->value[v - 1], sizeof h->value[v]);
    for (int32_t k = 0; k < KEYS; k++) {
        if (random_below(&h->random.source, 3) != 0)
            continue;
        char *text = h->texts[h->text_count++];
        bool deleted = random_below(&h->random.source, 4) == 0;

        snprintf(text, sizeof h->texts[0], "%lu.%d", v, k);
        rows[count++] = (struct made_row){k, text, deleted};
        h->present[v][k] = !deleted;
        h->value[v][k] = text;
    }
    read_table_load(&f->table, rows, count, 1 + (uint32_t)random_below(&h->random.source, 7), on);
    for (uint32_t tablet = 0; tablet < f->table.tablet_count; tablet++)
        for (uint32_t i = 0; i < count; i++)
            if (read_table_bucket(&f->table, rows[i].k) == tablet)
                buf_printf(&h->changes[v], "%lu:%d=%s;", v, rows[i].k, rows[i].v);
}

static void make_history(struct fixture *f, struct history *h, uint64_t seed)
{
    memset(h, 0, sizeof *h);
    random_seeded_init(&h->random, seed);
    while (f->table.version < HISTORY)
        if (random_below(&h->random.source, 8) == 0)
            read_table_truncate(&f->table); /* the model's next version is empty: already zero */
        else
            add_load(f, h, 3);
}

static void free_history(struct history *h)
{
    for (unsigned v = 0; v <= HISTORY; v++)
        buf_close(&h->changes[v]);
    free(h);
}

static void append_model(const struct history *h, version_t version, int32_t from, int32_t to,
                         uint64_t limit, struct buf *out)
{
    uint64_t rows = 0;

    for (int32_t k = from; k < to && (limit == 0 || rows < limit); k++)
        if (h->present[version][k]) {
            buf_printf(out, "%d=%s;", k, h->value[version][k]);
            rows++;
        }
}

static void encode(int32_t k, struct buf *out)
{
    struct vector vector;
    const struct vector *columns[] = {&vector};

    vector_init(&vector, (struct column_type){.kind = TYPE_INT});
    assert_int_equal(vector_append_fixed(&vector, &k), 0);
    row_key_encode(columns, 1, 0, out);
    vector_close(&vector);
}

/* Any version, range and limit, in key order, read by either node. */
static void check_versions(struct fixture *f, struct history *h)
{
    for (version_t version = 0; version <= f->table.version; version++)
        for (unsigned round = 0; round < 4; round++) {
            struct table_read read = ORDERED;
            struct buf from = BUF_INIT, to = BUF_INIT, expected = BUF_INIT;
            int32_t low = round < 2 ? 0 : (int32_t)random_below(&h->random.source, KEYS);
            int32_t high = round < 2 ? KEYS : (int32_t)random_below(&h->random.source, KEYS + 1);

            read.limit = round == 1 || round == 3 ? 1 + random_below(&h->random.source, 9) : 0;
            if (round >= 2) {
                encode(low, &from);
                encode(high, &to);
                read.from = slice_of(from.data, from.len);
                read.to = slice_of(to.data, to.len);
            }
            append_model(h, version, low, high, read.limit, &expected);
            for (unsigned reader = 0; reader < 2; reader++)
                expect(f, reader, version, 0, read, buf_cstr(&expected));
            buf_close(&from);
            buf_close(&to);
            buf_close(&expected);
        }
}

static void check_changes(struct fixture *f, struct history *h)
{
    for (version_t after = 0; after <= f->table.version; after++) {
        struct buf expected = BUF_INIT;

        for (version_t version = after; version <= f->table.version; version++) {
            if (version > after)
                buf_append(&expected, h->changes[version].data, h->changes[version].len);
            expect(f, (unsigned)(version % 2), version, after,
                   (struct table_read){.mode = READ_TABLET_CHANGES, .bucket = -1},
                   buf_cstr(&expected));
        }
        buf_close(&expected);
    }
}

static void test_every_version_of_random_histories_equals_the_model(void **state)
{
    struct fixture *f = *state;
    struct history *h = malloc(sizeof *h);

    make_history(f, h, 20261130);
    check_versions(f, h);
    free_history(h);
}

static void test_changes_between_any_two_versions_equal_the_model(void **state)
{
    struct fixture *f = *state;
    struct history *h = malloc(sizeof *h);

    make_history(f, h, 7);
    check_changes(f, h);
    free_history(h);
}

static void test_any_replica_alone_gives_the_same(void **state)
{
    struct fixture *f = *state;
    struct history *h = malloc(sizeof *h);

    make_history(f, h, 99);
    /* Node 1 does not take part as itself: it reads everything from node 2. */
    atomic_store(&f->nodes[0].identity.node, 9);
    check_versions(f, h);
    check_changes(f, h);
    atomic_store(&f->nodes[0].identity.node, 1);
    free_history(h);
}

/* ---- replicas that fail ---- */

static void load_many(struct fixture *f, uint32_t rows, uint32_t block_rows, uint32_t on,
                      struct buf *expected)
{
    struct made_row *made = calloc(rows, sizeof *made);

    for (uint32_t i = 0; i < rows; i++) {
        made[i] = (struct made_row){(int32_t)i, "value", false};
        buf_printf(expected, "%u=value;", i);
    }
    read_table_load(&f->table, made, rows, block_rows, on);
    free(made);
}

static void test_a_replica_that_is_behind_is_passed_over(void **state)
{
    struct fixture *f = *state;
    struct buf expected = BUF_INIT;

    load_many(f, 100, 10, 2, &expected); /* on node 2 only */
    for (unsigned reader = 0; reader < 2; reader++)
        expect(f, reader, 1, 0, ORDERED, buf_cstr(&expected));
    buf_close(&expected);
}

static void test_nobody_falls_back_to_an_older_version(void **state)
{
    struct fixture *f = *state;
    struct buf expected = BUF_INIT;
    struct taking t = {.rows = 0};
    struct tg_errmsg msg = {{0}};

    load_many(f, 10, 10, 3, &expected);
    load_many(f, 10, 10, 0, &expected); /* bound by none */
    assert_int_equal(run(f, 0, 2, 0, ORDERED, &t, &msg), TG_UNREACHABLE);
    assert_int_equal(t.rows, 0);
    assert_non_null(strstr(msg.text, "tablet"));
    buf_close(&expected);
    buf_close(&t.text);
}

static void test_a_node_that_is_gone_is_passed_over(void **state)
{
    struct fixture *f = *state;
    struct buf expected = BUF_INIT;

    load_many(f, 100, 10, 3, &expected);
    read_node_down(&f->nodes[0]);
    atomic_store(&f->nodes[0].identity.node, 9); /* so it has to ask others, node 1 first */
    struct msg_read_point_reply point;
    read_table_point(&f->table, 1, 0, &point);
    for (uint32_t i = 0; i < point.tablet_count; i++)
        point.tablets[i].replicas[0] = 1;
    point.nodes[0].node = 1;
    uint32_t ids[] = {f->table.schema.columns[0].id, f->table.schema.columns[1].id};
    struct table_read read = ORDERED;
    struct taking t = {.rows = 0};
    struct tg_errmsg msg = {{0}};
    read.point = &point;
    read.columns = ids;
    read.column_count = 2;
    assert_int_equal(table_reader_run(&f->nodes[0].context, &read, take, &t, &msg), 0);
    assert_string_equal(buf_cstr(&t.text), buf_cstr(&expected));
    atomic_store(&f->nodes[0].identity.node, 1);
    msg_read_point_reply_close(&point);
    buf_close(&t.text);
    buf_close(&expected);
}

static void test_damage_at_home_sends_the_reader_to_the_peer(void **state)
{
    struct fixture *f = *state;
    static const struct made_row rows[] = {
        {1, "a", 0}, {2, "b", 0}, {3, "needle-here", 0}, {4, "d", 0}, {5, "e", 0}};

    read_table_load(&f->table, rows, 5, 1, 3);
    assert_int_not_equal(read_node_damage(&f->nodes[0], "needle-here"), 0);
    expect(f, 0, 1, 0, ORDERED, "1=a;2=b;3=needle-here;4=d;5=e;");
    expect(f, 1, 1, 0, ORDERED, "1=a;2=b;3=needle-here;4=d;5=e;");
}

static void test_damage_everywhere_is_an_error_and_no_wrong_row(void **state)
{
    struct fixture *f = *state;
    static const struct made_row rows[] = {{1, "needle-here", 0}};
    struct taking t = {.rows = 0};
    struct tg_errmsg msg = {{0}};

    read_table_load(&f->table, rows, 1, 1, 3);
    for (unsigned i = 0; i < 2; i++)
        assert_int_not_equal(read_node_damage(&f->nodes[i], "needle-here"), 0);
    assert_int_equal(run(f, 0, 1, 0, ORDERED, &t, &msg), TG_CORRUPT);
    assert_int_equal(t.rows, 0);
    assert_non_null(strstr(msg.text, "block 0"));
    buf_close(&t.text);
}

static void test_a_replica_lost_in_the_middle_is_replaced_by_another(void **state)
{
    struct fixture *f = *state;
    struct made_row *rows = calloc(30000, sizeof *rows);
    struct buf expected = BUF_INIT;

    /* One tablet of several blocks; blocks from the third on are damaged at node 2. */
    read_table_close(&f->table);
    struct read_node *nodes[] = {&f->nodes[1], &f->nodes[0]};
    read_table_open(&f->table, true, 1, nodes, 2);
    for (int32_t i = 0; i < 30000; i++) {
        rows[i] = (struct made_row){i, i == 25000 ? "needle-25000" : "v", false};
        buf_printf(&expected, "%d=%s;", i, rows[i].v);
    }
    read_table_load(&f->table, rows, 30000, 4096, 3);
    assert_int_not_equal(read_node_damage(&f->nodes[1], "needle-25000"), 0);
    for (unsigned round = 0; round < 3; round++) {
        struct taking t = {.rows = 0};
        struct tg_errmsg msg = {{0}};
        struct table_read read = {.bucket = -1, .in_key_order = round == 1};

        /* Node 1 asks node 2 first, as it is not a replica itself; node 2 asks itself. */
        atomic_store(&f->nodes[0].identity.node, round == 2 ? 1 : 9);
        struct msg_read_point_reply point;
        read_table_point(&f->table, 1, 0, &point);
        point.tablets[0].replicas[1] = 1;
        point.nodes[1].node = 1;
        uint32_t ids[] = {f->table.schema.columns[0].id, f->table.schema.columns[1].id};
        read.point = &point;
        read.columns = ids;
        read.column_count = 2;
        assert_int_equal(
            table_reader_run(&f->nodes[round == 2 ? 1 : 0].context, &read, take, &t, &msg), 0);
        assert_true(t.calls > 2);
        assert_int_equal(t.rows, 30000);
        assert_string_equal(buf_cstr(&t.text), buf_cstr(&expected));
        msg_read_point_reply_close(&point);
        buf_close(&t.text);
    }
    atomic_store(&f->nodes[0].identity.node, 1);
    buf_close(&expected);
    free(rows);
}

static void test_without_a_ready_replica_nothing_is_read(void **state)
{
    struct fixture *f = *state;
    struct buf expected = BUF_INIT;
    struct msg_read_point_reply point;
    struct taking t = {.rows = 0};
    struct tg_errmsg msg = {{0}};
    struct table_read read = ORDERED;

    load_many(f, 10, 10, 3, &expected);
    read_table_point(&f->table, 1, 0, &point);
    for (uint32_t i = 0; i < point.tablet_count; i++)
        point.tablets[i].ready = 0;
    read.point = &point;
    read.columns = &f->table.schema.columns[0].id;
    read.column_count = 1;
    assert_int_equal(table_reader_run(&f->nodes[0].context, &read, take, &t, &msg), TG_UNREACHABLE);
    assert_non_null(strstr(msg.text, "up to date"));
    msg_read_point_reply_close(&point);
    buf_close(&expected);
}

/* ---- the rest ---- */

static void test_only_the_bucket_of_a_key_is_asked(void **state)
{
    struct fixture *f = *state;
    static const struct made_row rows[] = {{1, "a", 0}, {2, "b", 0}, {3, "c", 0}, {4, "d", 0},
                                           {5, "e", 0}, {6, "f", 0}, {7, "g", 0}, {8, "h", 0}};

    read_table_load(&f->table, rows, 8, 8, 3);
    for (int32_t k = 0; k < 10; k++) {
        struct table_read read = {.bucket = read_table_bucket(&f->table, k)};
        struct buf from = BUF_INIT, to = BUF_INIT;
        char expected[16] = "";

        encode(k, &from);
        encode(k, &to);
        buf_append_u8(&to, 0xFF);
        read.from = slice_of(from.data, from.len);
        read.to = slice_of(to.data, to.len);
        if (k >= 1 && k <= 8)
            snprintf(expected, sizeof expected, "%d=%s;", k, rows[k - 1].v);
        expect(f, (unsigned)k % 2, 1, 0, read, expected);
        buf_close(&from);
        buf_close(&to);
    }
}

static void test_a_limit_ends_the_read(void **state)
{
    struct fixture *f = *state;
    struct buf expected = BUF_INIT;

    load_many(f, 20000, 1000, 3, &expected);
    for (unsigned round = 0; round < 2; round++) {
        static const uint64_t limits[] = {1, 7, 8192, 8193, 19999, 20000, 20001};

        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
            struct taking t = {.rows = 0};
            struct table_read read = {.in_key_order = round == 1, .bucket = -1};
            struct tg_errmsg msg;

            read.limit = limits[i];
            assert_int_equal(run(f, 0, 1, 0, read, &t, &msg), 0);
            assert_int_equal(t.rows, limits[i] < 20000 ? limits[i] : 20000);
            if (round == 1)
                assert_memory_equal(t.text.data, expected.data, t.text.len);
            buf_close(&t.text);
        }
    }
    buf_close(&expected);
}

static void test_a_receiver_that_fails_and_a_stop_end_the_read(void **state)
{
    struct fixture *f = *state;
    struct buf expected = BUF_INIT;
    struct tg_errmsg msg;

    load_many(f, 20000, 1000, 3, &expected);
    for (unsigned round = 0; round < 2; round++) {
        struct table_read read = {.in_key_order = round == 1, .bucket = -1};
        struct taking failing = {.fail_after = 1};
        struct taking stopping = {.stop_after = 1};

        assert_int_equal(run(f, 0, 1, 0, read, &failing, &msg), TG_NOSPACE);
        assert_int_equal(failing.calls, 1);
        assert_int_equal(run(f, 0, 1, 0, read, &stopping, &msg), TG_CANCELED);
        assert_int_equal(stopping.calls, 1);
        buf_close(&failing.text);
        buf_close(&stopping.text);
    }
    buf_close(&expected);
}

static void test_duplicates_come_sorted_over_all_tablets_when_asked(void **state)
{
    struct fixture *f = *state;
    static const struct made_row one[] = {{1, "a", 0}, {1, "b", 0}, {2, "c", 0}, {3, NULL, 0}};
    static const struct made_row two[] = {{1, "d", 0}, {2, "e", 0}, {9, "f", 0}};

    read_table_load(&f->table, one, 4, 1, 3);
    read_table_load(&f->table, two, 3, 2, 3);
    for (unsigned reader = 0; reader < 2; reader++) {
        expect(f, reader, 2, 0, ORDERED, "1=a;1=b;1=d;2=c;2=e;3=-;9=f;");
        expect(f, reader, 1, 0, ORDERED, "1=a;1=b;2=c;3=-;");
    }
}

#define TEST(name)           cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_DUPLICATE(name) cmocka_unit_test_setup_teardown(name, setup_duplicate, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_version_of_random_histories_equals_the_model),
        TEST(test_changes_between_any_two_versions_equal_the_model),
        TEST(test_any_replica_alone_gives_the_same),
        TEST(test_a_replica_that_is_behind_is_passed_over),
        TEST(test_nobody_falls_back_to_an_older_version),
        TEST(test_a_node_that_is_gone_is_passed_over),
        TEST(test_damage_at_home_sends_the_reader_to_the_peer),
        TEST(test_damage_everywhere_is_an_error_and_no_wrong_row),
        TEST(test_a_replica_lost_in_the_middle_is_replaced_by_another),
        TEST(test_without_a_ready_replica_nothing_is_read),
        TEST(test_only_the_bucket_of_a_key_is_asked),
        TEST(test_a_limit_ends_the_read),
        TEST(test_a_receiver_that_fails_and_a_stop_end_the_read),
        TEST_DUPLICATE(test_duplicates_come_sorted_over_all_tablets_when_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
