/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes a second, shared by threads: work that must not take the disk and the network from loads
 * and reads. */
#ifndef TG_PARTICIPANT_MAINTAIN_THROTTLE_H
#define TG_PARTICIPANT_MAINTAIN_THROTTLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/base/clock.h"

enum { THROTTLE_LOOK_MS = 50 }; /* how often a waiting thread looks at `stop` */

struct throttle {
    struct clock *clock;
    uint64_t bytes_per_s; /* 0: no limit */
    pthread_mutex_t lock;
    uint64_t free_us; /* when what was taken so far is paid for */
};

void throttle_init(struct throttle *throttle, struct clock *clock, uint64_t bytes_per_s);
void throttle_close(struct throttle *throttle);
/* Takes so many bytes: how many microseconds the taker has to wait before it goes on. */
uint64_t throttle_take(struct throttle *throttle, uint64_t bytes);
/* The same, and waits; *stop ends the waiting. */
void throttle_wait(struct throttle *throttle, uint64_t bytes, const atomic_bool *stop);

#endif
