/* SPDX-License-Identifier: Apache-2.0 */
/* Joining the cluster, heartbeats, being fenced, and leaving in every phase, against a scripted
 * coordinator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/proto/message.h"
#include "participant/link/membership.h"
#include "tests/lib/fake_coordinator.h"

enum { REGISTERED_MAX = 8, SAVED_MAX = 8, WAIT_MS = 15000 };

static const char CLUSTER[] = "11111111-2222-4333-8444-555555555555";

struct fixture {
    struct loop_thread thread;
    struct fake_coordinator coordinator;
    struct coordinator_client *client;
    struct random_seeded random;
    struct node_identity identity;
    struct membership *membership;
    struct membership_record record; /* at the start */

    pthread_mutex_t lock; /* of what follows */
    unsigned registrations, saves, beats;
    struct msg_register registered[REGISTERED_MAX];
    struct membership_record saved[SAVED_MAX];
    struct msg_heartbeat beat; /* the last one */
    int register_errors[8];
    const char *register_sentence;
    unsigned register_error_count;
    int beat_err;
    int save_err;
    int fill_err;
    bool hold; /* neither registrations nor heartbeats are answered */
    struct rpc_request *held[8];
    unsigned held_count;
    unsigned joined, answered, fenced, closed;
    int fenced_err;
    char fenced_sentence[128];
    txn_id dead; /* what the last answer named */
    bool close_in_joined, close_in_answered;
};

/* ---- the coordinator ---- */

static void handle_register(struct fixture *f, struct rpc_request *request)
{
    struct msg_register message;
    struct msg_register_reply reply = {.node = 4};
    struct buf head = BUF_INIT;

    assert_int_equal(msg_register_decode(rpc_request_head(request), &message), 0);
    unsigned n = f->registrations++;
    if (n < REGISTERED_MAX)
        f->registered[n] = message;
    if (n < f->register_error_count) {
        rpc_request_fail(request, f->register_errors[n], f->register_sentence);
        return;
    }
    reply.epoch = 100 + n;
    strcpy(reply.cluster_uuid, CLUSTER);
    msg_register_reply_encode(&reply, &head);
    rpc_request_reply(request, 0, slice_of(head.data, head.len), slice_of(NULL, 0));
    buf_close(&head);
}

static void handle_heartbeat(struct fixture *f, struct rpc_request *request)
{
    txn_id dead = 55;
    struct msg_heartbeat_reply reply = {.dead = &dead, .dead_count = 1, .txn_low_water = 9};
    struct buf head = BUF_INIT;

    msg_heartbeat_close(&f->beat);
    assert_int_equal(msg_heartbeat_decode(rpc_request_head(request), &f->beat), 0);
    f->beats++;
    if (f->beat_err != 0) {
        rpc_request_fail(request, f->beat_err, "so the test says");
        return;
    }
    msg_heartbeat_reply_encode(&reply, &head);
    rpc_request_reply(request, 0, slice_of(head.data, head.len), slice_of(NULL, 0));
    buf_close(&head);
}

static void handle(void *data, struct rpc_request *request)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    if (f->hold)
        f->held[f->held_count++] = request;
    else if (rpc_request_type(request) == MSG_REGISTER)
        handle_register(f, request);
    else
        handle_heartbeat(f, request);
    pthread_mutex_unlock(&f->lock);
}

/* ---- the node's hooks ---- */

static int save(void *data, const struct membership_record *record)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    if (f->saves < SAVED_MAX)
        f->saved[f->saves] = *record;
    f->saves++;
    int err = f->save_err;
    pthread_mutex_unlock(&f->lock);
    return err;
}

static void closed(void *data)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->closed++;
    pthread_mutex_unlock(&f->lock);
}

static void joined(void *data)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->joined++;
    bool close = f->close_in_joined;
    pthread_mutex_unlock(&f->lock);
    if (close)
        membership_close(f->membership, closed, f);
}

static int fill(void *data, struct msg_heartbeat *message)
{
    struct fixture *f = data;

    message->live = malloc(2 * sizeof *message->live);
    message->live[0] = 3;
    message->live[1] = 8;
    message->live_count = 2;
    message->request_high = 8;
    message->disk_free_bytes = 1234;
    pthread_mutex_lock(&f->lock);
    int err = f->fill_err;
    pthread_mutex_unlock(&f->lock);
    return err;
}

static void answered(void *data, struct msg_heartbeat_reply *reply)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->answered++;
    f->dead = reply->dead_count == 1 ? reply->dead[0] : 0;
    bool close = f->close_in_answered && f->closed == 0;
    pthread_mutex_unlock(&f->lock);
    msg_heartbeat_reply_close(reply);
    if (close)
        membership_close(f->membership, closed, f);
}

static void fenced(void *data, int err, const char *sentence)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->fenced++;
    f->fenced_err = err;
    snprintf(f->fenced_sentence, sizeof f->fenced_sentence, "%s", sentence);
    pthread_mutex_unlock(&f->lock);
}

/* ---- fixture ---- */

static void open_all(void *data)
{
    struct fixture *f = data;
    struct membership_options options = {.wanted = 4, .heartbeat_ms = 20};
    struct membership_hooks hooks = {save, joined, fill, answered, fenced, f};

    strcpy(options.http, "127.0.0.1:8040");
    strcpy(options.rpc, "127.0.0.1:8060");
    assert_int_equal(coordinator_client_open(f->thread.loop, f->coordinator.address,
                                             FAKE_COORDINATOR_SECRET, &f->client, NULL),
                     0);
    assert_int_equal(membership_open(f->thread.loop, f->client, &options, &f->record, &hooks,
                                     &f->random.source, &f->identity, &f->membership),
                     0);
    membership_start(f->membership);
}

static void start(struct fixture *f)
{
    loop_thread_do(&f->thread, open_all, f);
}

static void begin_close(void *data)
{
    struct fixture *f = data;

    membership_close(f->membership, closed, f);
    f->membership = NULL;
}

static void close_client(void *data)
{
    struct fixture *f = data;

    coordinator_client_close(f->client);
    f->client = NULL;
}

static void drop_held(void *data)
{
    struct fixture *f = data;

    while (f->held_count > 0)
        rpc_request_drop(f->held[--f->held_count]);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    pthread_mutex_init(&f->lock, NULL);
    random_seeded_init(&f->random, 5);
    loop_thread_open(&f->thread);
    fake_coordinator_open(&f->coordinator, &f->thread, 1);
    fake_coordinator_follow(&f->coordinator, &f->coordinator);
    fake_coordinator_handle(&f->coordinator, handle, f);
    *state = f;
    return 0;
}

/* Waits until a counter has reached a value. */
static void expect(struct fixture *f, const unsigned *counter, unsigned value)
{
    for (unsigned ms = 0;; ms++) {
        pthread_mutex_lock(&f->lock);
        bool reached = *counter >= value;
        pthread_mutex_unlock(&f->lock);
        if (reached)
            return;
        assert_true(ms < WAIT_MS);
        usleep(1000);
    }
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->closed == 0)
        loop_thread_do(&f->thread, begin_close, f);
    loop_thread_do(&f->thread, close_client, f);
    expect(f, &f->closed, 1);
    loop_thread_do(&f->thread, drop_held, f);
    fake_coordinator_close(&f->coordinator);
    loop_thread_close(&f->thread);
    assert_int_equal(f->closed, 1);
    msg_heartbeat_close(&f->beat);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

/* ---- joining ---- */

static void test_a_new_node_saves_its_nonce_registers_and_serves(void **state)
{
    struct fixture *f = *state;

    start(f);
    expect(f, &f->joined, 1);
    pthread_mutex_lock(&f->lock);
    const struct msg_register *message = &f->registered[0];
    assert_int_equal(message->wanted, 4);
    assert_int_equal(message->previous_nonce, 0);
    assert_int_not_equal(message->new_nonce, 0);
    assert_int_equal(strlen(message->node_uuid), UUID_BYTES - 1);
    assert_string_equal(message->cluster_uuid, "");
    assert_string_equal(message->http, "127.0.0.1:8040");
    assert_string_equal(message->rpc, "127.0.0.1:8060");
    /* Durable before it was sent; accepted and durable before the node serves. */
    assert_int_equal(f->saves, 2);
    assert_true(f->saved[0].pending_nonce == message->new_nonce);
    assert_int_equal(f->saved[0].nonce, 0);
    assert_true(f->saved[1].nonce == message->new_nonce);
    assert_int_equal(f->saved[1].pending_nonce, 0);
    assert_int_equal(f->saved[1].node, 4);
    assert_int_equal(f->saved[1].epoch, 100);
    assert_string_equal(f->saved[1].cluster_uuid, CLUSTER);
    assert_string_equal(f->saved[1].node_uuid, message->node_uuid);
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(atomic_load(&f->identity.node), 4);
    assert_int_equal(atomic_load(&f->identity.epoch), 100);
}

static void test_a_start_proves_itself_by_the_last_nonce(void **state)
{
    struct fixture *f = *state;

    strcpy(f->record.node_uuid, "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee");
    strcpy(f->record.cluster_uuid, CLUSTER);
    f->record.node = 4;
    f->record.nonce = 77;
    start(f);
    expect(f, &f->joined, 1);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->registrations, 1);
    assert_int_equal(f->registered[0].previous_nonce, 77);
    assert_string_equal(f->registered[0].node_uuid, f->record.node_uuid);
    assert_string_equal(f->registered[0].cluster_uuid, CLUSTER);
    pthread_mutex_unlock(&f->lock);
}

/* The answer to an earlier start's registration was lost: whether the log has its nonce or not, it
 * is registered first, and then this start's own. */
static void test_the_pending_nonce_of_an_earlier_start_is_cleared_first(void **state)
{
    struct fixture *f = *state;

    strcpy(f->record.node_uuid, "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee");
    f->record.nonce = 77;
    f->record.pending_nonce = 78;
    start(f);
    expect(f, &f->joined, 1);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->registrations, 2);
    assert_int_equal(f->registered[0].previous_nonce, 77);
    assert_int_equal(f->registered[0].new_nonce, 78);
    assert_int_equal(f->registered[1].previous_nonce, 78);
    assert_int_not_equal(f->registered[1].new_nonce, 78);
    assert_int_equal(f->saves, 3);
    assert_int_equal(f->saved[0].nonce, 78);
    assert_int_equal(f->saved[0].pending_nonce, 0);
    assert_int_equal(f->saved[1].nonce, 78);
    assert_true(f->saved[1].pending_nonce == f->registered[1].new_nonce);
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(atomic_load(&f->identity.epoch), 101);
}

static void test_what_concerns_the_moment_is_tried_again_with_the_same_nonce(void **state)
{
    struct fixture *f = *state;

    f->register_errors[0] = TG_NOSPACE;
    f->register_errors[1] = TG_LIMIT;
    f->register_errors[2] = TG_NOMEM;
    f->register_sentence = "not now";
    f->register_error_count = 3;
    start(f);
    expect(f, &f->joined, 1);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->registrations, 4);
    for (unsigned i = 1; i < 4; i++)
        assert_true(f->registered[i].new_nonce == f->registered[0].new_nonce);
    assert_int_equal(f->fenced, 0);
    pthread_mutex_unlock(&f->lock);
}

static void test_a_new_node_waits_for_its_cluster_to_be_formed(void **state)
{
    struct fixture *f = *state;

    f->register_errors[0] = f->register_errors[1] = TG_REFUSED;
    f->register_sentence = "the cluster is not formed yet";
    f->register_error_count = 2;
    start(f);
    expect(f, &f->joined, 1);
    assert_int_equal(f->fenced, 0);
}

static void test_a_known_node_does_not_join_a_cluster_that_lost_its_memory(void **state)
{
    struct fixture *f = *state;

    strcpy(f->record.cluster_uuid, CLUSTER);
    f->record.nonce = 77;
    f->register_errors[0] = TG_REFUSED;
    f->register_sentence = "the cluster is not formed yet";
    f->register_error_count = 1;
    start(f);
    expect(f, &f->fenced, 1);
    assert_int_equal(f->joined, 0);
}

static void test_a_stale_copy_is_fenced(void **state)
{
    struct fixture *f = *state;

    f->register_errors[0] = TG_FENCED;
    f->register_sentence = "the directory is an old copy";
    f->register_error_count = 1;
    start(f);
    expect(f, &f->fenced, 1);
    usleep(100 * 1000);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->fenced, 1);
    assert_int_equal(f->fenced_err, TG_FENCED);
    assert_string_equal(f->fenced_sentence, "the directory is an old copy");
    assert_int_equal(f->joined, 0);
    assert_int_equal(f->registrations, 1);
    pthread_mutex_unlock(&f->lock);
}

static void test_without_a_durable_nonce_nothing_is_sent(void **state)
{
    struct fixture *f = *state;

    f->save_err = TG_NOSPACE;
    start(f);
    expect(f, &f->fenced, 1);
    assert_int_equal(f->fenced_err, TG_NOSPACE);
    assert_int_equal(f->registrations, 0);
}

/* ---- heartbeats ---- */

static void test_heartbeats_carry_what_the_node_says_and_bring_answers(void **state)
{
    struct fixture *f = *state;

    start(f);
    expect(f, &f->answered, 3);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->beat.node, 4);
    assert_int_equal(f->beat.epoch, 100);
    assert_int_equal(f->beat.request_high, 8);
    assert_int_equal(f->beat.live_count, 2);
    assert_int_equal(f->beat.live[1], 8);
    assert_int_equal(f->beat.disk_free_bytes, 1234);
    assert_int_equal(f->dead, 55);
    pthread_mutex_unlock(&f->lock);
}

static void test_a_heartbeat_that_cannot_be_filled_is_left_out(void **state)
{
    struct fixture *f = *state;

    f->fill_err = TG_IO;
    start(f);
    expect(f, &f->joined, 1);
    usleep(100 * 1000);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->beats, 0);
    f->fill_err = 0;
    pthread_mutex_unlock(&f->lock);
    expect(f, &f->answered, 1);
}

static void test_a_heartbeat_refused_for_the_moment_is_followed_by_the_next(void **state)
{
    struct fixture *f = *state;

    f->beat_err = TG_NOMEM;
    start(f);
    expect(f, &f->beats, 3);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->answered, 0);
    f->beat_err = 0;
    pthread_mutex_unlock(&f->lock);
    expect(f, &f->answered, 1);
    assert_int_equal(f->fenced, 0);
}

static void test_a_node_that_registered_elsewhere_is_fenced_by_its_heartbeat(void **state)
{
    struct fixture *f = *state;

    f->beat_err = TG_FENCED;
    start(f);
    expect(f, &f->fenced, 1);
    pthread_mutex_lock(&f->lock);
    unsigned beats = f->beats;
    pthread_mutex_unlock(&f->lock);
    usleep(100 * 1000);
    assert_int_equal(f->beats, beats);
    assert_int_equal(f->fenced, 1);
}

static void hurry(void *data)
{
    struct fixture *f = data;

    membership_hurry(f->membership);
}

static void test_a_hurry_is_allowed_at_any_time(void **state)
{
    struct fixture *f = *state;

    start(f);
    for (unsigned i = 0; i < 50; i++) {
        loop_thread_do(&f->thread, hurry, f);
        usleep(500);
    }
    expect(f, &f->answered, 10);
}

/* ---- leaving ---- */

static void test_leaving_while_a_registration_is_out(void **state)
{
    struct fixture *f = *state;

    f->hold = true;
    start(f);
    expect(f, &f->held_count, 1);
    loop_thread_do(&f->thread, begin_close, f);
    assert_int_equal(f->closed, 0); /* waits for it; the client's closing ends it */
    loop_thread_do(&f->thread, close_client, f);
    expect(f, &f->closed, 1);
    assert_int_equal(f->joined, 0);
}

static void test_leaving_while_a_heartbeat_is_out(void **state)
{
    struct fixture *f = *state;

    start(f);
    expect(f, &f->answered, 1);
    pthread_mutex_lock(&f->lock);
    f->hold = true;
    pthread_mutex_unlock(&f->lock);
    expect(f, &f->held_count, 1);
    loop_thread_do(&f->thread, begin_close, f);
    loop_thread_do(&f->thread, close_client, f);
    expect(f, &f->closed, 1);
}

static void test_leaving_at_any_moment_of_joining(void **state)
{
    struct fixture *f = *state;

    start(f);
    loop_thread_do(&f->thread, begin_close, f); /* the first save is under way, or over */
    expect(f, &f->closed, 1);
}

static void test_leaving_between_two_tries(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 8; i++)
        f->register_errors[i] = TG_NOSPACE;
    f->register_sentence = "full";
    f->register_error_count = 8;
    start(f);
    expect(f, &f->registrations, 1);
    usleep(20 * 1000);
    loop_thread_do(&f->thread, begin_close, f);
    expect(f, &f->closed, 1);
}

static void test_leaving_from_inside_the_hooks(void **state)
{
    struct fixture *f = *state;

    f->close_in_joined = true;
    start(f);
    expect(f, &f->closed, 1);
    assert_int_equal(f->beats, 0);
}

static void test_leaving_from_inside_an_answer(void **state)
{
    struct fixture *f = *state;

    f->close_in_answered = true;
    start(f);
    expect(f, &f->closed, 1);
    assert_int_equal(f->answered, 1);
}

static void test_leaving_after_being_fenced(void **state)
{
    struct fixture *f = *state;

    f->beat_err = TG_FENCED;
    start(f);
    expect(f, &f->fenced, 1);
    loop_thread_do(&f->thread, begin_close, f);
    expect(f, &f->closed, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_new_node_saves_its_nonce_registers_and_serves),
        TEST(test_a_start_proves_itself_by_the_last_nonce),
        TEST(test_the_pending_nonce_of_an_earlier_start_is_cleared_first),
        TEST(test_what_concerns_the_moment_is_tried_again_with_the_same_nonce),
        TEST(test_a_new_node_waits_for_its_cluster_to_be_formed),
        TEST(test_a_known_node_does_not_join_a_cluster_that_lost_its_memory),
        TEST(test_a_stale_copy_is_fenced),
        TEST(test_without_a_durable_nonce_nothing_is_sent),
        TEST(test_heartbeats_carry_what_the_node_says_and_bring_answers),
        TEST(test_a_heartbeat_that_cannot_be_filled_is_left_out),
        TEST(test_a_heartbeat_refused_for_the_moment_is_followed_by_the_next),
        TEST(test_a_node_that_registered_elsewhere_is_fenced_by_its_heartbeat),
        TEST(test_a_hurry_is_allowed_at_any_time),
        TEST(test_leaving_while_a_registration_is_out),
        TEST(test_leaving_while_a_heartbeat_is_out),
        TEST(test_leaving_at_any_moment_of_joining),
        TEST(test_leaving_between_two_tries),
        TEST(test_leaving_from_inside_the_hooks),
        TEST(test_leaving_from_inside_an_answer),
        TEST(test_leaving_after_being_fenced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
