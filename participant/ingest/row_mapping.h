/* SPDX-License-Identifier: Apache-2.0 */
/* Which field of the file feeds which stored column, and what feeds the others. Made once per load,
 * from its headers and the table's schema. */
#ifndef TG_PARTICIPANT_INGEST_ROW_MAPPING_H
#define TG_PARTICIPANT_INGEST_ROW_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/schema.h"
#include "common/model/vector.h"
#include "participant/ingest/load_options.h"

struct row_field {
    char name[NAME_BYTES]; /* as listed: the key of a JSON load */
    int target;            /* stored column, -1: read and passed over */
};

struct row_target {
    struct column_type type;
    uint32_t column_id;
    const char *name; /* inside the schema */
    bool nullable;
    bool is_sign; /* the delete sign */
    int field;    /* -1: the same value in every row */
    /* What a row gets that does not bring the value: \N for NULL. text is NULL where such a row is
     * refused. Owned. */
    char *absent;
};

struct row_mapping {
    uint32_t field_count;
    struct row_field *fields;
    uint32_t target_count; /* stored columns, in stored order */
    struct row_target *targets;
    int sign_field; /* a delete sign for a table that has none: must be 0; -1 = none */
};

/* now_us: wall clock, for columns whose default is the current time. TG_INVALID with the message
 * for the client, TG_NOMEM. schema must outlive the mapping. Close it either way. */
int row_mapping_build(const struct schema *schema, const struct load_options *options,
                      uint64_t now_us, struct row_mapping *mapping, struct tg_errmsg *msg);
void row_mapping_close(struct row_mapping *mapping);

#endif
