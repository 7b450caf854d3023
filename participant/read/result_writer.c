/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to text: CSV or JSON lines. Room for a whole row is made first, so that its values are
 * written without looking at the buffer's end again. */
#include "participant/read/result_writer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

enum {
    COPY_BYTES = 16,     /* what copies may read and write behind a text */
    JSON_GROWTH_MAX = 6, /* a byte as \u00XX */
    CSV_GROWTH_MAX = 2   /* a quote doubled */
};

struct result_slot {
    type_printer *print; /* NULL: bytes */
    unsigned scale;
    bool is_real;  /* may be inf or nan */
    bool is_bare;  /* JSON: without quotes */
    bool is_json;  /* a document */
    uint8_t *lead; /* JSON: comma, key and colon, COPY_BYTES behind them */
    size_t before; /* its length */
};

/* ---- opening ---- */

static int make_lead(struct result_slot *slot, const char *name, bool is_first)
{
    static const uint8_t padding[COPY_BYTES];
    struct buf lead = BUF_INIT;

    if (!is_first)
        buf_append_u8(&lead, ',');
    json_append_cstr(&lead, name);
    buf_append_u8(&lead, ':');
    slot->before = lead.len;
    buf_append(&lead, padding, sizeof padding);
    if (lead.err != 0) {
        buf_close(&lead);
        return TG_NOMEM;
    }
    slot->lead = lead.data;
    return 0;
}

int result_writer_open(struct result_writer *writer, enum result_format format,
                       const struct result_column *columns, uint32_t column_count)
{
    memset(writer, 0, sizeof *writer);
    writer->format = format;
    writer->slots = calloc((size_t)column_count + 1, sizeof *writer->slots);
    if (writer->slots == NULL)
        return TG_NOMEM;
    writer->column_count = column_count;
    writer->row_bytes = COPY_BYTES;
    for (uint32_t i = 0; i < column_count; i++) {
        struct result_slot *slot = &writer->slots[i];
        struct column_type type = columns[i].type;

        if (!type_is_bytes(type))
            slot->print = type_printer_of(type);
        slot->scale = type.scale;
        slot->is_real = type.kind == TYPE_FLOAT || type.kind == TYPE_DOUBLE;
        slot->is_bare = type_json_is_bare(type);
        slot->is_json = type.kind == TYPE_JSON;
        if (format == RESULT_JSON && make_lead(slot, columns[i].name, i == 0) != 0) {
            result_writer_close(writer);
            return TG_NOMEM;
        }
        writer->row_bytes += slot->before + COPY_BYTES + TYPE_TEXT_MAX;
    }
    return 0;
}

void result_writer_close(struct result_writer *writer)
{
    for (uint32_t i = 0; i < writer->column_count; i++)
        free(writer->slots[i].lead);
    free(writer->slots);
    memset(writer, 0, sizeof *writer);
}

/* ---- bytes ---- */

#define ONES UINT64_C(0x0101010101010101)
#define TOPS UINT64_C(0x8080808080808080)

/* Top bits of the bytes that are c; bytes behind the first such may be marked wrongly. */
static inline uint64_t mark_equal(uint64_t word, uint8_t c)
{
    uint64_t x = word ^ (ONES * c);

    return (x - ONES) & ~x & TOPS;
}

static inline uint64_t mark_csv(uint64_t word)
{
    return mark_equal(word, ',') | mark_equal(word, '"') | mark_equal(word, '\n') |
           mark_equal(word, '\r');
}

/* Not plain ASCII, or a character with an escape. */
static inline uint64_t mark_json(uint64_t word)
{
    return ((word | ((word - ONES * ' ') & ~word)) & TOPS) | mark_equal(word, '"') |
           mark_equal(word, '\\');
}

/* The first len bytes of a word, harmless ones behind them. */
static inline uint64_t first_bytes(uint64_t word, size_t len)
{
    if (len >= sizeof word)
        return word;
    uint64_t behind = ~UINT64_C(0) << (8 * len);
    return (word & ~behind) | (ONES * 'a' & behind);
}

/* Copies a value and says whether all of it is plain; may read and write COPY_BYTES behind its
 * end, which vectors and the row's room have. */
#define COPY_PLAIN(name, mark)                                         \
    static inline bool name(uint8_t *to, const uint8_t *p, size_t len) \
    {                                                                  \
        uint64_t marks = 0;                                            \
        for (size_t at = 0; at < len; at += sizeof(uint64_t)) {        \
            uint64_t word;                                             \
            memcpy(&word, p + at, sizeof word);                        \
            memcpy(to + at, &word, sizeof word);                       \
            marks |= mark(first_bytes(word, len - at));                \
        }                                                              \
        return marks == 0;                                             \
    }

COPY_PLAIN(copy_plain_csv, mark_csv)
COPY_PLAIN(copy_plain_json, mark_json)

static inline uint8_t *put_bytes(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len > 0)
        memcpy(to, from, len);
    return to + len;
}

/* A lead: COPY_BYTES behind it may be read, and behind `to` written. */
static inline uint8_t *put_lead(uint8_t *to, const struct result_slot *slot)
{
    for (size_t at = 0; at < slot->before; at += COPY_BYTES)
        memcpy(to + at, slot->lead + at, COPY_BYTES);
    return to + slot->before;
}

/* A document as it was loaded. Line ends in it can only lie between its tokens: as blanks they keep
 * one row on one line. */
static uint8_t *put_document(uint8_t *to, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        to[i] = bytes.data[i] == '\n' || bytes.data[i] == '\r' ? ' ' : bytes.data[i];
    return to + bytes.len;
}

/* What needs escapes, by way of the careful writer. There is room. */
static uint8_t *put_escaped(uint8_t *to, struct slice bytes, struct buf *out)
{
    out->len = (size_t)(to - out->data);
    json_append_string(out, bytes);
    return out->data + out->len;
}

static inline uint8_t *json_bytes(uint8_t *to, const struct result_slot *slot, struct slice bytes,
                                  struct buf *out)
{
    if (slot->is_json && bytes.len > 0)
        return put_document(to, bytes);
    *to = '"';
    if (!copy_plain_json(to + 1, bytes.data, bytes.len))
        return put_escaped(to, bytes, out);
    to += 1 + bytes.len;
    *to = '"';
    return to + 1;
}

static uint8_t *put_quoted(uint8_t *to, struct slice bytes)
{
    *to++ = '"';
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.data[i] == '"')
            *to++ = '"';
        *to++ = bytes.data[i];
    }
    *to++ = '"';
    return to;
}

static inline uint8_t *csv_bytes(uint8_t *to, struct slice bytes)
{
    if (!copy_plain_csv(to, bytes.data, bytes.len) || bytes.len == 0 ||
        (bytes.len == 2 && memcmp(bytes.data, "\\N", 2) == 0))
        return put_quoted(to, bytes);
    return to + bytes.len;
}

/* ---- rows ---- */

static inline uint8_t *put_fixed(uint8_t *to, const struct result_slot *slot, const void *value)
{
    return (uint8_t *)slot->print(value, slot->scale, (char *)to);
}

/* Numbers bare, but for inf and nan, which do not end in a digit; all else in quotes. */
static inline uint8_t *json_fixed(uint8_t *to, const struct result_slot *slot, const void *value)
{
    *to = '"';
    uint8_t *end = put_fixed(to + !slot->is_bare, slot, value);
    if (slot->is_bare && (!slot->is_real || (end[-1] >= '0' && end[-1] <= '9')))
        return end;
    if (slot->is_bare) {
        memmove(to + 1, to, (size_t)(end - to));
        *to = '"';
        end++;
    }
    *end = '"';
    return end + 1;
}

static uint8_t *json_row(const struct result_writer *writer, const struct vector *vectors,
                         uint32_t row, uint8_t *to, struct buf *out)
{
    for (uint32_t i = 0; i < writer->column_count; i++) {
        const struct result_slot *slot = &writer->slots[i];
        const struct vector *vector = &vectors[i];

        to = put_lead(to, slot);
        if (vector_is_null(vector, row))
            to = put_bytes(to, (const uint8_t *)"null", 4);
        else if (slot->print == NULL)
            to = json_bytes(to, slot, vector_bytes(vector, row), out);
        else
            to = json_fixed(to, slot, vector_fixed(vector, row));
    }
    *to++ = '}';
    return to;
}

static uint8_t *csv_row(const struct result_writer *writer, const struct vector *vectors,
                        uint32_t row, uint8_t *to)
{
    for (uint32_t i = 0; i < writer->column_count; i++) {
        const struct result_slot *slot = &writer->slots[i];
        const struct vector *vector = &vectors[i];

        if (vector_is_null(vector, row))
            to = put_bytes(to, (const uint8_t *)"\\N", 2);
        else if (slot->print == NULL)
            to = csv_bytes(to, vector_bytes(vector, row));
        else
            to = put_fixed(to, slot, vector_fixed(vector, row));
        *to++ = ',';
    }
    return to - (writer->column_count > 0); /* no comma behind the last */
}

/* The most that a row can take. */
static size_t row_room(const struct result_writer *writer, const struct vector *vectors,
                       uint32_t row, size_t prefix)
{
    size_t growth = writer->format == RESULT_JSON ? JSON_GROWTH_MAX : CSV_GROWTH_MAX;
    size_t room = writer->row_bytes + prefix;

    for (uint32_t i = 0; i < writer->column_count; i++)
        if (writer->slots[i].print == NULL && !vector_is_null(&vectors[i], row))
            room += vector_bytes(&vectors[i], row).len * growth;
    return room;
}

void result_writer_row(struct result_writer *writer, const struct vector *vectors, uint32_t row,
                       const struct result_prefix *prefix, struct buf *out)
{
    bool json = writer->format == RESULT_JSON;
    const char *text = prefix == NULL ? "" : json ? prefix->json : prefix->csv;
    size_t len = prefix == NULL ? 0 : strlen(text);

    if (buf_reserve(out, row_room(writer, vectors, row, len)) != 0)
        return;
    uint8_t *to = out->data + out->len;
    if (json)
        *to++ = '{';
    to = put_bytes(to, (const uint8_t *)text, len);
    to = json ? json_row(writer, vectors, row, to, out) : csv_row(writer, vectors, row, to);
    *to++ = '\n';
    out->len = (size_t)(to - out->data);
}
