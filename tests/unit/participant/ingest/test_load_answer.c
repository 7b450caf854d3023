/* SPDX-License-Identifier: Apache-2.0 */
/* The answer's text, byte for byte. */
#include "participant/ingest/load_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_a_success_has_all_fields_in_order_and_no_error_url(void **state)
{
    struct load_options options = {.label = "L", .comment = "c"};
    struct load_result result = {.status = LOAD_SUCCESS,
                                 .txn = 1003,
                                 .message = "OK",
                                 .total_rows = 10,
                                 .loaded_rows = 10,
                                 .bytes = 118,
                                 .load_ms = 144,
                                 .begin_ms = 14,
                                 .read_ms = 9,
                                 .write_ms = 15,
                                 .commit_ms = 91};
    struct buf out = BUF_INIT;
    (void)state;
    load_answer_print(&options, &result, "h:8040", &out);
    assert_string_equal(buf_cstr(&out), "{\n"
                                        "    \"TxnId\": 1003,\n"
                                        "    \"Label\": \"L\",\n"
                                        "    \"Comment\": \"c\",\n"
                                        "    \"TwoPhaseCommit\": \"false\",\n"
                                        "    \"Status\": \"Success\",\n"
                                        "    \"Message\": \"OK\",\n"
                                        "    \"NumberTotalRows\": 10,\n"
                                        "    \"NumberLoadedRows\": 10,\n"
                                        "    \"NumberFilteredRows\": 0,\n"
                                        "    \"NumberUnselectedRows\": 0,\n"
                                        "    \"LoadBytes\": 118,\n"
                                        "    \"LoadTimeMs\": 144,\n"
                                        "    \"BeginTxnTimeMs\": 14,\n"
                                        "    \"StreamLoadPutTimeMs\": 0,\n"
                                        "    \"ReadDataTimeMs\": 9,\n"
                                        "    \"WriteDataTimeMs\": 15,\n"
                                        "    \"ReceiveDataTimeMs\": 9,\n"
                                        "    \"CommitAndPublishTimeMs\": 91\n"
                                        "}\n");
    buf_close(&out);
}

static void test_a_used_label_is_told_with_its_state(void **state)
{
    struct load_options options = {.label = "L", .two_phase_commit = true};
    struct load_result result = {
        .status = LOAD_LABEL_EXISTS, .existing = TXN_PRECOMMITTED, .message = "m"};
    struct buf out = BUF_INIT;
    (void)state;
    load_answer_print(&options, &result, "", &out);
    assert_non_null(strstr(buf_cstr(&out), "    \"TxnId\": -1,\n"));
    assert_non_null(strstr(buf_cstr(&out), "    \"TwoPhaseCommit\": \"true\",\n"
                                           "    \"Status\": \"Label Already Exists\",\n"
                                           "    \"ExistingJobStatus\": \"PRECOMMITTED\",\n"
                                           "    \"Message\": \"m\",\n"));
    buf_close(&out);
}

static void test_kept_rows_give_an_error_url(void **state)
{
    struct load_options options = {.label = "L"};
    struct load_result result = {
        .status = LOAD_FAIL, .error_file = "f", .first_error = "bad", .load_ms = 1ull << 40};
    struct buf out = BUF_INIT;
    (void)state;
    load_answer_print(&options, &result, "h:8040", &out);
    assert_non_null(strstr(buf_cstr(&out),
                           "    \"ErrorURL\": \"http://h:8040/api/_load_error_log?file=f\",\n"
                           "    \"FirstErrorMsg\": \"bad\"\n}\n"));
    assert_non_null(strstr(buf_cstr(&out), "\"LoadTimeMs\": 2147483647,"));
    buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_success_has_all_fields_in_order_and_no_error_url),
        cmocka_unit_test(test_a_used_label_is_told_with_its_state),
        cmocka_unit_test(test_kept_rows_give_an_error_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
