/* SPDX-License-Identifier: Apache-2.0 */
/* Reading sealed rowsets, bound or not: the description from a cache, content block by block. Page
 * faults happen on the caller's thread: not on an event loop. */
#ifndef TG_PARTICIPANT_STORE_ROWSET_READER_H
#define TG_PARTICIPANT_STORE_ROWSET_READER_H

#include "common/base/buf.h"
#include "common/model/rowset.h"
#include "participant/store/store.h"

struct rowset_cached;

/* One thread at a time; any number of readers of one rowset. Pins no pages between calls. */
struct rowset_reader {
    struct store *store;
    const struct rowset_meta *meta; /* valid while the reader is open */
    struct rowset_cached *cached;
};

/* 0; TG_NOT_FOUND: no such sealed rowset here; TG_CORRUPT, TG_UNSUPPORTED, TG_NOMEM, TG_IO. On
 * failure there is nothing to close (closing is allowed). */
int rowset_reader_open(struct store *store, tablet_id tablet, rowset_id rowset,
                       struct rowset_reader *reader);
/* The same from the disk alone, whatever a cache still has: for checking. */
int rowset_reader_open_anew(struct store *store, tablet_id tablet, rowset_id rowset,
                            struct rowset_reader *reader);
void rowset_reader_close(struct rowset_reader *reader);

/* The bytes of block `index` (below meta->block_count), valid until the next call with the same
 * scratch and while the reader is open: they lie in scratch or in the cache. Their checksum is for
 * block_open to check: always open a block before believing it. 0; TG_CORRUPT: an extent is missing
 * or short; TG_NOT_FOUND: dropped meanwhile; TG_NOMEM, TG_IO. */
int rowset_reader_block(struct rowset_reader *reader, uint32_t index, struct buf *scratch,
                        struct slice *bytes);

/* Any range of the content, appended to out. The same errors; TG_INVALID beyond the end. */
int rowset_reader_bytes(struct rowset_reader *reader, uint64_t offset, uint64_t len,
                        struct buf *out);

/* Reads all content and compares its digest with the description: 0 or TG_CORRUPT (and the errors
 * above). */
int rowset_reader_verify(struct rowset_reader *reader);
/* The same; go_on is called with each piece's bytes and may wait. It returns false: TG_CANCELED. */
int rowset_reader_verify_slowly(struct rowset_reader *reader,
                                bool (*go_on)(void *data, uint64_t bytes), void *data);

#endif
