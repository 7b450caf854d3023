/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, gauges and histograms of this process, printed in Prometheus's text format. Register
 * once (any thread, a lock), then update from any thread without one. */
#ifndef TG_COMMON_BASE_METRICS_H
#define TG_COMMON_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"

enum {
    METRICS_MAX = 2048,       /* metrics of a process, each set of label values counted */
    METRIC_LABELS_MAX = 4,    /* labels of a metric */
    METRIC_LABEL_BYTES = 256, /* all labels of a metric as they are printed */
    METRIC_BUCKETS_MAX = 24   /* buckets of a histogram, without the one for everything above */
};

struct metric;

struct metric_label {
    const char *name;
    const char *value;
};

/* Upper bounds (inclusive) in the unit that metric_observe is called with, growing; scale turns
 * that unit into the printed one (1e-6: observed in microseconds, printed in seconds). Lives as
 * long as the process. */
struct metric_buckets {
    size_t count;
    uint64_t bounds[METRIC_BUCKETS_MAX];
    double scale;
};

/* 100 µs to 60 s, observed in microseconds, printed in seconds. */
extern const struct metric_buckets metric_buckets_latency;

/* The metric of that name and those labels, made if there is none yet. name and help must live as
 * long as the process, labels are copied. Never NULL: once METRICS_MAX is reached, or if the labels
 * are too long, all further ones share a metric that is not printed, and
 * tidegate_metrics_refused_total counts the refusals. */
struct metric *metric_counter(const char *name, const char *help, const struct metric_label *labels,
                              size_t label_count);
struct metric *metric_gauge(const char *name, const char *help, const struct metric_label *labels,
                            size_t label_count);
struct metric *metric_histogram(const char *name, const char *help,
                                const struct metric_buckets *buckets,
                                const struct metric_label *labels, size_t label_count);

void metric_add(struct metric *metric, uint64_t n); /* counter */
/* Counter, to what somebody else has counted since the start. */
void metric_set_count(struct metric *metric, uint64_t n);
void metric_set(struct metric *metric, int64_t value);      /* gauge */
void metric_shift(struct metric *metric, int64_t by);       /* gauge, by a difference */
void metric_observe(struct metric *metric, uint64_t value); /* histogram */
/* A counter's or gauge's value; a histogram's number of observations. */
int64_t metric_value(const struct metric *metric);

/* Appends all metrics; those of one name stand together, in the order of registration. */
void metrics_print(struct buf *out);

#endif
