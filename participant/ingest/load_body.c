/* SPDX-License-Identifier: Apache-2.0 */
/* From the body's bytes to sealed rowsets. */
#include <stdlib.h>

#include "common/base/failpoint.h"
#include "participant/ingest/body_queue.h"
#include "participant/ingest/csv_splitter.h"
#include "participant/ingest/decompressor.h"
#include "participant/ingest/json_parser.h"
#include "participant/ingest/load_run.h"

enum { CHUNK_SLACK = 64 /* a small body fits its first chunk, and its end is seen */ };

/* Either of the two readers. */
struct reader {
    struct csv_splitter *csv;
    struct json_parser *json;
};

static int reader_open(struct load_run *run, struct reader *reader)
{
    const struct load_options *o = run->options;
    size_t chunk = run->context->chunk_bytes;
    uint64_t hint = run->request->size_hint;

    *reader = (struct reader){0};
    if (chunk == 0)
        chunk = o->format == LOAD_CSV ? CSV_CHUNK_BYTES : JSON_CHUNK_BYTES;
    if (hint > 0 && hint + CHUNK_SLACK < chunk && o->compression == LOAD_PLAIN)
        chunk = (size_t)hint + CHUNK_SLACK;
    if (o->format == LOAD_JSON)
        return json_parser_open(&run->mapping, o, chunk, &reader->json);
    struct csv_format format = {.column = o->column_separator,
                                .line = o->line_delimiter,
                                .strip_cr = o->strip_cr,
                                .enclose = o->enclose,
                                .escape = o->escape,
                                .trim_double_quotes = o->trim_double_quotes,
                                .columns = run->mapping.field_count,
                                .skip_lines = o->skip_lines};
    return csv_splitter_open(&format, chunk, &reader->csv);
}

static void reader_close(struct reader *reader)
{
    csv_splitter_close(reader->csv);
    json_parser_close(reader->json);
}

static int reader_room(struct reader *reader, uint8_t **at, size_t *len)
{
    return reader->csv != NULL ? csv_splitter_room(reader->csv, at, len)
                               : json_parser_room(reader->json, at, len);
}

static size_t reader_memory(const struct reader *reader)
{
    return reader->csv != NULL ? csv_splitter_memory(reader->csv)
                               : json_parser_memory(reader->json);
}

static void reader_filled(struct reader *reader, size_t n)
{
    if (reader->csv != NULL)
        csv_splitter_filled(reader->csv, n);
    else
        json_parser_filled(reader->json, n);
}

static int reader_split(struct reader *reader, bool final, struct field_rows *rows)
{
    return reader->csv != NULL ? csv_splitter_split(reader->csv, final, rows)
                               : json_parser_split(reader->json, final, rows);
}

static int internal_error(struct load_run *run, int err)
{
    return tg_fail(&run->msg, err, "[INTERNAL_ERROR]%s", tg_err_sentence(err));
}

/* What the first bytes of a body that is said to be plain look like. */
static bool begins_like_gzip(const uint8_t *bytes, size_t len)
{
    return len >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

/* Of the queue in front of the reader: it keeps what it ever needed. */
static size_t queue_memory(const struct load_run *run)
{
    const uint64_t max = (uint64_t)BODY_CHUNKS_MAX * BODY_CHUNK_BYTES;
    return (size_t)(run->source->received < max ? run->source->received : max);
}

/* Counts what the load holds now. Where that is too much, its rows become segments. */
static int count_memory(struct load_run *run, const struct reader *reader)
{
    struct load_memory *memory = &run->context->memory;
    size_t other = reader_memory(reader) + queue_memory(run);

    if (load_memory_change(memory, &run->held, other + run->router.memory))
        return 0;
    run->msg.text[0] = 0;
    int err = tablet_router_shrink(&run->router, 0);
    if (err != 0)
        return run->msg.text[0] != 0 ? err : internal_error(run, err);
    if (load_memory_change(memory, &run->held, other + run->router.memory))
        return 0;
    return load_run_no_memory(run, other + run->router.memory);
}

/* Fills the reader's chunk. *final: the body has ended. */
static int fill(struct load_run *run, struct load_source *source, struct reader *reader,
                bool *final)
{
    uint8_t *at;
    size_t room;
    bool first = source->received == 0;
    uint64_t began = clock_monotonic_ms(run->context->clock);
    int err = reader_room(reader, &at, &room);

    if (err != 0)
        return internal_error(run, err);
    err = count_memory(run, reader);
    if (err != 0)
        return err;
    while (room > 0 && !*final) {
        size_t n;
        err = source->read(source, at, room, run->deadline_ms, &n, &run->msg);
        if (err != 0)
            break;
        *final = n == 0;
        if (first && run->options->compression == LOAD_PLAIN)
            run->like_gzip = begins_like_gzip(at, n);
        first = false;
        reader_filled(reader, n);
        FAILPOINT("recv.mid_body");
        at += n;
        room -= n;
    }
    run->result->read_ms += clock_monotonic_ms(run->context->clock) - began;
    if (err == 0 && source->received > run->context->body_bytes_max)
        err = tg_fail(&run->msg, TG_TOO_LARGE, LOAD_TOO_LARGE, (unsigned long long)source->received,
                      (unsigned long long)run->context->body_bytes_max);
    return err;
}

/* Rows that were refused so far: too many to go on? */
static int check_quality(struct load_run *run, bool at_end)
{
    uint64_t total = run->converter.total;
    uint64_t filtered = run->converter.filtered;
    double ratio = run->options->max_filter_ratio;

    if (!at_end) {
        if (ratio > 0 || filtered <= ERROR_LOG_ROWS_MAX)
            return 0;
        return tg_fail(&run->msg, TG_DATA_QUALITY,
                       "[DATA_QUALITY_ERROR]Encountered unqualified data, stop processing. Please "
                       "check if the source data matches the schema, and consider disabling strict "
                       "mode or increasing max_filter_ratio.");
    }
    if (total > 0 && (double)filtered / (double)total > ratio)
        return tg_fail(&run->msg, TG_DATA_QUALITY, "[DATA_QUALITY_ERROR]too many filtered rows");
    return 0;
}

/* What this load may hold in memtables: less when many run. */
static size_t memory_share(struct load_run *run)
{
    unsigned active = atomic_load(&run->context->active);
    uint64_t share = run->context->memory_total_bytes / (active > 0 ? active : 1);

    if (share > run->context->memory_bytes)
        share = run->context->memory_bytes;
    return share < LOAD_SHARE_MIN ? LOAD_SHARE_MIN : (size_t)share;
}

/* Takes all whole rows that the reader has. */
static int take_rows(struct load_run *run, struct reader *reader, bool final)
{
    struct field_rows rows;
    struct row_batch batch;
    int err;

    do {
        run->msg.text[0] = 0; /* the router's callees say what they know */
        err = reader_split(reader, final, &rows);
        if (err == 0)
            err = row_converter_run(&run->converter, &rows, &batch);
        if (err == 0)
            err = tablet_router_add(&run->router, &batch, memory_share(run));
        if (err != 0)
            return run->msg.text[0] != 0 ? err : internal_error(run, err);
        if (rows.broken)
            return tg_fail(&run->msg, TG_DATA_QUALITY, "[DATA_QUALITY_ERROR]%.400s",
                           rows.bad_count > 0 ? rows.bad[rows.bad_count - 1].reason : "");
        err = count_memory(run, reader);
        if (err == 0)
            err = check_quality(run, false);
        if (err == 0)
            err = load_run_check(run, &run->msg);
    } while (err == 0 && !rows.done);
    return err;
}

static int read_all(struct load_run *run, struct load_source *source)
{
    struct reader reader;
    bool final = false;
    int err = reader_open(run, &reader);

    if (err != 0)
        internal_error(run, err);
    while (err == 0 && !final) {
        err = fill(run, source, &reader, &final);
        if (err == 0)
            err = take_rows(run, &reader, final);
    }
    reader_close(&reader);
    return err;
}

static int emit(void *ctx, uint32_t bucket, uint64_t offset, struct slice content)
{
    struct load_run *run = ctx;
    return replicator_piece(run->replicator, bucket, offset, content, &run->msg);
}

static bool must_stop(void *ctx, struct tg_errmsg *msg)
{
    return load_run_check(ctx, msg) != 0;
}

static int seal(struct load_run *run)
{
    struct tablet_router *router = &run->router;
    int err = tablet_router_finish(router);

    if (err != 0)
        return run->msg.text[0] != 0 ? err : internal_error(run, err);
    if (router->touched_count == 0)
        return 0;
    const struct rowset_meta **metas = calloc(router->touched_count, sizeof(struct rowset_meta *));
    if (metas == NULL)
        return internal_error(run, TG_NOMEM);
    for (uint32_t i = 0; i < router->touched_count; i++)
        metas[i] = tablet_router_meta(router, router->touched[i]);
    err =
        replicator_seal(run->replicator, router->touched, metas, router->touched_count, &run->msg);
    free(metas);
    return err;
}

static int prepare(struct load_run *run)
{
    struct replicator_options options = {.calls = run->context->calls,
                                         .clock = run->context->clock,
                                         .plan = &run->plan,
                                         .node = run->node,
                                         .epoch = run->epoch,
                                         .stopped = must_stop,
                                         .ctx = run};
    int err = row_mapping_build(&run->plan.schema, run->options, clock_wall_us(run->context->clock),
                                &run->mapping, &run->msg);

    if (err != 0)
        return err;
    err = row_converter_init(&run->converter, &run->mapping, run->options, &run->log);
    if (err == 0)
        err = tablet_router_init(&run->router, &run->plan, emit, run);
    if (err == 0)
        err = replicator_open(&options, &run->replicator);
    return err == 0 ? 0 : internal_error(run, err);
}

int load_body_run(struct load_run *run)
{
    struct decompressor *decompressor = NULL;
    struct load_source *source = run->source;
    int err = prepare(run);

    if (err == 0 && run->options->compression != LOAD_PLAIN) {
        err = decompressor_open(run->options->compression, source, &decompressor);
        if (err != 0)
            return internal_error(run, err);
        source = decompressor_source(decompressor);
    }
    if (err != 0)
        return err;
    if (source->accept != NULL)
        source->accept(source);
    err = read_all(run, source);
    decompressor_close(decompressor);
    if (err == 0)
        err = check_quality(run, true);
    if (err == TG_DATA_QUALITY && run->like_gzip) {
        struct tg_errmsg why = run->msg;
        tg_fail(&run->msg, err, "%.300s (the body begins like gzip: it wants compress_type: gz)",
                why.text);
    }
    return err == 0 ? seal(run) : err;
}

void load_body_close(struct load_run *run)
{
    if (run->converter.total > 0) {
        run->result->total_rows = run->converter.total;
        run->result->filtered_rows = run->converter.filtered;
    }
    (void)load_memory_change(&run->context->memory, &run->held, 0);
    replicator_close(run->replicator);
    run->replicator = NULL;
    tablet_router_close(&run->router);
    row_converter_close(&run->converter);
    row_mapping_close(&run->mapping);
}
