/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to other participants: answers, absence, moves, stops, and the end. */
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
#include "participant/link/peer_client.h"
#include "tests/lib/fake_coordinator.h"

enum { PEERS = 2, HELD_MAX = 16, CALL_MS = 10000 };

/* A scripted server is a scripted server, whatever it stands for. */
struct fixture {
    struct loop_thread thread;
    struct fake_coordinator servers[PEERS];
    struct peer_clients *peers;
    atomic_bool hold;
    atomic_uint held_count;
    struct rpc_request *held[HELD_MAX];
};

static void handle(void *data, struct rpc_request *request)
{
    struct fixture *f = data;

    if (f->hold)
        f->held[f->held_count++] = request;
    else
        rpc_request_reply(request, 0, rpc_request_head(request), rpc_request_payload(request));
}

static void answer_held(void *data)
{
    struct fixture *f = data;

    while (f->held_count > 0)
        rpc_request_reply(f->held[--f->held_count], 0, slice_str("late"), slice_of(NULL, 0));
}

static void close_peers(void *data)
{
    struct fixture *f = data;

    peer_clients_close(f->peers);
    f->peers = NULL;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    loop_thread_open(&f->thread);
    for (unsigned i = 0; i < PEERS; i++) {
        fake_coordinator_open(&f->servers[i], &f->thread, i + 1);
        fake_coordinator_follow(&f->servers[i], &f->servers[i]);
        fake_coordinator_handle(&f->servers[i], handle, f);
    }
    assert_int_equal(peer_clients_open(f->thread.loop, FAKE_COORDINATOR_SECRET, &f->peers, NULL),
                     0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    loop_thread_do(&f->thread, close_peers, f);
    loop_thread_do(&f->thread, answer_held, f);
    for (unsigned i = 0; i < PEERS; i++)
        fake_coordinator_close(&f->servers[i]);
    loop_thread_close(&f->thread);
    free(f);
    return 0;
}

static int wait_call(struct fixture *f, const char *address, uint64_t timeout_ms,
                     const atomic_bool *stop, struct tg_errmsg *msg)
{
    struct buf head = BUF_INIT, payload = BUF_INIT;
    struct buf reply_head = BUF_INIT, reply_payload = BUF_INIT;

    buf_append_str(&head, "head");
    buf_append_str(&payload, "payload");
    int err = peer_call_wait(f->peers, 7, address, MSG_REPLICATE, &head, &payload, timeout_ms, stop,
                             &reply_head, &reply_payload, msg);
    assert_int_equal(head.len + payload.len, 0);
    if (err == 0) {
        assert_true(slice_equal_str(slice_of(reply_head.data, reply_head.len), "head"));
        assert_true(slice_equal_str(slice_of(reply_payload.data, reply_payload.len), "payload"));
    }
    buf_close(&reply_head);
    buf_close(&reply_payload);
    return err;
}

static void test_a_thread_gets_head_and_payload(void **state)
{
    struct fixture *f = *state;
    atomic_bool stop = false;
    struct tg_errmsg msg;

    assert_int_equal(wait_call(f, f->servers[0].address, CALL_MS, NULL, &msg), 0);
    assert_int_equal(wait_call(f, f->servers[0].address, CALL_MS, &stop, &msg), 0);
}

static void test_a_node_that_moved_is_called_at_its_new_address(void **state)
{
    struct fixture *f = *state;
    struct tg_errmsg msg;

    assert_int_equal(wait_call(f, f->servers[0].address, CALL_MS, NULL, &msg), 0);
    assert_int_equal(wait_call(f, f->servers[1].address, CALL_MS, NULL, &msg), 0);
    assert_int_equal(atomic_load(&f->servers[1].calls), 1);
}

static void test_a_node_that_is_down_or_has_no_address_is_unreachable(void **state)
{
    struct fixture *f = *state;
    struct tg_errmsg msg = {{0}};

    fake_coordinator_down(&f->servers[0]);
    assert_int_equal(wait_call(f, f->servers[0].address, 200, NULL, &msg), TG_UNREACHABLE);
    assert_string_not_equal(msg.text, "");
    assert_int_equal(wait_call(f, "nonsense", 200, NULL, &msg), TG_UNREACHABLE);
}

static void test_a_silent_node_times_out(void **state)
{
    struct fixture *f = *state;
    struct tg_errmsg msg;

    f->hold = true;
    assert_int_equal(wait_call(f, f->servers[0].address, 200, NULL, &msg), TG_TIMEOUT);
}

struct waiter {
    struct fixture *fixture;
    pthread_t thread;
    atomic_bool stop;
    bool has_stop;
    int err;
};

static void *wait_here(void *data)
{
    struct waiter *w = data;
    struct tg_errmsg msg;

    w->err = wait_call(w->fixture, w->fixture->servers[0].address, 60000,
                       w->has_stop ? &w->stop : NULL, &msg);
    return NULL;
}

static void start(struct fixture *f, struct waiter *w, bool has_stop)
{
    *w = (struct waiter){.fixture = f, .has_stop = has_stop};
    f->hold = true;
    pthread_create(&w->thread, NULL, wait_here, w);
    while (f->held_count == 0)
        usleep(1000);
}

static void test_a_stopped_call_ends_soon_and_its_late_answer_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct waiter w;

    start(f, &w, true);
    uint64_t before = clock_monotonic_ms(clock_system());
    atomic_store(&w.stop, true);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.err, TG_CANCELED);
    assert_true(clock_monotonic_ms(clock_system()) - before < 1000);
    loop_thread_do(&f->thread, answer_held, f);
    f->hold = false;
    struct tg_errmsg msg;
    assert_int_equal(wait_call(f, f->servers[0].address, CALL_MS, NULL, &msg), 0);
}

static void test_closing_wakes_a_waiting_thread(void **state)
{
    struct fixture *f = *state;
    struct waiter w;

    start(f, &w, false);
    loop_thread_do(&f->thread, close_peers, f);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.err, TG_CANCELED);
}

static void test_the_loops_end_wakes_a_waiting_thread(void **state)
{
    struct fixture *f = *state;
    struct waiter w;
    struct tg_errmsg msg;

    start(f, &w, false);
    loop_thread_end(&f->thread);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.err, TG_CANCELED);
    assert_int_equal(wait_call(f, f->servers[0].address, CALL_MS, NULL, &msg), TG_CANCELED);
}

static void test_calls_posted_before_the_end_are_told(void **state)
{
    struct fixture *f = *state;
    struct rpc_answer answer;
    struct peer_call call = {
        .node = 7, .type = MSG_REPLICATE, .timeout_ms = CALL_MS, .done = rpc_answer_done};

    rpc_answer_init(&answer);
    call.data = &answer;
    snprintf(call.address, sizeof call.address, "%s", f->servers[0].address);
    loop_thread_end(&f->thread);
    buf_append_str(&call.head, "head");
    peer_call_start(f->peers, &call); /* runs only when the loop is closed */
    close_peers(f);
    for (unsigned i = 0; i < PEERS; i++)
        fake_coordinator_down(&f->servers[i]);
    loop_close(f->thread.loop);
    f->thread.loop = NULL;
    assert_int_equal(rpc_answer_wait(&answer), TG_CANCELED);
    rpc_answer_close(&answer);
}

static void *call_often(void *data)
{
    struct waiter *w = data;

    for (unsigned i = 0; i < 100; i++) {
        struct tg_errmsg msg;
        int err =
            wait_call(w->fixture, w->fixture->servers[i % PEERS].address, CALL_MS, &w->stop, &msg);

        /* The address of node 7 moves under the other thread's calls. */
        if (err != 0 && err != TG_CANCELED)
            abort();
    }
    return NULL;
}

static void test_many_threads_may_call(void **state)
{
    struct fixture *f = *state;
    struct waiter waiters[3];

    for (unsigned i = 0; i < 3; i++) {
        waiters[i] = (struct waiter){.fixture = f};
        pthread_create(&waiters[i].thread, NULL, call_often, &waiters[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        pthread_join(waiters[i].thread, NULL);
}

static int teardown_closed(void **state)
{
    struct fixture *f = *state;

    if (f->thread.loop != NULL)
        return teardown(state);
    for (unsigned i = 0; i < PEERS; i++)
        pthread_mutex_destroy(&f->servers[i].lock);
    free(f);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown_closed)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_thread_gets_head_and_payload),
        TEST(test_a_node_that_moved_is_called_at_its_new_address),
        TEST(test_a_node_that_is_down_or_has_no_address_is_unreachable),
        TEST(test_a_silent_node_times_out),
        TEST(test_a_stopped_call_ends_soon_and_its_late_answer_is_dropped),
        TEST(test_closing_wakes_a_waiting_thread),
        TEST(test_the_loops_end_wakes_a_waiting_thread),
        TEST(test_calls_posted_before_the_end_are_told),
        TEST(test_many_threads_may_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
