/* SPDX-License-Identifier: Apache-2.0 */
/* Coroutines over ucontext. */
#include "tests/sim/fiber.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "common/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define FIBER_ASAN 1
#endif
#endif

enum { FIBER_STACK_BYTES = 512 * 1024, FIBER_POOL_MAX = 64 };

struct fiber {
    struct fiber_process *process;
    struct fiber *prev, *next; /* of its process */
    ucontext_t context;
    char *stack;
    void *(*run)(void *data);
    void *data;
    void *result;
    const void *key; /* it waits for; NULL: none */
    uint64_t order;  /* of beginning to wait */
    uint64_t turn;   /* only the event of the present turn resumes it */
    bool timed_out;
    bool ended;
    bool detached; /* freed when it ends; else by who joins it */
    int saved_errno;
};

static struct {
    struct fiber *current;
    ucontext_t scheduler;
    struct fiber_process *processes[FIBER_PROCESSES_MAX];
    uint64_t orders;
    uint64_t turns;
    char *pool[FIBER_POOL_MAX];
    unsigned pooled;
    struct fiber_process *exiting;
    int exit_code;
#ifdef FIBER_ASAN
    const void *scheduler_stack;
    size_t scheduler_bytes;
#endif
} fibers;

struct fiber *fiber_current(void)
{
    return fibers.current;
}

struct fiber_process *fiber_current_process(void)
{
    return fibers.current == NULL ? NULL : fibers.current->process;
}

/* ---- memory ---- */

static char *stack_take(void)
{
    if (fibers.pooled > 0)
        return fibers.pool[--fibers.pooled];
    void *stack = mmap(NULL, FIBER_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    TG_CHECK(stack != MAP_FAILED);
    return stack;
}

static void stack_give(char *stack)
{
    if (fibers.pooled < FIBER_POOL_MAX)
        fibers.pool[fibers.pooled++] = stack;
    else
        munmap(stack, FIBER_STACK_BYTES);
}

static void fiber_unlink(struct fiber *fiber)
{
    if (fiber->prev != NULL)
        fiber->prev->next = fiber->next;
    else
        fiber->process->fibers = fiber->next;
    if (fiber->next != NULL)
        fiber->next->prev = fiber->prev;
}

static void fiber_free(struct fiber *fiber)
{
    if (fiber->stack != NULL)
        stack_give(fiber->stack);
    free(fiber);
}

/* ---- switching ---- */

static void fiber_to_scheduler(struct fiber *fiber, bool for_ever)
{
    fiber->saved_errno = errno;
    fibers.current = NULL;
#ifdef FIBER_ASAN
    void *fake = NULL;
    __sanitizer_start_switch_fiber(for_ever ? NULL : &fake, fibers.scheduler_stack,
                                   fibers.scheduler_bytes);
#endif
    (void)for_ever;
    swapcontext(&fiber->context, &fibers.scheduler);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(fake, &fibers.scheduler_stack, &fibers.scheduler_bytes);
#endif
    errno = fiber->saved_errno;
}

static void fiber_main(void)
{
    struct fiber *fiber = fibers.current;
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(NULL, &fibers.scheduler_stack, &fibers.scheduler_bytes);
#endif
    fiber->result = fiber->run(fiber->data);
    fiber->ended = true;
    fiber_wake_all(fiber);
    fiber_to_scheduler(fiber, true);
    TG_UNREACHABLE();
}

static void fiber_after_run(struct fiber *fiber)
{
    if (fiber->ended && fiber->detached) {
        fiber_unlink(fiber);
        fiber_free(fiber);
    } else if (fiber->ended) {
        stack_give(fiber->stack);
        fiber->stack = NULL;
    }
    struct fiber_process *process = fibers.exiting;
    if (process != NULL) {
        fibers.exiting = NULL;
        fiber_process_kill(process);
        process->on_exit(process->data, fibers.exit_code);
    }
}

static void fiber_resume(struct fiber *fiber)
{
    TG_CHECK(fibers.current == NULL);
    fiber->key = NULL;
    fiber->turn = 0;
    fibers.current = fiber;
#ifdef FIBER_ASAN
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, fiber->stack, FIBER_STACK_BYTES);
#endif
    swapcontext(&fibers.scheduler, &fiber->context);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
    fiber_after_run(fiber);
}

/* ---- turns ---- */

struct fiber_turn {
    struct fiber *fiber;
    struct fiber_process *process;
    uint64_t life;
    uint64_t turn;
    bool is_end; /* of its patience */
};

static void on_turn(void *data)
{
    struct fiber_turn turn = *(struct fiber_turn *)data;
    free(data);
    /* Of a killed process the fiber may be gone. */
    if (!turn.process->alive || turn.process->life != turn.life)
        return;
    for (struct fiber *fiber = turn.process->fibers; fiber != NULL; fiber = fiber->next) {
        if (fiber != turn.fiber || fiber->turn != turn.turn)
            continue;
        fiber->timed_out = turn.is_end;
        fiber_resume(fiber);
        return;
    }
}

static void fiber_schedule(struct fiber *fiber, uint64_t us, bool is_end)
{
    struct fiber_turn *turn = malloc(sizeof *turn);
    TG_CHECK(turn != NULL);
    *turn = (struct fiber_turn){fiber, fiber->process, fiber->process->life, fiber->turn, is_end};
    sim_world_after(fiber->process->world, us, on_turn, turn, free);
}

static void fiber_begin_turn(struct fiber *fiber)
{
    fiber->turn = ++fibers.turns;
    fiber->timed_out = false;
}

void fiber_sleep(uint64_t us)
{
    struct fiber *fiber = fibers.current;
    TG_CHECK(fiber != NULL);
    fiber_begin_turn(fiber);
    fiber_schedule(fiber, us, false);
    fiber_to_scheduler(fiber, false);
}

bool fiber_wait(const void *key, uint64_t us)
{
    struct fiber *fiber = fibers.current;
    TG_CHECK(fiber != NULL);
    fiber_begin_turn(fiber);
    fiber->key = key;
    fiber->order = ++fibers.orders;
    if (us != UINT64_MAX)
        fiber_schedule(fiber, us, true);
    fiber_to_scheduler(fiber, false);
    return !fiber->timed_out;
}

static void fiber_wake(struct fiber *fiber)
{
    struct sim_world *world = fiber->process->world;
    fiber->key = NULL;
    fiber_begin_turn(fiber); /* an end of patience that is under way comes too late */
    fiber_schedule(fiber, sim_world_between(world, 0, FIBER_JITTER_US), false);
}

static struct fiber *fiber_first(const void *key)
{
    struct fiber *first = NULL;
    for (unsigned i = 0; i < FIBER_PROCESSES_MAX; i++) {
        struct fiber_process *process = fibers.processes[i];
        if (process == NULL || !process->alive)
            continue;
        for (struct fiber *fiber = process->fibers; fiber != NULL; fiber = fiber->next)
            if (fiber->key == key && (first == NULL || fiber->order < first->order))
                first = fiber;
    }
    return first;
}

void fiber_wake_one(const void *key)
{
    struct fiber *fiber = fiber_first(key);
    if (fiber != NULL)
        fiber_wake(fiber);
}

void fiber_wake_all(const void *key)
{
    for (struct fiber *fiber = fiber_first(key); fiber != NULL; fiber = fiber_first(key))
        fiber_wake(fiber);
}

/* ---- life ---- */

struct fiber *fiber_spawn(struct fiber_process *process, bool detached, void *(*run)(void *data),
                          void *data)
{
    struct fiber *fiber = calloc(1, sizeof *fiber);
    TG_CHECK(fiber != NULL && process->alive);
    fiber->process = process;
    fiber->detached = detached;
    fiber->run = run;
    fiber->data = data;
    fiber->stack = stack_take();
    TG_CHECK(getcontext(&fiber->context) == 0);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = FIBER_STACK_BYTES;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, fiber_main, 0);
    fiber->next = process->fibers;
    if (fiber->next != NULL)
        fiber->next->prev = fiber;
    process->fibers = fiber;
    fiber_begin_turn(fiber);
    fiber_schedule(fiber, sim_world_between(process->world, 0, FIBER_JITTER_US), false);
    return fiber;
}

void *fiber_join(struct fiber *fiber)
{
    while (!fiber->ended)
        fiber_wait(fiber, UINT64_MAX);
    void *result = fiber->result;
    fiber_unlink(fiber);
    fiber_free(fiber);
    return result;
}

void fiber_process_init(struct fiber_process *process, struct sim_world *world, unsigned number)
{
    TG_CHECK(number < FIBER_PROCESSES_MAX);
    memset(process, 0, sizeof *process);
    process->world = world;
    process->number = number;
    fibers.processes[number] = process;
}

void fiber_process_start(struct fiber_process *process)
{
    TG_CHECK(!process->alive && process->fibers == NULL);
    process->alive = true;
    process->life++;
}

void fiber_process_kill(struct fiber_process *process)
{
    TG_CHECK(fiber_current_process() != process);
    process->alive = false;
    while (process->fibers != NULL) {
        struct fiber *fiber = process->fibers;
        fiber_unlink(fiber);
        fiber_free(fiber);
    }
}

_Noreturn void fiber_exit_process(int code)
{
    struct fiber *fiber = fibers.current;
    TG_CHECK(fiber != NULL && fibers.exiting == NULL);
    fibers.exiting = fiber->process;
    fibers.exit_code = code;
    fiber_begin_turn(fiber);
    fiber_to_scheduler(fiber, true);
    TG_UNREACHABLE();
}

void fiber_forget_all(void)
{
    for (unsigned i = 0; i < FIBER_PROCESSES_MAX; i++) {
        if (fibers.processes[i] != NULL)
            fiber_process_kill(fibers.processes[i]);
        fibers.processes[i] = NULL;
    }
}
