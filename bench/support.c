/* SPDX-License-Identifier: Apache-2.0 */
/* Time, percentiles, generated rows and results of the benchmarks. */
#include "bench/support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void bench_die(const char *format, ...)
{
    va_list args;

    fputs("bench: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void bench_samples_add(struct bench_samples *samples, double value)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity == 0 ? 1024 : samples->capacity * 2;
        samples->values = realloc(samples->values, samples->capacity * sizeof *samples->values);
        if (samples->values == NULL)
            bench_die("out of memory");
    }
    samples->values[samples->count++] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double bench_samples_percentile(struct bench_samples *samples, double p)
{
    if (samples->count == 0)
        return 0;
    qsort(samples->values, samples->count, sizeof *samples->values, by_value);
    size_t at = (size_t)((double)(samples->count - 1) * p);
    return samples->values[at];
}

void bench_samples_close(struct bench_samples *samples)
{
    free(samples->values);
    memset(samples, 0, sizeof *samples);
}

/* splitmix64: every row's values depend on its number only. */
static uint64_t mix(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void date(uint64_t r, char out[16])
{
    snprintf(out, 16, "%04u-%02u-%02u", 1992 + (unsigned)(r % 7), 1 + (unsigned)(r / 7 % 12),
             1 + (unsigned)(r / 84 % 28));
}

struct row {
    uint64_t order, line, customer, part, supplier, quantity, cents, discount, tax;
    char order_date[16], commit_date[16];
    const char *priority, *mode;
};

static void make_row(uint64_t n, struct row *row)
{
    static const char *const priorities[] = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECI",
                                             "5-LOW"};
    static const char *const modes[] = {"AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"};
    uint64_t o = n / 4;
    uint64_t l = n * 31 + 7;
    uint64_t a = mix(&l), b = mix(&l), c = mix(&l), d = mix(&l);

    date(mix(&o), row->order_date);
    date(a >> 20, row->commit_date);
    row->order = n / 4 + 1;
    row->line = n % 4 + 1;
    row->customer = mix(&o) % 300000 + 1;
    row->part = a % 200000 + 1;
    row->supplier = b % 20000 + 1;
    row->priority = priorities[mix(&o) % 5];
    row->quantity = c % 50 + 1;
    row->cents = 90000 + c % 9500000;
    row->discount = d % 11;
    row->tax = d / 16 % 9;
    row->mode = modes[d / 256 % 7];
}

void bench_rows(uint64_t first, uint64_t count, struct buf *out)
{
    for (uint64_t n = first; n < first + count; n++) {
        struct row r;

        make_row(n, &r);
        buf_printf(out,
                   "%lu,%lu,%lu,%lu,%lu,%s,%s,0,%lu,%lu.%02lu,%lu.%02lu,0.%02lu,%lu.%02lu,"
                   "%lu.%02lu,0.%02lu,%s,%s\n",
                   r.order, r.line, r.customer, r.part, r.supplier, r.order_date, r.priority,
                   r.quantity, r.cents / 100, r.cents % 100, r.cents * 3 / 100, r.cents * 3 % 100,
                   r.discount, r.cents * 9 / 1000, r.cents * 9 / 10 % 100, r.cents * 6 / 1000,
                   r.cents * 6 / 10 % 100, r.tax, r.commit_date, r.mode);
    }
    if (out->err != 0)
        bench_die("out of memory");
}

void bench_rows_json(uint64_t first, uint64_t count, struct buf *out)
{
    for (uint64_t n = first; n < first + count; n++) {
        struct row r;

        make_row(n, &r);
        buf_printf(out,
                   "{\"orderkey\":%lu,\"linenumber\":%lu,\"custkey\":%lu,\"partkey\":%lu,"
                   "\"suppkey\":%lu,\"orderdate\":\"%s\",\"orderpriority\":\"%s\","
                   "\"shippriority\":0,\"quantity\":%lu,\"extendedprice\":%lu.%02lu,"
                   "\"ordtotalprice\":%lu.%02lu,\"discount\":0.%02lu,\"revenue\":%lu.%02lu,"
                   "\"supplycost\":%lu.%02lu,\"tax\":0.%02lu,\"commitdate\":\"%s\","
                   "\"shipmode\":\"%s\"}\n",
                   r.order, r.line, r.customer, r.part, r.supplier, r.order_date, r.priority,
                   r.quantity, r.cents / 100, r.cents % 100, r.cents * 3 / 100, r.cents * 3 % 100,
                   r.discount, r.cents * 9 / 1000, r.cents * 9 / 10 % 100, r.cents * 6 / 1000,
                   r.cents * 6 / 10 % 100, r.tax, r.commit_date, r.mode);
    }
    if (out->err != 0)
        bench_die("out of memory");
}

void bench_print(const char *name, const char *format, ...)
{
    va_list args;

    printf("{\"bench\":\"%s\",", name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    puts("}");
    fflush(stdout);
}
