/* SPDX-License-Identifier: Apache-2.0 */
/* Small two-phase loads: 100 rows each, three replicas, loaded, precommitted, committed and
 * visible, at 1, 8 and 32 clients: loads/s and the p50 and p99 of a whole load. And a coordinator's
 * idle memory with 1,000 labels, if its pid is given.
 *
 *   bench_small COORDINATOR PARTICIPANT[,PARTICIPANT…] [SECONDS] [COORDINATOR PID] */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/support.h"

enum { ROWS = 100, CLIENTS_MAX = 64, PARTICIPANTS_MAX = 16 };

struct client {
    pthread_t thread;
    const char *participant;
    unsigned number;
    unsigned round;
    double until;
    struct bench_samples samples;
};

static void one_load(struct http_client *http, struct client *c, unsigned n, const struct buf *body)
{
    char headers[256], txn[32], status[64];
    struct http_reply reply;

    snprintf(headers, sizeof headers,
             "label: small-%ld-%u-%u-%u\r\ncolumn_separator: ,\r\ntwo_phase_commit: true\r\n",
             (long)getpid(), c->round, c->number, n);
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

static void round_of(char *participants[], unsigned participant_count, unsigned clients,
                     unsigned round, double seconds)
{
    static struct client list[CLIENTS_MAX];
    struct bench_samples all = {0};
    double begin = bench_now_s();

    for (unsigned i = 0; i < clients; i++) {
        list[i] = (struct client){.participant = participants[i % participant_count],
                                  .number = i,
                                  .round = round,
                                  .until = begin + seconds};
        if (pthread_create(&list[i].thread, NULL, run, &list[i]) != 0)
            bench_die("no more threads");
    }
    for (unsigned i = 0; i < clients; i++) {
        pthread_join(list[i].thread, NULL);
        for (size_t n = 0; n < list[i].samples.count; n++)
            bench_samples_add(&all, list[i].samples.values[n]);
        bench_samples_close(&list[i].samples);
    }
    double took = bench_now_s() - begin;
    size_t count = all.count;
    double p50 = bench_samples_percentile(&all, 0.5);
    double p99 = bench_samples_percentile(&all, 0.99);
    bench_print("small_2pc",
                "\"clients\":%u,\"loads\":%zu,\"loads_per_s\":%.0f,\"p50_ms\":%.2f,\"p99_ms\":%.2f",
                clients, count, (double)count / took, p50 * 1e3, p99 * 1e3);
    bench_samples_close(&all);
}

int main(int argc, char **argv)
{
    static const unsigned clients[] = {1, 8, 32};
    char *participants[PARTICIPANTS_MAX];
    unsigned count = 0;

    if (argc < 3)
        bench_die("usage: bench_small COORDINATOR PARTICIPANTS [SECONDS] [COORDINATOR PID]");
    for (char *one = strtok(argv[2], ","); one != NULL && count < PARTICIPANTS_MAX;
         one = strtok(NULL, ","))
        participants[count++] = one;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 3;
    struct http_client *coordinator = bench_connect(argv[1]);
    bench_create_table(coordinator, "small", 1, 3);
    http_client_close(coordinator);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < sizeof clients / sizeof clients[0]; i++)
            round_of(participants, count, clients[i], round * 10 + i, seconds);
    if (argc > 4)
        bench_print("coordinator_memory", "\"own_bytes\":%lu",
                    bench_own_memory(strtol(argv[4], NULL, 10)));
    return 0;
}
