/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinators that the options do not name, and questions that any of them may answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/proto/message.h"
#include "participant/link/coordinator_client.h"
#include "tests/lib/fake_coordinator.h"

enum { COORDINATORS = 3, CALL_MS = 10000 };

struct fixture {
    struct loop_thread thread;
    struct fake_coordinator coordinators[COORDINATORS];
    struct coordinator_client *client;
    int errors
        [COORDINATORS]; /* what calls are answered with first, before they are answered well */
    atomic_uint error_count, errors_given;
};

static void handle(void *data, struct rpc_request *request)
{
    struct fixture *f = data;

    if (f->errors_given < f->error_count)
        rpc_request_fail(request, f->errors[f->errors_given++], "as the test says");
    else
        rpc_request_reply(request, 0, rpc_request_head(request), slice_of(NULL, 0));
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

static int teardown(void **state)
{
    struct fixture *f = *state;

    loop_thread_do(&f->thread, close_client, f);
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
};

static void start_call(void *data)
{
    struct calling *calling = data;
    struct buf head = BUF_INIT;

    buf_append_str(&head, "x");
    coordinator_client_call(calling->fixture->client, MSG_QUERY, &head, CALL_MS, 0, rpc_answer_done,
                            &calling->answer);
}

static int ask(struct fixture *f, void (*start)(void *data))
{
    struct calling calling = {.fixture = f};

    rpc_answer_init(&calling.answer);
    loop_thread_do(&f->thread, start, &calling);
    int err = rpc_answer_wait(&calling.answer);
    rpc_answer_close(&calling.answer);
    return err;
}

/* ---- coordinators that the options do not name ---- */

static void open_client_of_one(void *data)
{
    struct fixture *f = data;

    coordinator_client_close(f->client);
    assert_int_equal(coordinator_client_open(f->thread.loop, f->coordinators[0].address,
                                             FAKE_COORDINATOR_SECRET, &f->client, NULL),
                     0);
}

static void test_a_leader_that_only_another_one_names_is_found(void **state)
{
    struct fixture *f = *state;

    loop_thread_do(&f->thread, open_client_of_one, f);
    all_follow(f, 2);
    assert_int_equal(ask(f, start_call), 0);
    assert_int_equal(atomic_load(&f->coordinators[2].calls), 1);
}

static void learn_two(void *data)
{
    struct fixture *f = data;
    char addresses[2][ADDRESS_BYTES];

    for (int i = 0; i < 2; i++)
        snprintf(addresses[i], ADDRESS_BYTES, "%s", f->coordinators[i + 1].address);
    assert_true(coordinator_client_learn(f->client, addresses, 2));
    assert_false(coordinator_client_learn(f->client, addresses, 2)); /* nothing new */
}

static void test_those_that_were_told_of_are_asked_when_the_named_are_gone(void **state)
{
    struct fixture *f = *state;

    loop_thread_do(&f->thread, open_client_of_one, f);
    loop_thread_do(&f->thread, learn_two, f);
    all_follow(f, 1);
    fake_coordinator_close(&f->coordinators[0]);
    assert_int_equal(ask(f, start_call), 0);
    fake_coordinator_open(&f->coordinators[0], &f->thread, 1);
}

static void learn_many(void *data)
{
    struct fixture *f = data;
    char addresses[COORDINATORS_MAX][ADDRESS_BYTES];

    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < COORDINATORS_MAX; i++)
            snprintf(addresses[i], ADDRESS_BYTES, "127.0.0.1:%u", 1 + round * 20 + i);
        coordinator_client_learn(f->client, addresses, COORDINATORS_MAX);
    }
    snprintf(addresses[0], ADDRESS_BYTES, "%s", f->coordinators[2].address);
    coordinator_client_learn(f->client, addresses, 1);
}

static void test_however_many_come_and_go_the_newest_are_known(void **state)
{
    struct fixture *f = *state;

    loop_thread_do(&f->thread, open_client_of_one, f);
    loop_thread_do(&f->thread, learn_many, f);
    all_follow(f, 2);
    assert_int_equal(ask(f, start_call), 0);
}

/* ---- questions for any of them ---- */

static void start_question(void *data)
{
    struct calling *calling = data;
    struct buf head = BUF_INIT;

    buf_append_str(&head, "x");
    coordinator_client_ask_any(calling->fixture->client, MSG_READ_POINT, &head, rpc_answer_done,
                               &calling->answer);
    assert_int_equal(calling->answer.times, 0);
}

static int question(struct fixture *f)
{
    return ask(f, start_question);
}

/* Each takes calls. */
static void all_lead(struct fixture *f)
{
    for (unsigned i = 0; i < COORDINATORS; i++)
        fake_coordinator_follow(&f->coordinators[i], &f->coordinators[i]);
}

static void answer_with(struct fixture *f, int first, int second, int third)
{
    f->errors[0] = first;
    f->errors[1] = second;
    f->errors[2] = third;
    f->errors_given = 0;
    f->error_count = COORDINATORS;
}

static void test_one_after_the_other_is_asked_until_one_knows(void **state)
{
    struct fixture *f = *state;

    all_follow(f, 1);
    assert_int_equal(question(f), 0);
    all_follow(f, -1);
    assert_int_equal(question(f), TG_NOT_LEADER);
    all_lead(f);
    answer_with(f, TG_NOT_LEADER, TG_NOT_FOUND, 0);
    f->error_count = 2;
    assert_int_equal(question(f), 0); /* the third one knows */
    answer_with(f, TG_UNREACHABLE, TG_NOT_FOUND, TG_NOT_LEADER);
    assert_int_equal(question(f), TG_NOT_FOUND); /* more than nothing */
}

static void test_a_verdict_of_any_is_final(void **state)
{
    struct fixture *f = *state;

    all_lead(f);
    answer_with(f, TG_FUTURE, 0, 0);
    f->error_count = 1;
    assert_int_equal(question(f), TG_FUTURE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_leader_that_only_another_one_names_is_found),
        TEST(test_those_that_were_told_of_are_asked_when_the_named_are_gone),
        TEST(test_however_many_come_and_go_the_newest_are_known),
        TEST(test_one_after_the_other_is_asked_until_one_knows),
        TEST(test_a_verdict_of_any_is_final),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
