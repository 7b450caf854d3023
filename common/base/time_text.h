/* SPDX-License-Identifier: Apache-2.0 */
/* Instants as people write them: RFC 3339, or microseconds since the Unix epoch in digits. */
#ifndef TG_COMMON_BASE_TIME_TEXT_H
#define TG_COMMON_BASE_TIME_TEXT_H

#include <stdint.h>

#include "common/base/err.h"

/* "2026-01-31T12:00:00.123456+01:00" (RFC 3339 with offset or Z), or a decimal number of
 * microseconds since the epoch, to microseconds. A local time without offset is refused: TG_INVALID
 * with a reason. */
int time_text_parse(const char *text, uint64_t *us, struct tg_errmsg *msg);

/* RFC 3339 in UTC with microseconds, 27 characters and a zero byte. */
enum { TIME_TEXT_SIZE = 32 };
void time_text_print(uint64_t us, char out[TIME_TEXT_SIZE]);

#endif
