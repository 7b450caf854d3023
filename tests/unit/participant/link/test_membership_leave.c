/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving the cluster in every phase, against a scripted coordinator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "participant/link/membership.h"
#include "tests/lib/fake_coordinator.h"
#include "tests/unit/participant/link/membership_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_leaving_while_a_registration_is_out), TEST(test_leaving_while_a_heartbeat_is_out),
        TEST(test_leaving_at_any_moment_of_joining),    TEST(test_leaving_between_two_tries),
        TEST(test_leaving_from_inside_the_hooks),       TEST(test_leaving_from_inside_an_answer),
        TEST(test_leaving_after_being_fenced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
