/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation fails: for every n, in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/err.h"
#include "tests/sweep/memory_sweep.h"

/* ---- memory that fails ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static _Atomic long fail_at; /* 0: never */
static atomic_bool fail_on;  /* all later ones, too */
static _Atomic long calls;

static bool fails(void)
{
    long at = atomic_load(&fail_at);
    if (at == 0)
        return false;
    long call = atomic_fetch_add(&calls, 1) + 1;
    if (call < at || (call > at && !atomic_load(&fail_on)))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

/* ---- the sweep ---- */

enum { EXIT_UNTOUCHED = 0, EXIT_HANDLED = 10, EXIT_WRONG = 11, RUNS_MAX = 20000 };

static int one_run(const struct memory_sweep *sweep, const char *what, long n, bool on)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* cmocka would go on with the next test in this process. */
        static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
            signal(signals[i], SIG_DFL);
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        alarm(60);
        atomic_store(&fail_on, on);
        atomic_store(&calls, 0);
        atomic_store(&fail_at, n);
        int err = sweep->run(sweep->data);
        atomic_store(&fail_at, 0);
        if (err != 0 && err != TG_NOMEM) {
            fprintf(stderr, "ended with %s\n", tg_err_name(err));
            _exit(EXIT_WRONG);
        }
        if (atomic_load(&calls) < n)
            _exit(err == 0 ? EXIT_UNTOUCHED : EXIT_WRONG);
        _exit(EXIT_HANDLED);
    }
    int status;
    assert_true(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status))
        fail_msg("%s, allocation %ld, %s: signal %d", what, n, on ? "for ever" : "once",
                 WTERMSIG(status));
    return WEXITSTATUS(status);
}

void memory_sweep(const struct memory_sweep *sweep, const char *what)
{
    long n[2] = {1, 1};
    int count[2][2] = {{0}}; /* once or for ever; handled, or ended */
    for (int on = 0; on < 2; on++) {
        for (;; n[on]++) {
            if (sweep->before != NULL)
                sweep->before(sweep->data);
            int status = one_run(sweep, what, n[on], on);
            if (sweep->after != NULL)
                sweep->after(sweep->data);
            if (status == EXIT_UNTOUCHED)
                break;
            if (status != EXIT_HANDLED && status != TG_EXIT_NO_MEMORY)
                fail_msg("%s, allocation %ld, %s: status %d", what, n[on], on ? "for ever" : "once",
                         status);
            count[on][status == TG_EXIT_NO_MEMORY]++;
            assert_true(n[on] < RUNS_MAX);
        }
        assert_true(n[on] > 1); /* something was swept */
    }
    print_message("%s: once %d handled, %d ended; for ever %d handled, %d ended\n", what,
                  count[0][0], count[0][1], count[1][0], count[1][1]);
}

long memory_sweep_pause(void)
{
    return atomic_exchange(&fail_at, 0);
}

void memory_sweep_go_on(long paused)
{
    atomic_store(&fail_at, paused);
}
