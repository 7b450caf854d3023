/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to text: CSV or JSON lines. */
#include "participant/read/result_writer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

int result_writer_open(struct result_writer *writer, enum result_format format,
                       const struct result_column *columns, uint32_t column_count)
{
    memset(writer, 0, sizeof *writer);
    writer->format = format;
    writer->columns = columns;
    writer->keys = calloc(column_count + 1, sizeof *writer->keys);
    if (writer->keys == NULL)
        return TG_NOMEM;
    writer->column_count = column_count;
    for (uint32_t i = 0; i < column_count; i++) {
        json_append_cstr(&writer->keys[i], columns[i].name);
        buf_append_u8(&writer->keys[i], ':');
        if (writer->keys[i].err != 0) {
            result_writer_close(writer);
            return TG_NOMEM;
        }
    }
    return 0;
}

void result_writer_close(struct result_writer *writer)
{
    for (uint32_t i = 0; i < writer->column_count; i++)
        buf_close(&writer->keys[i]);
    free(writer->keys);
    memset(writer, 0, sizeof *writer);
}

static bool is_number(const char *text, size_t len)
{
    char last = text[len - 1];

    return last >= '0' && last <= '9'; /* inf and nan do not end in a digit */
}

/* A document as it was loaded. Line ends in it can only lie between its tokens: as blanks they keep
 * one row on one line. */
static void json_document(struct slice bytes, struct buf *out)
{
    uint8_t *to = buf_extend(out, bytes.len);

    for (size_t i = 0; to != NULL && i < bytes.len; i++)
        to[i] = bytes.data[i] == '\n' || bytes.data[i] == '\r' ? ' ' : bytes.data[i];
}

static void json_value(const struct result_column *column, const struct vector *vector,
                       uint32_t row, struct buf *out)
{
    char text[TYPE_TEXT_MAX];

    if (vector_is_null(vector, row)) {
        buf_append(out, "null", 4);
    } else if (vector->width == 0) {
        struct slice bytes = vector_bytes(vector, row);

        if (column->type.kind == TYPE_JSON && bytes.len > 0)
            json_document(bytes, out);
        else
            json_append_string(out, bytes);
    } else {
        size_t len = type_print(column->type, vector_fixed(vector, row), text);

        if (type_json_is_bare(column->type) && is_number(text, len))
            buf_append(out, text, len);
        else
            json_append_string(out, slice_of(text, len));
    }
}

static bool needs_quotes(struct slice bytes)
{
    if (bytes.len == 0 || slice_equal_str(bytes, "\\N"))
        return true;
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.data[i] == ',' || bytes.data[i] == '"' || bytes.data[i] == '\n' ||
            bytes.data[i] == '\r')
            return true;
    return false;
}

static void csv_bytes(struct slice bytes, struct buf *out)
{
    if (!needs_quotes(bytes)) {
        buf_append(out, bytes.data, bytes.len);
        return;
    }
    buf_append_u8(out, '"');
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.data[i] == '"')
            buf_append_u8(out, '"');
        buf_append_u8(out, bytes.data[i]);
    }
    buf_append_u8(out, '"');
}

static void csv_value(const struct result_column *column, const struct vector *vector, uint32_t row,
                      struct buf *out)
{
    char text[TYPE_TEXT_MAX];

    if (vector_is_null(vector, row))
        buf_append(out, "\\N", 2);
    else if (vector->width == 0)
        csv_bytes(vector_bytes(vector, row), out);
    else
        buf_append(out, text, type_print(column->type, vector_fixed(vector, row), text));
}

void result_writer_row(struct result_writer *writer, const struct vector *vectors, uint32_t row,
                       const struct result_prefix *prefix, struct buf *out)
{
    bool json = writer->format == RESULT_JSON;

    if (json)
        buf_append_u8(out, '{');
    if (prefix != NULL)
        buf_append_str(out, json ? prefix->json : prefix->csv);
    for (uint32_t i = 0; i < writer->column_count; i++) {
        if (i > 0)
            buf_append_u8(out, ',');
        if (json) {
            buf_append(out, writer->keys[i].data, writer->keys[i].len);
            json_value(&writer->columns[i], &vectors[i], row, out);
        } else {
            csv_value(&writer->columns[i], &vectors[i], row, out);
        }
    }
    if (json)
        buf_append_u8(out, '}');
    buf_append_u8(out, '\n');
}
