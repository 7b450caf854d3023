/* SPDX-License-Identifier: Apache-2.0 */
/* The product's threads on the fake time of a sim_world: each is a coroutine of one real thread, so
 * that a seed decides who runs when. A process is a group of them that can be killed at any moment.
 *
 * fiber_pthread.c puts itself before libc's threads, locks, conditions and sleeps: code that uses
 * those runs here as it is. */
#ifndef TG_TESTS_SIM_FIBER_H
#define TG_TESTS_SIM_FIBER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/sim_world.h"

enum { FIBER_PROCESSES_MAX = 16, FIBER_JITTER_US = 40 };

struct fiber;

struct fiber_process {
    struct sim_world *world;
    unsigned number; /* from 0 */
    bool alive;
    uint64_t life;
    int64_t wall_offset_us; /* of its CLOCK_REALTIME */
    /* Its code called _exit: the process is dead when this is called, on no fiber of it. */
    void (*on_exit)(void *data, int code);
    void *data;
    struct fiber *fibers;
};

void fiber_process_init(struct fiber_process *process, struct sim_world *world, unsigned number);
void fiber_process_start(struct fiber_process *process);
/* None of its fibers runs any further. What they had allocated stays allocated. Not from one of its
 * own fibers. */
void fiber_process_kill(struct fiber_process *process);

/* run(data) on a new fiber of a living process, a little later. One that is not detached must be
 * joined. */
struct fiber *fiber_spawn(struct fiber_process *process, bool detached, void *(*run)(void *data),
                          void *data);
/* The one that runs, NULL outside of all. */
struct fiber *fiber_current(void);
struct fiber_process *fiber_current_process(void);

/* ---- for those who stand in for the system, on a fiber ---- */
void fiber_sleep(uint64_t us);
/* Until somebody calls fiber_wake_one or fiber_wake_all with the same key, or until us have passed
 * (UINT64_MAX: for ever). False: time is over. */
bool fiber_wait(const void *key, uint64_t us);
/* From anywhere. */
void fiber_wake_one(const void *key);
void fiber_wake_all(const void *key);
/* Waits until it has ended, which frees it. */
void *fiber_join(struct fiber *fiber);
/* Ends the current fiber's process. */
_Noreturn void fiber_exit_process(int code);
/* Fibers of all processes that wait, for the end of a run: frees what is left. */
void fiber_forget_all(void);

#endif
