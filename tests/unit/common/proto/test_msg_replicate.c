/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_REPLICATE travels whole or not at all. */
#include "common/proto/msg_replicate.h"

#include "tests/unit/common/proto/codec_check.h"

CODEC_CLOSES(msg_replicate)

static void fill_seal(struct rowset_meta *seal, tablet_id tablet)
{
    rowset_meta_init(seal);
    seal->tablet = tablet;
    seal->rowset = 30;
    seal->table = 2;
    seal->txn = 12;
    seal->schema_id = 1;
    seal->load_no = 1;
    seal->rows = 10;
    seal->bytes = 100;
    seal->digest = digest_of("x", 1);
    assert_int_equal(rowset_meta_add_block(seal, 0, 60, 6, 0, slice_str("a"), slice_str("f")), 0);
    assert_int_equal(rowset_meta_add_block(seal, 60, 40, 4, 0, slice_str("g"), slice_str("k")), 0);
}

static void test_pieces_and_seals_come_back_as_they_went(void **state)
{
    (void)state;
    struct replicate_piece pieces[] = {{.tablet = 5, .offset = 0, .len = 60},
                                       {.tablet = 6, .offset = 1ull << 33, .len = UINT32_MAX}};
    struct rowset_meta seals[2];
    fill_seal(&seals[0], 5);
    fill_seal(&seals[1], 6);
    struct msg_replicate message = {.sender = 1,
                                    .sender_epoch = 2,
                                    .receiver = 3,
                                    .txn = 12,
                                    .rowset = 30,
                                    .table = 2,
                                    .piece_count = 2,
                                    .pieces = pieces,
                                    .seal_count = 2,
                                    .seals = seals};
    codec_check(&msg_replicate_codec, &message);
    message.seal_count = 0;
    message.seals = NULL;
    codec_check(&msg_replicate_codec, &message);
    rowset_meta_close(&seals[0]);
    rowset_meta_close(&seals[1]);
}

static void test_a_seal_of_another_rowset_is_refused(void **state)
{
    (void)state;
    struct rowset_meta seal;
    fill_seal(&seal, 5);
    struct msg_replicate message = {
        .txn = 12, .rowset = 31, .table = 2, .seal_count = 1, .seals = &seal};
    struct buf bytes = BUF_INIT;
    msg_replicate_encode(&message, &bytes);
    assert_int_equal(codec_try(&msg_replicate_codec, bytes.data, bytes.len), TG_CORRUPT);
    buf_close(&bytes);
    rowset_meta_close(&seal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_and_seals_come_back_as_they_went),
        cmocka_unit_test(test_a_seal_of_another_rowset_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
