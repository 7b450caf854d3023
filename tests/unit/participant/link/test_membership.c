/* SPDX-License-Identifier: Apache-2.0 */
/* Joining the cluster, heartbeats, being fenced, against a scripted coordinator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "participant/link/membership.h"
#include "tests/lib/fake_coordinator.h"
#include "tests/unit/participant/link/membership_fixture.h"

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
    expect(f, &f->saves, 1);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->registrations, 0);
    assert_int_equal(f->fenced, 0);
    f->save_err = 0; /* there is room again */
    pthread_mutex_unlock(&f->lock);
    expect(f, &f->joined, 1);
    pthread_mutex_lock(&f->lock);
    assert_int_equal(f->registrations, 1);
    assert_int_equal(f->fenced, 0);
    pthread_mutex_unlock(&f->lock);
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
