/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of texts to columns of values, whole columns at a time; rows that must not be loaded are
 * counted, told to the error log, and left out of the selection. */
#ifndef TG_PARTICIPANT_INGEST_ROW_CONVERTER_H
#define TG_PARTICIPANT_INGEST_ROW_CONVERTER_H

#include "common/model/vector.h"
#include "participant/ingest/error_log.h"
#include "participant/ingest/field_rows.h"
#include "participant/ingest/load_options.h"
#include "participant/ingest/row_mapping.h"

/* Converted rows: stored columns in stored order. */
struct row_batch {
    struct vector *columns;
    uint32_t column_count;
    uint32_t rows;            /* in the vectors */
    const uint32_t *selected; /* those to be loaded; NULL: all */
    uint32_t count;           /* how many are to be loaded */
};

struct row_converter {
    const struct row_mapping *mapping;
    const struct load_options *options;
    struct error_log *log;
    uint64_t total;    /* rows seen */
    uint64_t filtered; /* of them refused */
    struct vector *columns;
    struct vector *constants; /* one row each: for targets without a field */
    struct vector sign;       /* a delete sign where there must be none */
    uint32_t capacity;        /* rows that the arrays below have room for */
    uint8_t *bad;
    uint8_t *dropped;         /* enum of row_converter.c, 0 = stays */
    uint16_t *dropped_column; /* which target is the reason */
    uint32_t *selected;
    uint32_t *zeros;
};

/* All pointers must outlive the converter. TG_NOMEM; TG_INVALID if a default is no value. */
int row_converter_init(struct row_converter *converter, const struct row_mapping *mapping,
                       const struct load_options *options, struct error_log *log);
void row_converter_close(struct row_converter *converter);

/* batch is valid until the next call. 0, TG_NOMEM, TG_LIMIT. */
int row_converter_run(struct row_converter *converter, const struct field_rows *rows,
                      struct row_batch *batch);

#endif
