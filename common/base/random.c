/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's random bytes and a seeded generator. */
#include "common/base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/check.h"
#include "common/base/endian.h"

static void system_fill(struct random_source *source, void *out, size_t len)
{
    (void)source;
    uint8_t *at = out;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        TG_CHECK(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

struct random_source *random_system(void)
{
    static struct random_source system = {system_fill};
    return &system;
}

static uint64_t rotate_left(uint64_t value, int by)
{
    return value << by | value >> (64 - by);
}

/* xoshiro256** 1.0 by Blackman and Vigna (public domain). */
static uint64_t seeded_next(struct random_seeded *seeded)
{
    uint64_t *s = seeded->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

static void seeded_fill(struct random_source *source, void *out, size_t len)
{
    struct random_seeded *seeded = (struct random_seeded *)source; /* its first member */
    uint8_t *at = out;
    while (len > 0) {
        uint8_t word[8];
        store_u64le(word, seeded_next(seeded));
        size_t n = len < sizeof word ? len : sizeof word;
        memcpy(at, word, n);
        at += n;
        len -= n;
    }
}

void random_seeded_init(struct random_seeded *seeded, uint64_t seed)
{
    seeded->source.fill = seeded_fill;
    /* splitmix64 spreads the seed, so that seeds 1 and 2 have nothing in common. */
    for (int i = 0; i < 4; i++) {
        seed += 0x9E3779B97F4A7C15U;
        uint64_t z = seed;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
        z = (z ^ z >> 27) * 0x94D049BB133111EBU;
        seeded->state[i] = z ^ z >> 31;
    }
}

uint64_t random_u64(struct random_source *source)
{
    uint8_t word[8];
    random_fill(source, word, sizeof word);
    return load_u64le(word);
}

uint64_t random_below(struct random_source *source, uint64_t bound)
{
    TG_CHECK(bound > 0);
    /* Draws below this would make small results likelier. */
    uint64_t unfair = (0 - bound) % bound;
    uint64_t draw;
    do {
        draw = random_u64(source);
    } while (draw < unfair);
    return draw % bound;
}
