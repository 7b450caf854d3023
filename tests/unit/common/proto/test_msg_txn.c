/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a transaction travel whole or not at all. */
#include "common/proto/msg_txn.h"

#include "tests/unit/common/proto/codec_check.h"

CODEC_PLAIN(msg_txn_begin)
CODEC_CLOSES(msg_txn_begin_reply)
CODEC_CLOSES(msg_load_done)
CODEC_PLAIN(msg_txn_reply)
CODEC_PLAIN(msg_load_failed)
CODEC_PLAIN(msg_txn_2pc)
CODEC_PLAIN(msg_txn_2pc_reply)

static void add_column(struct schema *schema, const char *name, uint8_t kind, bool is_key)
{
    struct schema_column column = {.type = {.kind = kind}, .nullable = !is_key, .is_key = is_key};
    strcpy(column.name, name);
    assert_int_equal(schema_add_column(schema, &column, NULL), 0);
}

static void test_a_begin_comes_back_as_it_went(void **state)
{
    (void)state;
    struct msg_txn_begin message = {.node = 1,
                                    .epoch = 2,
                                    .request_id = 3,
                                    .db = "d",
                                    .table = "t",
                                    .label = "label-1",
                                    .user = "root",
                                    .join = 4,
                                    .two_phase = true,
                                    .timeout_ms = 600000};
    codec_check(&msg_txn_begin_codec, &message);
}

static void fill_plan(struct msg_txn_begin_reply *reply)
{
    msg_txn_begin_reply_init(reply);
    reply->txn = 1001;
    reply->state = TXN_PREPARE;
    reply->rowset = 55;
    reply->load_no = 1;
    reply->table = 7;
    reply->placement_epoch = 2;
    reply->timeout_ms = 5000;
    reply->schema.id = 1;
    reply->schema.key_model = KEY_UNIQUE;
    add_column(&reply->schema, "k", TYPE_INT, true);
    add_column(&reply->schema, "v", TYPE_STRING, false);
}

static void test_a_plan_comes_back_as_it_went(void **state)
{
    (void)state;
    struct load_plan_tablet tablets[] = {{.tablet = 1,
                                          .replica_count = 3,
                                          .replicas = {1, 2, 3},
                                          .behind = 5,
                                          .catching = 4,
                                          .quorum = 2},
                                         {.tablet = 2, .replica_count = 1, .replicas = {2}}};
    struct load_plan_node nodes[] = {{.node = 1, .rpc = "127.0.0.1:8060"},
                                     {.node = 2, .rpc = "127.0.0.1:8061"}};
    uint32_t distribution[] = {0};
    struct msg_txn_begin_reply reply;
    fill_plan(&reply);
    reply.bucket_count = 2;
    reply.tablets = tablets;
    reply.distribution_count = 1;
    reply.distribution = distribution;
    reply.node_count = 2;
    reply.nodes = nodes;
    codec_check(&msg_txn_begin_reply_codec, &reply);
    schema_close(&reply.schema);
}

static void test_a_refusal_without_a_plan_comes_back_as_it_went(void **state)
{
    (void)state;
    struct msg_txn_begin_reply reply;
    msg_txn_begin_reply_init(&reply);
    reply.txn = 12;
    reply.state = TXN_PRECOMMITTED;
    codec_check(&msg_txn_begin_reply_codec, &reply);
}

static void test_a_plan_with_columns_beyond_the_schema_is_refused(void **state)
{
    (void)state;
    uint32_t distribution[] = {2};
    struct msg_txn_begin_reply reply;
    fill_plan(&reply);
    reply.distribution_count = 1;
    reply.distribution = distribution;
    struct buf bytes = BUF_INIT;
    msg_txn_begin_reply_encode(&reply, &bytes);
    assert_int_equal(codec_try(&msg_txn_begin_reply_codec, bytes.data, bytes.len), TG_CORRUPT);
    buf_close(&bytes);
    schema_close(&reply.schema);
}

static void test_a_load_report_comes_back_as_it_went(void **state)
{
    (void)state;
    struct load_report_tablet tablets[] = {
        {.tablet = 1, .sealed = 7, .rows = 100, .bytes = 4096, .digest = {{1, 2}}},
        {.tablet = 2, .sealed = 3, .rows = 1, .bytes = 40, .digest = {{3, 4}}}};
    struct msg_load_done message = {.node = 1,
                                    .epoch = 2,
                                    .request_id = 3,
                                    .txn = 4,
                                    .rowset = 5,
                                    .placement_epoch = 6,
                                    .finish = LOAD_FINISH_COMMIT,
                                    .wait_visible_ms = 2000,
                                    .rows = 101,
                                    .bytes = 9000,
                                    .tablet_count = 2,
                                    .tablets = tablets};
    codec_check(&msg_load_done_codec, &message);
    tablets[0].sealed = 1 << REPLICAS_MAX;
    struct buf bytes = BUF_INIT;
    msg_load_done_encode(&message, &bytes);
    assert_int_equal(codec_try(&msg_load_done_codec, bytes.data, bytes.len), TG_CORRUPT);
    buf_close(&bytes);
}

static void test_small_messages_come_back_as_they_went(void **state)
{
    (void)state;
    struct msg_txn_reply reply = {.txn = 1, .state = TXN_VISIBLE, .version = 2, .visible_us = 3};
    codec_check(&msg_txn_reply_codec, &reply);
    struct msg_load_failed failed = {.node = 1, .request_id = 9, .reason = "body was cut off"};
    codec_check(&msg_load_failed_codec, &failed);
    struct msg_txn_2pc two = {.request_hi = UINT64_MAX,
                              .request_lo = 1,
                              .db = "d",
                              .operation = "commit",
                              .txn_text = "12",
                              .label = "x",
                              .user = "root",
                              .wait_visible_ms = 2000};
    codec_check(&msg_txn_2pc_codec, &two);
    struct msg_txn_2pc_reply answer = {.status = "Success",
                                       .msg = "transaction [12] commit successfully.",
                                       .txn = 12,
                                       .state = TXN_COMMITTED};
    codec_check(&msg_txn_2pc_reply_codec, &answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_begin_comes_back_as_it_went),
        cmocka_unit_test(test_a_plan_comes_back_as_it_went),
        cmocka_unit_test(test_a_refusal_without_a_plan_comes_back_as_it_went),
        cmocka_unit_test(test_a_plan_with_columns_beyond_the_schema_is_refused),
        cmocka_unit_test(test_a_load_report_comes_back_as_it_went),
        cmocka_unit_test(test_small_messages_come_back_as_they_went),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
