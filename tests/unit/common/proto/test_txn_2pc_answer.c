/* SPDX-License-Identifier: Apache-2.0 */
/* _stream_load_2pc: headers to a message, outcomes to JSON. */
#include "common/proto/txn_2pc_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_headers_become_a_message(void **state)
{
    struct txn_2pc_headers headers = {
        .operation = "commit", .txn_id = "12", .label = "a:b", .timeout = "junk"};
    struct msg_txn_2pc message;
    struct msg_txn_2pc_reply reply;

    (void)state;
    assert_true(txn_2pc_request("db", "root", &headers, &message, &reply));
    assert_string_equal(message.db, "db");
    assert_string_equal(message.user, "root");
    assert_string_equal(message.operation, "commit");
    assert_string_equal(message.txn_text, "12");
    assert_string_equal(message.label, "a:b");
    assert_int_equal(message.timeout_ms, 0); /* only begin looks at it */
}

static void test_begin_checks_label_and_timeout(void **state)
{
    struct txn_2pc_headers headers = {.operation = "begin", .label = "l", .timeout = "30"};
    struct msg_txn_2pc message;
    struct msg_txn_2pc_reply reply;

    (void)state;
    assert_true(txn_2pc_request("db", "root", &headers, &message, &reply));
    assert_int_equal(message.timeout_ms, 30000);
    headers.timeout = "abc";
    assert_false(txn_2pc_request("db", "root", &headers, &message, &reply));
    assert_string_equal(reply.msg, "Invalid format of 'timeout': 'abc', stoi");
    headers.timeout = "0";
    assert_false(txn_2pc_request("db", "root", &headers, &message, &reply));
    assert_string_equal(reply.msg,
                        "Invalid timeout: 0. Timeout should between 1 and 259200 seconds");
    headers.timeout = NULL;
    headers.label = "with blank";
    assert_false(txn_2pc_request("db", "root", &headers, &message, &reply));
    assert_non_null(strstr(reply.msg, "Label format error"));
}

static void test_a_label_too_long_is_never_cut_to_another(void **state)
{
    char label[LABEL_BYTES + 10];
    struct txn_2pc_headers headers = {.operation = "abort", .label = label};
    struct msg_txn_2pc message;
    struct msg_txn_2pc_reply reply;

    (void)state;
    memset(label, 'x', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    assert_false(txn_2pc_request("db", "root", &headers, &message, &reply));
    assert_non_null(strstr(reply.msg, "transaction not found, label=xxx"));
    headers.txn_id = "5";
    assert_true(txn_2pc_request("db", "root", &headers, &message, &reply));
    assert_string_equal(message.label, "");
}

static void test_answers_are_maps_of_strings(void **state)
{
    struct msg_txn_2pc message = {.operation = "commit"};
    struct msg_txn_2pc_reply reply = {.status = "Success", .msg = "transaction [7] ok.", .txn = 7};
    struct buf out = BUF_INIT;

    (void)state;
    txn_2pc_print(&message, &reply, &out);
    assert_string_equal(buf_cstr(&out), "{\n    \"status\": \"Success\",\n    \"msg\": "
                                        "\"transaction [7] ok.\"\n}\n");
    buf_clear(&out);
    strcpy(message.operation, "begin");
    strcpy(message.label, "l");
    txn_2pc_print(&message, &reply, &out);
    assert_non_null(strstr(buf_cstr(&out), "\"txn_id\": \"7\",\n    \"label\": \"l\"\n}"));
    buf_clear(&out);
    strcpy(reply.status, "Label Already Exists");
    reply.state = TXN_VISIBLE;
    txn_2pc_print(&message, &reply, &out);
    assert_non_null(strstr(buf_cstr(&out), "\"ExistingJobStatus\": \"FINISHED\""));
    buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_become_a_message),
        cmocka_unit_test(test_begin_checks_label_and_timeout),
        cmocka_unit_test(test_a_label_too_long_is_never_cut_to_another),
        cmocka_unit_test(test_answers_are_maps_of_strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
