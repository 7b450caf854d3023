/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks share: time, percentiles, HTTP with credentials, and generated rows.
 *
 * Rows look like an order book's lines: 17 columns, about 113 bytes of CSV, the same on every
 * machine for the same seed. */
#ifndef TG_BENCH_SUPPORT_H
#define TG_BENCH_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/net/http_client.h"

double bench_now_s(void);

struct bench_samples {
    double *values; /* seconds */
    size_t count, capacity;
};
void bench_samples_add(struct bench_samples *samples, double value);
/* p in 0..1; sorts. 0 without samples. */
double bench_samples_percentile(struct bench_samples *samples, double p);
void bench_samples_close(struct bench_samples *samples);

/* Prints "bench: <words>" and ends the program with status 1. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct http_client *bench_connect(const char *address);
/* Sends with root's credentials; dies unless the status is 200 (or 307 if allowed). The reply is
 * the caller's to close. */
void bench_request(struct http_client *client, const char *method, const char *target,
                   const char *headers, const void *body, size_t len, struct http_reply *reply);
/* The text of a string or number field of a flat JSON answer, into out. Dies if it is not there. */
void bench_field(const struct http_reply *reply, const char *name, char *out, size_t cap);
/* POST of a statement to a coordinator; dies if it fails. */
void bench_sql(struct http_client *coordinator, const char *db, const char *statement);

/* CREATE TABLE bench.<name> for the generated rows. */
void bench_create_table(struct http_client *coordinator, const char *name, unsigned buckets,
                        unsigned replicas);
/* Appends rows [first, first+count) as CSV with ','. */
void bench_rows(uint64_t first, uint64_t count, struct buf *out);

/* One result: a JSON line on standard output, for people and programs alike. */
void bench_print(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory of a process that is its own (RssAnon + RssShmem), in bytes; 0 if unknown. */
uint64_t bench_own_memory(long pid);

#endif
