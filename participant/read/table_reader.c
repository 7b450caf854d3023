/* SPDX-License-Identifier: Apache-2.0 */
/* One read of a whole table at one version. */
#include "participant/read/table_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/row_key.h"
#include "common/model/rowset_block.h"
#include "participant/read/tablet_source.h"

/* Columns to read: the wanted ones first, then key columns that ordering needs. */
struct columns {
    uint32_t count;
    uint32_t *ids;
    struct column_type *types;
    uint32_t key_count;
    uint32_t *keys; /* where each key column is in ids */
};

static void columns_close(struct columns *columns)
{
    free(columns->ids);
    free(columns->types);
    free(columns->keys);
}

static uint32_t columns_add(struct columns *columns, const struct schema *schema, uint32_t id)
{
    for (uint32_t i = 0; i < columns->count; i++)
        if (columns->ids[i] == id)
            return i;
    for (uint32_t i = 0; i < schema_stored_count(schema); i++)
        if (schema_stored_id(schema, i) == id)
            columns->types[columns->count] = schema_stored_type(schema, i);
    columns->ids[columns->count] = id;
    return columns->count++;
}

static int columns_open(struct columns *columns, const struct table_read *read)
{
    const struct schema *schema = &read->point->schema;
    size_t room = read->column_count + schema->key_count + 1;

    memset(columns, 0, sizeof *columns);
    columns->ids = calloc(room, sizeof *columns->ids);
    columns->types = calloc(room, sizeof *columns->types);
    columns->keys = calloc(room, sizeof *columns->keys);
    if (columns->ids == NULL || columns->types == NULL || columns->keys == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < read->column_count; i++)
        columns_add(columns, schema, read->columns[i]);
    if (read->in_key_order)
        for (; columns->key_count < schema->key_count; columns->key_count++)
            columns->keys[columns->key_count] =
                columns_add(columns, schema, schema_stored_id(schema, columns->key_count));
    return 0;
}

/* A tablet's rows, a batch at a time. */
struct feed {
    struct tablet_source source;
    struct vector *vectors; /* columns.count, and one for versions */
    uint32_t rows, row;
};

struct reading {
    const struct table_reader_context *context;
    const struct table_read *read;
    struct columns columns;
    struct silent_nodes silent;
    uint32_t feed_count;
    struct feed *feeds;
    table_reader_rows *rows;
    void *data;
    uint64_t left; /* of the limit */
};

static struct vector *new_vectors(const struct columns *columns)
{
    struct vector *vectors = calloc(columns->count + 1, sizeof *vectors);

    if (vectors == NULL)
        return NULL;
    for (uint32_t i = 0; i < columns->count; i++)
        vector_init(&vectors[i], columns->types[i]);
    vector_init(&vectors[columns->count], (struct column_type){.kind = TYPE_BIGINT});
    return vectors;
}

static void close_vectors(struct vector *vectors, const struct columns *columns)
{
    for (uint32_t i = 0; vectors != NULL && i <= columns->count; i++)
        vector_close(&vectors[i]);
    free(vectors);
}

static bool must_stop(const struct reading *r)
{
    return r->read->stop != NULL && atomic_load(r->read->stop);
}

static int refill(struct reading *r, struct feed *feed, uint32_t max, struct tg_errmsg *msg)
{
    bool changes = r->read->mode == READ_TABLET_CHANGES;

    feed->row = 0;
    if (must_stop(r))
        return tg_fail(msg, TG_CANCELED, "the read was stopped");
    return tablet_source_next(&feed->source, max, feed->vectors,
                              changes ? &feed->vectors[r->columns.count] : NULL, &feed->rows, msg);
}

static int give(struct reading *r, const struct vector *vectors, uint32_t rows)
{
    bool changes = r->read->mode == READ_TABLET_CHANGES;

    if (must_stop(r))
        return TG_CANCELED;
    r->left -= rows;
    return r->rows(r->data, vectors, changes ? &vectors[r->columns.count] : NULL, rows);
}

static int run_one_by_one(struct reading *r, struct tg_errmsg *msg)
{
    for (uint32_t i = 0; i < r->feed_count && r->left > 0; i++) {
        struct feed *feed = &r->feeds[i];
        int err;

        feed->vectors = new_vectors(&r->columns);
        if (feed->vectors == NULL)
            return TG_NOMEM;
        do {
            err = refill(r, feed, r->left < BLOCK_ROWS ? (uint32_t)r->left : BLOCK_ROWS, msg);
            if (err == 0 && feed->rows > 0)
                err = give(r, feed->vectors, feed->rows);
        } while (err == 0 && feed->rows > 0 && r->left > 0);
        close_vectors(feed->vectors, &r->columns);
        feed->vectors = NULL;
        if (err != 0)
            return err;
    }
    return 0;
}

static int compare_rows(const struct reading *r, const struct feed *a, const struct feed *b)
{
    int order = 0;

    if (r->read->mode == READ_TABLET_CHANGES)
        return vector_compare(&a->vectors[r->columns.count], a->row, &b->vectors[r->columns.count],
                              b->row);
    for (uint32_t k = 0; k < r->columns.key_count && order == 0; k++)
        order = vector_compare(&a->vectors[r->columns.keys[k]], a->row,
                               &b->vectors[r->columns.keys[k]], b->row);
    return order;
}

/* Which feed's current row comes first, by key or, for changes, by version; equal ones in tablet
 * order. NULL at the end. Few tablets: a plain look at all of them. */
static struct feed *least(struct reading *r)
{
    struct feed *best = NULL;

    for (uint32_t i = 0; i < r->feed_count; i++) {
        struct feed *feed = &r->feeds[i];

        if (feed->rows == 0)
            continue;
        if (best == NULL || compare_rows(r, feed, best) < 0)
            best = feed;
    }
    return best;
}

static bool is_large(const struct vector *vectors, uint32_t count)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < count; i++)
        bytes += vectors[i].bytes_len;
    return bytes >= TABLE_READER_ORDERED_BYTES;
}

static int merge_feeds(struct reading *r, struct vector *out, uint32_t batch, struct tg_errmsg *msg)
{
    uint32_t rows = 0;
    int err = 0;

    for (uint32_t i = 0; i < r->feed_count && err == 0; i++)
        err = refill(r, &r->feeds[i], batch, msg);
    while (err == 0 && r->left > rows) {
        struct feed *feed = least(r);

        if (feed == NULL)
            break;
        for (uint32_t c = 0; c <= r->columns.count && err == 0; c++)
            if (feed->vectors[c].rows > 0)
                err = vector_append_row(&out[c], &feed->vectors[c], feed->row);
        rows++;
        if (err == 0 && ++feed->row == feed->rows && r->left > rows)
            err = refill(r, feed, batch, msg);
        if (err == 0 && (rows == BLOCK_ROWS || is_large(out, r->columns.count))) {
            err = give(r, out, rows);
            rows = 0;
            for (uint32_t c = 0; c <= r->columns.count; c++)
                vector_clear(&out[c]);
        }
    }
    return err == 0 && rows > 0 ? give(r, out, rows) : err;
}

static int run_in_order(struct reading *r, struct tg_errmsg *msg)
{
    uint32_t batch = TABLE_READER_ORDERED_ROWS / (r->feed_count + 1) + 64;
    struct vector *out = new_vectors(&r->columns);
    int err = out == NULL ? TG_NOMEM : 0;

    if (batch > BLOCK_ROWS)
        batch = BLOCK_ROWS;
    if (r->left < batch)
        batch = (uint32_t)r->left;
    for (uint32_t i = 0; i < r->feed_count && err == 0; i++) {
        r->feeds[i].vectors = new_vectors(&r->columns);
        err = r->feeds[i].vectors == NULL ? TG_NOMEM : 0;
    }
    if (err == 0)
        err = merge_feeds(r, out, batch, msg);
    for (uint32_t i = 0; i < r->feed_count; i++)
        close_vectors(r->feeds[i].vectors, &r->columns);
    close_vectors(out, &r->columns);
    return err;
}

int table_reader_run(const struct table_reader_context *context, const struct table_read *read,
                     table_reader_rows *rows, void *data, struct tg_errmsg *msg)
{
    const struct msg_read_point_reply *point = read->point;
    struct reading r = {
        .context = context,
        .read = read,
        .rows = rows,
        .data = data,
        .left = read->limit != 0 ? read->limit : UINT64_MAX,
    };
    int err = columns_open(&r.columns, read);

    r.feeds = calloc(point->tablet_count + 1, sizeof *r.feeds);
    if (r.feeds == NULL)
        err = TG_NOMEM;
    for (uint32_t i = 0; i < point->tablet_count && err == 0; i++) {
        if (read->bucket >= 0 && read->bucket != i)
            continue;
        err = tablet_source_open(&r.feeds[r.feed_count].source, context, read, &point->tablets[i],
                                 r.columns.ids, r.columns.count, &r.silent);
        r.feed_count++;
    }
    if (err == 0)
        err = read->in_key_order || read->mode == READ_TABLET_CHANGES ? run_in_order(&r, msg)
                                                                      : run_one_by_one(&r, msg);
    for (uint32_t i = 0; i < r.feed_count; i++)
        tablet_source_close(&r.feeds[i].source);
    free(r.feeds);
    columns_close(&r.columns);
    return err;
}
