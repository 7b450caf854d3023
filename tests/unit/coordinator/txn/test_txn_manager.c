/* SPDX-License-Identifier: Apache-2.0 */
/* The transaction manager: messages to commands, outcomes to answers. */
#include "coordinator/txn/txn_manager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/coordinator_scene.h"

struct fixture {
    struct coordinator_scene scene;
    struct txn_manager *txns;
};

/* The end of one call. */
struct answer {
    unsigned count;
    int err;
    char sentence[600];
    struct buf head;
};

static void on_done(void *data, int err, const char *sentence, struct slice head)
{
    struct answer *answer = data;

    answer->count++;
    answer->err = err;
    snprintf(answer->sentence, sizeof answer->sentence, "%s", sentence);
    buf_clear(&answer->head);
    buf_append(&answer->head, head.data, head.len);
}

static struct slice head_of(const struct answer *answer)
{
    return slice_of(answer->head.data, answer->head.len);
}

static void on_applied(void *data)
{
    struct fixture *f = data;

    txn_manager_run(f->txns);
}

static void on_leadership(void *data, bool leads)
{
    struct fixture *f = data;

    if (!leads)
        txn_manager_lost(f->txns);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    coordinator_scene_open(&f->scene);
    assert_int_equal(txn_manager_open(f->scene.consensus, &f->scene.clock.clock, &f->txns), 0);
    fake_consensus_set_observer(f->scene.fake,
                                &(struct consensus_observer){
                                    .leadership = on_leadership, .applied = on_applied, .data = f});
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    struct consensus_observer nobody = {0};

    txn_manager_close(f->txns);
    fake_consensus_set_observer(f->scene.fake, &nobody);
    coordinator_scene_close(&f->scene);
    free(f);
    return 0;
}

static void begin(struct fixture *f, uint64_t request, const char *label, bool two_phase,
                  struct answer *answer, struct msg_txn_begin_reply *reply)
{
    struct msg_txn_begin message;

    coordinator_scene_begin(&f->scene, 1, request, label, two_phase, &message);
    txn_manager_begin(f->txns, &message, on_done, answer);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(answer->count, 1);
    msg_txn_begin_reply_init(reply);
    assert_int_equal(msg_txn_begin_reply_decode(head_of(answer), reply), 0);
}

static void report(struct fixture *f, uint64_t request, const struct msg_txn_begin_reply *begun,
                   enum load_finish finish, uint64_t wait_ms, struct answer *answer)
{
    struct msg_load_done message;

    coordinator_scene_done(&f->scene, 1, request, begun->txn, begun->rowset, finish, 7, &message);
    message.wait_visible_ms = wait_ms;
    txn_manager_load_done(f->txns, &message, on_done, answer);
    msg_load_done_close(&message);
    fake_consensus_run(f->scene.fake);
}

static struct msg_txn_reply reply_of(const struct answer *answer)
{
    struct msg_txn_reply reply;

    assert_int_equal(msg_txn_reply_decode(head_of(answer), &reply), 0);
    return reply;
}

static void make_visible(struct fixture *f, txn_id txn)
{
    struct command command = {.type = COMMAND_TXN_VISIBLE};
    uint8_t confirmed[] = {7, 7};
    struct visible_txn visible = {.txn = txn, .tablet_count = 2, .confirmed = confirmed};

    command.visible.count = 1;
    command.visible.txns = &visible;
    assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
}

static struct msg_txn_2pc two_phase(const char *operation, txn_id txn, uint64_t request)
{
    struct msg_txn_2pc message = {.request_hi = 1, .request_lo = request, .db = "d"};

    strcpy(message.operation, operation);
    if (txn != 0)
        snprintf(message.txn_text, sizeof message.txn_text, "%lu", (unsigned long)txn);
    return message;
}

static struct msg_txn_2pc_reply ask_2pc(struct fixture *f, const struct msg_txn_2pc *message)
{
    struct msg_txn_2pc_reply reply;
    struct answer answer = {0};

    txn_manager_2pc(f->txns, message, on_done, &answer);
    assert_int_equal(answer.count, 0); /* never from inside */
    fake_consensus_run(f->scene.fake);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.err, 0);
    assert_int_equal(msg_txn_2pc_reply_decode(head_of(&answer), &reply), 0);
    buf_close(&answer.head);
    return reply;
}

/* ---- begin ---- */

static void test_begin_answers_with_the_plan(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin_reply reply;
    struct answer answer = {0};

    begin(f, 1, "l", false, &answer, &reply);
    assert_int_equal(answer.err, 0);
    assert_int_equal(reply.txn, 1);
    assert_int_equal(reply.bucket_count, 2);
    assert_int_equal(reply.tablets[0].replica_count, 3);
    assert_int_equal(reply.node_count, 3);
    assert_string_equal(reply.nodes[0].rpc, "127.0.0.1:8060");
    assert_int_equal(reply.distribution_count, 1);
    assert_int_equal(reply.schema.column_count, 2);
    msg_txn_begin_reply_close(&reply);
    buf_close(&answer.head);
}

static void test_the_same_begin_gives_the_same_transaction(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin_reply first;
    struct msg_txn_begin_reply again;
    struct answer a = {0};
    struct answer b = {0};

    begin(f, 1, "l", false, &a, &first);
    begin(f, 1, "l", false, &b, &again);
    assert_int_equal(b.err, 0);
    assert_int_equal(again.txn, first.txn);
    assert_int_equal(again.rowset, first.rowset);
    msg_txn_begin_reply_close(&first);
    msg_txn_begin_reply_close(&again);
    buf_close(&a.head);
    buf_close(&b.head);
}

static void test_a_used_label_is_told_with_transaction_and_state(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin_reply first;
    struct msg_txn_begin_reply second;
    struct answer a = {0};
    struct answer b = {0};

    begin(f, 1, "l", false, &a, &first);
    begin(f, 2, "l", false, &b, &second);
    assert_int_equal(b.err, TG_LABEL_EXISTS);
    assert_int_equal(second.txn, first.txn);
    assert_int_equal(second.state, TXN_PREPARE);
    assert_string_equal(b.sentence,
                        "Label [l] has already been used, relate to txn [1], status [PREPARE].");
    msg_txn_begin_reply_close(&first);
    msg_txn_begin_reply_close(&second);
    buf_close(&a.head);
    buf_close(&b.head);
}

/* ---- loads ---- */

static void test_a_commit_waits_until_it_is_visible(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin_reply begun;
    struct answer answer = {0};

    begin(f, 1, "l", false, &answer, &begun);
    answer.count = 0;
    report(f, 1, &begun, LOAD_FINISH_COMMIT, 1000, &answer);
    assert_int_equal(answer.count, 0);
    make_visible(f, begun.txn);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.err, 0);
    assert_int_equal(reply_of(&answer).state, TXN_VISIBLE);
    assert_int_equal(reply_of(&answer).version, 1);
    assert_true(reply_of(&answer).visible_us > 0);
    msg_txn_begin_reply_close(&begun);
    buf_close(&answer.head);
}

static void test_a_wait_that_is_over_answers_committed(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin_reply begun;
    struct answer answer = {0};

    begin(f, 1, "l", false, &answer, &begun);
    answer.count = 0;
    report(f, 1, &begun, LOAD_FINISH_COMMIT, 1000, &answer);
    fake_clock_advance_ms(&f->scene.clock, 999);
    txn_manager_run(f->txns);
    assert_int_equal(answer.count, 0);
    fake_clock_advance_ms(&f->scene.clock, 1);
    txn_manager_run(f->txns);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.err, 0);
    assert_int_equal(reply_of(&answer).state, TXN_COMMITTED);
    msg_txn_begin_reply_close(&begun);
    buf_close(&answer.head);
}

static void test_who_waits_asks_the_next_leader(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin_reply begun;
    struct answer answer = {0};

    begin(f, 1, "l", false, &answer, &begun);
    answer.count = 0;
    report(f, 1, &begun, LOAD_FINISH_COMMIT, 1000, &answer);
    fake_consensus_set_leader(f->scene.fake, false);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.err, TG_NOT_LEADER);
    /* It asks again: the load is done already, so the answer is its outcome. */
    fake_consensus_set_leader(f->scene.fake, true);
    make_visible(f, begun.txn);
    answer.count = 0;
    report(f, 1, &begun, LOAD_FINISH_COMMIT, 1000, &answer);
    assert_int_equal(answer.err, 0);
    assert_int_equal(reply_of(&answer).state, TXN_VISIBLE);
    msg_txn_begin_reply_close(&begun);
    buf_close(&answer.head);
}

static void test_a_failed_load_is_aborted_and_read_from_the_log(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin_reply begun;
    struct msg_load_failed message = {.node = 1, .request_id = 1, .reason = "too many bad rows"};
    struct answer answer = {0};

    begin(f, 1, "l", false, &answer, &begun);
    message.epoch = members_find(&coordinator_scene_state(&f->scene)->members, 1)->epoch;
    message.txn = begun.txn;
    message.rowset = begun.rowset;
    txn_manager_load_failed(f->txns, &message, on_done, &answer);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(answer.err, 0);
    assert_int_equal(reply_of(&answer).state, TXN_ABORTED);
    msg_txn_begin_reply_close(&begun);
    buf_close(&answer.head);
}

static void test_a_lost_proposal_is_unknown(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin message;
    struct answer answer = {0};

    coordinator_scene_begin(&f->scene, 1, 1, "l", false, &message);
    txn_manager_begin(f->txns, &message, on_done, &answer);
    fake_consensus_lose(f->scene.fake, true);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.err, TG_UNKNOWN_OUTCOME);
    buf_close(&answer.head);
}

/* ---- two-phase ---- */

static void test_two_phase_commit_says_what_clients_match(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);
    struct msg_txn_2pc message = two_phase("commit", txn, 1);
    struct msg_txn_2pc_reply reply = ask_2pc(f, &message);

    assert_string_equal(reply.status, "Success");
    assert_string_equal(reply.msg, "transaction [1] commit successfully.");
    assert_int_equal(reply.state, TXN_COMMITTED);
    reply = ask_2pc(f, &message); /* the same request, sent again: the same answer */
    assert_string_equal(reply.status, "Success");
    message = two_phase("commit", txn, 2); /* another one */
    reply = ask_2pc(f, &message);
    assert_string_equal(reply.status, "ANALYSIS_ERROR");
    assert_string_equal(reply.msg, "TStatus: errCode = 2, detailMessage = transaction [1] is "
                                   "already committed, not pre-committed.");
    make_visible(f, txn);
    reply = ask_2pc(f, &message);
    assert_string_equal(reply.msg, "TStatus: errCode = 2, detailMessage = transaction [1] is "
                                   "already visible, not pre-committed.");
    message = two_phase("abort", txn, 3);
    reply = ask_2pc(f, &message);
    assert_string_equal(reply.msg, "TStatus: errCode = 2, detailMessage = transaction [1] is "
                                   "already VISIBLE, could not abort.");
}

static void test_two_phase_commit_waits_for_visible(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);
    struct msg_txn_2pc message = two_phase("commit", txn, 1);
    struct msg_txn_2pc_reply reply;
    struct answer answer = {0};

    message.wait_visible_ms = 2000;
    txn_manager_2pc(f->txns, &message, on_done, &answer);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(answer.count, 0);
    make_visible(f, txn);
    assert_int_equal(answer.count, 1);
    assert_int_equal(msg_txn_2pc_reply_decode(head_of(&answer), &reply), 0);
    assert_string_equal(reply.status, "Success");
    assert_int_equal(reply.state, TXN_VISIBLE);
    buf_close(&answer.head);
}

static void test_an_aborted_label_is_free_again(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_2pc message = two_phase("begin", 0, 1);
    struct msg_txn_2pc_reply reply;

    strcpy(message.label, "l");
    reply = ask_2pc(f, &message);
    assert_string_equal(reply.msg, "transaction [1] begin successfully.");
    message = two_phase("abort", 1, 2);
    reply = ask_2pc(f, &message);
    assert_string_equal(reply.msg, "transaction [1] abort successfully.");
    assert_string_equal(coordinator_scene_txn(&f->scene, 1)->reason, "User Abort");
    message = two_phase("begin", 0, 3);
    strcpy(message.label, "l");
    reply = ask_2pc(f, &message);
    assert_string_equal(reply.msg, "transaction [2] begin successfully.");
    message.request_lo = 4;
    reply = ask_2pc(f, &message);
    assert_string_equal(reply.status, "Label Already Exists");
    assert_int_equal(reply.txn, 2);
}

static void test_what_is_not_found_is_looked_for_behind_a_barrier(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_2pc lost = two_phase("commit", 0, 1);
    struct msg_txn_2pc begin_it = two_phase("begin", 0, 2);
    struct msg_txn_2pc_reply reply;
    struct answer first = {0};
    struct answer second = {0};

    /* The begin is on its way into the log when the commit by label comes: it is not "not found".
     */
    strcpy(begin_it.label, "l");
    strcpy(lost.label, "l");
    txn_manager_2pc(f->txns, &begin_it, on_done, &first);
    txn_manager_2pc(f->txns, &lost, on_done, &second);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(first.count, 1);
    assert_int_equal(second.count, 1);
    assert_int_equal(msg_txn_2pc_reply_decode(head_of(&second), &reply), 0);
    assert_string_equal(reply.msg, "label [l] commit successfully.");
    strcpy(lost.label, "other");
    reply = ask_2pc(f, &lost);
    assert_string_equal(reply.msg,
                        "TStatus: errCode = 2, detailMessage = transaction not found, label=other");
    buf_close(&first.head);
    buf_close(&second.head);
}

static void test_closing_answers_everybody(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin_reply begun;
    struct msg_txn_begin message;
    struct answer waits = {0};
    struct answer flies = {0};

    begin(f, 1, "l", false, &waits, &begun);
    waits.count = 0;
    report(f, 1, &begun, LOAD_FINISH_COMMIT, 1000, &waits);
    coordinator_scene_begin(&f->scene, 1, 2, "m", false, &message);
    txn_manager_begin(f->txns, &message, on_done, &flies);
    txn_manager_close(f->txns);
    assert_int_equal(waits.err, TG_NOT_LEADER);
    assert_int_equal(flies.err, TG_UNKNOWN_OUTCOME);
    fake_consensus_set_observer(f->scene.fake, &(struct consensus_observer){0});
    fake_consensus_run(f->scene.fake); /* its request ends in silence */
    assert_int_equal(flies.count, 1);
    f->txns = NULL;
    msg_txn_begin_reply_close(&begun);
    buf_close(&waits.head);
    buf_close(&flies.head);
}

/* Both asked before either was in the log: only the log can tell who was first. */
static void test_of_two_begins_at_once_one_gets_the_label(void **state)
{
    struct fixture *f = *state;
    struct msg_txn_begin message;
    struct answer answers[2] = {{0}, {0}};

    for (unsigned i = 0; i < 2; i++) {
        coordinator_scene_begin(&f->scene, 1, 500 + i, "both", false, &message);
        txn_manager_begin(f->txns, &message, on_done, &answers[i]);
    }
    fake_consensus_run(f->scene.fake);
    assert_int_equal(answers[0].count, 1);
    assert_int_equal(answers[1].count, 1);
    assert_int_equal(answers[0].err, 0);
    assert_int_equal(answers[1].err, TG_LABEL_EXISTS);
    for (unsigned i = 0; i < 2; i++)
        buf_close(&answers[i].head);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_begin_answers_with_the_plan),
        TEST(test_the_same_begin_gives_the_same_transaction),
        TEST(test_a_used_label_is_told_with_transaction_and_state),
        TEST(test_a_commit_waits_until_it_is_visible),
        TEST(test_a_wait_that_is_over_answers_committed),
        TEST(test_who_waits_asks_the_next_leader),
        TEST(test_a_failed_load_is_aborted_and_read_from_the_log),
        TEST(test_a_lost_proposal_is_unknown),
        TEST(test_two_phase_commit_says_what_clients_match),
        TEST(test_two_phase_commit_waits_for_visible),
        TEST(test_an_aborted_label_is_free_again),
        TEST(test_what_is_not_found_is_looked_for_behind_a_barrier),
        TEST(test_closing_answers_everybody),
        TEST(test_of_two_begins_at_once_one_gets_the_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
