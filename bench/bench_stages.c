/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a bulk CSV load on one thread, without network and disk: copying the body into the
 * splitter's chunks, splitting, conversion, routing to tablets with sorting and encoding; and of a
 * read: rows to text. Thread time in ns a row, the least of the rounds, which a busy machine
 * disturbs least.
 *
 *   bench_stages [MEGABYTES] [ROUNDS] [BUCKETS] */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/support.h"
#include "common/base/log.h"
#include "participant/ingest/csv_splitter.h"
#include "participant/ingest/error_log.h"
#include "participant/ingest/tablet_router.h"
#include "participant/read/result_writer.h"

enum stage { COPY, SPLIT, CONVERT, ROUTE, FINISH, STAGES };
static const char *const stage_names[STAGES] = {"copy", "split", "convert", "route_sort_encode",
                                                "finish"};

struct pipeline {
    struct msg_txn_begin_reply plan;
    struct load_options options;
    struct row_mapping mapping;
    struct error_log log;
    double seconds[STAGES];
    double csv_seconds, json_seconds;
    uint64_t rows;
    uint64_t encoded;
};

static double thread_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static const struct {
    const char *name;
    struct column_type type;
    bool key;
} columns[] = {
    {"orderkey", {.kind = TYPE_BIGINT}, true},
    {"linenumber", {.kind = TYPE_TINYINT}, true},
    {"custkey", {.kind = TYPE_INT}, false},
    {"partkey", {.kind = TYPE_INT}, false},
    {"suppkey", {.kind = TYPE_INT}, false},
    {"orderdate", {.kind = TYPE_DATE}, false},
    {"orderpriority", {.kind = TYPE_VARCHAR, .length = 15}, false},
    {"shippriority", {.kind = TYPE_TINYINT}, false},
    {"quantity", {.kind = TYPE_TINYINT}, false},
    {"extendedprice", {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}, false},
    {"ordtotalprice", {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}, false},
    {"discount", {.kind = TYPE_DECIMAL, .precision = 4, .scale = 2}, false},
    {"revenue", {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}, false},
    {"supplycost", {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}, false},
    {"tax", {.kind = TYPE_DECIMAL, .precision = 4, .scale = 2}, false},
    {"commitdate", {.kind = TYPE_DATE}, false},
    {"shipmode", {.kind = TYPE_VARCHAR, .length = 10}, false},
};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const char *header(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "column_separator") == 0 ? "," : NULL;
}

static void check(int err, const char *what)
{
    if (err != 0)
        bench_die("%s: %s", what, tg_err_name(err));
}

static void open_pipeline(struct pipeline *p, uint32_t buckets)
{
    struct tg_errmsg msg = {{0}};

    msg_txn_begin_reply_init(&p->plan);
    p->plan.schema.key_model = KEY_DUPLICATE;
    for (unsigned i = 0; i < COLUMNS; i++) {
        struct schema_column column = {
            .type = columns[i].type, .nullable = !columns[i].key, .is_key = columns[i].key};

        snprintf(column.name, sizeof column.name, "%s", columns[i].name);
        check(schema_add_column(&p->plan.schema, &column, &msg), msg.text);
        p->plan.schema.key_count += columns[i].key;
    }
    p->plan.schema.id = 1;
    p->plan.txn = p->plan.rowset = p->plan.table = 1;
    p->plan.bucket_count = buckets;
    p->plan.tablets = calloc(buckets, sizeof *p->plan.tablets);
    p->plan.distribution_count = 1;
    p->plan.distribution = calloc(1, sizeof *p->plan.distribution);
    if (p->plan.tablets == NULL || p->plan.distribution == NULL)
        bench_die("out of memory");
    for (uint32_t i = 0; i < buckets; i++)
        p->plan.tablets[i].tablet = i + 1;
    check(load_options_parse(header, NULL, "bench", &p->options, &msg), msg.text);
    check(row_mapping_build(&p->plan.schema, &p->options, 0, &p->mapping, &msg), msg.text);
    error_log_init(&p->log, NULL);
}

static int emit(void *ctx, uint32_t bucket, uint64_t offset, struct slice content)
{
    struct pipeline *p = ctx;

    (void)bucket;
    (void)offset;
    p->encoded += content.len;
    return 0;
}

static double lap(double *seconds, double since)
{
    double now = thread_s();

    *seconds += now - since;
    return now;
}

static void write_text(const struct row_batch *batch, enum result_format format, struct buf *out,
                       double *seconds)
{
    struct result_column named[COLUMNS];
    struct result_writer writer;

    for (unsigned i = 0; i < COLUMNS; i++)
        named[i] = (struct result_column){.name = columns[i].name, .type = columns[i].type};
    check(result_writer_open(&writer, format, named, COLUMNS), "writer");
    double begin = thread_s();
    buf_clear(out);
    for (uint32_t r = 0; r < batch->rows; r++)
        result_writer_row(&writer, batch->columns, r, NULL, out);
    (void)lap(seconds, begin);
    result_writer_close(&writer);
}

static void run(struct pipeline *p, const struct buf *body, size_t chunk)
{
    struct csv_format format = {.column = p->options.column_separator,
                                .line = p->options.line_delimiter,
                                .strip_cr = p->options.strip_cr,
                                .enclose = -1,
                                .escape = -1,
                                .columns = p->mapping.field_count};
    struct csv_splitter *splitter;
    struct row_converter converter;
    struct tablet_router router;
    struct buf text = BUF_INIT;
    double since = thread_s();

    check(csv_splitter_open(&format, chunk, &splitter), "splitter");
    check(row_converter_init(&converter, &p->mapping, &p->options, &p->log), "converter");
    check(tablet_router_init(&router, &p->plan, emit, p), "router");
    for (size_t at = 0; at < body->len;) {
        struct field_rows rows;
        struct row_batch batch;
        uint8_t *to;
        size_t room;

        check(csv_splitter_room(splitter, &to, &room), "room");
        size_t n = body->len - at < room ? body->len - at : room;
        memcpy(to, body->data + at, n);
        csv_splitter_filled(splitter, n);
        at += n;
        since = lap(&p->seconds[COPY], since);
        do {
            check(csv_splitter_split(splitter, at == body->len, &rows), "split");
            since = lap(&p->seconds[SPLIT], since);
            check(row_converter_run(&converter, &rows, &batch), "convert");
            since = lap(&p->seconds[CONVERT], since);
            write_text(&batch, RESULT_CSV, &text, &p->csv_seconds);
            write_text(&batch, RESULT_JSON, &text, &p->json_seconds);
            since = thread_s();
            check(tablet_router_add(&router, &batch, SIZE_MAX), "route");
            since = lap(&p->seconds[ROUTE], since);
        } while (!rows.done);
    }
    check(tablet_router_finish(&router), "finish");
    (void)lap(&p->seconds[FINISH], since);
    p->rows += router.rows;
    tablet_router_close(&router);
    row_converter_close(&converter);
    csv_splitter_close(splitter);
    buf_close(&text);
}

int main(int argc, char **argv)
{
    struct buf body = BUF_INIT;
    struct pipeline pipeline = {.mapping = {.sign_field = -1}};
    double best[STAGES + 2];
    double sum = 0;
    uint64_t made = 0;

    /* As the participant does. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
    size_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 50) * 1000000;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
    uint32_t buckets = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 4;
    for (; body.len < bytes; made += 10000)
        bench_rows(made, 10000, &body);
    open_pipeline(&pipeline, buckets);
    for (unsigned round = 0; round < rounds; round++) {
        memset(pipeline.seconds, 0, sizeof pipeline.seconds);
        pipeline.csv_seconds = pipeline.json_seconds = 0;
        pipeline.rows = pipeline.encoded = 0;
        run(&pipeline, &body, CSV_CHUNK_BYTES);
        for (unsigned s = 0; s < STAGES + 2; s++) {
            double seconds = s < STAGES    ? pipeline.seconds[s]
                             : s == STAGES ? pipeline.csv_seconds
                                           : pipeline.json_seconds;
            if (round == 0 || seconds < best[s])
                best[s] = seconds;
        }
    }
    if (pipeline.rows != made)
        bench_die("%lu rows became %lu", made, pipeline.rows);
    for (unsigned s = 0; s < STAGES; s++) {
        bench_print("stage", "\"what\":\"%s\",\"ns_per_row\":%.1f,\"mb_per_s\":%.0f",
                    stage_names[s], best[s] * 1e9 / (double)made, (double)body.len / 1e6 / best[s]);
        sum += best[s];
    }
    bench_print("stage",
                "\"what\":\"all\",\"ns_per_row\":%.1f,\"mb_per_s\":%.0f,\"bytes_per_row\":%.1f",
                sum * 1e9 / (double)made, (double)body.len / 1e6 / sum,
                (double)pipeline.encoded / (double)made);
    bench_print("stage", "\"what\":\"text csv\",\"ns_per_row\":%.1f",
                best[STAGES] * 1e9 / (double)made);
    bench_print("stage", "\"what\":\"text json\",\"ns_per_row\":%.1f",
                best[STAGES + 1] * 1e9 / (double)made);
    row_mapping_close(&pipeline.mapping);
    msg_txn_begin_reply_close(&pipeline.plan);
    load_options_close(&pipeline.options);
    error_log_close(&pipeline.log);
    buf_close(&body);
    return 0;
}
