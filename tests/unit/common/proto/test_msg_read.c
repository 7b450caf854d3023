/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_POINT and MSG_READ_TABLET travel whole or not at all. */
#include "common/proto/msg_read.h"

#include "tests/unit/common/proto/codec_check.h"

CODEC_PLAIN(msg_read_point)
CODEC_CLOSES(msg_read_point_reply)
CODEC_CLOSES(msg_read_tablet)
CODEC_CLOSES(msg_read_tablet_reply)

static void fill_schema(struct schema *schema)
{
    struct schema_column column = {.name = "k", .type = {.kind = TYPE_INT}, .is_key = true};
    schema->id = 1;
    schema->key_model = KEY_DUPLICATE;
    assert_int_equal(schema_add_column(schema, &column, NULL), 0);
}

static void test_a_read_point_question_comes_back_as_it_went(void **state)
{
    (void)state;
    struct msg_read_point message = {.db = "d",
                                     .table = "t",
                                     .bound = {READ_TIME, 1700000000000000},
                                     .with_changes = true,
                                     .after = {READ_VERSION, 3},
                                     .local = true};
    codec_check(&msg_read_point_codec, &message);
}

static void fill_point(struct msg_read_point_reply *reply)
{
    msg_read_point_reply_init(reply);
    fill_schema(&reply->schema);
    reply->table = 4;
    reply->version = 9;
    reply->time_us = 1700000000000001;
    reply->after = 3;
}

static void test_a_read_point_comes_back_as_it_went(void **state)
{
    (void)state;
    uint32_t distribution[] = {0};
    struct read_point_tablet tablets[] = {
        {.tablet = 1, .need = 8, .replica_count = 3, .ready = 2, .replicas = {1, 3, 2}},
        {.tablet = 2, .need = 9, .replica_count = 1, .ready = 1, .replicas = {2}}};
    struct read_point_node nodes[] = {{.node = 1, .epoch = 5, .rpc = "127.0.0.1:8060"}};
    struct read_point_version versions[] = {
        {.version = 8, .time_us = 1, .txn = 7},
        {.version = 9, .time_us = 2, .txn = 9, .replace = true}};
    struct msg_read_point_reply reply;
    fill_point(&reply);
    reply.distribution_count = 1;
    reply.distribution = distribution;
    reply.tablet_count = 2;
    reply.tablets = tablets;
    reply.node_count = 1;
    reply.nodes = nodes;
    reply.version_count = 2;
    reply.versions = versions;
    codec_check(&msg_read_point_reply_codec, &reply);

    tablets[1].ready = 2;
    struct buf bytes = BUF_INIT;
    msg_read_point_reply_encode(&reply, &bytes);
    assert_int_equal(codec_try(&msg_read_point_reply_codec, bytes.data, bytes.len), TG_CORRUPT);
    buf_close(&bytes);
    schema_close(&reply.schema);
}

static void test_a_tablet_read_comes_back_as_it_went(void **state)
{
    (void)state;
    uint32_t columns[] = {1, COLUMN_ID_DELETE_SIGN, COLUMN_ID_VERSION};
    struct msg_read_tablet message = {.tablet = 1,
                                      .version = 9,
                                      .need = 8,
                                      .after = 2,
                                      .mode = READ_TABLET_CHANGES,
                                      .column_count = 3,
                                      .columns = columns,
                                      .include_deleted = true,
                                      .in_key_order = true,
                                      .row_limit = 1000};
    schema_init(&message.schema);
    fill_schema(&message.schema);
    buf_append_str(&message.from, "from");
    buf_append_str(&message.position, "position");
    codec_check(&msg_read_tablet_codec, &message);
    schema_close(&message.schema);
    buf_close(&message.from);
    buf_close(&message.position);
}

static void test_a_tablet_answer_comes_back_as_it_went(void **state)
{
    (void)state;
    struct msg_read_tablet_reply reply = {.rows = 8192, .done = false};
    buf_append_str(&reply.position, "here");
    codec_check(&msg_read_tablet_reply_codec, &reply);
    buf_close(&reply.position);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_read_point_question_comes_back_as_it_went),
        cmocka_unit_test(test_a_read_point_comes_back_as_it_went),
        cmocka_unit_test(test_a_tablet_read_comes_back_as_it_went),
        cmocka_unit_test(test_a_tablet_answer_comes_back_as_it_went),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
