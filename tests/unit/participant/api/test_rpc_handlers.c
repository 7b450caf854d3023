/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from other nodes, over loopback: publishing, replicating, reading, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/proto/message.h"
#include "common/proto/msg_publish.h"
#include "common/proto/msg_replicate.h"
#include "tests/lib/read_node.h"

enum { NODE = 3, EPOCH = 30, TABLET = 11, CALL_MS = 10000 };

struct fixture {
    struct loop_thread thread;
    struct read_node node;
    struct read_node other; /* who calls */
    struct read_table table;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct read_node *nodes[] = {&f->node};

    loop_thread_open(&f->thread);
    read_node_open(&f->node, &f->thread, NODE);
    read_node_open(&f->other, &f->thread, 9);
    read_table_open(&f->table, true, 1, nodes, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    read_table_close(&f->table);
    read_node_close(&f->other);
    read_node_close(&f->node);
    loop_thread_close(&f->thread);
    free(f);
    return 0;
}

/* Takes head over. */
static int call(struct fixture *f, uint16_t type, struct buf *head, struct slice payload,
                struct buf *reply, struct tg_errmsg *msg)
{
    struct buf copy = BUF_INIT;
    struct buf reply_payload = BUF_INIT;

    buf_append(&copy, payload.data, payload.len);
    int err = peer_call_wait(f->other.peers, NODE, f->node.address, type, head, &copy, CALL_MS,
                             NULL, reply, &reply_payload, msg);
    buf_close(&reply_payload);
    return err;
}

static int publish(struct fixture *f, node_id node, uint64_t epoch, version_t version,
                   version_t prev, uint8_t *status)
{
    struct publish_bind bind = {
        .tablet = TABLET, .table = 1, .version = version, .prev = prev, .txn = version};
    struct msg_publish message = {.node = node, .epoch = epoch, .bind_count = 1, .binds = &bind};
    struct msg_publish_reply reply;
    struct buf head = BUF_INIT;
    struct buf answer = BUF_INIT;
    struct tg_errmsg msg;

    msg_publish_encode(&message, &head);
    int err = call(f, MSG_PUBLISH, &head, slice_of(NULL, 0), &answer, &msg);
    if (err == 0) {
        assert_int_equal(msg_publish_reply_decode(slice_of(answer.data, answer.len), &reply), 0);
        assert_int_equal(reply.count, 1);
        *status = reply.status[0];
        msg_publish_reply_close(&reply);
    }
    buf_close(&answer);
    return err;
}

static void test_versions_are_published_in_order(void **state)
{
    struct fixture *f = *state;
    uint8_t status;

    assert_int_equal(publish(f, NODE, EPOCH, 1, 0, &status), 0);
    assert_int_equal(status, PUBLISH_BOUND);
    assert_int_equal(publish(f, NODE, EPOCH, 1, 0, &status), 0);
    assert_int_equal(status, PUBLISH_BOUND);
    assert_int_equal(publish(f, NODE, EPOCH, 3, 2, &status), 0);
    assert_int_equal(status, PUBLISH_BEHIND);
    assert_int_equal(tablet_set_last(f->node.tablets, TABLET), 1);
}

static void test_another_node_or_registration_is_fenced(void **state)
{
    struct fixture *f = *state;
    uint8_t status;

    assert_int_equal(publish(f, NODE + 1, EPOCH, 1, 0, &status), TG_FENCED);
    assert_int_equal(publish(f, NODE, EPOCH - 1, 1, 0, &status), TG_FENCED);
    assert_int_equal(tablet_set_last(f->node.tablets, TABLET), 0);
}

static int replicate(struct fixture *f, node_id receiver, const char *bytes)
{
    struct replicate_piece piece = {.tablet = TABLET, .len = (uint32_t)strlen(bytes)};
    struct msg_replicate message = {.sender = 9,
                                    .receiver = receiver,
                                    .txn = 4,
                                    .rowset = 4,
                                    .table = 1,
                                    .piece_count = 1,
                                    .pieces = &piece};
    struct buf head = BUF_INIT;
    struct buf answer = BUF_INIT;
    struct tg_errmsg msg;

    msg_replicate_encode(&message, &head);
    int err = call(f, MSG_REPLICATE, &head, slice_str(bytes), &answer, &msg);
    buf_close(&answer);
    return err;
}

static void test_pieces_are_taken_by_the_node_they_are_for(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(replicate(f, NODE, "some bytes"), 0);
    assert_int_equal(replicate(f, NODE + 1, "some bytes"), TG_FENCED);
}

static void test_a_read_that_fails_says_why(void **state)
{
    struct fixture *f = *state;
    static const struct made_row row = {1, "needle-rpc", 0};
    struct msg_read_point_reply point;
    struct msg_read_tablet message = {.tablet = TABLET, .version = 1, .need = 1};
    struct buf head = BUF_INIT;
    struct buf answer = BUF_INIT;
    struct tg_errmsg msg = {{0}};

    read_table_load(&f->table, &row, 1, 1, 1);
    assert_int_not_equal(read_node_damage(&f->node, "needle-rpc"), 0);
    read_table_point(&f->table, 1, 0, &point);
    message.schema = point.schema;
    message.columns = &point.schema.columns[0].id;
    message.column_count = 1;
    msg_read_tablet_encode(&message, &head);
    assert_int_equal(call(f, MSG_READ_TABLET, &head, slice_of(NULL, 0), &answer, &msg), TG_CORRUPT);
    assert_non_null(strstr(msg.text, "rowset 1, block 0"));
    msg_read_point_reply_close(&point);
    buf_close(&answer);
}

static void stop_readers(void *data)
{
    struct fixture *f = data;

    f->node.handlers.readers = NULL;
}

static void test_a_node_that_shuts_down_refuses_reads(void **state)
{
    struct fixture *f = *state;
    struct tablet_reader_pool *readers = f->node.handlers.readers;
    struct msg_read_tablet message = {.tablet = TABLET};
    uint32_t column = f->table.schema.columns[0].id;
    struct buf head = BUF_INIT;
    struct buf answer = BUF_INIT;
    struct tg_errmsg msg;

    loop_thread_do(&f->thread, stop_readers, f);
    message.schema = f->table.schema;
    message.columns = &column;
    message.column_count = 1;
    msg_read_tablet_encode(&message, &head);
    assert_int_equal(call(f, MSG_READ_TABLET, &head, slice_of(NULL, 0), &answer, &msg), TG_CLOSED);
    buf_close(&answer);
    f->node.handlers.readers = readers;
}

static void test_unknown_and_malformed_messages_are_refused(void **state)
{
    struct fixture *f = *state;
    static const uint16_t types[] = {MSG_PUBLISH, MSG_REPLICATE, MSG_READ_TABLET};
    struct tg_errmsg msg;

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct buf head = BUF_INIT;
        struct buf answer = BUF_INIT;

        buf_append_str(&head, "nonsense");
        assert_int_not_equal(call(f, types[i], &head, slice_of(NULL, 0), &answer, &msg), 0);
        assert_non_null(strstr(msg.text, "malformed"));
        buf_close(&answer);
    }
    struct buf head = BUF_INIT;
    struct buf answer = BUF_INIT;
    assert_int_equal(call(f, 999, &head, slice_of(NULL, 0), &answer, &msg), TG_UNSUPPORTED);
    buf_close(&answer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_versions_are_published_in_order),
        TEST(test_another_node_or_registration_is_fenced),
        TEST(test_pieces_are_taken_by_the_node_they_are_for),
        TEST(test_a_read_that_fails_says_why),
        TEST(test_a_node_that_shuts_down_refuses_reads),
        TEST(test_unknown_and_malformed_messages_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
