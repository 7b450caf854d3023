/* SPDX-License-Identifier: Apache-2.0 */
/* The words of _stream_load_2pc, which connectors match by regular expressions. */
#include "coordinator/txn/txn_2pc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/state_builder.h"

static int setup(void **state)
{
    struct state_builder *b = calloc(1, sizeof *b);

    state_builder_init(b);
    state_builder_members(b, 1, 1);
    state_builder_db(b, "d");
    state_builder_db(b, "e");
    state_builder_table(
        b, &(struct state_builder_table){.db = "d", .table = "t", .buckets = 1, .replication = 1});
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    state_builder_close(*state);
    free(*state);
    return 0;
}

static struct msg_txn_2pc make(const char *db, const char *operation, const char *txn,
                               const char *label)
{
    struct msg_txn_2pc message = {.request_hi = 5, .request_lo = 6};

    snprintf(message.db, sizeof message.db, "%s", db);
    snprintf(message.operation, sizeof message.operation, "%s", operation);
    snprintf(message.txn_text, sizeof message.txn_text, "%s", txn);
    snprintf(message.label, sizeof message.label, "%s", label);
    return message;
}

static void refused(const struct state_builder *b, struct msg_txn_2pc message, const char *status,
                    const char *msg)
{
    struct txn_2pc_target target;
    struct msg_txn_2pc_reply reply;

    assert_false(txn_2pc_resolve(&b->state, &message, &target, &reply));
    assert_string_equal(reply.status, status);
    assert_string_equal(reply.msg, msg);
}

#define FE "TStatus: errCode = 2, detailMessage = "

static void test_refusals_have_their_words(void **state)
{
    struct state_builder *b = *state;

    refused(b, make("d", "", "1", ""), "FAILED",
            "No transaction operation('commit' or 'abort') selected.");
    refused(b, make("d", "COMMIT", "1", ""), "INTERNAL_ERROR",
            "transaction operation should be 'commit' or 'abort'");
    refused(b, make("d", "commit", "", ""), "FAILED", "No transaction id or label selected.");
    refused(b, make("d", "commit", "abc", ""), "INTERNAL_ERROR",
            "convert txn_id [abc] failed, reason=stoull");
    refused(b, make("d", "commit", "-1", ""), "ANALYSIS_ERROR", FE "transaction [-1] not found");
    refused(b, make("d", "commit", "99999999999999999999", ""), "ANALYSIS_ERROR",
            FE "transaction [99999999999999999999] not found");
    refused(b, make("x", "commit", "1", ""), "ANALYSIS_ERROR", FE "unknown database, database=x");
    refused(b, make("d", "commit", "", "l"), "ANALYSIS_ERROR", FE "transaction not found, label=l");
    refused(b, make("d", "begin", "", ""), "ANALYSIS_ERROR", FE "begin needs a label");
}

static void test_a_label_names_its_newest_transaction(void **state)
{
    struct state_builder *b = *state;
    struct txn_2pc_target target;
    struct msg_txn_2pc_reply reply;

    assert_int_equal(state_builder_begin(b, 1, "d", "t", "l", true), 0);
    txn_id txn = b->last.txn;
    rowset_id rowset = b->last.rowset;
    refused(b, make("e", "abort", "", "l"), "ANALYSIS_ERROR", FE "transaction not found, label=l");
    /* A single load that still runs cannot be committed by its label, but aborted. */
    refused(b, make("d", "commit", "", "l"), "ANALYSIS_ERROR",
            FE "running transaction not found, label=l");
    struct msg_txn_2pc message = make("d", "abort", "", "l");
    assert_true(txn_2pc_resolve(&b->state, &message, &target, &reply));
    assert_int_equal(target.txn, txn);
    assert_int_equal(state_builder_done(b, txn, rowset, 1, 1), 0);
    message = make("d", "commit", "", "l");
    assert_true(txn_2pc_resolve(&b->state, &message, &target, &reply));
    assert_int_equal(target.txn, txn);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn), 0);
    /* Committed already: the log will say so, with its id. An abort finds nothing that runs. */
    assert_true(txn_2pc_resolve(&b->state, &message, &target, &reply));
    refused(b, make("d", "abort", "", "l"), "ANALYSIS_ERROR",
            FE "running transaction not found, label=l");
}

static void test_an_id_decides_even_beside_a_label(void **state)
{
    struct state_builder *b = *state;
    struct msg_txn_2pc message = make("d", "abort", "12ABC", "nonsense");
    struct txn_2pc_target target;
    struct msg_txn_2pc_reply reply;

    assert_true(txn_2pc_resolve(&b->state, &message, &target, &reply));
    assert_true(target.by_id);
    assert_int_equal(target.txn, 12); /* leading digits are enough, as in Doris */
}

static void test_success_names_what_was_asked_for(void **state)
{
    struct msg_txn_2pc by_id = make("d", "commit", "7", "");
    struct msg_txn_2pc by_label = make("d", "abort", "", "l");
    struct msg_txn_2pc by_both = make("d", "precommit", "7", "l");
    struct txn_2pc_target target = {.operation = TXN_2PC_COMMIT, .by_id = true};
    struct msg_txn_2pc_reply reply;

    (void)state;
    txn_2pc_answer(&by_id, &target, 0, "", 7, &reply);
    assert_string_equal(reply.status, "Success");
    assert_string_equal(reply.msg, "transaction [7] commit successfully.");
    target = (struct txn_2pc_target){.operation = TXN_2PC_ABORT};
    txn_2pc_answer(&by_label, &target, 0, "", 7, &reply);
    assert_string_equal(reply.msg, "label [l] abort successfully.");
    target = (struct txn_2pc_target){.operation = TXN_2PC_PRECOMMIT, .by_id = true};
    txn_2pc_answer(&by_both, &target, 0, "", 7, &reply);
    assert_string_equal(reply.msg, "label [l] transaction [7] precommit successfully.");
    txn_2pc_answer(&by_id, &target, TG_TXN_STATE, "it is so.", 7, &reply);
    assert_string_equal(reply.status, "ANALYSIS_ERROR");
    assert_string_equal(reply.msg, FE "it is so.");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_refusals_have_their_words),
        TEST(test_a_label_names_its_newest_transaction),
        TEST(test_an_id_decides_even_beside_a_label),
        TEST(test_success_names_what_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
