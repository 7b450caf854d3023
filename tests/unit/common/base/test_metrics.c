/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: the text that Prometheus reads, updates from many threads, a full table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/metrics.h"

enum { THREADS = 4, ADDS = 10000 };

static void printed_has(const char *want)
{
    struct buf out = BUF_INIT;
    metrics_print(&out);
    const char *text = buf_cstr(&out);
    if (strstr(text, want) == NULL)
        fail_msg("no '%s' in:\n%s", want, text);
    buf_close(&out);
}

static void counters_and_gauges_are_printed_with_their_labels(void **state)
{
    (void)state;
    const struct metric_label a[] = {{"table", "t1"}, {"state", "ok"}};
    const struct metric_label b[] = {{"table", "q\"\\\n"}};
    struct metric *first = metric_counter("loads_total", "Loads\nso far \\.", a, 2);
    struct metric *gauge = metric_gauge("queue", "Waiting.", NULL, 0);
    struct metric *second = metric_counter("loads_total", "Loads\nso far \\.", b, 1);
    metric_add(first, 2);
    metric_add(first, 3);
    metric_add(second, 1);
    metric_set(gauge, -4);
    metric_shift(gauge, 1);
    assert_int_equal(metric_value(first), 5);
    assert_int_equal(metric_value(gauge), -3);
    printed_has("# HELP loads_total Loads\\nso far \\\\.\n"
                "# TYPE loads_total counter\n"
                "loads_total{table=\"t1\",state=\"ok\"} 5\n"
                "loads_total{table=\"q\\\"\\\\\\n\"} 1\n"
                "# HELP queue Waiting.\n"
                "# TYPE queue gauge\n"
                "queue -3\n");
}

static void the_same_name_and_labels_are_the_same_metric(void **state)
{
    (void)state;
    const struct metric_label label = {"table", "t9"};
    assert_ptr_equal(metric_counter("same", "", &label, 1), metric_counter("same", "", &label, 1));
    assert_ptr_not_equal(metric_counter("same", "", &label, 1),
                         metric_counter("same", "", NULL, 0));
}

static void histograms_are_cumulative(void **state)
{
    (void)state;
    static const struct metric_buckets buckets = {3, {10, 1000, 1000000}, 1e-6};
    struct metric *metric = metric_histogram("took_seconds", "Time.", &buckets, NULL, 0);
    metric_observe(metric, 0);
    metric_observe(metric, 10);
    metric_observe(metric, 11);
    metric_observe(metric, 1000000);
    metric_observe(metric, 1000001);
    assert_int_equal(metric_value(metric), 5);
    printed_has("# TYPE took_seconds histogram\n"
                "took_seconds_bucket{le=\"1e-05\"} 2\n"
                "took_seconds_bucket{le=\"0.001\"} 3\n"
                "took_seconds_bucket{le=\"1\"} 4\n"
                "took_seconds_bucket{le=\"+Inf\"} 5\n"
                "took_seconds_sum 2.000022\n"
                "took_seconds_count 5\n");
    const struct metric_label label = {"op", "read"};
    metric_observe(metric_histogram("op_seconds", "Time.", &metric_buckets_latency, &label, 1),
                   70000000);
    printed_has("op_seconds_bucket{op=\"read\",le=\"60\"} 0\n"
                "op_seconds_bucket{op=\"read\",le=\"+Inf\"} 1\n"
                "op_seconds_sum{op=\"read\"} 70\n");
}

static void *add_many(void *data)
{
    struct metric **metrics = data;
    for (int i = 0; i < ADDS; i++) {
        metric_add(metrics[0], 1);
        metric_observe(metrics[1], (uint64_t)i);
        metric_counter("threads_total", "", NULL, 0);
    }
    return NULL;
}

static void no_update_of_many_threads_is_lost(void **state)
{
    (void)state;
    struct metric *metrics[] = {
        metric_counter("threads_total", "", NULL, 0),
        metric_histogram("threads_seconds", "", &metric_buckets_latency, NULL, 0)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, metrics), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(metric_value(metrics[0]), THREADS * ADDS);
    assert_int_equal(metric_value(metrics[1]), THREADS * ADDS);
}

static void what_finds_no_place_is_counted_and_harmless(void **state)
{
    (void)state;
    char text[METRIC_LABEL_BYTES + 1];
    memset(text, 'v', sizeof text);
    text[sizeof text - 1] = '\0';
    const struct metric_label label = {"x", text};
    metric_add(metric_counter("too_long", "", &label, 1), 1);
    printed_has("tidegate_metrics_refused_total 1\n");
    for (int i = 0; i < METRICS_MAX + 10; i++) {
        char value[16];
        (void)snprintf(value, sizeof value, "%d", i);
        const struct metric_label numbered = {"n", value};
        metric_set(metric_gauge("many", "", &numbered, 1), i);
    }
    metric_observe(metric_histogram("late", "", &metric_buckets_latency, NULL, 0), 5);
    printed_has("many{n=\"2000\"} 2000\n");
    struct buf out = BUF_INIT;
    metrics_print(&out);
    assert_null(strstr(buf_cstr(&out), "many{n=\"2050\"}"));
    assert_null(strstr(buf_cstr(&out), "late"));
    assert_null(strstr(buf_cstr(&out), "tidegate_metrics_refused_total 1\n"));
    buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_and_gauges_are_printed_with_their_labels),
        cmocka_unit_test(the_same_name_and_labels_are_the_same_metric),
        cmocka_unit_test(histograms_are_cumulative),
        cmocka_unit_test(no_update_of_many_threads_is_lost),
        cmocka_unit_test(what_finds_no_place_is_counted_and_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
