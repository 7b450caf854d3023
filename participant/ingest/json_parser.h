/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text in pieces to rows of field texts. Used like csv_splitter.h: room, filled, split.
 *
 *   read_json_by_line            each line is a document; a bad one is a bad row
 *   strip_outer_array            the body is one array, read element by element; what is malformed
 *                                breaks the load as a whole (rows->broken)
 *   neither, or with json_root   the body is one document, up to JSON_DOCUMENT_BYTES_MAX
 *
 * Numbers stay the text that they were; a key that is absent gets the column's default, null is
 * NULL. */
#ifndef TG_PARTICIPANT_INGEST_JSON_PARSER_H
#define TG_PARTICIPANT_INGEST_JSON_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "participant/ingest/field_rows.h"
#include "participant/ingest/load_options.h"
#include "participant/ingest/row_mapping.h"

enum {
    JSON_CHUNK_BYTES = 256 * 1024,
    JSON_CHUNK_BYTES_MIN = 16,
    JSON_ROW_BYTES_MAX = 64 * 1024 * 1024, /* a line, or an element of the array */
    JSON_DOCUMENT_BYTES_MAX = 100 * 1024 * 1024
};

struct json_parser;

/* mapping and options must outlive the parser. TG_NOMEM. */
int json_parser_open(const struct row_mapping *mapping, const struct load_options *options,
                     size_t chunk_bytes, struct json_parser **parser);
void json_parser_close(struct json_parser *parser);
int json_parser_room(struct json_parser *parser, uint8_t **at, size_t *len);
size_t json_parser_memory(const struct json_parser *parser);
void json_parser_filled(struct json_parser *parser, size_t n);
/* See csv_splitter_split. TG_NOMEM. */
int json_parser_split(struct json_parser *parser, bool final, struct field_rows *rows);

#endif
