/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to whoever leads, with coordinators that lead, follow, die, hang and change their minds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/proto/message.h"
#include "participant/link/coordinator_client.h"
#include "tests/lib/fake_coordinator.h"

enum { COORDINATORS = 3, HELD_MAX = 64, CALL_MS = 10000 };

struct fixture {
    struct loop_thread thread;
    struct fake_coordinator coordinators[COORDINATORS];
    struct coordinator_client *client;
    /* what the leader does with calls: answers with these errors first, then well */
    int errors[8];
    atomic_uint error_count, errors_given;
    atomic_bool hold;
    struct rpc_request *held[HELD_MAX];
    atomic_uint held_count;
};

static void handle(void *data, struct rpc_request *request)
{
    struct fixture *f = data;

    if (f->hold && f->held_count < HELD_MAX) {
        f->held[f->held_count++] = request;
    } else if (f->errors_given < f->error_count) {
        rpc_request_fail(request, f->errors[f->errors_given++], "as the test says");
    } else {
        rpc_request_reply(request, 0, rpc_request_head(request), slice_of(NULL, 0));
    }
}

static void open_client(void *data)
{
    struct fixture *f = data;
    char addresses[128];

    snprintf(addresses, sizeof addresses, "%s, %s,%s", f->coordinators[0].address,
             f->coordinators[1].address, f->coordinators[2].address);
    assert_int_equal(coordinator_client_open(f->thread.loop, addresses, FAKE_COORDINATOR_SECRET,
                                             &f->client, NULL),
                     0);
}

static void close_client(void *data)
{
    struct fixture *f = data;

    coordinator_client_close(f->client);
    f->client = NULL;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    loop_thread_open(&f->thread);
    for (unsigned i = 0; i < COORDINATORS; i++) {
        fake_coordinator_open(&f->coordinators[i], &f->thread, i + 1);
        fake_coordinator_handle(&f->coordinators[i], handle, f);
    }
    loop_thread_do(&f->thread, open_client, f);
    *state = f;
    return 0;
}

static void drop_held(void *data)
{
    struct fixture *f = data;

    while (f->held_count > 0)
        rpc_request_drop(f->held[--f->held_count]);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    loop_thread_do(&f->thread, close_client, f);
    loop_thread_do(&f->thread, drop_held, f);
    for (unsigned i = 0; i < COORDINATORS; i++)
        fake_coordinator_close(&f->coordinators[i]);
    loop_thread_close(&f->thread);
    free(f);
    return 0;
}

static void all_follow(struct fixture *f, int leader)
{
    for (unsigned i = 0; i < COORDINATORS; i++)
        fake_coordinator_follow(&f->coordinators[i], leader >= 0 ? &f->coordinators[leader] : NULL);
}

struct calling {
    struct fixture *fixture;
    struct rpc_answer answer;
    const char *text;
    uint64_t timeout_ms, attempt_ms;
};

static void start_call(void *data)
{
    struct calling *calling = data;
    struct buf head = BUF_INIT;

    buf_append_str(&head, calling->text != NULL ? calling->text : "");
    coordinator_client_call(calling->fixture->client, MSG_QUERY, &head, calling->timeout_ms,
                            calling->attempt_ms, rpc_answer_done, &calling->answer);
    assert_int_equal(calling->answer.times, 0); /* never from inside */
}

static void begin(struct fixture *f, struct calling *calling)
{
    calling->fixture = f;
    rpc_answer_init(&calling->answer);
    loop_thread_do(&f->thread, start_call, calling);
}

static int call(struct fixture *f, uint64_t timeout_ms, uint64_t attempt_ms)
{
    struct calling calling = {
        .text = "a question", .timeout_ms = timeout_ms, .attempt_ms = attempt_ms};

    begin(f, &calling);
    int err = rpc_answer_wait(&calling.answer);
    if (err == 0)
        assert_true(slice_equal_str(slice_of(calling.answer.head.data, calling.answer.head.len),
                                    calling.text));
    rpc_answer_close(&calling.answer);
    return err;
}

static uint64_t now_ms(void)
{
    return clock_monotonic_ms(clock_system());
}

/* ---- finding the leader ---- */

static void test_the_leader_is_found_among_three(void **state)
{
    struct fixture *f = *state;

    for (int leader = 0; leader < COORDINATORS; leader++) {
        all_follow(f, leader);
        assert_int_equal(call(f, CALL_MS, 0), 0);
    }
    /* Only the one that leads was bothered, and those that had led before. */
    assert_int_equal(atomic_load(&f->coordinators[2].calls), 1);
    assert_true(atomic_load(&f->coordinators[0].asked) >= 1);
}

static void open_with_two(void *data)
{
    struct fixture *f = data;
    char addresses[128];

    coordinator_client_close(f->client);
    snprintf(addresses, sizeof addresses, "%s,%s", f->coordinators[0].address,
             f->coordinators[1].address);
    assert_int_equal(coordinator_client_open(f->thread.loop, addresses, FAKE_COORDINATOR_SECRET,
                                             &f->client, NULL),
                     0);
}

/* A node's options may be older than the coordinator that leads by now. */
static void test_a_leader_that_is_on_no_list_is_learned_from_the_others(void **state)
{
    struct fixture *f = *state;

    loop_thread_do(&f->thread, open_with_two, f);
    all_follow(f, 2);
    assert_int_equal(call(f, CALL_MS, 0), 0);
    assert_int_equal(atomic_load(&f->coordinators[2].calls), 1);
}

static void test_many_calls_share_one_search(void **state)
{
    struct fixture *f = *state;
    static struct calling calls[100];

    all_follow(f, 2);
    for (unsigned i = 0; i < 100; i++) {
        calls[i] = (struct calling){.text = "x", .timeout_ms = CALL_MS};
        begin(f, &calls[i]);
    }
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(rpc_answer_wait(&calls[i].answer), 0);
        rpc_answer_close(&calls[i].answer);
    }
    assert_int_equal(atomic_load(&f->coordinators[2].calls), 100);
    assert_int_equal(atomic_load(&f->coordinators[0].calls), 0);
    assert_true(atomic_load(&f->coordinators[0].asked) < 5);
}

static void test_a_leader_that_steps_down_is_followed_to_the_next(void **state)
{
    struct fixture *f = *state;

    all_follow(f, 1);
    assert_int_equal(call(f, CALL_MS, 0), 0);
    all_follow(f, 0);
    assert_int_equal(call(f, CALL_MS, 0), 0);
    assert_int_equal(atomic_load(&f->coordinators[0].calls), 1);
}

static void test_a_leader_that_does_not_know_itself_by_our_address_is_found(void **state)
{
    struct fixture *f = *state;
    struct fake_coordinator elsewhere = {.id = 3, .address = "10.9.8.7:1"};

    all_follow(f, -1);
    fake_coordinator_follow(&f->coordinators[0], &elsewhere);
    fake_coordinator_follow(&f->coordinators[2], &elsewhere); /* it is number 3 */
    assert_int_equal(call(f, CALL_MS, 0), 0);
    assert_int_equal(atomic_load(&f->coordinators[2].calls), 1);
}

static void test_a_dead_leader_is_not_waited_for(void **state)
{
    struct fixture *f = *state;

    all_follow(f, 0);
    assert_int_equal(call(f, CALL_MS, 0), 0);
    fake_coordinator_down(&f->coordinators[0]);
    all_follow(f, 1);
    uint64_t before = now_ms();
    assert_int_equal(call(f, CALL_MS, 0), 0);
    assert_true(now_ms() - before < 1500);
}

static void elect_second(void *data)
{
    all_follow(data, 1);
}

static void test_a_dead_leader_that_is_still_believed_in_delays_little(void **state)
{
    struct fixture *f = *state;
    struct calling calling = {.timeout_ms = CALL_MS};

    all_follow(f, 0);
    assert_int_equal(call(f, CALL_MS, 0), 0);
    fake_coordinator_down(&f->coordinators[0]); /* the others go on naming it */
    begin(f, &calling);
    usleep(600 * 1000);
    assert_false(rpc_answer_is_there(&calling.answer));
    elect_second(f);
    uint64_t before = now_ms();
    assert_int_equal(rpc_answer_wait(&calling.answer), 0);
    assert_true(now_ms() - before < 1500);
    rpc_answer_close(&calling.answer);
}

static void test_all_may_be_down_for_a_while(void **state)
{
    struct fixture *f = *state;
    struct calling calling = {.timeout_ms = CALL_MS};

    for (unsigned i = 0; i < COORDINATORS; i++)
        fake_coordinator_down(&f->coordinators[i]);
    begin(f, &calling);
    usleep(300 * 1000);
    all_follow(f, 2);
    for (unsigned i = 0; i < COORDINATORS; i++)
        fake_coordinator_up(&f->coordinators[i]);
    assert_int_equal(rpc_answer_wait(&calling.answer), 0);
    rpc_answer_close(&calling.answer);
}

/* ---- verdicts ---- */

static void test_verdicts_that_decide_nothing_are_asked_again(void **state)
{
    struct fixture *f = *state;
    static const int errors[] = {TG_UNKNOWN_OUTCOME, TG_NOT_LEADER, TG_BUSY, TG_TIMEOUT};

    all_follow(f, 0);
    memcpy(f->errors, errors, sizeof errors);
    f->error_count = 4;
    assert_int_equal(call(f, CALL_MS, 0), 0);
    assert_int_equal(f->errors_given, 4);
    assert_int_equal(atomic_load(&f->coordinators[0].calls), 5);
}

static void test_a_verdict_is_passed_on_with_its_sentence(void **state)
{
    struct fixture *f = *state;
    struct calling calling = {.timeout_ms = CALL_MS};

    all_follow(f, 0);
    f->errors[0] = TG_LABEL_EXISTS;
    f->error_count = 1;
    begin(f, &calling);
    assert_int_equal(rpc_answer_wait(&calling.answer), TG_LABEL_EXISTS);
    assert_string_equal(calling.answer.message, "as the test says");
    assert_int_equal(atomic_load(&f->coordinators[0].calls), 1);
    rpc_answer_close(&calling.answer);
}

/* ---- time ---- */

static void test_a_silent_leader_is_asked_again_until_the_deadline(void **state)
{
    struct fixture *f = *state;

    all_follow(f, 0);
    f->hold = true;
    uint64_t before = now_ms();
    assert_int_equal(call(f, 700, 100), TG_TIMEOUT);
    assert_in_range(now_ms() - before, 650, 3000);
    assert_in_range(atomic_load(&f->coordinators[0].calls), 2, 7);
}

static void test_without_any_coordinator_the_deadline_ends_it(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < COORDINATORS; i++)
        fake_coordinator_down(&f->coordinators[i]);
    uint64_t before = now_ms();
    assert_int_equal(call(f, 400, 0), TG_TIMEOUT);
    assert_in_range(now_ms() - before, 350, 2000);
    assert_int_equal(call(f, 0, 0), TG_TIMEOUT);
}

static void test_what_a_hung_leader_keeps_is_asked_of_its_successor(void **state)
{
    struct fixture *f = *state;
    struct calling patient = {.text = "p", .timeout_ms = 60000, .attempt_ms = 60000};

    all_follow(f, 0);
    f->hold = true;
    begin(f, &patient);
    while (f->held_count == 0)
        usleep(1000);
    f->hold = false;
    /* Number 1 goes on believing in itself, and says nothing any more. */
    fake_coordinator_follow(&f->coordinators[1], &f->coordinators[1]);
    fake_coordinator_follow(&f->coordinators[2], &f->coordinators[1]);
    f->errors[0] = TG_TIMEOUT; /* as if an attempt had timed out */
    f->error_count = 1;
    assert_int_equal(call(f, CALL_MS, 0), 0);
    assert_int_equal(rpc_answer_wait(&patient.answer), 0);
    assert_true(atomic_load(&f->coordinators[1].calls) >= 2);
    rpc_answer_close(&patient.answer);
}

static void test_too_many_calls_are_refused(void **state)
{
    struct fixture *f = *state;
    struct calling last = {.timeout_ms = CALL_MS};
    struct calling *calls = calloc(COORDINATOR_CALLS_MAX, sizeof *calls);

    all_follow(f, -1);
    for (unsigned i = 0; i < COORDINATOR_CALLS_MAX; i++) {
        calls[i].timeout_ms = 60000;
        begin(f, &calls[i]);
    }
    begin(f, &last);
    assert_int_equal(rpc_answer_wait(&last.answer), TG_BUSY);
    rpc_answer_close(&last.answer);
    loop_thread_do(&f->thread, close_client, f);
    for (unsigned i = 0; i < COORDINATOR_CALLS_MAX; i++) {
        assert_int_equal(rpc_answer_wait(&calls[i].answer), TG_CANCELED);
        rpc_answer_close(&calls[i].answer);
    }
    free(calls);
}

/* ---- the end ---- */

static void test_closing_ends_calls_in_every_state(void **state)
{
    struct fixture *f = *state;
    struct calling sent = {.timeout_ms = 60000, .attempt_ms = 60000};
    struct calling paused = {.timeout_ms = 60000};
    struct calling parked = {.timeout_ms = 60000};

    all_follow(f, 0);
    f->hold = true;
    begin(f, &sent);
    while (f->held_count == 0)
        usleep(1000);
    f->hold = false;
    for (unsigned i = 0; i < 8; i++)
        f->errors[i] = TG_BUSY;
    f->error_count = 8;
    begin(f, &paused);
    while (atomic_load(&f->coordinators[0].calls) < 3)
        usleep(1000);
    all_follow(f, -1);
    begin(f, &parked);
    usleep(50 * 1000);
    loop_thread_do(&f->thread, close_client, f);
    assert_int_equal(rpc_answer_wait(&sent.answer), TG_CANCELED);
    assert_int_equal(rpc_answer_wait(&paused.answer), TG_CANCELED);
    assert_int_equal(rpc_answer_wait(&parked.answer), TG_CANCELED);
    rpc_answer_close(&sent.answer);
    rpc_answer_close(&paused.answer);
    rpc_answer_close(&parked.answer);
}

struct again {
    struct fixture *fixture;
    struct rpc_answer second;
};

static void call_again(void *data, const struct rpc_reply *reply)
{
    struct again *again = data;
    struct buf head = BUF_INIT;

    assert_int_equal(reply->err, TG_CANCELED);
    coordinator_client_call(again->fixture->client, MSG_QUERY, &head, CALL_MS, 0, rpc_answer_done,
                            &again->second);
}

static void start_again(void *data)
{
    struct again *again = data;
    struct buf head = BUF_INIT;

    coordinator_client_call(again->fixture->client, MSG_QUERY, &head, CALL_MS, 0, call_again,
                            again);
}

static void test_a_call_made_while_closing_is_canceled_too(void **state)
{
    struct fixture *f = *state;
    struct again again = {.fixture = f};

    rpc_answer_init(&again.second);
    loop_thread_do(&f->thread, start_again, &again);
    loop_thread_do(&f->thread, close_client, f);
    assert_int_equal(rpc_answer_wait(&again.second), TG_CANCELED);
    rpc_answer_close(&again.second);
}

static void test_addresses_are_checked(void **state)
{
    struct fixture *f = *state;
    struct coordinator_client *client;
    struct tg_errmsg msg;

    loop_thread_end(&f->thread);
    assert_int_equal(coordinator_client_open(f->thread.loop, "", "s", &client, &msg), TG_INVALID);
    assert_int_equal(
        coordinator_client_open(f->thread.loop, "127.0.0.1:1,what", "s", &client, &msg),
        TG_INVALID);
    assert_int_equal(
        coordinator_client_open(f->thread.loop,
                                "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,127.0.0.1:4,127.0.0.1:5,"
                                "127.0.0.1:6,127.0.0.1:7,127.0.0.1:8,127.0.0.1:9,127.0.0.1:10",
                                "s", &client, &msg),
        TG_LIMIT);
}

/* ---- threads that wait ---- */

struct waiter {
    struct fixture *fixture;
    pthread_t thread;
    unsigned calls;
    uint64_t timeout_ms;
    int err; /* the last one's */
};

static void *wait_for_answers(void *data)
{
    struct waiter *w = data;

    for (unsigned i = 0; i < w->calls; i++) {
        struct buf head = BUF_INIT;
        struct buf reply = BUF_INIT;
        struct tg_errmsg msg = {{0}};

        buf_append_str(&head, "echo");
        w->err = coordinator_client_call_wait(w->fixture->client, MSG_QUERY, &head, w->timeout_ms,
                                              0, &reply, &msg);
        if (w->err == 0 && !slice_equal_str(slice_of(reply.data, reply.len), "echo"))
            abort();
        if (w->err != 0 && msg.text[0] == 0)
            abort();
        buf_close(&reply);
    }
    return NULL;
}

static void start_waiters(struct fixture *f, struct waiter *waiters, unsigned count, unsigned calls,
                          uint64_t timeout_ms)
{
    for (unsigned i = 0; i < count; i++) {
        waiters[i] = (struct waiter){.fixture = f, .calls = calls, .timeout_ms = timeout_ms};
        pthread_create(&waiters[i].thread, NULL, wait_for_answers, &waiters[i]);
    }
}

static void expect_waiters(struct waiter *waiters, unsigned count, int err)
{
    for (unsigned i = 0; i < count; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].err, err);
    }
}

static void test_threads_wait_for_their_answers(void **state)
{
    struct fixture *f = *state;
    struct waiter waiters[4];

    all_follow(f, 1);
    start_waiters(f, waiters, 4, 50, CALL_MS);
    expect_waiters(waiters, 4, 0);
    assert_int_equal(atomic_load(&f->coordinators[1].calls), 200);
}

static void test_closing_wakes_threads_that_wait(void **state)
{
    struct fixture *f = *state;
    struct waiter waiters[4];

    all_follow(f, 0);
    f->hold = true;
    start_waiters(f, waiters, 4, 1, 60000);
    while (f->held_count < 4)
        usleep(1000);
    loop_thread_do(&f->thread, close_client, f);
    expect_waiters(waiters, 4, TG_CANCELED);
}

static void test_the_loops_end_wakes_threads_that_wait(void **state)
{
    struct fixture *f = *state;
    struct waiter waiters[2];

    all_follow(f, 0);
    f->hold = true;
    start_waiters(f, waiters, 2, 1, 60000);
    while (f->held_count < 2)
        usleep(1000);
    loop_thread_end(&f->thread);
    expect_waiters(waiters, 2, TG_CANCELED);
    start_waiters(f, waiters, 2, 1, 60000); /* and so it is for those that come late */
    expect_waiters(waiters, 2, TG_CANCELED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_leader_is_found_among_three),
        TEST(test_a_leader_that_is_on_no_list_is_learned_from_the_others),
        TEST(test_many_calls_share_one_search),
        TEST(test_a_leader_that_steps_down_is_followed_to_the_next),
        TEST(test_a_leader_that_does_not_know_itself_by_our_address_is_found),
        TEST(test_a_dead_leader_is_not_waited_for),
        TEST(test_a_dead_leader_that_is_still_believed_in_delays_little),
        TEST(test_all_may_be_down_for_a_while),
        TEST(test_verdicts_that_decide_nothing_are_asked_again),
        TEST(test_a_verdict_is_passed_on_with_its_sentence),
        TEST(test_a_silent_leader_is_asked_again_until_the_deadline),
        TEST(test_without_any_coordinator_the_deadline_ends_it),
        TEST(test_what_a_hung_leader_keeps_is_asked_of_its_successor),
        TEST(test_too_many_calls_are_refused),
        TEST(test_closing_ends_calls_in_every_state),
        TEST(test_a_call_made_while_closing_is_canceled_too),
        TEST(test_addresses_are_checked),
        TEST(test_threads_wait_for_their_answers),
        TEST(test_closing_wakes_threads_that_wait),
        TEST(test_the_loops_end_wakes_threads_that_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
