/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to one memtable per tablet, full memtables to segments, segments to blocks. Memory is
 * bounded: when the budget is used up, the largest memtable becomes a segment early. */
#ifndef TG_PARTICIPANT_INGEST_TABLET_ROUTER_H
#define TG_PARTICIPANT_INGEST_TABLET_ROUTER_H

#include <stddef.h>
#include <stdint.h>

#include "common/proto/msg_txn.h"
#include "participant/ingest/row_converter.h"
#include "participant/rowset/memtable.h"
#include "participant/rowset/rowset_writer.h"

/* Takes new content of a tablet's rowset. 0, or an error that ends the load. */
typedef int tablet_router_emit(void *ctx, uint32_t bucket, uint64_t offset, struct slice content);

struct tablet_router {
    const struct msg_txn_begin_reply *plan; /* must outlive it */
    tablet_router_emit *emit;
    void *ctx;
    size_t memory;                 /* of all memtables */
    uint64_t rows;                 /* taken */
    struct memtable *memtables;    /* one a bucket */
    struct rowset_writer *writers; /* one a bucket, opened by its first segment */
    bool *opened;
    uint32_t *touched; /* buckets with an open writer, in order of their first segment */
    uint32_t touched_count;
    struct memtable_scratch *scratch;
    struct block_encoder *encoder;
    struct buf content;
    uint32_t capacity; /* rows that the arrays below have room for */
    uint64_t *hashes;
    uint32_t *order;
    uint16_t *buckets;
    uint32_t *starts; /* bucket_count + 1 */
    const struct vector **distribution;
};

/* TG_NOMEM. Close it either way. */
int tablet_router_init(struct tablet_router *router, const struct msg_txn_begin_reply *plan,
                       tablet_router_emit *emit, void *ctx);
void tablet_router_close(struct tablet_router *router);

/* Takes the batch's selected rows. memory_limit: bytes that memtables may hold afterwards.
 * TG_NOMEM, TG_LIMIT, or emit's error. */
int tablet_router_add(struct tablet_router *router, const struct row_batch *batch,
                      size_t memory_limit);

/* Segments are made of the largest memtables, and their memory is given back, until what is left has
 * at most memory_limit bytes. TG_NOMEM, TG_LIMIT, or emit's error. */
int tablet_router_shrink(struct tablet_router *router, size_t memory_limit);
/* Makes segments of what is left and completes the descriptions. */
int tablet_router_finish(struct tablet_router *router);

/* The description of a touched bucket's rowset; complete after finish. */
static inline struct rowset_meta *tablet_router_meta(struct tablet_router *router, uint32_t bucket)
{
    return &router->writers[bucket].meta;
}

#endif
