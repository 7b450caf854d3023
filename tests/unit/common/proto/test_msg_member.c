/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_REGISTER and MSG_HEARTBEAT travel whole or not at all. */
#include "common/proto/msg_member.h"

#include "common/base/msgpack.h"
#include "tests/unit/common/proto/codec_check.h"

CODEC_PLAIN(msg_register)
CODEC_PLAIN(msg_register_reply)
CODEC_CLOSES(msg_heartbeat)
CODEC_CLOSES(msg_heartbeat_reply)

static void test_a_registration_comes_back_as_it_went(void **state)
{
    (void)state;
    struct msg_register message = {.wanted = 2,
                                   .node_uuid = "6ecd8c99-4036-403d-bf84-cf8400f67836",
                                   .previous_nonce = 0x1122334455667788,
                                   .new_nonce = UINT64_MAX,
                                   .http = "127.0.0.1:8040",
                                   .rpc = "127.0.0.1:8060",
                                   .rejoin = true};
    codec_check(&msg_register_codec, &message);
    struct msg_register_reply reply = {.node = 2, .epoch = 19, .cluster_uuid = "c"};
    codec_check(&msg_register_reply_codec, &reply);
}

static void test_a_heartbeat_comes_back_as_it_went(void **state)
{
    (void)state;
    uint64_t live[] = {1, 300, 70000};
    txn_id staged[] = {5, 1ull << 50};
    tablet_id tablets[] = {9};
    struct damaged_version damaged[] = {{9, 3}, {1ull << 40, 1}};
    struct msg_heartbeat message = {.node = 1,
                                    .epoch = 4,
                                    .request_high = 70001,
                                    .live = live,
                                    .live_count = 3,
                                    .staged = staged,
                                    .staged_count = 2,
                                    .tablets = tablets,
                                    .tablet_count = 1,
                                    .disk_free_bytes = 10,
                                    .disk_total_bytes = 20,
                                    .damaged = damaged,
                                    .damaged_count = 2};
    codec_check(&msg_heartbeat_codec, &message);
    struct msg_heartbeat empty = {.node = 1};
    codec_check(&msg_heartbeat_codec, &empty);
}

static void test_a_heartbeat_reply_comes_back_as_it_went(void **state)
{
    (void)state;
    txn_id dead[] = {5};
    uint64_t stopped[] = {300, 301};
    tablet_id dropped[] = {7, 8, 9};
    struct msg_heartbeat_reply reply = {.dead = dead,
                                        .dead_count = 1,
                                        .stopped = stopped,
                                        .stopped_count = 2,
                                        .dropped = dropped,
                                        .dropped_count = 3,
                                        .txn_low_water = 4,
                                        .closed_us = 77,
                                        .closed_position = 99};
    codec_check(&msg_heartbeat_reply_codec, &reply);
}

static void test_a_list_over_its_limit_is_refused(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    mp_array(&bytes, 9);
    mp_uint(&bytes, MESSAGE_VERSION);
    mp_uint(&bytes, 1);
    mp_uint(&bytes, 1);
    mp_uint(&bytes, 1);
    mp_array(&bytes, HEARTBEAT_LIVE_MAX + 1);
    for (uint32_t i = 0; i < HEARTBEAT_LIVE_MAX + 1; i++)
        mp_uint(&bytes, i);
    mp_array(&bytes, 0);
    mp_array(&bytes, 0);
    mp_uint(&bytes, 0);
    mp_uint(&bytes, 0);
    assert_int_equal(codec_try(&msg_heartbeat_codec, bytes.data, bytes.len), TG_CORRUPT);
    buf_close(&bytes);
}

static void test_a_count_beyond_the_bytes_is_refused(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    mp_array(&bytes, 9);
    mp_uint(&bytes, MESSAGE_VERSION);
    mp_uint(&bytes, 1);
    mp_uint(&bytes, 1);
    mp_uint(&bytes, 1);
    buf_append(&bytes, "\xdd\xff\xff\xff\xff", 5);
    assert_int_equal(codec_try(&msg_heartbeat_codec, bytes.data, bytes.len), TG_CORRUPT);
    buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_registration_comes_back_as_it_went),
        cmocka_unit_test(test_a_heartbeat_comes_back_as_it_went),
        cmocka_unit_test(test_a_heartbeat_reply_comes_back_as_it_went),
        cmocka_unit_test(test_a_list_over_its_limit_is_refused),
        cmocka_unit_test(test_a_count_beyond_the_bytes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
