/* SPDX-License-Identifier: Apache-2.0 */
/* One tablet read for a peer, answer by answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/row_key.h"
#include "common/model/rowset_block.h"
#include "participant/read/tablet_reader.h"
#include "tests/lib/read_node.h"

struct fixture {
    struct loop_thread thread;
    struct read_node node;
    struct read_table table; /* of one tablet */
    struct msg_read_point_reply point;
};

static int open_fixture(void **state, bool unique)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct read_node *nodes[] = {&f->node};

    loop_thread_open(&f->thread);
    read_node_open(&f->node, &f->thread, 1);
    read_table_open(&f->table, unique, 1, nodes, 1);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return open_fixture(state, true);
}

static int setup_duplicate(void **state)
{
    return open_fixture(state, false);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    msg_read_point_reply_close(&f->point);
    read_table_close(&f->table);
    read_node_close(&f->node);
    loop_thread_close(&f->thread);
    free(f);
    return 0;
}

/* What a peer gets. */
struct served {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    int err;
    char sentence[256];
    struct msg_read_tablet_reply reply;
    struct buf payload;
};

static void on_served(void *data, int err, const char *sentence,
                      struct msg_read_tablet_reply *reply, struct buf *payload)
{
    struct served *served = data;

    pthread_mutex_lock(&served->lock);
    served->err = err;
    snprintf(served->sentence, sizeof served->sentence, "%s", sentence);
    if (err == 0) {
        served->reply = *reply;
        memset(reply, 0, sizeof *reply);
        served->payload = *payload;
        buf_init(payload);
    }
    served->is_done = true;
    pthread_cond_signal(&served->done);
    pthread_mutex_unlock(&served->lock);
}

static void serve(struct fixture *f, struct msg_read_tablet *message, struct served *served)
{
    memset(served, 0, sizeof *served);
    pthread_mutex_init(&served->lock, NULL);
    pthread_cond_init(&served->done, NULL);
    tablet_reader_serve(f->node.handlers.readers, message, on_served, served);
    pthread_mutex_lock(&served->lock);
    while (!served->is_done)
        pthread_cond_wait(&served->done, &served->lock);
    pthread_mutex_unlock(&served->lock);
    pthread_cond_destroy(&served->done);
    pthread_mutex_destroy(&served->lock);
}

static void served_close(struct served *served)
{
    msg_read_tablet_reply_close(&served->reply);
    buf_close(&served->payload);
}

/* A message about both columns; it is given away by serve. */
static struct msg_read_tablet message_of(struct fixture *f, version_t version, version_t after,
                                         enum read_tablet_mode mode)
{
    struct msg_read_tablet message = {.version = version, .after = after, .mode = mode};

    msg_read_point_reply_close(&f->point);
    read_table_point(&f->table, version, after, &f->point);
    message.tablet = f->point.tablets[0].tablet;
    message.need = f->point.tablets[0].need;
    assert_int_equal(schema_copy(&f->table.schema, &message.schema), 0);
    message.column_count = 2;
    message.columns = malloc(2 * sizeof *message.columns);
    for (uint32_t i = 0; i < 2; i++)
        message.columns[i] = f->table.schema.columns[i].id;
    return message;
}

static void decode(const struct block *block, uint32_t id, struct vector *out)
{
    struct block_decoder *decoder = block_decoder_open();
    int at = block_find(block, id);

    assert_true(at >= 0);
    assert_int_equal(block_decode_column(decoder, block, (uint32_t)at, out, NULL), 0);
    block_decoder_close(decoder);
}

/* "k=v;" or, for changes, "version:k=v;". */
static void append_rows(struct fixture *f, const struct served *served, bool changes,
                        struct buf *text)
{
    struct vector k, v, versions;
    struct block block;

    if (served->payload.len == 0)
        return;
    assert_int_equal(block_open(&block, served->payload.data, served->payload.len, NULL), 0);
    assert_int_equal(block.rows, served->reply.rows);
    vector_init(&k, f->table.schema.columns[0].type);
    vector_init(&v, f->table.schema.columns[1].type);
    vector_init(&versions, (struct column_type){.kind = TYPE_BIGINT});
    decode(&block, f->table.schema.columns[0].id, &k);
    decode(&block, f->table.schema.columns[1].id, &v);
    if (changes)
        decode(&block, COLUMN_ID_VERSION, &versions);
    for (uint32_t i = 0; i < block.rows; i++) {
        int32_t key;

        memcpy(&key, vector_fixed(&k, i), sizeof key);
        if (changes)
            buf_printf(text, "%ld:", *(const int64_t *)vector_fixed(&versions, i));
        buf_printf(text, "%d=%.*s;", key, (int)vector_bytes(&v, i).len,
                   (const char *)vector_bytes(&v, i).data);
    }
    vector_close(&k);
    vector_close(&v);
    vector_close(&versions);
}

/* Reads to the end in answers of `limit` rows. */
static void expect(struct fixture *f, version_t version, version_t after,
                   enum read_tablet_mode mode, uint64_t limit, const char *expected)
{
    struct buf text = BUF_INIT;
    struct buf position = BUF_INIT;
    bool done = false;

    while (!done) {
        struct msg_read_tablet message = message_of(f, version, after, mode);
        struct served served;

        message.row_limit = limit;
        buf_append(&message.position, position.data, position.len);
        serve(f, &message, &served);
        assert_int_equal(served.err, 0);
        assert_true(limit == 0 || served.reply.rows <= limit);
        append_rows(f, &served, mode == READ_TABLET_CHANGES, &text);
        done = served.reply.done;
        assert_true(done || served.reply.rows > 0);
        buf_clear(&position);
        buf_append(&position, served.reply.position.data, served.reply.position.len);
        served_close(&served);
    }
    assert_string_equal(buf_cstr(&text), expected);
    buf_close(&text);
    buf_close(&position);
}

static void load_three(struct fixture *f)
{
    static const struct made_row one[] = {{1, "a", 0}, {2, "b", 0}, {5, "e", 0}};
    static const struct made_row two[] = {{2, "B", 0}, {3, "c", 0}};
    static const struct made_row three[] = {{1, "", 1}, {7, "g", 0}};

    read_table_load(&f->table, one, 3, 2, 1);
    read_table_load(&f->table, two, 2, 2, 1);
    read_table_load(&f->table, three, 2, 2, 1);
}

static void test_rows_of_every_version_in_answers_of_any_size(void **state)
{
    struct fixture *f = *state;

    load_three(f);
    for (uint64_t limit = 0; limit < 5; limit++) {
        expect(f, 1, 0, READ_TABLET_ROWS, limit, "1=a;2=b;5=e;");
        expect(f, 2, 0, READ_TABLET_ROWS, limit, "1=a;2=B;3=c;5=e;");
        expect(f, 3, 0, READ_TABLET_ROWS, limit, "2=B;3=c;5=e;7=g;");
    }
    expect(f, 0, 0, READ_TABLET_ROWS, 0, "");
}

static void test_changes_between_any_two_versions_in_order(void **state)
{
    struct fixture *f = *state;

    load_three(f);
    for (uint64_t limit = 0; limit < 5; limit++) {
        expect(f, 3, 0, READ_TABLET_CHANGES, limit, "1:1=a;1:2=b;1:5=e;2:2=B;2:3=c;3:1=;3:7=g;");
        expect(f, 3, 1, READ_TABLET_CHANGES, limit, "2:2=B;2:3=c;3:1=;3:7=g;");
        expect(f, 2, 1, READ_TABLET_CHANGES, limit, "2:2=B;2:3=c;");
    }
    expect(f, 3, 3, READ_TABLET_CHANGES, 0, "");
}

static void test_a_truncation_hides_what_was_before_but_not_its_changes(void **state)
{
    struct fixture *f = *state;
    static const struct made_row row = {9, "z", 0};

    load_three(f);
    read_table_truncate(&f->table);
    read_table_load(&f->table, &row, 1, 1, 1);
    expect(f, 3, 0, READ_TABLET_ROWS, 0, "2=B;3=c;5=e;7=g;");
    expect(f, 4, 0, READ_TABLET_ROWS, 0, "");
    expect(f, 5, 0, READ_TABLET_ROWS, 0, "9=z;");
    expect(f, 5, 2, READ_TABLET_CHANGES, 0, "3:1=;3:7=g;5:9=z;");
}

static void test_a_table_of_duplicates_gives_rows_load_by_load_or_sorted(void **state)
{
    struct fixture *f = *state;
    static const struct made_row one[] = {{1, "a", 0}, {1, "b", 0}, {5, "e", 0}};
    static const struct made_row two[] = {{1, "c", 0}, {3, "d", 0}};
    struct served served;
    struct buf text = BUF_INIT;

    read_table_load(&f->table, one, 3, 1, 1);
    read_table_load(&f->table, two, 2, 1, 1);
    for (uint64_t limit = 0; limit < 6; limit++)
        expect(f, 2, 0, READ_TABLET_ROWS, limit, "1=a;1=b;5=e;1=c;3=d;");
    struct msg_read_tablet message = message_of(f, 2, 0, READ_TABLET_ROWS);
    message.in_key_order = true;
    serve(f, &message, &served);
    append_rows(f, &served, false, &text);
    assert_string_equal(buf_cstr(&text), "1=a;1=b;1=c;3=d;5=e;");
    served_close(&served);
    buf_close(&text);
}

static void test_a_replica_that_lacks_a_version_says_so(void **state)
{
    struct fixture *f = *state;
    struct served served;
    static const struct made_row row = {9, "z", 0};

    load_three(f);
    read_table_load(&f->table, &row, 1, 1, 0); /* on no node */
    struct msg_read_tablet message = message_of(f, 4, 0, READ_TABLET_ROWS);
    serve(f, &message, &served);
    assert_int_equal(served.err, TG_BEHIND);
    assert_non_null(strstr(served.sentence, "version 4"));
    expect(f, 3, 0, READ_TABLET_ROWS, 0, "2=B;3=c;5=e;7=g;");
}

static void test_a_damaged_block_is_named(void **state)
{
    struct fixture *f = *state;
    struct served served;
    static const struct made_row rows[] = {{1, "first", 0}, {9, "needle-1234", 0}};

    read_table_load(&f->table, rows, 2, 1, 1);
    assert_int_not_equal(read_node_damage(&f->node, "needle-1234"), 0);
    struct msg_read_tablet message = message_of(f, 1, 0, READ_TABLET_ROWS);
    serve(f, &message, &served);
    assert_int_equal(served.err, TG_CORRUPT);
    assert_non_null(strstr(served.sentence, "rowset 1, block 1"));
}

static void encode_key(int32_t k, struct buf *out)
{
    struct vector vector;
    const struct vector *columns[] = {&vector};

    vector_init(&vector, (struct column_type){.kind = TYPE_INT});
    assert_int_equal(vector_append_fixed(&vector, &k), 0);
    row_key_encode(columns, 1, 0, out);
    vector_close(&vector);
}

static void test_no_block_is_loaded_that_holds_nothing_asked_for(void **state)
{
    struct fixture *f = *state;
    struct served served;
    struct buf text = BUF_INIT;
    static const struct made_row one[] = {{1, "a", 0}, {2, "b", 0}, {3, "c", 0}};
    static const struct made_row two[] = {{7, "needle-7", 0}, {9, "z", 0}};

    read_table_load(&f->table, one, 3, 1, 1);
    read_table_load(&f->table, two, 2, 1, 1);
    assert_int_not_equal(read_node_damage(&f->node, "needle-7"), 0);
    /* Before it is its turn, the damaged block is not touched, … */
    struct msg_read_tablet message = message_of(f, 2, 0, READ_TABLET_ROWS);
    message.row_limit = 3;
    serve(f, &message, &served);
    assert_int_equal(served.err, 0);
    append_rows(f, &served, false, &text);
    assert_string_equal(buf_cstr(&text), "1=a;2=b;3=c;");
    served_close(&served);
    /* … nor for keys on either side of it. */
    message = message_of(f, 2, 0, READ_TABLET_ROWS);
    encode_key(8, &message.from);
    encode_key(10, &message.to);
    serve(f, &message, &served);
    assert_int_equal(served.err, 0);
    buf_clear(&text);
    append_rows(f, &served, false, &text);
    assert_string_equal(buf_cstr(&text), "9=z;");
    served_close(&served);
    message = message_of(f, 2, 0, READ_TABLET_ROWS);
    encode_key(7, &message.from);
    serve(f, &message, &served);
    assert_int_equal(served.err, TG_CORRUPT);
    buf_close(&text);
}

static void refused(struct fixture *f, struct msg_read_tablet *message, int err)
{
    struct served served;

    serve(f, message, &served);
    assert_int_equal(served.err, err);
    assert_string_not_equal(served.sentence, "");
}

static void test_messages_that_make_no_sense_are_refused(void **state)
{
    struct fixture *f = *state;
    struct msg_read_tablet message;

    load_three(f);
    message = message_of(f, 3, 0, READ_TABLET_ROWS);
    message.columns[1] = 4711;
    refused(f, &message, TG_INVALID);
    message = message_of(f, 3, 0, READ_TABLET_ROWS);
    message.column_count = 0;
    refused(f, &message, TG_INVALID);
    static const char *const positions[] = {"x", "\x94", "\x95\x00\xc4\x00\x00\x00\x00",
                                            "\x94\x01\x00\x00\x00"};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        message = message_of(f, 3, 0, READ_TABLET_ROWS);
        buf_append_str(&message.position, positions[i]);
        refused(f, &message, TG_CORRUPT);
        message = message_of(f, 3, 0, READ_TABLET_CHANGES);
        buf_append_str(&message.position, positions[i]);
        refused(f, &message, TG_CORRUPT);
    }
    /* A place behind the end of a block, of a rowset, of the inputs. */
    static const uint8_t places[][5] = {{0x94, 1, 0, 0, 9}, {0x94, 1, 0, 9, 0}, {0x94, 1, 9, 0, 0}};
    for (size_t i = 0; i < 3; i++) {
        message = message_of(f, 3, 0, READ_TABLET_CHANGES);
        buf_append(&message.position, places[i], sizeof places[i]);
        refused(f, &message, TG_CORRUPT);
    }
}

static void test_long_rows_end_an_answer_early(void **state)
{
    struct fixture *f = *state;
    enum { ROWS = 64 };
    struct made_row rows[ROWS];
    char *text = malloc(400001);
    struct buf position = BUF_INIT;
    uint64_t total = 0;
    unsigned answers = 0;
    bool done = false;

    memset(text, 'x', 400000);
    text[400000] = 0;
    f->table.schema.columns[1].type = (struct column_type){.kind = TYPE_STRING};
    for (int i = 0; i < ROWS; i++)
        rows[i] = (struct made_row){i, text, 0};
    read_table_load(&f->table, rows, ROWS, ROWS, 1);
    while (!done) {
        struct msg_read_tablet message = message_of(f, 1, 0, READ_TABLET_ROWS);
        struct served served;

        buf_append(&message.position, position.data, position.len);
        serve(f, &message, &served);
        assert_int_equal(served.err, 0);
        assert_true(served.reply.rows > 0 && served.reply.rows < ROWS);
        total += served.reply.rows;
        answers++;
        done = served.reply.done;
        buf_clear(&position);
        buf_append(&position, served.reply.position.data, served.reply.position.len);
        served_close(&served);
    }
    assert_int_equal(total, ROWS);
    assert_in_range(answers, 3, 5);
    buf_close(&position);
    free(text);
}

static void test_many_reads_at_once_each_go_on_where_they_were(void **state)
{
    struct fixture *f = *state;
    enum { READS = TABLET_READER_IDLE_MAX + 8 };
    struct buf positions[READS] = {0};
    struct buf texts[READS] = {0};

    load_three(f);
    /* More than cursors are kept: some are opened again, at their position. */
    for (unsigned step = 0; step < 5; step++)
        for (unsigned i = 0; i < READS; i++) {
            struct msg_read_tablet message = message_of(f, 3, 0, READ_TABLET_ROWS);
            struct served served;

            message.row_limit = 1 + (i + step) % 2;
            message.include_deleted = i % 2 == 1;
            buf_append(&message.position, positions[i].data, positions[i].len);
            serve(f, &message, &served);
            assert_int_equal(served.err, 0);
            append_rows(f, &served, false, &texts[i]);
            buf_clear(&positions[i]);
            buf_append(&positions[i], served.reply.position.data, served.reply.position.len);
            served_close(&served);
        }
    for (unsigned i = 0; i < READS; i++) {
        assert_string_equal(buf_cstr(&texts[i]),
                            i % 2 == 1 ? "1=;2=B;3=c;5=e;7=g;" : "2=B;3=c;5=e;7=g;");
        buf_close(&texts[i]);
        buf_close(&positions[i]);
    }
}

struct flood {
    pthread_mutex_t lock;
    unsigned answered, busy, canceled;
};

static void on_flood(void *data, int err, const char *sentence, struct msg_read_tablet_reply *reply,
                     struct buf *payload)
{
    struct flood *flood = data;

    (void)sentence;
    (void)reply;
    (void)payload;
    pthread_mutex_lock(&flood->lock);
    flood->answered++;
    flood->busy += err == TG_BUSY;
    flood->canceled += err == TG_CLOSED;
    if (err != 0 && err != TG_BUSY && err != TG_CLOSED)
        abort();
    pthread_mutex_unlock(&flood->lock);
}

static void test_a_flood_is_bounded_and_every_call_is_answered_at_the_end(void **state)
{
    struct fixture *f = *state;
    struct flood flood = {.answered = 0};
    struct tablet_reader_pool *pool;

    pthread_mutex_init(&flood.lock, NULL);
    load_three(f);
    assert_int_equal(tablet_reader_pool_open(f->node.store, f->node.tablets, &pool), 0);
    for (unsigned i = 0; i < 3000; i++) {
        struct msg_read_tablet message = message_of(f, 3, 0, READ_TABLET_ROWS);

        message.row_limit = 1;
        tablet_reader_serve(pool, &message, on_flood, &flood);
    }
    tablet_reader_pool_close(pool);
    assert_int_equal(flood.answered, 3000);
    assert_true(flood.busy > 0 && flood.canceled <= TABLET_READER_QUEUE_MAX);
    pthread_mutex_destroy(&flood.lock);
}

#define TEST(name)           cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_DUPLICATE(name) cmocka_unit_test_setup_teardown(name, setup_duplicate, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rows_of_every_version_in_answers_of_any_size),
        TEST(test_changes_between_any_two_versions_in_order),
        TEST(test_a_truncation_hides_what_was_before_but_not_its_changes),
        TEST_DUPLICATE(test_a_table_of_duplicates_gives_rows_load_by_load_or_sorted),
        TEST(test_a_replica_that_lacks_a_version_says_so),
        TEST(test_a_damaged_block_is_named),
        TEST(test_no_block_is_loaded_that_holds_nothing_asked_for),
        TEST(test_messages_that_make_no_sense_are_refused),
        TEST(test_long_rows_end_an_answer_early),
        TEST(test_many_reads_at_once_each_go_on_where_they_were),
        TEST(test_a_flood_is_bounded_and_every_call_is_answered_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
