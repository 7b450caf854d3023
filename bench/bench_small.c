/* SPDX-License-Identifier: Apache-2.0 */
/* Small two-phase loads: 100 rows each, three replicas, loaded, precommitted, committed and
 * visible: loads/s, the p50 and p99 of a whole load, and the processor time that one costs. Three
 * rounds over all numbers of clients, so that a slow minute is seen in all of them.
 *
 *   bench_small CLUSTER_DIR [SECONDS] [CLIENTS,…]   by default 3 seconds and 1,8,32 clients */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/support.h"

enum { ROWS = 100, CLIENTS_MAX = 512, ROUNDS = 3 };

struct client {
    pthread_t thread;
    const char *participant;
    unsigned number;
    unsigned clients;
    unsigned round;
    double until;
    struct bench_samples samples;
};

static void one_load(struct http_client *http, struct client *c, unsigned n, const struct buf *body)
{
    char headers[256], txn[32], status[64];
    struct http_reply reply;

    snprintf(headers, sizeof headers,
             "label: small-%ld-%u-%u-%u-%u\r\ncolumn_separator: ,\r\ntwo_phase_commit: true\r\n",
             (long)getpid(), c->clients, c->round, c->number, n);
    bench_request(http, "PUT", "/api/bench/small/_stream_load", headers, body->data, body->len,
                  &reply);
    bench_field(&reply, "Status", status, sizeof status);
    bench_field(&reply, "TxnId", txn, sizeof txn);
    if (strcmp(status, "Success") != 0)
        bench_die("load failed: %s", buf_cstr(&reply.body));
    http_reply_close(&reply);
    snprintf(headers, sizeof headers, "txn_id: %s\r\ntxn_operation: commit\r\n", txn);
    bench_request(http, "PUT", "/api/bench/_stream_load_2pc", headers, NULL, 0, &reply);
    bench_field(&reply, "status", status, sizeof status);
    if (strcmp(status, "Success") != 0)
        bench_die("commit failed: %s", buf_cstr(&reply.body));
    http_reply_close(&reply);
}

static void *run(void *data)
{
    struct client *c = data;
    struct http_client *http = bench_connect(c->participant);
    struct buf body = BUF_INIT;

    bench_rows(c->number * 1000000ull, ROWS, &body);
    for (unsigned n = 0; bench_now_s() < c->until; n++) {
        double begin = bench_now_s();

        one_load(http, c, n, &body);
        bench_samples_add(&c->samples, bench_now_s() - begin);
    }
    buf_close(&body);
    http_client_close(http);
    return NULL;
}

static void round_of(const struct bench_cluster *cluster, unsigned clients, unsigned round,
                     double seconds)
{
    static struct client list[CLIENTS_MAX];
    struct bench_samples all = {0};
    struct bench_usage usage;
    char costs[512] = "";

    bench_usage_take(cluster, &usage);
    for (unsigned i = 0; i < clients; i++) {
        list[i] = (struct client){.participant =
                                      cluster->participants[i % cluster->participant_count].http,
                                  .number = i,
                                  .clients = clients,
                                  .round = round,
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
    bench_memory_print(cluster, costs, sizeof costs);
    bench_print("small_2pc",
                "\"clients\":%u,\"round\":%u,\"loads\":%zu,\"loads_per_s\":%.0f,\"p50_ms\":%.2f,"
                "\"p99_ms\":%.2f%s",
                clients, round + 1, count, (double)count / took, p50 * 1e3, p99 * 1e3, costs);
    bench_samples_close(&all);
}

int main(int argc, char **argv)
{
    static struct bench_cluster cluster;
    char fallback[] = "1,8,32";
    unsigned counts[16];
    unsigned count = 0;

    if (argc < 2)
        bench_die("usage: bench_small CLUSTER_DIR [SECONDS] [CLIENTS,…]");
    bench_cluster_read(argv[1], &cluster);
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 3;
    for (char *one = strtok(argc > 3 ? argv[3] : fallback, ","); one != NULL && count < 16;
         one = strtok(NULL, ",")) {
        counts[count] = (unsigned)strtoul(one, NULL, 10);
        if (counts[count] == 0 || counts[count] > CLIENTS_MAX)
            bench_die("between 1 and %d clients, not %s", CLIENTS_MAX, one);
        count++;
    }
    struct http_client *coordinator = bench_connect(cluster.coordinators[0].http);
    bench_create_table(coordinator, "small", 1, cluster.participant_count < 3 ? 1 : 3);
    http_client_close(coordinator);
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < count; i++)
            round_of(&cluster, counts[i], round, seconds);
    return 0;
}
