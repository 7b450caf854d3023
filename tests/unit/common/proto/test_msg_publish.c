/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_PUBLISH travels whole or not at all. */
#include "common/proto/msg_publish.h"

#include "tests/unit/common/proto/codec_check.h"

CODEC_CLOSES(msg_publish)
CODEC_CLOSES(msg_publish_reply)

static int publish_verdict(const struct msg_publish *message)
{
    struct buf bytes = BUF_INIT;
    msg_publish_encode(message, &bytes);
    int err = codec_try(&msg_publish_codec, bytes.data, bytes.len);
    buf_close(&bytes);
    return err;
}

static void test_a_publish_comes_back_as_it_went(void **state)
{
    (void)state;
    struct publish_rowset two[] = {{.rowset = 4, .digest = {{1, 2, 3}}},
                                   {.rowset = 9, .digest = {{9, 9, 9}}}};
    struct publish_bind binds[] = {
        {.tablet = 1,
         .table = 2,
         .version = 8,
         .prev = 5,
         .txn = 77,
         .rowset_count = 2,
         .rowsets = two},
        {.tablet = 3, .table = 2, .version = 8, .prev = 0, .txn = 77, .replace = true}};
    struct msg_publish message = {.node = 2, .epoch = 3, .bind_count = 2, .binds = binds};
    codec_check(&msg_publish_codec, &message);
}

static void test_a_publish_reply_comes_back_as_it_went(void **state)
{
    (void)state;
    uint8_t status[] = {PUBLISH_BOUND, PUBLISH_BEHIND, PUBLISH_FAILED};
    struct msg_publish_reply reply = {.count = 3, .status = status};
    codec_check(&msg_publish_reply_codec, &reply);
    struct msg_publish_reply none = {0};
    codec_check(&msg_publish_reply_codec, &none);
}

static void test_rowsets_out_of_order_are_refused(void **state)
{
    (void)state;
    struct publish_rowset two[] = {{.rowset = 4}, {.rowset = 4}};
    struct publish_bind bind = {.version = 8, .prev = 5, .rowset_count = 2, .rowsets = two};
    struct msg_publish message = {.bind_count = 1, .binds = &bind};
    assert_int_equal(publish_verdict(&message), TG_CORRUPT);
    two[1].rowset = 5;
    assert_int_equal(publish_verdict(&message), 0);
}

static void test_a_version_that_does_not_follow_prev_is_refused(void **state)
{
    (void)state;
    struct publish_bind bind = {.version = 5, .prev = 5};
    struct msg_publish message = {.bind_count = 1, .binds = &bind};
    assert_int_equal(publish_verdict(&message), TG_CORRUPT);
}

static void test_an_unknown_status_is_refused(void **state)
{
    (void)state;
    uint8_t status[] = {PUBLISH_FAILED + 1};
    struct msg_publish_reply reply = {.count = 1, .status = status};
    struct buf bytes = BUF_INIT;
    msg_publish_reply_encode(&reply, &bytes);
    assert_int_equal(codec_try(&msg_publish_reply_codec, bytes.data, bytes.len), TG_CORRUPT);
    buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_publish_comes_back_as_it_went),
        cmocka_unit_test(test_a_publish_reply_comes_back_as_it_went),
        cmocka_unit_test(test_rowsets_out_of_order_are_refused),
        cmocka_unit_test(test_a_version_that_does_not_follow_prev_is_refused),
        cmocka_unit_test(test_an_unknown_status_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
