/* SPDX-License-Identifier: Apache-2.0 */
/* Routing: hash, counting sort of row numbers, then for each tablet and column one gather. */
#include "participant/ingest/tablet_router.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/row_key.h"

int tablet_router_init(struct tablet_router *router, const struct msg_txn_begin_reply *plan,
                       tablet_router_emit *emit, void *ctx)
{
    struct tablet_router *r = router;
    uint32_t count = plan->bucket_count;

    *r = (struct tablet_router){.plan = plan, .emit = emit, .ctx = ctx};
    r->memtables = calloc(count, sizeof *r->memtables);
    r->writers = calloc(count, sizeof *r->writers);
    r->opened = calloc(count, sizeof *r->opened);
    r->touched = calloc(count, sizeof *r->touched);
    r->starts = calloc((size_t)count + 1, sizeof *r->starts);
    r->distribution = calloc((size_t)plan->distribution_count + 1, sizeof *r->distribution);
    r->scratch = memtable_scratch_open();
    r->encoder = block_encoder_open();
    if (r->memtables == NULL || r->writers == NULL || r->opened == NULL || r->touched == NULL ||
        r->starts == NULL || r->distribution == NULL || r->scratch == NULL || r->encoder == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        memtable_init(&r->memtables[i], &plan->schema);
    return 0;
}

void tablet_router_close(struct tablet_router *router)
{
    struct tablet_router *r = router;

    for (uint32_t i = 0; r->plan != NULL && i < r->plan->bucket_count; i++) {
        if (r->memtables != NULL)
            memtable_close(&r->memtables[i]);
        if (r->opened != NULL && r->opened[i])
            rowset_writer_close(&r->writers[i]);
    }
    free(r->memtables);
    free(r->writers);
    free(r->opened);
    free(r->touched);
    free(r->starts);
    free(r->distribution);
    free(r->hashes);
    free(r->order);
    free(r->buckets);
    memtable_scratch_close(r->scratch);
    block_encoder_close(r->encoder);
    buf_close(&r->content);
    *r = (struct tablet_router){0};
}

static int open_writer(struct tablet_router *r, uint32_t bucket)
{
    struct rowset_writer *writer = &r->writers[bucket];

    if (r->opened[bucket])
        return 0;
    int err = rowset_writer_init(writer, &r->plan->schema);
    if (err != 0) {
        rowset_writer_close(writer);
        return err;
    }
    writer->meta.tablet = r->plan->tablets[bucket].tablet;
    writer->meta.rowset = r->plan->rowset;
    writer->meta.table = r->plan->table;
    writer->meta.txn = r->plan->txn;
    writer->meta.schema_id = r->plan->schema.id;
    writer->meta.load_no = r->plan->load_no;
    r->opened[bucket] = true;
    r->touched[r->touched_count++] = bucket;
    return 0;
}

/* The memtable of a bucket becomes a segment. */
static int flush(struct tablet_router *r, uint32_t bucket)
{
    struct memtable *memtable = &r->memtables[bucket];
    const struct vector *const *columns;
    uint32_t rows;

    if (memtable->rows == 0)
        return 0;
    int err = open_writer(r, bucket);
    if (err == 0)
        err = memtable_sort(memtable, r->scratch, &columns, &rows);
    if (err != 0)
        return err;
    struct rowset_writer *writer = &r->writers[bucket];
    uint64_t offset = writer->meta.bytes;
    buf_clear(&r->content);
    err = rowset_writer_segment(writer, r->encoder, columns, rows, &r->content);
    memtable_clear(memtable);
    if (err != 0)
        return err;
    return r->emit(r->ctx, bucket, offset, slice_of(r->content.data, r->content.len));
}

/* Appends rows to a bucket, in pieces where a segment fills up. */
static int append(struct tablet_router *r, uint32_t bucket, const struct vector *columns,
                  const uint32_t *order, uint32_t count)
{
    struct memtable *memtable = &r->memtables[bucket];

    while (count > 0) {
        uint32_t room = MEMTABLE_ROWS_MAX - memtable->rows;
        uint32_t take = count < room ? count : room;
        /* Without an order rows are taken from the front; a second piece needs one. */
        if (order == NULL && take < count) {
            for (uint32_t i = 0; i < count; i++)
                r->order[i] = i;
            order = r->order;
        }
        r->memory -= memtable->memory;
        int err = memtable_append(memtable, columns, order, take);
        r->memory += memtable->memory;
        if (err == 0 && memtable->rows == MEMTABLE_ROWS_MAX)
            err = flush(r, bucket);
        if (err != 0)
            return err;
        count -= take;
        if (order != NULL)
            order += take;
    }
    return 0;
}

static int make_room(struct tablet_router *r, uint32_t rows)
{
    if (rows <= r->capacity)
        return 0;
    free(r->hashes);
    free(r->order);
    free(r->buckets);
    r->hashes = malloc(rows * sizeof *r->hashes);
    r->order = malloc(rows * sizeof *r->order);
    r->buckets = malloc(rows * sizeof *r->buckets);
    r->capacity = rows;
    if (r->hashes != NULL && r->order != NULL && r->buckets != NULL)
        return 0;
    r->capacity = 0;
    return TG_NOMEM;
}

/* Sorts the selected rows by bucket: bucket b's are order[starts[b] .. starts[b + 1]). */
static void sort_by_bucket(struct tablet_router *r, const struct row_batch *batch)
{
    const uint32_t buckets = r->plan->bucket_count;

    for (uint32_t i = 0; i < r->plan->distribution_count; i++)
        r->distribution[i] = &batch->columns[r->plan->distribution[i]];
    row_key_hash(r->distribution, r->plan->distribution_count, 0, batch->rows, r->hashes);
    memset(r->starts, 0, ((size_t)buckets + 1) * sizeof *r->starts);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->selected != NULL ? batch->selected[i] : i;
        r->buckets[i] = (uint16_t)row_key_bucket(r->hashes[row], buckets);
        r->starts[r->buckets[i] + 1]++;
    }
    for (uint32_t b = 0; b < buckets; b++)
        r->starts[b + 1] += r->starts[b];
    /* Each bucket's start moves to its end while rows are placed: shifted by one it is right. */
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->selected != NULL ? batch->selected[i] : i;
        r->order[r->starts[r->buckets[i]]++] = row;
    }
    memmove(r->starts + 1, r->starts, buckets * sizeof *r->starts);
    r->starts[0] = 0;
}

int tablet_router_shrink(struct tablet_router *router, size_t memory_limit)
{
    struct tablet_router *r = router;

    while (r->memory > memory_limit) {
        uint32_t largest = 0;
        for (uint32_t b = 1; b < r->plan->bucket_count; b++)
            if (r->memtables[b].memory > r->memtables[largest].memory)
                largest = b;
        int err = flush(r, largest);
        if (err != 0)
            return err;
        r->memory -= r->memtables[largest].memory;
        memtable_close(&r->memtables[largest]);
    }
    return 0;
}

int tablet_router_add(struct tablet_router *router, const struct row_batch *batch,
                      size_t memory_limit)
{
    struct tablet_router *r = router;
    int err = make_room(r, batch->rows);

    if (err != 0 || batch->count == 0)
        return err;
    r->rows += batch->count;
    if (r->plan->bucket_count == 1) {
        err = append(r, 0, batch->columns, batch->selected, batch->count);
    } else {
        sort_by_bucket(r, batch);
        for (uint32_t b = 0; b < r->plan->bucket_count && err == 0; b++)
            err = append(r, b, batch->columns, r->order + r->starts[b],
                         r->starts[b + 1] - r->starts[b]);
    }
    return err != 0 ? err : tablet_router_shrink(r, memory_limit);
}

int tablet_router_finish(struct tablet_router *router)
{
    struct tablet_router *r = router;
    int err = 0;

    for (uint32_t b = 0; b < r->plan->bucket_count && err == 0; b++) {
        err = flush(r, b);
        r->memory -= r->memtables[b].memory;
        memtable_close(&r->memtables[b]);
    }
    for (uint32_t i = 0; i < r->touched_count && err == 0; i++)
        rowset_writer_finish(&r->writers[r->touched[i]]);
    return err;
}
