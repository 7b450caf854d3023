/* SPDX-License-Identifier: Apache-2.0 */
/* What product code and LMDB call of libc's threads, on fibers. The functions here have libc's
 * names, so the program's own come first, also for shared libraries. */
#include "tests/sim/fiber_pthread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/check.h"
#include "tests/sim/fiber.h"

enum { REALTIME_S_MIN = SIM_CLOCK_EPOCH_S / 2 };

void fiber_pthread_use(void)
{
}

/* ---- threads ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *data),
                   void *data)
{
    struct fiber_process *process = fiber_current_process();
    (void)attributes;
    TG_CHECK(process != NULL);
    *thread = (pthread_t)fiber_spawn(process, false, run, data);
    return 0;
}

int pthread_join(pthread_t thread, void **result)
{
    void *value = fiber_join((struct fiber *)thread);
    if (result != NULL)
        *result = value;
    return 0;
}

int pthread_detach(pthread_t thread)
{
    (void)thread;
    TG_UNREACHABLE();
}

/* ---- locks: one word says whether it is held ---- */

static int *lock_word(pthread_mutex_t *mutex)
{
    return (int *)(void *)mutex;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    (void)attributes;
    memset(mutex, 0, sizeof *mutex);
    return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    while (*lock_word(mutex) != 0) {
        TG_CHECK(fiber_current() != NULL);
        fiber_wait(mutex, UINT64_MAX);
    }
    *lock_word(mutex) = 1;
    return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    if (*lock_word(mutex) != 0)
        return EBUSY;
    *lock_word(mutex) = 1;
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    *lock_word(mutex) = 0;
    fiber_wake_one(mutex);
    return 0;
}

int pthread_mutex_consistent(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

/* ---- conditions ---- */

int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    (void)attributes;
    memset(condition, 0, sizeof *condition);
    return 0;
}

int pthread_cond_destroy(pthread_cond_t *condition)
{
    (void)condition;
    return 0;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    fiber_wait(condition, UINT64_MAX);
    pthread_mutex_lock(mutex);
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    struct timespec now;
    clock_gettime(until->tv_sec > REALTIME_S_MIN ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
    int64_t us = (until->tv_sec - now.tv_sec) * 1000000 + (until->tv_nsec - now.tv_nsec) / 1000;
    pthread_mutex_unlock(mutex);
    bool woken = fiber_wait(condition, us > 0 ? (uint64_t)us : 0);
    pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    fiber_wake_one(condition);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    fiber_wake_all(condition);
    return 0;
}

/* ---- time ---- */

int clock_gettime(clockid_t id, struct timespec *time)
{
    const struct fiber_process *process = fiber_current_process();
    if (process == NULL)
        return (int)syscall(SYS_clock_gettime, id, time);
    uint64_t us = process->world->now_us;
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        us = (uint64_t)((int64_t)SIM_CLOCK_EPOCH_S * 1000000 + (int64_t)us +
                        process->wall_offset_us);
    *time = (struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    return 0;
}

int nanosleep(const struct timespec *span, struct timespec *left)
{
    if (fiber_current() == NULL)
        return (int)syscall(SYS_nanosleep, span, left);
    fiber_sleep((uint64_t)span->tv_sec * 1000000 + (uint64_t)span->tv_nsec / 1000);
    return 0;
}

/* ---- the end ---- */

void _exit(int code)
{
    if (fiber_current() != NULL)
        fiber_exit_process(code);
    for (;;)
        syscall(SYS_exit_group, code);
}
