/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as texts of fields: what the CSV splitter and the JSON reader hand to the row converter. */
#ifndef TG_PARTICIPANT_INGEST_FIELD_ROWS_H
#define TG_PARTICIPANT_INGEST_FIELD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"

enum field_bad_kind {
    FIELD_BAD_COUNT = 1, /* wrong number of fields: `found` */
    FIELD_BAD_UTF8,
    FIELD_BAD_TOO_LONG,
    FIELD_BAD_OPEN, /* the text ended inside an enclosed field */
    FIELD_BAD_TEXT  /* `reason` says it */
};

/* A row that never became fields. */
struct field_bad {
    enum field_bad_kind kind;
    uint32_t found;
    struct slice line;
    char *reason; /* FIELD_BAD_TEXT: owned by whoever made the rows */
};

/* A field whose text is \N and is meant as these two characters, not as NULL. */
struct field_literal {
    uint32_t row;
    uint32_t field;
};

struct field_rows {
    const char *text; /* 64 bytes behind the last field are readable */
    uint32_t rows;
    uint32_t columns;       /* fields of a row */
    const uint32_t *begins; /* field f of row r: text[begins[r * columns + f], ends[…]) */
    const uint32_t *ends;
    const struct slice *lines; /* rows as they came, for the error log */
    const struct field_bad *bad;
    uint32_t bad_count;
    const struct field_literal *literals; /* ascending by row */
    uint32_t literal_count;
    bool done;   /* see csv_splitter.h */
    bool broken; /* the last bad row says why nothing behind it can be read: the load fails */
};

#endif
