/* SPDX-License-Identifier: Apache-2.0 */
/* Segments to blocks. */
#include "participant/rowset/rowset_writer.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/model/row_key.h"

int rowset_writer_init(struct rowset_writer *writer, const struct schema *schema)
{
    *writer = (struct rowset_writer){.schema = schema};
    rowset_meta_init(&writer->meta);
    writer->digest = digest_stream_open();
    return writer->digest != NULL ? 0 : TG_NOMEM;
}

void rowset_writer_close(struct rowset_writer *writer)
{
    rowset_meta_close(&writer->meta);
    digest_stream_close(writer->digest);
    writer->digest = NULL;
    buf_close(&writer->first_key);
    buf_close(&writer->last_key);
}

/* How many rows from `begin` make a block: BLOCK_ROWS, or fewer where their bytes are many. */
static uint32_t block_rows(const struct vector *const *columns, uint32_t column_count,
                           uint32_t begin, uint32_t rows)
{
    uint32_t count = rows - begin < BLOCK_ROWS ? rows - begin : BLOCK_ROWS;

    for (;;) {
        size_t bytes = 0;
        for (uint32_t i = 0; i < column_count; i++) {
            const struct vector *column = columns[i];
            if (column->width > 0)
                bytes += (size_t)column->width * count;
            else
                bytes +=
                    column->ends[begin + count - 1] - (begin == 0 ? 0 : column->ends[begin - 1]);
        }
        if (bytes <= ROWSET_WRITER_BLOCK_BYTES || count == 1)
            return count;
        count = count / 2;
    }
}

static uint64_t count_deletes(const struct rowset_writer *writer,
                              const struct vector *const *columns, uint32_t rows)
{
    uint64_t deletes = 0;

    if (writer->schema->key_model != KEY_UNIQUE)
        return 0;
    const struct vector *sign = columns[writer->schema->column_count];
    for (uint32_t i = 0; i < rows; i++)
        deletes += sign->fixed[i] != 0;
    return deletes;
}

static int write_block(struct rowset_writer *w, struct block_encoder *encoder,
                       const struct vector *const *columns, const uint32_t *ids, uint32_t begin,
                       uint32_t rows, struct buf *out)
{
    size_t before = out->len;
    int err = block_encode(encoder, columns, ids, schema_stored_count(w->schema), begin, rows, out);

    if (err != 0)
        return err;
    buf_clear(&w->first_key);
    buf_clear(&w->last_key);
    row_key_encode(columns, w->schema->key_count, begin, &w->first_key);
    row_key_encode(columns, w->schema->key_count, begin + rows - 1, &w->last_key);
    if (w->first_key.err != 0 || w->last_key.err != 0)
        return TG_NOMEM;
    uint32_t len = (uint32_t)(out->len - before);
    err = rowset_meta_add_block(&w->meta, w->meta.bytes, len, rows, w->segments,
                                slice_of(w->first_key.data, w->first_key.len),
                                slice_of(w->last_key.data, w->last_key.len));
    if (err != 0)
        return err;
    w->meta.rows += rows;
    w->meta.bytes += len;
    digest_stream_add(w->digest, out->data + before, len);
    return 0;
}

int rowset_writer_segment(struct rowset_writer *writer, struct block_encoder *encoder,
                          const struct vector *const *columns, uint32_t rows, struct buf *out)
{
    struct rowset_writer *w = writer;
    uint32_t column_count = schema_stored_count(w->schema);
    int err = 0;

    TG_CHECK(rows > 0);
    if (w->segments == ROWSET_SEGMENTS_MAX)
        return TG_LIMIT;
    uint32_t *ids = malloc(column_count * sizeof *ids);
    if (ids == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < column_count; i++)
        ids[i] = schema_stored_id(w->schema, i);
    for (uint32_t begin = 0; begin < rows && err == 0;) {
        uint32_t count = block_rows(columns, column_count, begin, rows);
        err = write_block(w, encoder, columns, ids, begin, count, out);
        begin += count;
    }
    free(ids);
    if (err != 0)
        return err;
    w->meta.delete_rows += count_deletes(w, columns, rows);
    w->segments++;
    return 0;
}

void rowset_writer_finish(struct rowset_writer *writer)
{
    writer->meta.digest = digest_stream_value(writer->digest);
}
