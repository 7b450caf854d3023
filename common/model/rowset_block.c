/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a block: header, directory, null bitmaps and checksum around the encoded columns.
 *
 *   0        24                    24 + 24 n                                      length - 8 length
 *   ┌────────┬────────┬───┬────────┬──────────────┬──────────────┬───┬────────────┬───────────┐
 *   │ header │ column │ … │ column │ column 0     │ column 1     │ … │ column n-1 │ XXH3-64   │
 *   │        │ 0      │   │ n-1    │ data         │ data         │   │ data       │ of all    │
 *   └────────┴────────┴───┴────────┴──────────────┴──────────────┴───┴────────────┴───────────┘
 *             directory: id, type, encoding, flags, offset, len
 *
 *   column data:  [null bitmap] [min, max: fixed width only] [values as the encoding says]
 *
 * Columns lie one behind another without gaps, so that every byte has one meaning and is checked.
 */
#include "common/model/rowset_block.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/endian.h"
#include "common/model/block_bitpack.h"
#include "common/model/block_encode.h"
#include "common/model/block_format.h"

struct block_encoder *block_encoder_open(void)
{
    struct block_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL)
        return NULL;
    encoder->lz4_state = malloc((size_t)LZ4_sizeofState());
    if (encoder->lz4_state == NULL) {
        free(encoder);
        return NULL;
    }
    return encoder;
}

void block_encoder_close(struct block_encoder *encoder)
{
    if (encoder == NULL)
        return;
    free(encoder->memory);
    free(encoder->slots);
    free(encoder->entries);
    free(encoder->lz4_state);
    free(encoder);
}

/* One allocation for all arrays; each starts at a cache line. */
static int reserve_rows(struct block_encoder *encoder, uint32_t rows)
{
    if (rows <= encoder->rows)
        return 0;
    enum { LINE = 64 };
    size_t n = rows <= ENCODER_ROWS_SMALL ? ENCODER_ROWS_SMALL
               : rows <= BLOCK_ROWS       ? BLOCK_ROWS
                                          : BLOCK_ROWS_MAX;
    size_t narrow_bytes = n * sizeof(int32_t) + LINE;
    size_t starts_bytes = n * sizeof(uint32_t) + LINE;
    size_t small_bytes = n * sizeof(uint32_t);
    size_t size = n * 16 + n * 8 + narrow_bytes + starts_bytes + n * 8 + small_bytes;
    uint8_t *memory = aligned_alloc(LINE, size);
    if (memory == NULL)
        return TG_NOMEM;
    free(encoder->memory);
    encoder->memory = memory;
    encoder->rows = (uint32_t)n;

    encoder->filled = memory;
    memory += n * 16;
    encoder->wide = (int64_t *)(void *)memory;
    memory += n * 8;
    encoder->narrow = (int32_t *)(void *)(memory + LINE); /* one number may stand before it */
    memory += narrow_bytes;
    encoder->run_starts = (uint32_t *)(void *)memory;
    memory += starts_bytes;
    encoder->run_values = (uint64_t *)(void *)memory;
    memory += n * 8;
    encoder->small = (uint32_t *)(void *)memory;
    return 0;
}

#define BYTE_ONES UINT64_C(0x0101010101010101)

static uint32_t count_nulls(const struct vector *vector, uint32_t begin, uint32_t count)
{
    uint32_t nulls = 0;
    if (vector->has_nulls)
        for (uint32_t i = 0; i < count; i++)
            nulls += vector->nulls[begin + i] != 0;
    return nulls;
}

/* Eight null bytes become eight bits, the first row's in the lowest. */
static void append_bitmap(const uint8_t *nulls, uint32_t count, struct buf *out)
{
    uint8_t *to = buf_extend(out, (count + 7) / 8);
    if (to == NULL)
        return;
    for (uint32_t i = 0; i < count; i += 8) {
        uint64_t eight = 0;
        memcpy(&eight, nulls + i, count - i < 8 ? count - i : 8);
        uint64_t low7 = 0x7F * BYTE_ONES;
        eight = ((((eight & low7) + low7) | eight) >> 7) & BYTE_ONES; /* not zero becomes one */
        *to++ = (uint8_t)((eight * UINT64_C(0x0102040810204080)) >> 56);
    }
}

static int encode_column(struct block_encoder *encoder, const struct vector *vector, uint32_t begin,
                         uint32_t count, struct buf *out, struct block_encoded *encoded)
{
    uint32_t nulls = count_nulls(vector, begin, count);
    if (nulls == count) {
        *encoded = (struct block_encoded){BLOCK_CONSTANT, BLOCK_ALL_NULL};
        return 0;
    }
    encoded->flags = nulls > 0 ? BLOCK_HAS_NULLS : 0;
    if (nulls > 0)
        append_bitmap(vector->nulls + begin, count, out);
    if (vector->width > 0)
        return block_encode_fixed(encoder, vector, begin, count, nulls > 0, out, encoded);
    return block_encode_bytes(encoder, vector, begin, count, nulls > 0, out, encoded);
}

static void write_entry(uint8_t *to, uint32_t id, struct column_type type,
                        struct block_encoded encoded, size_t offset, size_t len)
{
    memset(to, 0, ENTRY_BYTES);
    store_u32le(to + ENTRY_AT_ID, id);
    to[ENTRY_AT_KIND] = type.kind;
    to[ENTRY_AT_PRECISION] = type.precision;
    to[ENTRY_AT_SCALE] = type.scale;
    to[ENTRY_AT_ENCODING] = encoded.encoding;
    store_u32le(to + ENTRY_AT_TYPE_LENGTH, type.length);
    to[ENTRY_AT_FLAGS] = encoded.flags;
    store_u32le(to + ENTRY_AT_OFFSET, (uint32_t)offset);
    store_u32le(to + ENTRY_AT_LEN, (uint32_t)len);
}

static int append_block(struct block_encoder *encoder, const struct vector *const *columns,
                        const uint32_t *ids, uint32_t column_count, uint32_t begin, uint32_t count,
                        struct buf *out)
{
    size_t start = out->len;
    uint8_t *header = buf_extend(out, BLOCK_HEADER_BYTES + (size_t)column_count * ENTRY_BYTES);
    if (header == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < column_count; i++) {
        struct block_encoded encoded = {0};
        size_t offset = out->len - start;
        int err = encode_column(encoder, columns[i], begin, count, out, &encoded);
        if (err == 0)
            err = out->err;
        if (err != 0)
            return err;
        size_t len = out->len - start - offset;
        if (offset + len + BLOCK_TRAILER_BYTES > BLOCK_BYTES_MAX)
            return TG_LIMIT;
        write_entry(out->data + start + BLOCK_HEADER_BYTES + (size_t)i * ENTRY_BYTES, ids[i],
                    columns[i]->type, encoded, offset, len);
    }
    header = out->data + start;
    size_t sum_at = out->len - start;
    memset(header, 0, BLOCK_HEADER_BYTES);
    memcpy(header + BLOCK_AT_MAGIC, BLOCK_MAGIC, 4);
    store_u16le(header + BLOCK_AT_VERSION, BLOCK_VERSION);
    store_u32le(header + BLOCK_AT_LENGTH, (uint32_t)(sum_at + BLOCK_TRAILER_BYTES));
    store_u32le(header + BLOCK_AT_ROWS, count);
    store_u32le(header + BLOCK_AT_COLUMNS, column_count);
    buf_append_u64le(out, checksum64(header, sum_at));
    return out->err;
}

int block_encode(struct block_encoder *encoder, const struct vector *const *columns,
                 const uint32_t *ids, uint32_t column_count, uint32_t begin, uint32_t count,
                 struct buf *out)
{
    if (count == 0 || count > BLOCK_ROWS_MAX || column_count == 0 ||
        column_count > BLOCK_COLUMNS_MAX)
        return TG_LIMIT;
    for (uint32_t i = 0; i < column_count; i++)
        TG_CHECK(begin <= columns[i]->rows && count <= columns[i]->rows - begin);
    if (out->err != 0)
        return out->err;
    if (reserve_rows(encoder, count) != 0)
        return TG_NOMEM;
    size_t start = out->len;
    int err = append_block(encoder, columns, ids, column_count, begin, count, out);
    if (err != 0) {
        out->len = start;
        out->err = 0;
    }
    return err;
}

/* Where the next column must begin; 0 (which no column has) where this entry is impossible. */
static uint64_t check_column(const struct block *block, const struct block_column *column,
                             const uint8_t *entry, uint64_t begin)
{
    const uint8_t *reserved = entry + ENTRY_AT_RESERVED;
    if (column->offset != begin || (reserved[0] | reserved[1] | reserved[2]) != 0)
        return 0;
    if (column->type.kind < TYPE_BOOLEAN || column->type.kind > TYPE_JSON)
        return 0;
    if (column->encoding < BLOCK_PLAIN || column->encoding > BLOCK_DICTIONARY)
        return 0;
    unsigned flags = column->flags;
    if ((flags & ~(unsigned)(BLOCK_HAS_NULLS | BLOCK_ALL_NULL | BLOCK_LZ4)) != 0)
        return 0;
    bool is_bytes = type_is_bytes(column->type);
    if ((flags & BLOCK_ALL_NULL) != 0) {
        if (flags != BLOCK_ALL_NULL || column->encoding != BLOCK_CONSTANT || column->len != 0)
            return 0;
    } else {
        uint64_t least = is_bytes ? 0 : 2 * (uint64_t)type_width(column->type);
        if ((flags & BLOCK_HAS_NULLS) != 0)
            least += (block->rows + 7) / 8;
        if (column->len < least)
            return 0;
    }
    if ((flags & BLOCK_LZ4) != 0 && (!is_bytes || column->encoding != BLOCK_PLAIN))
        return 0;
    if (is_bytes ? column->encoding >= BLOCK_FOR && column->encoding <= BLOCK_DELTA
                 : column->encoding == BLOCK_DICTIONARY)
        return 0;
    return begin + column->len;
}

int block_open(struct block *block, const void *data, size_t len, struct tg_errmsg *msg)
{
    const uint8_t *bytes = data;
    *block = (struct block){0};
    if (len < BLOCK_HEADER_BYTES + ENTRY_BYTES + BLOCK_TRAILER_BYTES || len > BLOCK_BYTES_MAX)
        return tg_fail(msg, TG_CORRUPT, "block: %zu bytes is no block's length", len);
    if (memcmp(bytes + BLOCK_AT_MAGIC, BLOCK_MAGIC, 4) != 0)
        return tg_fail(msg, TG_CORRUPT, "block: starts with other bytes than a block");
    if (load_u32le(bytes + BLOCK_AT_LENGTH) != len)
        return tg_fail(msg, TG_CORRUPT, "block: says it has %u bytes, there are %zu",
                       load_u32le(bytes + BLOCK_AT_LENGTH), len);
    /* Length and checksum stand where they are in every version: damage is never taken for a
     * version. */
    size_t sum_at = len - BLOCK_TRAILER_BYTES;
    if (checksum64(bytes, sum_at) != load_u64le(bytes + sum_at))
        return tg_fail(msg, TG_CORRUPT, "block: checksum does not match its %zu bytes", len);
    unsigned version = load_u16le(bytes + BLOCK_AT_VERSION);
    if (version != BLOCK_VERSION)
        return tg_fail(msg, TG_UNSUPPORTED, "block: format version %u, this program knows %u",
                       version, (unsigned)BLOCK_VERSION);

    struct block opened = {
        .data = bytes,
        .len = (uint32_t)len,
        .rows = load_u32le(bytes + BLOCK_AT_ROWS),
        .column_count = load_u32le(bytes + BLOCK_AT_COLUMNS),
        .directory = bytes + BLOCK_HEADER_BYTES,
    };
    if (opened.rows == 0 || opened.rows > BLOCK_ROWS_MAX)
        return tg_fail(msg, TG_CORRUPT, "block: %u rows", opened.rows);
    if (opened.column_count == 0 || opened.column_count > BLOCK_COLUMNS_MAX)
        return tg_fail(msg, TG_CORRUPT, "block: %u columns", opened.column_count);
    if (load_u16le(bytes + BLOCK_AT_RESERVED) != 0 || load_u32le(bytes + BLOCK_AT_RESERVED2) != 0)
        return tg_fail(msg, TG_CORRUPT, "block: reserved bytes are in use");

    uint64_t at = BLOCK_HEADER_BYTES + (uint64_t)opened.column_count * ENTRY_BYTES;
    if (at > sum_at)
        return tg_fail(msg, TG_CORRUPT, "block: directory is cut off");
    for (uint32_t i = 0; i < opened.column_count; i++) {
        struct block_column column;
        block_column_at(&opened, i, &column);
        at = check_column(&opened, &column, opened.directory + (size_t)i * ENTRY_BYTES, at);
        if (at == 0 || at > sum_at)
            return tg_fail(msg, TG_CORRUPT, "block: directory entry %u is impossible", i);
    }
    if (at != sum_at)
        return tg_fail(msg, TG_CORRUPT, "block: bytes that belong to no column");
    *block = opened;
    return 0;
}

int block_find(const struct block *block, uint32_t column_id)
{
    for (uint32_t i = 0; i < block->column_count; i++)
        if (load_u32le(block->directory + (size_t)i * ENTRY_BYTES + ENTRY_AT_ID) == column_id)
            return (int)i;
    return -1;
}

void block_column_at(const struct block *block, uint32_t index, struct block_column *column)
{
    TG_CHECK(index < block->column_count);
    const uint8_t *entry = block->directory + (size_t)index * ENTRY_BYTES;
    column->id = load_u32le(entry + ENTRY_AT_ID);
    column->type = (struct column_type){
        .kind = entry[ENTRY_AT_KIND],
        .precision = entry[ENTRY_AT_PRECISION],
        .scale = entry[ENTRY_AT_SCALE],
        .length = load_u32le(entry + ENTRY_AT_TYPE_LENGTH),
    };
    column->encoding = entry[ENTRY_AT_ENCODING];
    column->flags = entry[ENTRY_AT_FLAGS];
    column->offset = load_u32le(entry + ENTRY_AT_OFFSET);
    column->len = load_u32le(entry + ENTRY_AT_LEN);
}

bool block_column_range(const struct block *block, uint32_t index, union type_value *min,
                        union type_value *max)
{
    struct block_column column;
    block_column_at(block, index, &column);
    unsigned width = type_width(column.type);
    if (width == 0 || (column.flags & BLOCK_ALL_NULL) != 0)
        return false;
    const uint8_t *at = block->data + column.offset;
    if ((column.flags & BLOCK_HAS_NULLS) != 0)
        at += (block->rows + 7) / 8;
    memset(min, 0, sizeof *min);
    memset(max, 0, sizeof *max);
    memcpy(min, at, width);
    memcpy(max, at + width, width);
    /* Floats are encoded as the whole numbers that their bits make; the order is the same only for
     * numbers from zero to infinity. */
    if (column.type.kind == TYPE_FLOAT)
        return min->i32 >= 0 && max->f32 == max->f32;
    if (column.type.kind == TYPE_DOUBLE)
        return min->i64 >= 0 && max->f64 == max->f64;
    return true;
}
