/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of a thread: libuv, a queue of posted calls, and hooks for the end of a turn. */
#include "common/net/loop.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "common/base/check.h"
#include "common/base/log.h"

enum {
    /* Hooks that arm each other wait for the next turn after so many. */
    LOOP_HOOKS_PER_TURN_MAX = 64 * 1024,
    LOOP_CLOSE_MS_MAX = 10 * 1000 /* for handles of others to finish closing */
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t restless; /* runs while a hook is armed, so that no poll blocks on top of it */
    uv_timer_t close_limit;
    uv_signal_t signals[2];
    uv_work_t pool_start;
    bool has_signals;
    bool stop_asked;
    void (*on_stop)(void *data);
    void *on_stop_data;

    pthread_mutex_t lock;
    struct loop_call *calls, **calls_end; /* under lock */
    struct loop_end_watch *watches;       /* under lock */
    bool ended;                           /* under lock */

    atomic_bool stopping;
    _Atomic pthread_t thread;
    bool running;

    struct loop_turn_hook *armed, **armed_end;
    uint8_t scratch[LOOP_SCRATCH_BYTES];
};

/* ---- posted calls ---- */

static struct loop_call *loop_take_calls(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct loop_call *call = loop->calls;
    loop->calls = NULL;
    loop->calls_end = &loop->calls;
    pthread_mutex_unlock(&loop->lock);
    return call;
}

/* Runs what is queued now; what these calls post themselves waits for the next turn. */
static bool loop_run_calls(struct loop *loop)
{
    struct loop_call *call = loop_take_calls(loop);
    bool any = call != NULL;
    while (call != NULL) {
        struct loop_call *next = call->next;
        call->next = NULL;
        call->run(call);
        call = next;
    }
    return any;
}

static void loop_on_wake(uv_async_t *wake)
{
    struct loop *loop = wake->data;
    loop_run_calls(loop);
    if (atomic_load(&loop->stopping))
        uv_stop(&loop->uv);
}

void loop_post(struct loop *loop, struct loop_call *call)
{
    call->next = NULL;
    pthread_mutex_lock(&loop->lock);
    bool first = loop->calls == NULL;
    *loop->calls_end = call;
    loop->calls_end = &call->next;
    /* Under the lock, so that loop_close cannot take the handle away in between. */
    if (first)
        uv_async_send(&loop->wake);
    pthread_mutex_unlock(&loop->lock);
}

/* ---- hooks at the end of a turn ---- */

static void loop_run_hooks(struct loop *loop)
{
    for (unsigned i = 0; loop->armed != NULL && i < LOOP_HOOKS_PER_TURN_MAX; i++) {
        struct loop_turn_hook *hook = loop->armed;
        loop->armed = hook->next;
        if (loop->armed == NULL)
            loop->armed_end = &loop->armed;
        hook->next = NULL;
        hook->armed = false;
        hook->run(hook);
    }
    if (loop->armed == NULL)
        uv_idle_stop(&loop->restless);
}

static void loop_before_poll(uv_prepare_t *handle)
{
    loop_run_hooks(handle->data);
}

static void loop_after_poll(uv_check_t *handle)
{
    loop_run_hooks(handle->data);
}

static void loop_restless(uv_idle_t *handle)
{
    (void)handle;
}

void loop_turn_hook_add(struct loop *loop, struct loop_turn_hook *hook)
{
    (void)loop;
    hook->armed = false;
    hook->next = NULL;
}

void loop_turn_hook_remove(struct loop *loop, struct loop_turn_hook *hook)
{
    if (!hook->armed)
        return;
    for (struct loop_turn_hook **at = &loop->armed; *at != NULL; at = &(*at)->next) {
        if (*at != hook)
            continue;
        *at = hook->next;
        if (*at == NULL)
            loop->armed_end = at;
        break;
    }
    hook->armed = false;
    hook->next = NULL;
}

void loop_turn_hook_arm(struct loop *loop, struct loop_turn_hook *hook)
{
    if (hook->armed)
        return;
    hook->armed = true;
    hook->next = NULL;
    *loop->armed_end = hook;
    loop->armed_end = &hook->next;
    uv_idle_start(&loop->restless, loop_restless);
}

/* ---- life ---- */

static void loop_pool_work(uv_work_t *work)
{
    (void)work;
}

static void loop_pool_done(uv_work_t *work, int status)
{
    (void)work;
    (void)status;
}

/* The first work starts the threads of the pool. They inherit the signal mask: with everything
 * blocked no signal interrupts a system call of theirs half way. */
static void loop_start_pool(struct loop *loop)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    uv_queue_work(&loop->uv, &loop->pool_start, loop_pool_work, loop_pool_done);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void *loop_crypto_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return tg_must_malloc(size);
}

static void *loop_crypto_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return tg_must_realloc(old, size);
}

static void loop_crypto_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    free(memory);
}

/* Where they get no memory libuv aborts, and OpenSSL crashes: the process had better end with a
 * sentence. */
static void loop_set_memory(void)
{
    uv_replace_allocator(tg_must_malloc, tg_must_realloc, tg_must_calloc, free);
    CRYPTO_set_mem_functions(loop_crypto_malloc, loop_crypto_realloc, loop_crypto_free);
}

int loop_open(struct loop **out, struct tg_errmsg *msg)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loop_set_memory);
    struct loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for an event loop");
    int rc = uv_loop_init(&loop->uv);
    if (rc != 0) {
        free(loop);
        return tg_fail(msg, TG_IO, "cannot make an event loop: %s", uv_strerror(rc));
    }
    rc = uv_async_init(&loop->uv, &loop->wake, loop_on_wake);
    if (rc != 0) {
        uv_loop_close(&loop->uv);
        free(loop);
        return tg_fail(msg, TG_IO, "cannot make a wake-up handle: %s", uv_strerror(rc));
    }
    signal(SIGPIPE, SIG_IGN);
    loop->calls_end = &loop->calls;
    loop->armed_end = &loop->armed;
    pthread_mutex_init(&loop->lock, NULL);
    atomic_store(&loop->thread, pthread_self());
    loop->wake.data = loop;
    uv_prepare_init(&loop->uv, &loop->before_poll);
    uv_check_init(&loop->uv, &loop->after_poll);
    uv_idle_init(&loop->uv, &loop->restless);
    uv_timer_init(&loop->uv, &loop->close_limit);
    loop->before_poll.data = loop;
    loop->after_poll.data = loop;
    uv_prepare_start(&loop->before_poll, loop_before_poll);
    uv_check_start(&loop->after_poll, loop_after_poll);
    loop_start_pool(loop);
    *out = loop;
    return 0;
}

static void loop_tell_ended(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->ended = true;
    while (loop->watches != NULL) {
        struct loop_end_watch *watch = loop->watches;
        loop->watches = watch->next;
        if (watch->next != NULL)
            watch->next->previous = NULL;
        watch->previous = NULL;
        watch->next = NULL;
        watch->ended(watch);
    }
    pthread_mutex_unlock(&loop->lock);
}

void loop_run(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->ended = false;
    pthread_mutex_unlock(&loop->lock);
    atomic_store(&loop->thread, pthread_self());
    loop->running = true;
    while (!atomic_load(&loop->stopping))
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop_run_hooks(loop);
    loop->running = false;
    atomic_store(&loop->stopping, false);
    loop_tell_ended(loop);
}

void loop_stop(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    atomic_store(&loop->stopping, true);
    uv_async_send(&loop->wake);
    pthread_mutex_unlock(&loop->lock);
}

static void loop_close_took_too_long(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void loop_close_leftover(uv_handle_t *handle, void *count)
{
    if (uv_is_closing(handle))
        return;
    (*(unsigned *)count)++;
    uv_close(handle, NULL);
}

void loop_close(struct loop *loop)
{
    if (loop == NULL)
        return;
    /* Our own handles no longer count as a reason to run; those of others do until they are closed.
     */
    uv_unref((uv_handle_t *)&loop->wake);
    uv_unref((uv_handle_t *)&loop->before_poll);
    uv_unref((uv_handle_t *)&loop->after_poll);
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->close_limit, loop_close_took_too_long, LOOP_CLOSE_MS_MAX, 0);
    uv_unref((uv_handle_t *)&loop->close_limit);
    do
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    while (loop_run_calls(loop));

    uv_handle_t *own[] = {(uv_handle_t *)&loop->wake, (uv_handle_t *)&loop->before_poll,
                          (uv_handle_t *)&loop->after_poll, (uv_handle_t *)&loop->restless,
                          (uv_handle_t *)&loop->close_limit};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        uv_close(own[i], NULL);
    if (loop->has_signals) {
        uv_close((uv_handle_t *)&loop->signals[0], NULL);
        uv_close((uv_handle_t *)&loop->signals[1], NULL);
    }
    unsigned left = 0;
    uv_walk(&loop->uv, loop_close_leftover, &left);
    if (left > 0)
        log_warn("loop", "handles left open at the end count=%u", left);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    int rc = uv_loop_close(&loop->uv);
    if (rc != 0) {
        /* Work of somebody is still in a pool thread: its memory must outlive us. */
        log_warn("loop", "loop still busy at its end error=%s", uv_strerror(rc));
        return;
    }
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

bool loop_is_here(const struct loop *loop)
{
    return pthread_equal(atomic_load(&loop->thread), pthread_self()) != 0;
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return uv_now(&loop->uv);
}

uint8_t *loop_scratch(struct loop *loop)
{
    return loop->scratch;
}

bool loop_end_watch_add(struct loop *loop, struct loop_end_watch *watch)
{
    pthread_mutex_lock(&loop->lock);
    bool added = !loop->ended;
    watch->previous = NULL;
    watch->next = NULL;
    if (added) {
        watch->next = loop->watches;
        if (watch->next != NULL)
            watch->next->previous = watch;
        loop->watches = watch;
    }
    pthread_mutex_unlock(&loop->lock);
    return added;
}

void loop_end_watch_remove(struct loop *loop, struct loop_end_watch *watch)
{
    pthread_mutex_lock(&loop->lock);
    if (watch->next != NULL)
        watch->next->previous = watch->previous;
    if (watch->previous != NULL)
        watch->previous->next = watch->next;
    else if (loop->watches == watch)
        loop->watches = watch->next;
    watch->previous = NULL;
    watch->next = NULL;
    pthread_mutex_unlock(&loop->lock);
}

/* ---- work in the pool ---- */

static void loop_work_run(uv_work_t *request)
{
    struct loop_work *work = request->data;
    work->work(work);
}

static void loop_work_done(uv_work_t *request, int status)
{
    (void)status;
    struct loop_work *work = request->data;
    work->impl = NULL;
    free(request);
    work->done(work);
}

int loop_work_start(struct loop *loop, struct loop_work *work)
{
    uv_work_t *request = calloc(1, sizeof *request);
    if (request == NULL)
        return TG_NOMEM;
    request->data = work;
    work->impl = request;
    int rc = uv_queue_work(&loop->uv, request, loop_work_run, loop_work_done);
    if (rc != 0) {
        work->impl = NULL;
        free(request);
        return TG_IO;
    }
    return 0;
}

/* ---- timers ---- */

struct loop_timer {
    uv_timer_t uv;
    struct loop *loop;
    void (*fire)(void *data);
    void *data;
};

struct loop_timer *loop_timer_open(struct loop *loop, void (*fire)(void *data), void *data)
{
    struct loop_timer *timer = calloc(1, sizeof *timer);
    if (timer == NULL)
        return NULL;
    timer->loop = loop;
    timer->fire = fire;
    timer->data = data;
    uv_timer_init(&loop->uv, &timer->uv);
    timer->uv.data = timer;
    return timer;
}

static void loop_timer_fire(uv_timer_t *uv)
{
    struct loop_timer *timer = uv->data;
    timer->fire(timer->data);
}

void loop_timer_start(struct loop_timer *timer, uint64_t after_ms, uint64_t repeat_ms)
{
    /* Before the loop runs its cached time is that of loop_open, perhaps long ago. */
    if (!timer->loop->running)
        uv_update_time(&timer->loop->uv);
    uv_timer_start(&timer->uv, loop_timer_fire, after_ms, repeat_ms);
}

void loop_timer_stop(struct loop_timer *timer)
{
    uv_timer_stop(&timer->uv);
}

static void loop_timer_free(uv_handle_t *handle)
{
    free(handle->data);
}

void loop_timer_close(struct loop_timer *timer)
{
    if (timer != NULL)
        uv_close((uv_handle_t *)&timer->uv, loop_timer_free);
}

/* ---- signals ---- */

static void loop_on_signal(uv_signal_t *handle, int number)
{
    struct loop *loop = handle->data;
    if (loop->stop_asked)
        _exit(128 + number);
    loop->stop_asked = true;
    loop->on_stop(loop->on_stop_data);
}

int loop_on_stop_signal(struct loop *loop, void (*stop)(void *data), void *data)
{
    static const int numbers[2] = {SIGTERM, SIGINT};
    TG_CHECK(!loop->has_signals);
    loop->on_stop = stop;
    loop->on_stop_data = data;
    loop->has_signals = true;
    int err = 0;
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&loop->uv, &loop->signals[i]);
        loop->signals[i].data = loop;
        if (uv_signal_start(&loop->signals[i], loop_on_signal, numbers[i]) != 0)
            err = TG_IO;
        uv_unref((uv_handle_t *)&loop->signals[i]);
    }
    return err;
}
