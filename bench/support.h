/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks share: the cluster's nodes, time, percentiles, HTTP with credentials, and
 * generated rows.
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

enum { BENCH_NODES_MAX = 32, BENCH_ADDRESS_BYTES = 64 };

struct bench_node {
    long pid;
    char http[BENCH_ADDRESS_BYTES];
};

/* A running local cluster, as `tidegate cluster start` describes it in cluster.json. */
struct bench_cluster {
    unsigned coordinator_count, participant_count;
    struct bench_node coordinators[BENCH_NODES_MAX];
    struct bench_node participants[BENCH_NODES_MAX];
};
/* Dies if there is none in dir, or no node of either kind. */
void bench_cluster_read(const char *dir, struct bench_cluster *cluster);

/* What the nodes have cost at some moment; the difference of two is what the time between cost. */
struct bench_usage {
    double at_s;
    double coordinator_cpu_s, participant_cpu_s; /* user and system time, all nodes */
    double client_cpu_s;                         /* of the benchmark itself */
};
void bench_usage_take(const struct bench_cluster *cluster, struct bench_usage *usage);
/* Appends cpu_us, and of it cpu_us_coordinators and _participants, and cpu_us_client, of one
 * operation since `begin`. cpu_us is the sum of the nodes, without the client. Ticks of 10 ms:
 * meaningful over tenths of seconds. */
void bench_usage_print(const struct bench_cluster *cluster, const struct bench_usage *begin,
                       double operations, char *out, size_t cap);
/* Appends ,"own_mb_coordinator":…,"own_mb_participant":…: the largest of each kind. */
void bench_memory_print(const struct bench_cluster *cluster, char *out, size_t cap);

/* Watches the own memory of one process from a thread, every few milliseconds. */
struct bench_watch;
struct bench_watch *bench_watch_start(long pid);
/* The largest that was seen, in bytes. */
uint64_t bench_watch_end(struct bench_watch *watch);

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
/* Sends with root's credentials; dies unless the status is 200. The reply is the caller's to close.
 */
void bench_request(struct http_client *client, const char *method, const char *target,
                   const char *headers, const void *body, size_t len, struct http_reply *reply);
/* The same with a body made in pieces, as http_client_request_chunked wants it. */
void bench_request_chunked(struct http_client *client, const char *method, const char *target,
                           const char *headers,
                           long (*produce)(void *data, void *bytes, size_t cap), void *data,
                           struct http_reply *reply);
/* The text of a string or number field of a flat JSON answer, into out. Dies if it is not there. */
void bench_field(const struct http_reply *reply, const char *name, char *out, size_t cap);
/* POST of a statement to a coordinator; dies if it fails. */
void bench_sql(struct http_client *coordinator, const char *db, const char *statement);

/* CREATE TABLE bench.<name> for the generated rows. */
void bench_create_table(struct http_client *coordinator, const char *name, unsigned buckets,
                        unsigned replicas);
/* Appends rows [first, first+count) as CSV with ','. */
void bench_rows(uint64_t first, uint64_t count, struct buf *out);
/* The same as JSON lines with the table's column names. */
void bench_rows_json(uint64_t first, uint64_t count, struct buf *out);

/* One result: a JSON line on standard output, for people and programs alike. */
void bench_print(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory of a process that is its own (RssAnon + RssShmem), in bytes; 0 if unknown. */
uint64_t bench_own_memory(long pid);

#endif
