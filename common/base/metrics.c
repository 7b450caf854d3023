/* SPDX-License-Identifier: Apache-2.0 */
/* The list of metrics: slots are taken under a lock and never given back, so that updates and the
 * printer need none. */
#include "common/base/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric {
    const char *name;
    const char *help;
    enum metric_kind kind;
    char labels[METRIC_LABEL_BYTES]; /* name="value",… without braces */
    atomic_int_fast64_t value;       /* counter, gauge; a histogram's count */
    atomic_uint_fast64_t sum;        /* histogram: of all observations, in their unit */
    const struct metric_buckets *buckets;
    atomic_uint_fast64_t *in_bucket; /* buckets->count of them: what fell between two bounds */
};

const struct metric_buckets metric_buckets_latency = {
    .count = 18,
    .bounds = {100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000,
               1000000, 2500000, 5000000, 10000000, 30000000, 60000000},
    .scale = 1e-6,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *slots[METRICS_MAX];
static atomic_size_t slot_count; /* slots below it are complete */
static atomic_uint_fast64_t refused;

/* Where those go that found no place. */
static atomic_uint_fast64_t overflow_buckets[METRIC_BUCKETS_MAX];
static struct metric overflow = {.in_bucket = overflow_buckets};

static void append_label_value(struct buf *out, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\n')
            buf_append_str(out, "\\n");
        else if (*value == '"' || *value == '\\')
            buf_printf(out, "\\%c", *value);
        else
            buf_append_u8(out, (uint8_t)*value);
    }
}

/* False if they do not fit. */
static bool print_labels(const struct metric_label *labels, size_t count,
                         char out[METRIC_LABEL_BYTES])
{
    if (count > METRIC_LABELS_MAX)
        return false;
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < count; i++) {
        buf_printf(&text, "%s%s=\"", i == 0 ? "" : ",", labels[i].name);
        append_label_value(&text, labels[i].value);
        buf_append_u8(&text, '"');
    }
    bool fits = text.err == 0 && text.len < METRIC_LABEL_BYTES;
    if (fits) {
        if (text.len > 0)
            memcpy(out, text.data, text.len);
        out[text.len] = '\0';
    }
    buf_close(&text);
    return fits;
}

static struct metric *make_metric(const char *name, const char *help, enum metric_kind kind,
                                  const struct metric_buckets *buckets, const char *labels)
{
    struct metric *metric = calloc(1, sizeof *metric);
    if (metric == NULL)
        return NULL;
    metric->name = name;
    metric->help = help;
    metric->kind = kind;
    metric->buckets = buckets;
    memcpy(metric->labels, labels, strlen(labels) + 1);
    if (buckets != NULL) {
        metric->in_bucket = calloc(buckets->count, sizeof *metric->in_bucket);
        if (metric->in_bucket == NULL) {
            free(metric);
            return NULL;
        }
    }
    return metric;
}

static struct metric *find_or_make(const char *name, const char *help, enum metric_kind kind,
                                   const struct metric_buckets *buckets,
                                   const struct metric_label *labels, size_t label_count)
{
    char text[METRIC_LABEL_BYTES];
    struct metric *found = NULL;
    if (print_labels(labels, label_count, text)) {
        pthread_mutex_lock(&lock);
        size_t count = atomic_load(&slot_count);
        for (size_t i = 0; found == NULL && i < count; i++) {
            if (strcmp(slots[i]->name, name) == 0 && strcmp(slots[i]->labels, text) == 0)
                found = slots[i];
        }
        TG_CHECK(found == NULL || found->kind == kind);
        if (found == NULL && count < METRICS_MAX) {
            found = make_metric(name, help, kind, buckets, text);
            if (found != NULL) {
                slots[count] = found;
                atomic_store(&slot_count, count + 1);
            }
        }
        pthread_mutex_unlock(&lock);
    }
    if (found != NULL)
        return found;
    atomic_fetch_add(&refused, 1);
    return &overflow;
}

struct metric *metric_counter(const char *name, const char *help, const struct metric_label *labels,
                              size_t label_count)
{
    return find_or_make(name, help, METRIC_COUNTER, NULL, labels, label_count);
}

struct metric *metric_gauge(const char *name, const char *help, const struct metric_label *labels,
                            size_t label_count)
{
    return find_or_make(name, help, METRIC_GAUGE, NULL, labels, label_count);
}

struct metric *metric_histogram(const char *name, const char *help,
                                const struct metric_buckets *buckets,
                                const struct metric_label *labels, size_t label_count)
{
    TG_CHECK(buckets->count > 0 && buckets->count <= METRIC_BUCKETS_MAX);
    return find_or_make(name, help, METRIC_HISTOGRAM, buckets, labels, label_count);
}

void metric_add(struct metric *metric, uint64_t n)
{
    atomic_fetch_add_explicit(&metric->value, (int64_t)n, memory_order_relaxed);
}

void metric_set_count(struct metric *metric, uint64_t n)
{
    atomic_store_explicit(&metric->value, (int64_t)n, memory_order_relaxed);
}

void metric_set(struct metric *metric, int64_t value)
{
    atomic_store_explicit(&metric->value, value, memory_order_relaxed);
}

void metric_shift(struct metric *metric, int64_t by)
{
    atomic_fetch_add_explicit(&metric->value, by, memory_order_relaxed);
}

void metric_observe(struct metric *metric, uint64_t value)
{
    size_t count = metric->buckets == NULL ? 0 : metric->buckets->count;
    size_t i = 0;
    while (i < count && value > metric->buckets->bounds[i])
        i++;
    if (i < count)
        atomic_fetch_add_explicit(&metric->in_bucket[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&metric->sum, value, memory_order_relaxed);
    atomic_fetch_add_explicit(&metric->value, 1, memory_order_relaxed);
}

int64_t metric_value(const struct metric *metric)
{
    return atomic_load_explicit(&metric->value, memory_order_relaxed);
}

/* The name with its labels; extra is one more label or "". */
static void print_name(const struct metric *metric, const char *suffix, const char *extra,
                       struct buf *out)
{
    bool both = metric->labels[0] != '\0' && extra[0] != '\0';
    buf_printf(out, "%s%s", metric->name, suffix);
    if (metric->labels[0] != '\0' || extra[0] != '\0')
        buf_printf(out, "{%s%s%s}", metric->labels, both ? "," : "", extra);
    buf_append_u8(out, ' ');
}

static void print_histogram(const struct metric *metric, struct buf *out)
{
    const struct metric_buckets *buckets = metric->buckets;
    /* The count is read first: an observation that comes meanwhile may show in a bucket before it
     * shows in the count, so the total is raised to what the buckets say. */
    uint64_t total = (uint64_t)metric_value(metric);
    uint64_t below = 0;
    char extra[64];
    for (size_t i = 0; i < buckets->count; i++) {
        below += atomic_load_explicit(&metric->in_bucket[i], memory_order_relaxed);
        (void)snprintf(extra, sizeof extra, "le=\"%g\"",
                       (double)buckets->bounds[i] * buckets->scale);
        print_name(metric, "_bucket", extra, out);
        buf_printf(out, "%" PRIu64 "\n", below);
    }
    total = total < below ? below : total;
    print_name(metric, "_bucket", "le=\"+Inf\"", out);
    buf_printf(out, "%" PRIu64 "\n", total);
    print_name(metric, "_sum", "", out);
    buf_printf(out, "%.9g\n", (double)atomic_load(&metric->sum) * buckets->scale);
    print_name(metric, "_count", "", out);
    buf_printf(out, "%" PRIu64 "\n", total);
}

/* Help text may not break its line. */
static void print_heading(const char *name, const char *help, const char *type, struct buf *out)
{
    buf_printf(out, "# HELP %s ", name);
    for (; *help != '\0'; help++) {
        if (*help == '\n')
            buf_append_str(out, "\\n");
        else if (*help == '\\')
            buf_append_str(out, "\\\\");
        else
            buf_append_u8(out, (uint8_t)*help);
    }
    buf_printf(out, "\n# TYPE %s %s\n", name, type);
}

void metrics_print(struct buf *out)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    size_t count = atomic_load(&slot_count);
    bool printed[METRICS_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        if (printed[i])
            continue;
        print_heading(slots[i]->name, slots[i]->help, types[slots[i]->kind], out);
        for (size_t k = i; k < count; k++) {
            const struct metric *metric = slots[k];
            if (printed[k] || strcmp(metric->name, slots[i]->name) != 0)
                continue;
            printed[k] = true;
            if (metric->kind == METRIC_HISTOGRAM) {
                print_histogram(metric, out);
            } else {
                print_name(metric, "", "", out);
                buf_printf(out, "%" PRId64 "\n", metric_value(metric));
            }
        }
    }
    print_heading("tidegate_metrics_refused_total",
                  "Metrics that found no place or had labels that are too long.", "counter", out);
    buf_printf(out, "tidegate_metrics_refused_total %" PRIu64 "\n",
               (uint64_t)atomic_load(&refused));
}
