/* SPDX-License-Identifier: Apache-2.0 */
/* An event queue on fake time. */
#include "tests/lib/sim_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/checksum.h"

enum { SIM_LINE_BYTES = 512 };

void sim_world_init(struct sim_world *world, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    world->seed = seed;
    random_seeded_init(&world->random, seed);
    const char *print = getenv("SIM_TRACE");
    world->print = print != NULL && print[0] == '1';
}

void sim_world_close(struct sim_world *world)
{
    for (size_t i = 0; i < world->count; i++)
        if (world->heap[i].drop != NULL)
            world->heap[i].drop(world->heap[i].data);
    free(world->heap);
    world->heap = NULL;
    world->count = 0;
}

/* ---- the queue: a binary heap by (time, order) ---- */

static bool sim_event_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void sim_world_swap(struct sim_world *world, size_t i, size_t j)
{
    struct sim_event event = world->heap[i];
    world->heap[i] = world->heap[j];
    world->heap[j] = event;
}

void sim_world_after(struct sim_world *world, uint64_t delay_us, void (*run)(void *data),
                     void *data, void (*drop)(void *data))
{
    if (world->count == world->capacity) {
        world->capacity = world->capacity == 0 ? 256 : 2 * world->capacity;
        TG_CHECK(world->capacity <= SIM_WORLD_EVENTS_MAX);
        world->heap = realloc(world->heap, world->capacity * sizeof *world->heap);
        TG_CHECK(world->heap != NULL);
    }
    size_t i = world->count++;
    world->heap[i] = (struct sim_event){world->now_us + delay_us, world->order++, run, drop, data};
    while (i > 0 && sim_event_before(&world->heap[i], &world->heap[(i - 1) / 2])) {
        sim_world_swap(world, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

static struct sim_event sim_world_take(struct sim_world *world)
{
    struct sim_event first = world->heap[0];
    world->heap[0] = world->heap[--world->count];
    size_t i = 0;
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++)
            if (child < world->count && sim_event_before(&world->heap[child], &world->heap[least]))
                least = child;
        if (least == i)
            return first;
        sim_world_swap(world, i, least);
        i = least;
    }
}

bool sim_world_step(struct sim_world *world)
{
    if (world->count == 0)
        return false;
    struct sim_event event = sim_world_take(world);
    world->now_us = event.at_us;
    world->events++;
    event.run(event.data);
    return true;
}

void sim_world_run(struct sim_world *world, uint64_t span_us)
{
    uint64_t until_us = world->now_us + span_us;
    while (world->count > 0 && world->heap[0].at_us <= until_us)
        sim_world_step(world);
    world->now_us = until_us;
}

/* ---- chance ---- */

uint64_t sim_world_below(struct sim_world *world, uint64_t bound)
{
    return random_below(&world->random.source, bound);
}

uint64_t sim_world_between(struct sim_world *world, uint64_t low, uint64_t high)
{
    return low + sim_world_below(world, high - low + 1);
}

bool sim_world_chance(struct sim_world *world, unsigned permille)
{
    return permille > 0 && sim_world_below(world, 1000) < permille;
}

/* ---- trace ---- */

void sim_world_trace(struct sim_world *world, const char *format, ...)
{
    char line[SIM_LINE_BYTES];
    va_list args;
    int n = snprintf(line, sizeof line, "%lu ", (unsigned long)world->now_us);
    va_start(args, format);
    vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    uint64_t pair[2] = {world->trace, checksum64(line, strlen(line))};
    world->trace = checksum64(pair, sizeof pair);
    if (world->print)
        fprintf(stderr, "%s\n", line);
}

/* ---- clocks ---- */

static uint64_t sim_clock_wall_us(struct clock *clock)
{
    struct sim_clock *sim = (struct sim_clock *)clock;
    return (uint64_t)((int64_t)SIM_CLOCK_EPOCH_S * 1000000 + (int64_t)sim->world->now_us +
                      sim->offset_us);
}

static uint64_t sim_clock_monotonic_us(struct clock *clock)
{
    return ((struct sim_clock *)clock)->world->now_us;
}

void sim_clock_init(struct sim_clock *clock, struct sim_world *world)
{
    clock->clock.wall_us = sim_clock_wall_us;
    clock->clock.monotonic_us = sim_clock_monotonic_us;
    clock->world = world;
    clock->offset_us = 0;
}
