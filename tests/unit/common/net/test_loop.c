/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the event loop: posts, hooks, work, timers, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/net/loop.h"

enum { POSTERS = 4, POSTS = 2000 };

struct poster {
    struct loop *loop;
    struct loop_call calls[POSTS];
    unsigned next; /* loop thread: which of this poster's calls must come now */
    bool out_of_order;
    unsigned *total;
};

static void poster_run(struct loop_call *call)
{
    struct poster *poster = call->data;
    if (call != &poster->calls[poster->next++])
        poster->out_of_order = true;
    if (++*poster->total == POSTERS * POSTS)
        loop_stop(poster->loop);
}

static void *poster_main(void *data)
{
    struct poster *poster = data;
    for (size_t i = 0; i < POSTS; i++) {
        poster->calls[i] = (struct loop_call){.run = poster_run, .data = poster};
        loop_post(poster->loop, &poster->calls[i]);
    }
    return NULL;
}

static void test_posts_of_many_threads_run_in_each_ones_order(void **state)
{
    (void)state;
    struct loop *loop;
    assert_int_equal(loop_open(&loop, NULL), 0);
    struct poster *posters = calloc(POSTERS, sizeof *posters);
    pthread_t threads[POSTERS];
    unsigned total = 0;
    for (size_t i = 0; i < POSTERS; i++) {
        posters[i].loop = loop;
        posters[i].total = &total;
        pthread_create(&threads[i], NULL, poster_main, &posters[i]);
    }
    loop_run(loop);
    for (size_t i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(posters[i].next, POSTS);
        assert_false(posters[i].out_of_order);
    }
    loop_close(loop);
    free(posters);
}

struct turns {
    struct loop *loop;
    struct loop_call calls[3];
    struct loop_turn_hook hook, other;
    unsigned posts_run;
    unsigned hook_runs;
    unsigned other_runs;
    unsigned posts_at_first_hook;
};

static void turns_call(struct loop_call *call)
{
    struct turns *turns = call->data;
    turns->posts_run++;
    loop_turn_hook_arm(turns->loop, &turns->hook);
    loop_turn_hook_arm(turns->loop, &turns->hook);
}

static void turns_hook(struct loop_turn_hook *hook)
{
    struct turns *turns = hook->data;
    if (turns->hook_runs++ == 0)
        turns->posts_at_first_hook = turns->posts_run;
    if (turns->hook_runs < 5) /* a hook may arm itself and others */
        loop_turn_hook_arm(turns->loop, hook);
    else
        loop_stop(turns->loop);
    loop_turn_hook_arm(turns->loop, &turns->other);
}

static void turns_other(struct loop_turn_hook *hook)
{
    ((struct turns *)hook->data)->other_runs++;
}

static void test_a_hook_runs_once_after_all_posts_of_a_turn(void **state)
{
    (void)state;
    struct turns turns = {0};
    assert_int_equal(loop_open(&turns.loop, NULL), 0);
    turns.hook = (struct loop_turn_hook){.run = turns_hook, .data = &turns};
    turns.other = (struct loop_turn_hook){.run = turns_other, .data = &turns};
    loop_turn_hook_add(turns.loop, &turns.hook);
    loop_turn_hook_add(turns.loop, &turns.other);
    for (size_t i = 0; i < 3; i++) {
        turns.calls[i] = (struct loop_call){.run = turns_call, .data = &turns};
        loop_post(turns.loop, &turns.calls[i]);
    }
    loop_run(turns.loop);
    assert_int_equal(turns.posts_at_first_hook, 3);
    assert_int_equal(turns.hook_runs, 5);
    assert_int_equal(turns.other_runs, 3); /* armed again while it was armed counts once */
    loop_turn_hook_arm(turns.loop, &turns.hook);
    loop_turn_hook_arm(turns.loop, &turns.other);
    loop_turn_hook_remove(turns.loop, &turns.hook);
    loop_turn_hook_remove(turns.loop, &turns.other);
    loop_turn_hook_remove(turns.loop, &turns.other);
    loop_close(turns.loop);
    assert_int_equal(turns.hook_runs, 5);
}

struct job {
    struct loop *loop;
    struct loop_work work;
    pthread_t worked_on;
    bool done_here;
    bool blocked_signals;
};

static void job_work(struct loop_work *work)
{
    struct job *job = work->data;
    job->worked_on = pthread_self();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    job->blocked_signals = sigismember(&mask, SIGTERM) == 1;
}

static void job_done(struct loop_work *work)
{
    struct job *job = work->data;
    job->done_here = loop_is_here(job->loop);
    loop_stop(job->loop);
}

static void test_work_runs_elsewhere_and_ends_on_the_loop(void **state)
{
    (void)state;
    struct job job = {.work = {.work = job_work, .done = job_done}};
    job.work.data = &job;
    assert_int_equal(loop_open(&job.loop, NULL), 0);
    assert_int_equal(loop_work_start(job.loop, &job.work), 0);
    loop_run(job.loop);
    assert_true(job.done_here);
    assert_true(job.blocked_signals);
    assert_false(pthread_equal(job.worked_on, pthread_self()));
    loop_close(job.loop);
}

struct ticks {
    struct loop *loop;
    struct loop_timer *timer;
    unsigned count;
};

static void ticks_fire(void *data)
{
    struct ticks *ticks = data;
    if (++ticks->count == 3) {
        loop_timer_stop(ticks->timer);
        loop_stop(ticks->loop);
    }
}

static void test_a_timer_repeats_until_it_is_stopped(void **state)
{
    (void)state;
    struct ticks ticks = {0};
    assert_int_equal(loop_open(&ticks.loop, NULL), 0);
    ticks.timer = loop_timer_open(ticks.loop, ticks_fire, &ticks);
    assert_non_null(ticks.timer);
    uint64_t before = loop_now_ms(ticks.loop);
    loop_timer_start(ticks.timer, 5, 5);
    loop_run(ticks.loop);
    assert_true(loop_now_ms(ticks.loop) - before >= 15);
    assert_int_equal(ticks.count, 3);
    loop_timer_close(ticks.timer);
    loop_close(ticks.loop);
    assert_int_equal(ticks.count, 3);
}

static void flag_set(struct loop_call *call)
{
    *(bool *)call->data = true;
}

static void watch_set(struct loop_end_watch *watch)
{
    *(bool *)watch->data = true;
}

static void test_the_end_of_a_loop_is_told_and_late_posts_still_run(void **state)
{
    (void)state;
    struct loop *loop;
    assert_int_equal(loop_open(&loop, NULL), 0);
    bool told = false;
    bool removed = false;
    struct loop_end_watch watch = {.ended = watch_set, .data = &told};
    struct loop_end_watch other = {.ended = watch_set, .data = &removed};
    assert_true(loop_end_watch_add(loop, &watch));
    assert_true(loop_end_watch_add(loop, &other));
    loop_end_watch_remove(loop, &other);
    loop_stop(loop);
    loop_run(loop);
    assert_true(told);
    assert_false(removed);
    loop_end_watch_remove(loop, &watch);
    assert_false(loop_end_watch_add(loop, &watch));
    bool ran = false;
    struct loop_call late = {.run = flag_set, .data = &ran};
    loop_post(loop, &late);
    loop_close(loop);
    assert_true(ran);
}

static void stop_asked(void *data)
{
    /* The first signal asks, the second one does not wait for an answer. */
    (void)data;
    raise(SIGTERM);
}

static void test_the_second_stop_signal_ends_the_process(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(10);
        struct loop *loop;
        if (loop_open(&loop, NULL) != 0 || loop_on_stop_signal(loop, stop_asked, loop) != 0)
            _exit(1);
        raise(SIGTERM);
        loop_run(loop);
        _exit(2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first: it forks, and must do so before the pool has threads */
        cmocka_unit_test(test_the_second_stop_signal_ends_the_process),
        cmocka_unit_test(test_posts_of_many_threads_run_in_each_ones_order),
        cmocka_unit_test(test_a_hook_runs_once_after_all_posts_of_a_turn),
        cmocka_unit_test(test_work_runs_elsewhere_and_ends_on_the_loop),
        cmocka_unit_test(test_a_timer_repeats_until_it_is_stopped),
        cmocka_unit_test(test_the_end_of_a_loop_is_told_and_late_posts_still_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
