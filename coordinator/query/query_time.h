/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds since the epoch as people write them, in UTC, and back. Pure. */
#ifndef TG_COORDINATOR_QUERY_QUERY_TIME_H
#define TG_COORDINATOR_QUERY_QUERY_TIME_H

#include <stdint.h>

enum { QUERY_TIME_BYTES = 40 };

/* 2026-01-31 12:00:00, as SHOW TRANSACTION prints it. */
void query_time_plain(uint64_t us, char out[QUERY_TIME_BYTES]);
/* Microseconds since the epoch in digits, or RFC 3339 with an offset (a blank stands for the '+'
 * that a query string has turned into one). More than six digits of a fraction are cut. TG_INVALID.
 */
int query_time_parse(const char *text, uint64_t *us);

#endif
