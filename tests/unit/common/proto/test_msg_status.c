/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_STATUS travels whole or not at all. */
#include "common/proto/msg_status.h"

#include "tests/unit/common/proto/codec_check.h"

CODEC_PLAIN(msg_status_reply)

static void test_a_status_comes_back_as_it_went(void **state)
{
    (void)state;
    struct msg_status_reply reply = {
        .coordinator = 3,
        .leader = 1,
        .leader_rpc = "127.0.0.1:9020",
        .leader_http = "127.0.0.1:8030",
        .cluster_uuid = "6ecd8c99-4036-403d-bf84-cf8400f67836",
        .term = 7,
        .applied_index = 1ull << 40,
        .last_stamp_us = UINT64_MAX,
        .phase = STATUS_JOINS,
        .of_cluster = true,
        .nonce = 4711,
        .wall_us = UINT64_MAX,
        .room = STATUS_ROOM_NONE,
        .disk_free_bytes = 17,
        .coordinators = {.next_id = 5, .count = 1, .list = {{4, 2, "a:1", "a:2", "a:3"}}}};
    codec_check(&msg_status_reply_codec, &reply);
}

static void test_fields_arrive_where_they_belong(void **state)
{
    (void)state;
    struct msg_status_reply reply = {.coordinator = 3, .leader_rpc = "a:1", .term = 9};
    struct msg_status_reply got;
    struct buf bytes = BUF_INIT;
    msg_status_reply_encode(&reply, &bytes);
    assert_int_equal(msg_status_reply_decode(slice_of(bytes.data, bytes.len), &got), 0);
    assert_int_equal(got.coordinator, 3);
    assert_string_equal(got.leader_rpc, "a:1");
    assert_string_equal(got.leader_http, "");
    assert_int_equal(got.term, 9);
    buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_status_comes_back_as_it_went),
        cmocka_unit_test(test_fields_arrive_where_they_belong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
