/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to text: CSV or JSON lines. Pure. */
#ifndef TG_PARTICIPANT_READ_RESULT_WRITER_H
#define TG_PARTICIPANT_READ_RESULT_WRITER_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/model/vector.h"

enum result_format {
    RESULT_JSON, /* one object a line */
    RESULT_CSV /* comma, quotes where needed, NULL as \N, no header line: loads back with enclose:"
                  and trim_double_quotes:true */
};

struct result_column {
    const char *name;
    struct column_type type;
};

/* What stands before the columns of every row. */
struct result_prefix {
    const char *json; /* e.g. "\"_version\":7,\"_op\":\"upsert\","; "" for none */
    const char *csv;  /* e.g. "7,upsert,"; "" for none */
};

struct result_slot;

struct result_writer {
    enum result_format format;
    uint32_t column_count;
    const struct result_column *columns;
    struct result_slot *slots; /* per column: how its values are written, made once; owned */
    size_t row_bytes;          /* room that a row needs, the bytes of its strings left out */
};

/* 0 or TG_NOMEM. */
int result_writer_open(struct result_writer *writer, enum result_format format,
                       const struct result_column *columns, uint32_t column_count);
void result_writer_close(struct result_writer *writer);
/* Appends row `row` of the vectors, with a newline. prefix may be NULL. Vectors keep the promise of
 * vector.h that 16 bytes behind their end may be read. */
void result_writer_row(struct result_writer *writer, const struct vector *vectors, uint32_t row,
                       const struct result_prefix *prefix, struct buf *out);

#endif
