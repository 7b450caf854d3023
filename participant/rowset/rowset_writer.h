/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted rows to the content of a rowset: blocks one after another, and the description that seals
 * them. Makes bytes; who keeps or sends them is the caller's matter. */
#ifndef TG_PARTICIPANT_ROWSET_ROWSET_WRITER_H
#define TG_PARTICIPANT_ROWSET_ROWSET_WRITER_H

#include "common/model/rowset.h"
#include "common/model/rowset_block.h"
#include "common/model/schema.h"

enum { ROWSET_WRITER_BLOCK_BYTES = 8 * 1024 * 1024 }; /* raw bytes of a block's rows, about */

struct rowset_writer {
    const struct schema *schema; /* must outlive it */
    struct rowset_meta meta;     /* identity filled by the caller after init */
    struct digest_stream *digest;
    uint32_t segments;
    struct buf first_key; /* scratch */
    struct buf last_key;
};

/* TG_NOMEM. Close it either way. */
int rowset_writer_init(struct rowset_writer *writer, const struct schema *schema);
void rowset_writer_close(struct rowset_writer *writer);

/* Appends a segment of `rows` > 0 sorted rows (stored columns in stored order). The new content,
 * which begins at the content's offset writer->meta.bytes before the call, is appended to out.
 * TG_NOMEM, TG_LIMIT (ROWSET_BLOCKS_MAX, ROWSET_SEGMENTS_MAX): the rowset is useless then. */
int rowset_writer_segment(struct rowset_writer *writer, struct block_encoder *encoder,
                          const struct vector *const *columns, uint32_t rows, struct buf *out);

/* Completes writer->meta: its digest. Nothing may be appended afterwards. */
void rowset_writer_finish(struct rowset_writer *writer);

#endif
