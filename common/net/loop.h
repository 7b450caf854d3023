/* SPDX-License-Identifier: Apache-2.0 */
/* One event loop and its thread's manners: posts from other threads, work in the pool that finishes
 * on the loop, timers, signals, and hooks that run once at the end of each turn (so that everything
 * that gathered during the turn leaves in one write). Everything but loop_post is for the loop's
 * own thread. */
#ifndef TG_COMMON_NET_LOOP_H
#define TG_COMMON_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct loop;
struct uv_loop_s;

/* Returns 0 or TG_IO/TG_NOMEM. Ignores SIGPIPE for the process. */
int loop_open(struct loop **loop, struct tg_errmsg *msg);
/* Runs until loop_stop. */
void loop_run(struct loop *loop);
/* Any thread. The run returns after the current turn. */
void loop_stop(struct loop *loop);
/* After run returned and users closed their things: lets handles finish closing, then frees. */
void loop_close(struct loop *loop);
/* The libuv loop, for those few that may know libuv (common/net, consensus, the roots). */
struct uv_loop_s *loop_uv(struct loop *loop);
/* True on the thread that runs it. */
bool loop_is_here(const struct loop *loop);
/* Cached monotonic time of this turn, in milliseconds. */
uint64_t loop_now_ms(const struct loop *loop);

/* A call to be made on the loop. The caller owns it; it must live until it ran, and may then be
 * posted again. */
struct loop_call {
    void (*run)(struct loop_call *call);
    void *data;
    struct loop_call *next; /* the loop's */
};
/* Any thread. Runs in order of posting. */
void loop_post(struct loop *loop, struct loop_call *call);

/* Work for a thread of the pool, whose end is told on the loop. Caller-owned like loop_call. */
struct loop_work {
    void (*work)(struct loop_work *work); /* in a pool thread */
    void (*done)(struct loop_work *work); /* on the loop */
    void *data;
    void *impl; /* the loop's */
};
int loop_work_start(struct loop *loop, struct loop_work *work);

struct loop_timer;
/* A timer that calls back on the loop; repeat_ms 0 = once per start. NULL on TG_NOMEM. */
struct loop_timer *loop_timer_open(struct loop *loop, void (*fire)(void *data), void *data);
void loop_timer_start(struct loop_timer *timer, uint64_t after_ms, uint64_t repeat_ms);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_close(struct loop_timer *timer); /* memory is freed when the loop allows it */

/* Calls `run` at the end of every turn in which loop_turn_hook_arm was called since its last run.
 */
struct loop_turn_hook {
    void (*run)(struct loop_turn_hook *hook);
    void *data;
    bool armed;
    struct loop_turn_hook *next;
};
void loop_turn_hook_add(struct loop *loop, struct loop_turn_hook *hook);
void loop_turn_hook_remove(struct loop *loop, struct loop_turn_hook *hook);
void loop_turn_hook_arm(struct loop *loop, struct loop_turn_hook *hook);

/* One buffer of LOOP_SCRATCH_BYTES for the read callbacks of this loop: what it holds is good until
 * the callback that read into it returns, so a thousand idle connections need no buffer of their
 * own. */
enum { LOOP_SCRATCH_BYTES = 64 * 1024 };
uint8_t *loop_scratch(struct loop *loop);

/* Tells threads that wait for something from the loop that it has ended. Any thread. */
struct loop_end_watch {
    void (*ended)(struct loop_end_watch *watch); /* on the loop's thread, when loop_run returns */
    void *data;
    struct loop_end_watch *previous, *next; /* the loop's */
};
/* False, and not added, if the loop has already ended. */
bool loop_end_watch_add(struct loop *loop, struct loop_end_watch *watch);
/* After this `ended` is not running and will not be called. Harmless if it was called already. */
void loop_end_watch_remove(struct loop *loop, struct loop_end_watch *watch);

/* SIGTERM and SIGINT call `stop` once, on the loop; a second one ends the process at once. */
int loop_on_stop_signal(struct loop *loop, void (*stop)(void *data), void *data);

#endif
