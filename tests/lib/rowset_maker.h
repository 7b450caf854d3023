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
/* The same with a key k VARCHAR(120): numbers become texts whose first 90 bytes are the same, so
 * that neither prefixes nor cut keys can tell them apart. */
void rowset_maker_text_schema(struct schema *schema, bool unique);
enum { MADE_KEY_BYTES = 121 };
/* That text. */
void rowset_maker_text_key(int32_t k, char out[MADE_KEY_BYTES]);
/* Writes and seals a rowset, whose digest it returns: segments[i] rows (sorted by k by the caller)
 * each, in blocks of block_rows. Ends the test on an error. */
struct digest rowset_maker_write(struct store *store, const struct schema *schema, uint64_t tablet,
                                 uint64_t rowset, const struct made_row *rows,
                                 const uint32_t *segments, uint32_t segment_count,
                                 uint32_t block_rows);

#endif
