/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness as an injected object: the kernel's for production, a seeded one for tests and
 * simulation. */
#ifndef TG_COMMON_BASE_RANDOM_H
#define TG_COMMON_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random_source {
    void (*fill)(struct random_source *source, void *out, size_t len);
};

/* The kernel's generator: fit for secrets, callable from any thread. */
struct random_source *random_system(void);

/* xoshiro256**: the same seed gives the same bytes on every machine. Not for secrets; one thread.
 */
struct random_seeded {
    struct random_source source;
    uint64_t state[4];
};
void random_seeded_init(struct random_seeded *seeded, uint64_t seed);

static inline void random_fill(struct random_source *source, void *out, size_t len)
{
    source->fill(source, out, len);
}
uint64_t random_u64(struct random_source *source);
/* Evenly spread over 0..bound-1; bound > 0. */
uint64_t random_below(struct random_source *source, uint64_t bound);

#endif
