/* SPDX-License-Identifier: Apache-2.0 */
/* One CSV row, byte by byte: every rule in one place, for what the masks of csv_scan.h cannot
 * judge. And the finishing of a field: quotes off, escapes undone. */
#ifndef TG_PARTICIPANT_INGEST_CSV_ROW_H
#define TG_PARTICIPANT_INGEST_CSV_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "participant/ingest/csv_splitter.h"

struct csv_row {
    size_t end;     /* of its text, before the delimiter (and before strip_cr) */
    size_t next;    /* where the next row begins */
    uint32_t found; /* fields; only the first format->columns are in begins, ends */
    bool open;      /* the text ended inside an enclosed field */
};

/* Splits the row at text[from]. False: its end is not in text[0, len) (never when final, unless
 * from == len). */
bool csv_row_split(const struct csv_format *format, const uint8_t *text, size_t from, size_t len,
                   bool final, uint32_t *begins, uint32_t *ends, struct csv_row *row);

/* What finishing makes of a field. */
struct csv_field {
    uint32_t begin;
    uint32_t end;
    bool literal; /* the text is \N but not NULL */
};
/* Strips quotes and undoes escapes of text[field->begin, field->end). A text that changes inside is
 * written to text + *side (room for its length), and *side moves on. */
void csv_field_finish(const struct csv_format *format, uint8_t *text, size_t *side,
                      struct csv_field *field);

#endif
