/* SPDX-License-Identifier: Apache-2.0 */
/* Walks one run: a sorted segment of one rowset, block by block, decoding only the columns asked
 * for, no block before it is needed, and of a block at first only the keys. */
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
    bool only_if_deletes; /* the delete sign: loaded with the keys, where a rowset has deletes */
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
    struct slice from;               /* at first the plan's; a larger one when a read goes on */
    version_t version;               /* that bound the rowset */
    uint32_t block_begin, block_end; /* of its segment, in the rowset's blocks */
    uint32_t block;                  /* being read, or to be loaded next; = block_end at the end */
    uint32_t row;                    /* next row of it */
    uint32_t rows;                   /* of the block that lie in the range: row < rows */
    bool loaded;                     /* vectors hold `block` */
    bool has_deletes;
    bool filled;            /* with all columns, not only what loading decodes, … */
    uint32_t filled_from;   /* … from this row on: see run_cursor_at */
    uint32_t row_bytes;     /* of the filled block, on average */
    struct vector *vectors; /* plan->column_count, owned; NULL before the first load */
    uint32_t vectors_block; /* which block they hold, also when it is done */
    struct block bytes;     /* that block; in scratch or in the store's cache */
    struct buf scratch;
};

/* What loading decodes: of the whole block. Other columns are decoded later, from filled_from on.
 */
static inline bool run_cursor_loads_first(const struct run_plan *plan, uint32_t column)
{
    return column < plan->key_count || plan->columns[column].only_if_deletes;
}
/* Where a row of the block is in the vector of a column. */
static inline uint32_t run_cursor_at(const struct run_cursor *run, uint32_t column, uint32_t row)
{
    return run_cursor_loads_first(run->plan, column) ? row : row - run->filled_from;
}

/* Reads nothing yet. reader must stay where it is. */
void run_cursor_open(struct run_cursor *run, struct rowset_reader *reader,
                     const struct run_plan *plan, version_t version, uint32_t block_begin,
                     uint32_t block_end);
void run_cursor_close(struct run_cursor *run);
/* Begins at this key (inclusive) instead of the plan's: before the first move. */
void run_cursor_from(struct run_cursor *run, struct slice from);
/* Goes to a row given by (block of the rowset, row in it): what lies before it is left out.
 * TG_CORRUPT if the segment has no such place. */
int run_cursor_seek(struct run_cursor *run, uint32_t block, uint32_t row);

/* Moves on to a row or to a block that may hold one, without loading. False: there are no more. */
bool run_cursor_move(struct run_cursor *run);
/* Loads the block that run_cursor_move stopped at, overwriting what the vectors held: its key
 * columns, and the delete sign if there are deletes. It may turn out to have no row in the range:
 * move again. 0, TG_CORRUPT (a bad block: msg names tablet, rowset and block), TG_NOT_FOUND, TG_IO,
 * TG_NOMEM. */
int run_cursor_load(struct run_cursor *run, struct block_decoder *decoder, struct tg_errmsg *msg);
/* The other columns of the loaded block, before rows are taken from it. Harmless if they are there.
 * The same errors. */
int run_cursor_fill(struct run_cursor *run, struct block_decoder *decoder, struct tg_errmsg *msg);
/* A row_key_prefix that no row of the block to be loaded is below. */
uint64_t run_cursor_bound(const struct run_cursor *run);

#endif
