/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to whoever leads: here, there, and while that changes. */
#include "coordinator/api/leader_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/net/rpc.h"
#include "common/proto/message.h"
#include "common/proto/msg_query.h"
#include "tests/lib/coordinator_scene.h"

enum { OTHER = 2, THIRD = 3 };

/* This node (1) with its fake consensus, and two others that are only RPC servers. */
struct other {
    struct rpc_server *server;
    unsigned calls;
    int verdict;                /* 0: answers "hello" */
    struct rpc_request *silent; /* kept without an answer when `mute` */
    bool mute;
};

struct fixture {
    struct coordinator_scene scene;
    struct loop *loop;
    struct loop_timer *step;
    struct loop_timer *limit;
    struct health health;
    struct dispatch dispatch;
    struct leader_link link;
    struct other others[2];
    unsigned answers;
    int err;
    char head[64];
};

static void on_request(void *ctx, struct rpc_request *request)
{
    struct other *other = ctx;

    other->calls++;
    if (other->mute) {
        other->silent = request;
        return;
    }
    rpc_request_verdict(request, other->verdict, other->verdict == 0 ? "" : "so it is",
                        slice_str("hello"));
}

static void step(void *data)
{
    struct fixture *f = data;

    fake_consensus_run(f->scene.fake);
}

static void too_long(void *data)
{
    (void)data;
    fail_msg("nobody answered");
}

static void open_other(struct fixture *f, unsigned index)
{
    struct rpc_server_options options = {.host = "127.0.0.1", .secret = "s", .connections_max = 16};
    struct tg_errmsg msg;
    struct dispatch_peer *peer = &f->dispatch.peers[1 + index];

    assert_int_equal(rpc_server_open(f->loop, &options, on_request, &f->others[index],
                                     &f->others[index].server, &msg),
                     0);
    peer->id = OTHER + index;
    snprintf(peer->rpc, sizeof peer->rpc, "127.0.0.1:%u", rpc_server_port(f->others[index].server));
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct tg_errmsg msg;

    coordinator_scene_open(&f->scene);
    health_init(&f->health, 5000, clock_monotonic_ms(&f->scene.clock.clock));
    assert_int_equal(loop_open(&f->loop, &msg), 0);
    f->dispatch = (struct dispatch){.consensus = f->scene.consensus,
                                    .health = &f->health,
                                    .clock = &f->scene.clock.clock,
                                    .self = FAKE_CONSENSUS_ID,
                                    .peer_count = 3};
    f->dispatch.peers[0].id = FAKE_CONSENSUS_ID;
    open_other(f, 0);
    open_other(f, 1);
    assert_int_equal(leader_link_open(&f->link, f->loop, &f->dispatch, "s", &msg), 0);
    f->step = loop_timer_open(f->loop, step, f);
    f->limit = loop_timer_open(f->loop, too_long, f);
    loop_timer_start(f->step, 1, 1);
    *state = f;
    return 0;
}

static void server_closed(void *data)
{
    (void)data;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    loop_timer_close(f->step);
    loop_timer_close(f->limit);
    coordinator_scene_close(&f->scene);
    leader_link_close(&f->link);
    for (unsigned i = 0; i < 2; i++) {
        if (f->others[i].silent != NULL)
            rpc_request_drop(f->others[i].silent);
        rpc_server_close(f->others[i].server, server_closed, NULL);
    }
    loop_close(f->loop);
    health_close(&f->health);
    free(f);
    return 0;
}

static void on_done(void *data, int err, const char *sentence, struct slice head)
{
    struct fixture *f = data;

    (void)sentence;
    f->answers++;
    f->err = err;
    snprintf(f->head, sizeof f->head, "%.*s", (int)head.len,
             head.len > 0 ? (const char *)head.data : "");
    loop_stop(f->loop);
}

static void call(struct fixture *f, uint64_t timeout_ms)
{
    struct msg_query message = {.kind = QUERY_HEALTH};
    struct buf head = BUF_INIT;

    msg_query_encode(&message, &head);
    leader_call_start(&f->link, MSG_QUERY, &head, timeout_ms, on_done, f);
}

static void run(struct fixture *f)
{
    loop_timer_start(f->limit, 10000, 0);
    loop_run(f->loop);
    assert_int_equal(f->answers, 1);
}

static void follow(struct fixture *f, uint64_t leader)
{
    fake_consensus_set_leader(f->scene.fake, false);
    fake_consensus_set_other_leader(f->scene.fake, leader);
}

static void test_the_leader_answers_itself(void **state)
{
    struct fixture *f = *state;

    call(f, 1000);
    run(f);
    assert_int_equal(f->err, 0);
    assert_int_equal(f->others[0].calls + f->others[1].calls, 0);
}

static void test_a_follower_asks_the_leader(void **state)
{
    struct fixture *f = *state;

    follow(f, OTHER);
    call(f, 1000);
    run(f);
    assert_int_equal(f->err, 0);
    assert_string_equal(f->head, "hello");
}

static void test_a_verdict_comes_with_its_head(void **state)
{
    struct fixture *f = *state;

    follow(f, OTHER);
    f->others[0].verdict = TG_LABEL_EXISTS;
    call(f, 1000);
    run(f);
    assert_int_equal(f->err, TG_LABEL_EXISTS);
    assert_string_equal(f->head, "hello");
}

static void find_leader(struct loop_call *later)
{
    struct fixture *f = later->data;

    fake_consensus_set_other_leader(f->scene.fake, THIRD);
}

static void test_it_waits_for_a_leader(void **state)
{
    struct fixture *f = *state;
    struct loop_call later = {.run = find_leader, .data = f};

    follow(f, 0);
    call(f, 5000);
    loop_post(f->loop, &later);
    run(f);
    assert_int_equal(f->err, 0);
    assert_int_equal(f->others[1].calls, 1);
}

static void change_leader(void *data)
{
    struct fixture *f = data;

    fake_consensus_set_other_leader(f->scene.fake, THIRD);
}

static void test_a_silent_leader_is_given_up_for_its_successor(void **state)
{
    struct fixture *f = *state;
    struct loop_timer *timer = loop_timer_open(f->loop, change_leader, f);

    follow(f, OTHER);
    f->others[0].mute = true;
    call(f, 60000);
    loop_timer_start(timer, 100, 0);
    run(f);
    loop_timer_close(timer);
    assert_int_equal(f->err, 0);
    assert_int_equal(f->others[0].calls, 1);
    assert_int_equal(f->others[1].calls, 1);
}

static void test_without_any_leader_nothing_has_happened(void **state)
{
    struct fixture *f = *state;

    follow(f, 0);
    call(f, 100);
    run(f);
    assert_int_equal(f->err, TG_UNREACHABLE);
}

static void test_a_refusal_means_that_nothing_has_happened(void **state)
{
    struct fixture *f = *state;

    follow(f, OTHER);
    f->others[0].verdict = TG_NOT_LEADER;
    call(f, 200);
    run(f);
    assert_int_equal(f->err, TG_UNREACHABLE);
    assert_true(f->others[0].calls >= 2);
}

static void test_silence_leaves_the_outcome_unknown(void **state)
{
    struct fixture *f = *state;

    follow(f, OTHER);
    f->others[0].mute = true;
    call(f, 150);
    run(f);
    assert_int_equal(f->err, TG_UNKNOWN_OUTCOME);
}

static void test_closing_ends_what_is_out(void **state)
{
    struct fixture *f = *state;

    follow(f, OTHER);
    call(f, 60000);
    leader_link_close(&f->link);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, TG_CANCELED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_leader_answers_itself),
        TEST(test_a_follower_asks_the_leader),
        TEST(test_a_verdict_comes_with_its_head),
        TEST(test_it_waits_for_a_leader),
        TEST(test_a_silent_leader_is_given_up_for_its_successor),
        TEST(test_without_any_leader_nothing_has_happened),
        TEST(test_a_refusal_means_that_nothing_has_happened),
        TEST(test_silence_leaves_the_outcome_unknown),
        TEST(test_closing_ends_what_is_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
