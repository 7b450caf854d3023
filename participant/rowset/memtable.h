/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of one tablet, column by column, until they are a segment: collected, sorted by key, and for
 * UNIQUE tables only the newest row of each key kept. */
#ifndef TG_PARTICIPANT_ROWSET_MEMTABLE_H
#define TG_PARTICIPANT_ROWSET_MEMTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/schema.h"
#include "common/model/vector.h"

enum { MEMTABLE_ROWS_MAX = 64 * 1024 }; /* rows of a segment */

struct memtable {
    const struct schema *schema; /* must outlive it */
    uint32_t column_count;       /* stored columns */
    struct vector *columns;      /* NULL while nothing was ever added */
    uint32_t rows;
    size_t memory; /* bytes held by columns */
};

void memtable_init(struct memtable *memtable, const struct schema *schema);
/* Frees; usable again afterwards. */
void memtable_close(struct memtable *memtable);
/* No rows; keeps the memory. */
void memtable_clear(struct memtable *memtable);

/* Appends rows order[0..count) of from (stored columns in stored order); order NULL: rows
 * [0, count). The caller keeps rows at or under MEMTABLE_ROWS_MAX. TG_NOMEM, TG_LIMIT: the table is
 * useless then. */
int memtable_append(struct memtable *memtable, const struct vector *from, const uint32_t *order,
                    uint32_t count);

/* Memory for sorting, kept from segment to segment and from table to table. */
struct memtable_scratch;
struct memtable_scratch *memtable_scratch_open(void); /* NULL on TG_NOMEM */
void memtable_scratch_close(struct memtable_scratch *scratch);

/* The rows in key order, equal keys in order of arrival (of UNIQUE tables: the last one only), as
 * column_count columns of *rows rows, in memtable or scratch: valid until either is used again.
 * TG_NOMEM, TG_LIMIT. */
int memtable_sort(struct memtable *memtable, struct memtable_scratch *scratch,
                  const struct vector *const **columns, uint32_t *rows);

#endif
