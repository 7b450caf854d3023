/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk CSV load, visible, with one and three replicas, in MB/s (10^6 bytes of CSV) and rows/s;
 * beside it a bare loop on one thread that splits the same bytes into fields, compresses them with
 * LZ4 in 64 KiB pieces and writes those to a file with a sync every 16 MB.
 *
 *   bench_ingest COORDINATOR PARTICIPANT [MEGABYTES] [DIRECTORY FOR THE BARE LOOP] */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lz4.h>

#include "bench/support.h"

enum { BUCKETS = 4, PIECE = 65536, SYNC_EVERY = 16 << 20 };

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

static void load(struct http_client *coordinator, struct http_client *participant,
                 const struct buf *body, uint64_t rows, unsigned replicas, unsigned round)
{
    char table[32], target[64], headers[256], status[64], loaded[32];
    struct http_reply reply;

    snprintf(table, sizeof table, "bulk_r%u", replicas);
    bench_create_table(coordinator, table, BUCKETS, replicas);
    snprintf(target, sizeof target, "/api/bench/%s/_stream_load", table);
    snprintf(headers, sizeof headers,
             "Expect: 100-continue\r\nlabel: bulk-%u-%u-%ld\r\ncolumn_separator: ,\r\n", replicas,
             round, (long)getpid());
    double begin = bench_now_s();
    bench_request(participant, "PUT", target, headers, body->data, body->len, &reply);
    double seconds = bench_now_s() - begin;
    bench_field(&reply, "Status", status, sizeof status);
    bench_field(&reply, "NumberLoadedRows", loaded, sizeof loaded);
    if (strcmp(status, "Success") != 0 || strtoull(loaded, NULL, 10) != rows)
        bench_die("load failed: %s", buf_cstr(&reply.body));
    http_reply_close(&reply);
    bench_print("bulk_csv",
                "\"replicas\":%u,\"round\":%u,\"mb\":%.1f,\"rows\":%lu,\"seconds\":%.3f,"
                "\"mb_per_s\":%.1f,\"rows_per_s\":%.0f",
                replicas, round, (double)body->len / 1e6, rows, seconds,
                (double)body->len / 1e6 / seconds, (double)rows / seconds);
}

int main(int argc, char **argv)
{
    struct buf body = BUF_INIT;
    uint64_t rows = 0;

    if (argc < 3)
        bench_die("usage: bench_ingest COORDINATOR PARTICIPANT [MEGABYTES] [DIRECTORY]");
    size_t bytes = (argc > 3 ? strtoull(argv[3], NULL, 10) : 200) * 1000000;
    while (body.len < bytes) {
        bench_rows(rows, 10000, &body);
        rows += 10000;
    }
    struct http_client *coordinator = bench_connect(argv[1]);
    struct http_client *participant = bench_connect(argv[2]);
    for (unsigned round = 1; round <= 3; round++) {
        bare_loop(&body, argc > 4 ? argv[4] : "/tmp");
        load(coordinator, participant, &body, rows, 1, round);
        load(coordinator, participant, &body, rows, 3, round);
    }
    http_client_close(coordinator);
    http_client_close(participant);
    buf_close(&body);
    return 0;
}
