/* SPDX-License-Identifier: Apache-2.0 */
/* Fake time for a whole simulation: one queue of events, one seed, one hash of all that happened.
 * The same seed gives the same hash. */
#ifndef TG_TESTS_LIB_SIM_WORLD_H
#define TG_TESTS_LIB_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/random.h"

enum { SIM_WORLD_EVENTS_MAX = 1 << 20 }; /* waiting at once */

struct sim_event {
    uint64_t at_us;
    uint64_t order; /* of insertion: events of one moment run in it */
    void (*run)(void *data);
    void (*drop)(void *data);
    void *data;
};

struct sim_world {
    struct random_seeded random;
    uint64_t seed;
    uint64_t now_us; /* since the world began */
    uint64_t order;
    struct sim_event *heap;
    size_t count, capacity;
    uint64_t trace;  /* hash */
    uint64_t events; /* run so far */
    bool print;      /* the trace to stderr too: SIM_TRACE=1 in the environment */
};

void sim_world_init(struct sim_world *world, uint64_t seed);
void sim_world_close(struct sim_world *world); /* drops what waits */

/* run(data) after delay. drop frees data if the world ends first (may be NULL). */
void sim_world_after(struct sim_world *world, uint64_t delay_us, void (*run)(void *data),
                     void *data, void (*drop)(void *data));
/* Runs the next event. False if there is none. */
bool sim_world_step(struct sim_world *world);
/* Runs all events up to now + span. */
void sim_world_run(struct sim_world *world, uint64_t span_us);

uint64_t sim_world_below(struct sim_world *world, uint64_t bound);                /* 0..bound-1 */
uint64_t sim_world_between(struct sim_world *world, uint64_t low, uint64_t high); /* inclusive */
bool sim_world_chance(struct sim_world *world, unsigned permille);

/* One line of what happened, into the hash. */
void sim_world_trace(struct sim_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A node's clocks. wall = epoch + world time + offset, monotonic = world time. */
struct sim_clock {
    struct clock clock;
    struct sim_world *world;
    int64_t offset_us;
};
enum { SIM_CLOCK_EPOCH_S = 1700000000 };
void sim_clock_init(struct sim_clock *clock, struct sim_world *world);

#endif
