/* SPDX-License-Identifier: Apache-2.0 */
/* Walks one run: a sorted segment of one rowset, block by block, decoding only the columns asked
 * for. */
#ifndef TG_PARTICIPANT_ROWSET_RUN_CURSOR_H
#define TG_PARTICIPANT_ROWSET_RUN_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/model/rowset_block.h"
#include "common/model/vector.h"
#include "participant/store/rowset_reader.h"

/* A column that a cursor decodes. */
struct run_column {
    uint32_t id;
    struct column_type type;
};

/* What all runs of one read share. The first key_count columns are the table's key. */
struct run_plan {
    uint32_t key_count;
    uint32_t column_count;
    const struct run_column *columns;
    struct slice from; /* encoded key, inclusive; empty = from the start */
    struct slice to;   /* encoded key, exclusive; empty = to the end */
};

struct run_cursor {
    struct rowset_reader *reader; /* shared by the runs of a rowset, on one thread */
    const struct run_plan *plan;
    version_t version;               /* that bound the rowset */
    uint32_t block_begin, block_end; /* of its segment, in the rowset's blocks */
    uint32_t block;                  /* being read, from 0 in the segment; = count at the end */
    uint32_t row;                    /* next row of it */
    uint32_t rows;                   /* of the block that lie in the range: row < rows */
    bool loaded;                     /* vectors hold the block */
    struct vector *vectors;          /* plan->column_count, owned */
    struct buf scratch;
};

/* 0 or TG_NOMEM. Reads nothing yet. */
int run_cursor_open(struct run_cursor *run, struct rowset_reader *reader,
                    const struct run_plan *plan, version_t version, uint32_t block_begin,
                    uint32_t block_end);
void run_cursor_close(struct run_cursor *run);
/* Goes to a row given by (block in the segment, row in it), as run->block and run->row were before.
 * TG_CORRUPT if there is no such place. */
int run_cursor_seek(struct run_cursor *run, uint32_t block, uint32_t row);
/* Makes row run->row readable in the vectors, loading the next block that reaches into the range if
 * need be. *end: there are no more rows. 0, TG_CORRUPT (a bad block: msg names tablet, rowset and
 * block), TG_NOT_FOUND, TG_IO, TG_NOMEM. */
int run_cursor_ready(struct run_cursor *run, struct block_decoder *decoder, bool *end,
                     struct tg_errmsg *msg);

#endif
