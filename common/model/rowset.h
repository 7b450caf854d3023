/* SPDX-License-Identifier: Apache-2.0 */
/* What one load wrote into one tablet: identity and description. The content is a byte string,
 * blocks one after another (rowset_block.h), the same on every replica; its digest is XXH3-128 over
 * that string. */
#ifndef TG_COMMON_MODEL_ROWSET_H
#define TG_COMMON_MODEL_ROWSET_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/checksum.h"
#include "common/model/ids.h"

enum { ROWSET_BLOCKS_MAX = 1 << 20, ROWSET_SEGMENTS_MAX = 1 << 16 };

/* One block's place. Segments are sorted each in itself; a segment is a run of blocks. */
struct rowset_block_ref {
    uint64_t offset; /* in the rowset's content */
    uint32_t len;
    uint32_t rows;
    uint32_t segment; /* number of its segment: 0, 1, … */
    /* Encoded keys of its first and last row, cut at ROWSET_REF_KEY_MAX bytes. Keys that begin with
     * a cut last key may lie behind it: readers must take them as possibly inside. */
    struct slice first_key;
    struct slice last_key;
};
enum { ROWSET_REF_KEY_MAX = 64 };

struct rowset_meta {
    tablet_id tablet;
    rowset_id rowset;
    table_id table;
    txn_id txn;
    uint32_t schema_id;
    uint32_t load_no; /* number of the load inside its transaction, from 1 */
    uint64_t rows;
    uint64_t delete_rows; /* of them with the delete sign set */
    uint64_t bytes;       /* of content */
    struct digest digest;
    uint32_t block_count;
    uint32_t block_capacity;         /* that blocks has room for */
    struct rowset_block_ref *blocks; /* owned; keys point into key_bytes */
    struct buf key_bytes;
};

void rowset_meta_init(struct rowset_meta *meta);
void rowset_meta_close(struct rowset_meta *meta);
/* Appends a block; keys are copied (and cut). Blocks come in the order of the content: TG_INVALID
 * where `offset` is not the end of the block before, where the segment falls, or where len or rows
 * are 0 or over BLOCK_BYTES_MAX or BLOCK_ROWS_MAX. Else 0, TG_NOMEM, TG_LIMIT; on failure nothing
 * is added. */
int rowset_meta_add_block(struct rowset_meta *meta, uint64_t offset, uint32_t len, uint32_t rows,
                          uint32_t segment, struct slice first_key, struct slice last_key);
void rowset_meta_encode(const struct rowset_meta *meta, struct buf *out); /* msgpack, versioned */
/* Into an initialised (or earlier decoded) meta. Checks that blocks lie one behind another, fill
 * `bytes`, and count `rows`; that segments grow and keys are in order. TG_CORRUPT, TG_NOMEM,
 * TG_UNSUPPORTED for another version (also sticky in the cursor); then meta is empty. Bytes behind
 * the description are left for the caller. */
int rowset_meta_decode(struct cursor *cursor, struct rowset_meta *meta);

#endif
