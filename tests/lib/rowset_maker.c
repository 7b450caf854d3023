/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed rowsets made from rows that a test gives. */
#include "tests/lib/rowset_maker.h"

#include <stdio.h>
#include <string.h>

#include "common/base/check.h"
#include "common/model/row_key.h"
#include "common/model/rowset_block.h"
#include "common/proto/msg_replicate.h"
#include "participant/store/rowset_store.h"

static void make_schema(struct schema *schema, bool unique, struct column_type key)
{
    struct schema_column k = {.name = "k", .type = key, .is_key = true};
    struct schema_column v = {
        .name = "v", .type = {.kind = TYPE_VARCHAR, .length = 16}, .nullable = true};

    schema_init(schema);
    schema->key_model = unique ? KEY_UNIQUE : KEY_DUPLICATE;
    TG_CHECK(schema_add_column(schema, &k, NULL) == 0);
    TG_CHECK(schema_add_column(schema, &v, NULL) == 0);
    schema->key_count = 1;
}

void rowset_maker_schema(struct schema *schema, bool unique)
{
    make_schema(schema, unique, (struct column_type){.kind = TYPE_INT});
}

void rowset_maker_text_schema(struct schema *schema, bool unique)
{
    make_schema(schema, unique, (struct column_type){.kind = TYPE_VARCHAR, .length = 120});
}

void rowset_maker_text_key(int32_t k, char out[MADE_KEY_BYTES])
{
    enum { COMMON = 90 };

    memset(out, 'p', COMMON);
    snprintf(out + COMMON, MADE_KEY_BYTES - COMMON, "%010d", k);
}

struct making {
    const struct schema *schema;
    struct vector vectors[3];
    const struct vector *columns[3];
    uint32_t ids[3];
    uint32_t column_count;
    struct block_encoder *encoder;
    struct buf content;
    struct rowset_meta meta;
};

static void fill(struct making *m, const struct made_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < 3; i++)
        vector_clear(&m->vectors[i]);
    for (uint32_t i = 0; i < count; i++) {
        int8_t sign = rows[i].deleted;

        if (type_is_bytes(m->vectors[0].type)) {
            char key[MADE_KEY_BYTES];

            rowset_maker_text_key(rows[i].k, key);
            TG_CHECK(vector_append_bytes(&m->vectors[0], key, strlen(key)) == 0);
        } else {
            TG_CHECK(vector_append_fixed(&m->vectors[0], &rows[i].k) == 0);
        }
        TG_CHECK((rows[i].v == NULL
                      ? vector_append_null(&m->vectors[1])
                      : vector_append_bytes(&m->vectors[1], rows[i].v, strlen(rows[i].v))) == 0);
        TG_CHECK(vector_append_fixed(&m->vectors[2], &sign) == 0);
    }
}

static void write_block(struct making *m, uint32_t begin, uint32_t count, uint32_t segment)
{
    struct buf first = BUF_INIT;
    struct buf last = BUF_INIT;
    size_t offset = m->content.len;

    TG_CHECK(block_encode(m->encoder, m->columns, m->ids, m->column_count, begin, count,
                          &m->content) == 0);
    row_key_encode(m->columns, 1, begin, &first);
    row_key_encode(m->columns, 1, begin + count - 1, &last);
    TG_CHECK(rowset_meta_add_block(&m->meta, offset, (uint32_t)(m->content.len - offset), count,
                                   segment, slice_of(first.data, first.len),
                                   slice_of(last.data, last.len)) == 0);
    buf_close(&first);
    buf_close(&last);
}

static void seal(struct store *store, struct making *m)
{
    struct replicate_piece piece = {
        .tablet = m->meta.tablet, .offset = 0, .len = (uint32_t)m->content.len};
    struct msg_replicate message = {
        .txn = m->meta.txn,
        .rowset = m->meta.rowset,
        .table = m->meta.table,
        .piece_count = 1,
        .pieces = &piece,
        .seal_count = 1,
        .seals = &m->meta,
    };

    TG_CHECK(rowset_store_replicate_wait(store, &message,
                                         slice_of(m->content.data, m->content.len)) == 0);
}

struct digest rowset_maker_write(struct store *store, const struct schema *schema, uint64_t tablet,
                                 uint64_t rowset, const struct made_row *rows,
                                 const uint32_t *segments, uint32_t segment_count,
                                 uint32_t block_rows)
{
    struct making m = {.schema = schema, .column_count = schema_stored_count(schema)};

    for (uint32_t i = 0; i < 3; i++) {
        vector_init(&m.vectors[i], i < m.column_count ? schema_stored_type(schema, i)
                                                      : (struct column_type){.kind = TYPE_TINYINT});
        m.columns[i] = &m.vectors[i];
        m.ids[i] = i < m.column_count ? schema_stored_id(schema, i) : 0;
    }
    m.encoder = block_encoder_open();
    TG_CHECK(m.encoder != NULL);
    rowset_meta_init(&m.meta);
    m.meta.tablet = tablet;
    m.meta.rowset = rowset;
    m.meta.table = 1;
    m.meta.txn = rowset;
    m.meta.schema_id = schema->id;
    m.meta.load_no = 1;
    for (uint32_t s = 0; s < segment_count; s++) {
        fill(&m, rows, segments[s]);
        for (uint32_t at = 0; at < segments[s]; at += block_rows) {
            uint32_t count = segments[s] - at < block_rows ? segments[s] - at : block_rows;

            write_block(&m, at, count, s);
        }
        for (uint32_t i = 0; i < segments[s]; i++)
            m.meta.delete_rows += rows[i].deleted;
        m.meta.rows += segments[s];
        rows += segments[s];
    }
    m.meta.bytes = m.content.len;
    m.meta.digest = digest_of(m.content.data, m.content.len);
    seal(store, &m);
    struct digest digest = m.meta.digest;
    rowset_meta_close(&m.meta);
    buf_close(&m.content);
    block_encoder_close(m.encoder);
    for (uint32_t i = 0; i < 3; i++)
        vector_close(&m.vectors[i]);
    return digest;
}
