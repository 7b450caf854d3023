/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed rowsets of a small UNIQUE or DUPLICATE table t(k INT key, v VARCHAR(16)), made from rows
 * that a test gives. */
#ifndef TG_TESTS_LIB_ROWSET_MAKER_H
#define TG_TESTS_LIB_ROWSET_MAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/checksum.h"
#include "common/model/schema.h"
#include "participant/store/store.h"

struct made_row {
    int32_t k;
    const char *v; /* NULL = null */
    bool deleted;
};

/* A schema of that table; close it with schema_close. */
void rowset_maker_schema(struct schema *schema, bool unique);
/* Writes and seals a rowset, whose digest it returns: segments[i] rows (sorted by k by the caller)
 * each, in blocks of block_rows. Ends the test on an error. */
struct digest rowset_maker_write(struct store *store, const struct schema *schema, uint64_t tablet,
                                 uint64_t rowset, const struct made_row *rows,
                                 const uint32_t *segments, uint32_t segment_count,
                                 uint32_t block_rows);

#endif
