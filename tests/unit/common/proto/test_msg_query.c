/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_QUERY travels whole or not at all. */
#include "common/proto/msg_query.h"

#include "tests/unit/common/proto/codec_check.h"

CODEC_CLOSES(msg_query)
CODEC_CLOSES(msg_query_reply)

static void test_a_question_comes_back_as_it_went(void **state)
{
    (void)state;
    struct msg_query message = {.kind = QUERY_LOAD_STATE,
                                .db = "d",
                                .table = "t",
                                .label = "l-1",
                                .user = "root",
                                .request_hi = UINT64_MAX,
                                .request_lo = 7};
    buf_append_str(&message.text, "SELECT 1");
    codec_check(&msg_query_codec, &message);
    buf_close(&message.text);
}

static void test_an_answer_comes_back_as_it_went(void **state)
{
    (void)state;
    struct msg_query_reply reply = {.data = BUF_INIT};
    buf_append_str(&reply.data, "{\"a\":1}");
    codec_check(&msg_query_reply_codec, &reply);
    buf_close(&reply.data);
}

static void test_kind_zero_and_long_text_are_refused(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    struct msg_query message = {0};
    msg_query_encode(&message, &bytes);
    assert_int_equal(codec_try(&msg_query_codec, bytes.data, bytes.len), TG_CORRUPT);

    buf_clear(&bytes);
    message.kind = QUERY_STATEMENT;
    assert_non_null(buf_extend(&message.text, QUERY_TEXT_MAX + 1));
    memset(message.text.data, 'x', message.text.len);
    msg_query_encode(&message, &bytes);
    assert_int_equal(codec_try(&msg_query_codec, bytes.data, bytes.len), TG_CORRUPT);
    buf_close(&bytes);
    buf_close(&message.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_question_comes_back_as_it_went),
        cmocka_unit_test(test_an_answer_comes_back_as_it_went),
        cmocka_unit_test(test_kind_zero_and_long_text_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
