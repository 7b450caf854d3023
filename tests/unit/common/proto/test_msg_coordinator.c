/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_COORDINATOR travels whole or not at all. */
#include "common/proto/msg_coordinator.h"

#include "tests/unit/common/proto/codec_check.h"

CODEC_PLAIN(msg_coordinator)
CODEC_PLAIN(msg_coordinator_reply)

static void test_an_order_comes_back_as_it_went(void **state)
{
    struct msg_coordinator message = {.order = COORDINATOR_ORDER_ADD,
                                      .id = UINT32_MAX,
                                      .nonce = UINT64_MAX,
                                      .raft = "10.0.0.4:9010",
                                      .rpc = "10.0.0.4:9020",
                                      .http = "10.0.0.4:8030"};

    (void)state;
    codec_check(&msg_coordinator_codec, &message);
}

static void test_an_answer_comes_back_as_it_went(void **state)
{
    static struct msg_coordinator_reply reply = {
        .admitted = true,
        .leader = 2,
        .last_index = UINT64_MAX,
        .cluster_uuid = "6ecd8c99-4036-403d-bf84-cf8400f67836",
        .coordinators = {.next_id = 4,
                         .count = 2,
                         .list = {{1, 2, "a:1", "a:2", "a:3"}, {3, 1, "c:1", "c:2", "c:3"}}},
        .fares = {{3, true, 17, -5000000, STATUS_ROOM_FREE, 1},
                  {2, false, 0, INT64_MAX, STATUS_ROOM_NONE, UINT64_MAX}},
    };
    struct msg_coordinator_reply got;
    struct buf bytes = BUF_INIT;

    (void)state;
    codec_check(&msg_coordinator_reply_codec, &reply);
    msg_coordinator_reply_encode(&reply, &bytes);
    assert_int_equal(msg_coordinator_reply_decode(slice_of(bytes.data, bytes.len), &got), 0);
    assert_int_equal(got.fares[0].ahead_us, -5000000);
    assert_string_equal(got.coordinators.list[1].http, "c:3");
    buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_order_comes_back_as_it_went),
        cmocka_unit_test(test_an_answer_comes_back_as_it_went),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
