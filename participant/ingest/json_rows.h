/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects to a table of field texts: keys or paths to fields, defaults for what is absent. */
#ifndef TG_PARTICIPANT_INGEST_JSON_ROWS_H
#define TG_PARTICIPANT_INGEST_JSON_ROWS_H

#include <stdbool.h>

#include "common/base/json.h"
#include "participant/ingest/field_rows.h"
#include "participant/ingest/load_options.h"
#include "participant/ingest/row_mapping.h"

enum {
    JSON_ROWS_MAX = 4096,             /* of one batch, good ones and bad ones */
    JSON_ROWS_TEXT_MAX = 1024 * 1024, /* bytes of a batch before it counts as full */
    JSON_ROWS_ENTRIES = 256 * 1024    /* fields of a batch */
};

struct json_rows;

/* mapping and options must outlive the rows. TG_NOMEM. */
int json_rows_open(const struct row_mapping *mapping, const struct load_options *options,
                   struct json_rows **rows);
void json_rows_close(struct json_rows *rows);
void json_rows_clear(struct json_rows *rows);
bool json_rows_full(const struct json_rows *rows);

/* Adds an object as a row, or as a bad row. line: its text, which must live until the batch was
 * used; an empty one: the value's text is printed. 0 or TG_NOMEM. */
int json_rows_add(struct json_rows *rows, const struct json_value *value, struct slice line);
/* Adds the row of a line without a parser if the line is made like the ones before (json_flat.h).
 * Behind the line FLAT_SLACK bytes are readable. False: nothing was added, the parser must look. */
bool json_rows_add_flat(struct json_rows *rows, struct slice line);
/* Adds a bad row. */
int json_rows_add_bad(struct json_rows *rows, struct slice line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The batch; valid until json_rows_clear. */
void json_rows_give(struct json_rows *rows, struct field_rows *out);

#endif
