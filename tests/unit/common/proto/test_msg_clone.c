/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_CLONE and what it asks of the source travel whole or not at all. */
#include "common/proto/msg_clone.h"

#include "tests/unit/common/proto/codec_check.h"

static void msg_clone_close(struct msg_clone *message)
{
    (void)message;
}
static void msg_clone_reply_close(struct msg_clone_reply *reply)
{
    (void)reply;
}
static void msg_clone_list_close(struct msg_clone_list *message)
{
    (void)message;
}
static void msg_clone_read_close(struct msg_clone_read *message)
{
    (void)message;
}
CODEC_CLOSES(msg_clone)
CODEC_CLOSES(msg_clone_reply)
CODEC_CLOSES(msg_clone_list)
CODEC_CLOSES(msg_clone_list_reply)
CODEC_CLOSES(msg_clone_read)

static void test_orders_and_answers_come_back_as_they_went(void **state)
{
    (void)state;
    struct msg_clone message = {.node = 2,
                                .epoch = 3,
                                .tablet = 4,
                                .table = 5,
                                .round = UINT64_MAX,
                                .lacks = 6,
                                .source = 7,
                                .trusted = true,
                                .last = 9,
                                .catching = true,
                                .missed = 7,
                                .prove = 8,
                                .chain_known = true,
                                .chain = {{1, 2, 3}},
                                .address = "127.0.0.1:8060"};
    codec_check(&msg_clone_codec, &message);
    struct msg_clone_reply reply = {.state = CLONE_FAILED,
                                    .bound = 9,
                                    .damaged = 7,
                                    .proven = 8,
                                    .chain = {{4, 5, 6}},
                                    .bytes = 10,
                                    .err = TG_CORRUPT,
                                    .reason = "damaged"};
    codec_check(&msg_clone_reply_codec, &reply);
    struct msg_clone_list list = {.source = 1, .tablet = 2, .after = 3};
    codec_check(&msg_clone_list_codec, &list);
    struct msg_clone_read read = {
        .source = 1, .tablet = 2, .rowset = 3, .offset = 4, .len = CLONE_READ_BYTES_MAX};
    codec_check(&msg_clone_read_codec, &read);
}

static void test_versions_come_back_as_they_went(void **state)
{
    (void)state;
    struct publish_rowset two[] = {{.rowset = 4, .digest = {{1, 2, 3}}},
                                   {.rowset = 9, .digest = {{9, 9, 9}}}};
    struct publish_bind binds[] = {
        {.tablet = 1, .version = 8, .prev = 5, .txn = 77, .rowset_count = 2, .rowsets = two},
        {.tablet = 1, .version = 9, .prev = 8, .txn = 78, .replace = true}};
    struct msg_clone_list_reply reply = {
        .last = 12, .at = 5, .chain = {{1, 2, 3}}, .count = 2, .binds = binds};
    codec_check(&msg_clone_list_reply_codec, &reply);
}

static int list_verdict(const struct msg_clone_list_reply *reply)
{
    struct buf bytes = BUF_INIT;
    msg_clone_list_reply_encode(reply, &bytes);
    int err = codec_try(&msg_clone_list_reply_codec, bytes.data, bytes.len);
    buf_close(&bytes);
    return err;
}

static void test_versions_that_do_not_follow_one_another_are_refused(void **state)
{
    (void)state;
    struct publish_bind binds[] = {{.tablet = 1, .version = 8, .prev = 5, .txn = 77},
                                   {.tablet = 1, .version = 9, .prev = 8, .txn = 78}};
    struct msg_clone_list_reply reply = {.last = 9, .at = 5, .count = 2, .binds = binds};
    assert_int_equal(list_verdict(&reply), 0);
    binds[1].prev = 7;
    assert_int_equal(list_verdict(&reply), TG_CORRUPT);
    binds[1].prev = 8;
    reply.last = 8;
    assert_int_equal(list_verdict(&reply), TG_CORRUPT);
    reply.last = 9;
    reply.at = 10;
    assert_int_equal(list_verdict(&reply), TG_CORRUPT);
}

static void test_a_description_travels_with_the_first_bytes_only(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    struct rowset_meta meta;
    struct msg_clone_read_reply reply;
    rowset_meta_init(&meta);
    meta.tablet = 3;
    meta.rowset = 4;
    assert_int_equal(rowset_meta_add_block(&meta, 0, 100, 7, 0, slice_str("a"), slice_str("b")), 0);
    meta.bytes = 100;
    meta.rows = 7;
    msg_clone_read_reply_encode(&meta, &bytes);
    assert_int_equal(msg_clone_read_reply_decode(slice_of(bytes.data, bytes.len), &reply), 0);
    assert_true(reply.with_meta);
    assert_int_equal(reply.meta.rowset, 4);
    msg_clone_read_reply_close(&reply);
    for (size_t len = 0; len < bytes.len; len++)
        assert_int_not_equal(msg_clone_read_reply_decode(slice_of(bytes.data, len), &reply), 0);
    buf_clear(&bytes);
    msg_clone_read_reply_encode(NULL, &bytes);
    assert_int_equal(msg_clone_read_reply_decode(slice_of(bytes.data, bytes.len), &reply), 0);
    assert_false(reply.with_meta);
    msg_clone_read_reply_close(&reply);
    rowset_meta_close(&meta);
    buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_and_answers_come_back_as_they_went),
        cmocka_unit_test(test_versions_come_back_as_they_went),
        cmocka_unit_test(test_versions_that_do_not_follow_one_another_are_refused),
        cmocka_unit_test(test_a_description_travels_with_the_first_bytes_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
