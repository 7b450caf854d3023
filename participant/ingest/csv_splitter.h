/* SPDX-License-Identifier: Apache-2.0 */
/* CSV text in pieces to rows of field positions. What comes out does not depend on where the pieces
 * were cut: a row is split only when all of it is here.
 *
 *   room ─▶ (bytes are copied in) ─▶ filled ─▶ when full or at the end: split ─▶ rows … until
 *   rows->done, then room again
 *
 * The rules (leftmost separators that do not overlap, lines cut before columns, enclose, escape,
 * doubled quotes, blank lines, CRLF, BOM) are those of stream load in Doris 4.x; the headers
 * that steer them are in docs/http-api.md. */
#ifndef TG_PARTICIPANT_INGEST_CSV_SPLITTER_H
#define TG_PARTICIPANT_INGEST_CSV_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "participant/ingest/field_rows.h"
#include "participant/ingest/load_text.h"

enum {
    CSV_CHUNK_BYTES = 256 * 1024,
    CSV_CHUNK_BYTES_MIN = 16,
    CSV_ROW_BYTES_MAX = 64 * 1024 * 1024 /* a longer row is a bad row; its bytes are skipped */
};

struct csv_format {
    struct load_separator column;
    struct load_separator line;
    bool strip_cr; /* one '\r' before the line delimiter goes */
    int enclose;   /* -1 = none; no byte of the separators */
    int escape;    /* -1 = none */
    bool trim_double_quotes;
    uint32_t columns; /* fields of a good row: 1 or more */
    uint32_t skip_lines;
};

struct csv_splitter;

/* chunk_bytes: how much is gathered before it is split (it grows for longer rows). TG_NOMEM. */
int csv_splitter_open(const struct csv_format *format, size_t chunk_bytes,
                      struct csv_splitter **splitter);
void csv_splitter_close(struct csv_splitter *splitter);

/* Where bytes of the body go and how many have room there (0: split first). TG_NOMEM. */
int csv_splitter_room(struct csv_splitter *splitter, uint8_t **at, size_t *len);
size_t csv_splitter_memory(const struct csv_splitter *splitter);
void csv_splitter_filled(struct csv_splitter *splitter, size_t n);

/* Splits whole rows of what is here; final: no more bytes will come. Rows are valid until the next
 * call of any function. rows->done: no whole row is left; otherwise call again. TG_NOMEM. */
int csv_splitter_split(struct csv_splitter *splitter, bool final, struct field_rows *rows);

#endif
