/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk loads, visible, in MB/s (10^6 bytes of text), rows/s and processor time for a megabyte: CSV
 * with one and three replicas, JSON lines with one; beside them a bare loop on one thread that
 * splits the same bytes into fields, compresses them with LZ4 in 64 KiB pieces and writes those to
 * a file with a sync every 16 MB. Three rounds in turn.
 *
 *   bench_ingest CLUSTER_DIR [MEGABYTES] [csv1,csv3,json1,bare,memory]
 *
 * "memory" is a longer load into one bucket with one replica, ten times the megabytes, which tells
 * the most memory of its own (RssAnon + RssShmem) that the participant had meanwhile. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lz4.h>

#include "bench/support.h"

enum { BUCKETS = 4, ROUNDS = 3, PIECE = 65536, SYNC_EVERY = 16 << 20, MEMORY_TIMES = 10 };

static void bare_loop(const struct buf *body, const char *dir)
{
    char path[1024];
    char packed[LZ4_COMPRESSBOUND(PIECE)];
    size_t fields = 0;
    size_t written = 0;
    double begin;

    snprintf(path, sizeof path, "%s/bare-XXXXXX", dir);
    int fd = mkstemp(path);
    if (fd < 0)
        bench_die("cannot write in %s", dir);
    unlink(path);
    begin = bench_now_s();
    for (size_t at = 0; at < body->len; at += PIECE) {
        size_t len = body->len - at < PIECE ? body->len - at : PIECE;
        const char *p = (const char *)body->data + at;

        for (const char *q = p; q < p + len; q++)
            fields += *q == ',' || *q == '\n';
        int n = LZ4_compress_default(p, packed, (int)len, sizeof packed);
        if (write(fd, packed, (size_t)n) != n)
            bench_die("short write");
        if (written / SYNC_EVERY != (written + (size_t)n) / SYNC_EVERY)
            fdatasync(fd);
        written += (size_t)n;
    }
    fdatasync(fd);
    close(fd);
    double seconds = bench_now_s() - begin;
    bench_print("bare_split_compress_write",
                "\"mb_per_s\":%.1f,\"seconds\":%.3f,\"fields\":%zu,\"bytes\":%zu",
                (double)body->len / 1e6 / seconds, seconds, fields, written);
}

/* A body that is sent several times over. */
struct repeated {
    const struct buf *body;
    size_t at;
    unsigned left;
};

static long produce(void *data, void *bytes, size_t cap)
{
    struct repeated *r = data;

    if (r->at == r->body->len && r->left > 0) {
        r->at = 0;
        r->left--;
    }
    size_t len = r->body->len - r->at < cap ? r->body->len - r->at : cap;
    memcpy(bytes, r->body->data + r->at, len);
    r->at += len;
    return (long)len;
}

struct job {
    const char *name;
    const struct buf *body;
    const char *format;
    uint64_t rows; /* of the body */
    unsigned times;
    unsigned replicas;
    unsigned buckets;
};

static void load(const struct bench_cluster *cluster, const struct job *job, unsigned round)
{
    char table[32], target[64], headers[512], status[64], loaded[32], costs[512] = "";
    struct http_client *coordinator = bench_connect(cluster->coordinators[0].http);
    struct http_client *participant = bench_connect(cluster->participants[0].http);
    struct repeated repeated = {.body = job->body, .left = job->times - 1};
    struct http_reply reply;
    struct bench_usage usage;

    snprintf(table, sizeof table, "bulk_%s", job->name);
    bench_create_table(coordinator, table, job->buckets, job->replicas);
    snprintf(target, sizeof target, "/api/bench/%s/_stream_load", table);
    snprintf(headers, sizeof headers,
             "Expect: 100-continue\r\nlabel: bulk-%s-%u-%ld\r\nformat: %s\r\n"
             "read_json_by_line: true\r\ncolumn_separator: ,\r\n",
             job->name, round, (long)getpid(), job->format);
    double mb = (double)job->body->len * job->times / 1e6;
    struct bench_watch *watch = bench_watch_start(cluster->participants[0].pid);
    bench_usage_take(cluster, &usage);
    if (job->times == 1)
        bench_request(participant, "PUT", target, headers, job->body->data, job->body->len, &reply);
    else
        bench_request_chunked(participant, "PUT", target, headers, produce, &repeated, &reply);
    double seconds = bench_now_s() - usage.at_s;
    bench_usage_print(cluster, &usage, mb, costs, sizeof costs);
    bench_field(&reply, "Status", status, sizeof status);
    bench_field(&reply, "NumberLoadedRows", loaded, sizeof loaded);
    uint64_t rows = job->rows * job->times;
    if (strcmp(status, "Success") != 0 || strtoull(loaded, NULL, 10) != rows)
        bench_die("load failed: %s", buf_cstr(&reply.body));
    http_reply_close(&reply);
    bench_print("bulk",
                "\"what\":\"%s\",\"replicas\":%u,\"buckets\":%u,\"round\":%u,\"mb\":%.1f,"
                "\"rows\":%lu,\"seconds\":%.3f,\"mb_per_s\":%.1f,\"rows_per_s\":%.0f,"
                "\"most_own_mb_participant\":%.1f%s",
                job->name, job->replicas, job->buckets, round, mb, rows, seconds, mb / seconds,
                (double)rows / seconds, (double)bench_watch_end(watch) / 1e6, costs);
    http_client_close(coordinator);
    http_client_close(participant);
}

static bool wanted(const char *list, const char *name)
{
    const char *at = strstr(list, name);
    size_t len = strlen(name);

    return at != NULL && (at == list || at[-1] == ',') && (at[len] == ',' || at[len] == 0);
}

int main(int argc, char **argv)
{
    static struct bench_cluster cluster;
    struct buf csv = BUF_INIT;
    struct buf json = BUF_INIT;
    uint64_t csv_rows = 0;
    uint64_t json_rows = 0;

    if (argc < 2)
        bench_die("usage: bench_ingest CLUSTER_DIR [MEGABYTES] [csv1,csv3,json1,bare,memory]");
    bench_cluster_read(argv[1], &cluster);
    size_t bytes = (argc > 2 ? strtoull(argv[2], NULL, 10) : 200) * 1000000;
    const char *list = argc > 3 ? argv[3] : "bare,csv1,csv3,json1";
    for (; csv.len < bytes; csv_rows += 10000)
        bench_rows(csv_rows, 10000, &csv);
    for (; wanted(list, "json1") && json.len < bytes; json_rows += 10000)
        bench_rows_json(json_rows, 10000, &json);
    const struct job jobs[] = {
        {"csv1", &csv, "csv", csv_rows, 1, 1, BUCKETS},
        {"csv3", &csv, "csv", csv_rows, 1, 3, BUCKETS},
        {"json1", &json, "json", json_rows, 1, 1, BUCKETS},
        {"memory", &csv, "csv", csv_rows, MEMORY_TIMES, 1, 1},
    };
    for (unsigned round = 1; round <= ROUNDS; round++) {
        if (wanted(list, "bare"))
            bare_loop(&csv, argv[1]);
        for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
            if (wanted(list, jobs[i].name) && (jobs[i].times == 1 || round == 1))
                load(&cluster, &jobs[i], round);
    }
    buf_close(&csv);
    buf_close(&json);
    return 0;
}
