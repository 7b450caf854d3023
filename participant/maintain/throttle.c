/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes a second, shared by threads. */
#include "participant/maintain/throttle.h"

#include <time.h>

void throttle_init(struct throttle *throttle, struct clock *clock, uint64_t bytes_per_s)
{
    *throttle = (struct throttle){.clock = clock, .bytes_per_s = bytes_per_s};
    pthread_mutex_init(&throttle->lock, NULL);
}

void throttle_close(struct throttle *throttle)
{
    pthread_mutex_destroy(&throttle->lock);
}

uint64_t throttle_take(struct throttle *throttle, uint64_t bytes)
{
    if (throttle->bytes_per_s == 0)
        return 0;
    uint64_t now = clock_monotonic_us(throttle->clock);
    pthread_mutex_lock(&throttle->lock);
    uint64_t begins = throttle->free_us > now ? throttle->free_us : now;
    throttle->free_us =
        begins + (uint64_t)((double)bytes * 1000000.0 / (double)throttle->bytes_per_s);
    pthread_mutex_unlock(&throttle->lock);
    return begins - now;
}

void throttle_wait(struct throttle *throttle, uint64_t bytes, const atomic_bool *stop)
{
    uint64_t us = throttle_take(throttle, bytes);

    while (us > 0 && !atomic_load(stop)) {
        uint64_t step = us < THROTTLE_LOOK_MS * 1000 ? us : THROTTLE_LOOK_MS * 1000;
        struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)step * 1000};

        nanosleep(&pause, NULL);
        us -= step;
    }
}
