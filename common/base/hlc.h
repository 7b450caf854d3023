/* SPDX-License-Identifier: Apache-2.0 */
/* Hybrid logical clock: 64 bits, microseconds since the Unix epoch in the upper 52, a counter in
 * the lower 12; numeric order is time order. Completion times have counter 0. */
#ifndef TG_COMMON_BASE_HLC_H
#define TG_COMMON_BASE_HLC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { HLC_LOGICAL_BITS = 12 };

static inline uint64_t hlc_of_us(uint64_t us)
{
    return us << HLC_LOGICAL_BITS;
}
static inline uint64_t hlc_us(uint64_t hlc)
{
    return hlc >> HLC_LOGICAL_BITS;
}
/* A microsecond as an inclusive upper bound: everything in that microsecond counts. */
static inline uint64_t hlc_bound_of_us(uint64_t us)
{
    return (us << HLC_LOGICAL_BITS) | 0xFFF;
}

/* The next whole-microsecond stamp: above `last` (an HLC) and not below the wall clock. */
uint64_t hlc_next_us(uint64_t last, uint64_t wall_us);

/* "2026-01-31T12:00:00.123456+01:00" (RFC 3339 with offset or Z), or a decimal number of
 * microseconds since the epoch, to microseconds. A local time without offset is refused: TG_INVALID
 * with a reason. */
int hlc_parse_time(const char *text, uint64_t *us, struct tg_errmsg *msg);
/* RFC 3339 in UTC with microseconds, 27 characters and a zero byte. */
enum { HLC_TEXT_SIZE = 32 };
void hlc_print_time(uint64_t us, char out[HLC_TEXT_SIZE]);

#endif
