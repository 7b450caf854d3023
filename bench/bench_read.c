/* SPDX-License-Identifier: Apache-2.0 */
/* Reads: full scans as text over HTTP, of the newest version and as of one, in rows/s; and gets by
 * key at 1 and 8 clients, of the newest version and as of a time: gets/s, p50, p99. Beside each the
 * nodes' processor time for a row or get.
 *
 *   bench_read CLUSTER_DIR [ROWS] [SECONDS] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/support.h"

enum { CLIENTS_MAX = 16, ROUNDS = 3 };

struct client {
    pthread_t thread;
    const char *participant;
    const char *as_of; /* "" for the newest version */
    unsigned number;
    uint64_t rows;
    double until;
    struct bench_samples samples;
};

static void *run(void *data)
{
    struct client *c = data;
    struct http_client *http = bench_connect(c->participant);
    uint64_t seed = c->number * 7919 + 1;

    while (bench_now_s() < c->until) {
        char target[128];
        struct http_reply reply;
        double begin = bench_now_s();

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t row = (seed >> 33) % c->rows;
        snprintf(target, sizeof target, "/api/bench/reads/_get?key=%lu&key=%lu%s", row / 4 + 1,
                 row % 4 + 1, c->as_of);
        bench_request(http, "GET", target, NULL, NULL, 0, &reply);
        if (reply.body.len == 0)
            bench_die("row %lu is not there", row);
        http_reply_close(&reply);
        bench_samples_add(&c->samples, bench_now_s() - begin);
    }
    http_client_close(http);
    return NULL;
}

static void gets(const struct bench_cluster *cluster, uint64_t rows, unsigned clients,
                 const char *as_of, double seconds)
{
    static struct client list[CLIENTS_MAX];
    struct bench_samples all = {0};
    struct bench_usage usage;
    char costs[512] = "";

    bench_usage_take(cluster, &usage);
    for (unsigned i = 0; i < clients; i++) {
        list[i] = (struct client){.participant = cluster->participants[0].http,
                                  .as_of = as_of,
                                  .number = i,
                                  .rows = rows,
                                  .until = usage.at_s + seconds};
        if (pthread_create(&list[i].thread, NULL, run, &list[i]) != 0)
            bench_die("no more threads");
    }
    for (unsigned i = 0; i < clients; i++) {
        pthread_join(list[i].thread, NULL);
        for (size_t n = 0; n < list[i].samples.count; n++)
            bench_samples_add(&all, list[i].samples.values[n]);
        bench_samples_close(&list[i].samples);
    }
    double took = bench_now_s() - usage.at_s;
    size_t count = all.count;
    double p50 = bench_samples_percentile(&all, 0.5);
    double p99 = bench_samples_percentile(&all, 0.99);
    bench_usage_print(cluster, &usage, (double)count, costs, sizeof costs);
    bench_print(
        "get",
        "\"what\":\"%s\",\"clients\":%u,\"gets_per_s\":%.0f,\"p50_ms\":%.3f,\"p99_ms\":%.3f%s",
        as_of[0] != 0 ? "as of" : "newest", clients, (double)count / took, p50 * 1e3, p99 * 1e3,
        costs);
    bench_samples_close(&all);
}

static void scan(const struct bench_cluster *cluster, struct http_client *http, const char *name,
                 const char *query, uint64_t rows)
{
    struct bench_usage usage;
    char costs[512] = "";
    char target[128];
    struct http_reply reply;
    uint64_t lines = 0;

    snprintf(target, sizeof target, "/api/bench/reads/_scan?%s", query);
    bench_usage_take(cluster, &usage);
    bench_request(http, "GET", target, NULL, NULL, 0, &reply);
    double seconds = bench_now_s() - usage.at_s;
    bench_usage_print(cluster, &usage, (double)rows, costs, sizeof costs);
    for (size_t i = 0; i < reply.body.len; i++)
        lines += reply.body.data[i] == '\n';
    if (lines != rows)
        bench_die("scan gave %lu rows instead of %lu", lines, rows);
    bench_print("scan", "\"what\":\"%s\",\"rows\":%lu,\"rows_per_s\":%.0f,\"mb_per_s\":%.1f%s",
                name, rows, (double)rows / seconds, (double)reply.body.len / 1e6 / seconds, costs);
    http_reply_close(&reply);
}

int main(int argc, char **argv)
{
    static struct bench_cluster cluster;
    struct buf body = BUF_INIT;
    struct http_reply reply;
    char headers[128], status[32], as_of[64];

    if (argc < 2)
        bench_die("usage: bench_read CLUSTER_DIR [ROWS] [SECONDS]");
    bench_cluster_read(argv[1], &cluster);
    uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 3;
    struct http_client *coordinator = bench_connect(cluster.coordinators[0].http);
    struct http_client *participant = bench_connect(cluster.participants[0].http);
    bench_create_table(coordinator, "reads", 4, cluster.participant_count < 3 ? 1 : 3);
    bench_rows(0, rows, &body);
    snprintf(headers, sizeof headers, "label: reads-%ld\r\ncolumn_separator: ,\r\n",
             (long)getpid());
    bench_request(participant, "PUT", "/api/bench/reads/_stream_load", headers, body.data, body.len,
                  &reply);
    bench_field(&reply, "Status", status, sizeof status);
    if (strcmp(status, "Success") != 0)
        bench_die("load failed: %s", buf_cstr(&reply.body));
    http_reply_close(&reply);
    buf_close(&body);
    bench_request(participant, "GET", "/api/bench/reads/_scan?limit=1", NULL, NULL, 0, &reply);
    if (http_reply_header(&reply, "X-Tidegate-As-Of", status, sizeof status) != 0)
        bench_die("a read does not say as of when it is");
    snprintf(as_of, sizeof as_of, "&as_of=%s", status);
    http_reply_close(&reply);
    for (unsigned round = 0; round < ROUNDS; round++) {
        scan(&cluster, participant, "newest, csv", "format=csv", rows);
        scan(&cluster, participant, "newest, json", "format=json", rows);
        scan(&cluster, participant, "as of version 1, csv", "format=csv&version=1", rows);
        scan(&cluster, participant, "key order, csv", "format=csv&order=key", rows);
        scan(&cluster, participant, "one column, csv", "format=csv&columns=orderkey", rows);
        gets(&cluster, rows, 1, "", seconds);
        gets(&cluster, rows, 8, "", seconds);
        gets(&cluster, rows, 8, as_of, seconds);
    }
    http_client_close(coordinator);
    http_client_close(participant);
    return 0;
}
