/* SPDX-License-Identifier: Apache-2.0 */
/* Insides of the merge cursor, for its two files: opening, and going on. */
#ifndef TG_PARTICIPANT_ROWSET_MERGE_CURSOR_PRIVATE_H
#define TG_PARTICIPANT_ROWSET_MERGE_CURSOR_PRIVATE_H

#include "participant/rowset/merge_cursor.h"
#include "participant/rowset/run_cursor.h"

/* Rows of a run that were taken and not yet copied out. */
struct merge_stretch {
    uint32_t run;
    uint32_t row;
    uint32_t count;
};

struct merge_cursor {
    struct store *store;
    tablet_id tablet;
    struct merge_options options;
    struct buf from, to;
    struct run_plan plan;
    struct run_column *columns; /* keys first, then wanted ones and the delete sign */
    uint32_t *wanted;           /* where each wanted column is in columns */
    int delete_sign;            /* index in columns, -1 if rows are not dropped for it */
    uint32_t input_count;
    struct merge_input *inputs;
    struct block_decoder *decoder;
    uint32_t stretch_count, stretch_capacity;
    struct merge_stretch *stretches;
    uint64_t batch_bytes; /* of the batch being made, about */

    /* Merging: all rowsets and runs at once. Not merging: readers[0] and runs[0] only. */
    uint32_t reader_count;
    struct rowset_reader *readers;
    uint32_t run_count;
    struct run_cursor *runs;
    uint64_t *prefixes; /* of each run's current row, or a bound of those it will load */
    uint32_t heap_count;
    uint32_t *heap; /* runs */
    bool primed;
    struct buf at, behind; /* position: the key, and the least key above it */
    const struct vector **a_keys, **b_keys;

    /* Not merging. */
    uint32_t input; /* being read; = input_count at the end */

    /* The last row that was given; position is taken from it. */
    bool has_last;
    struct buf last_key;
    uint32_t last_run;
    uint32_t last_block, last_row;
    struct buf opened_at; /* the position until then */
};

/* Merging: fills readers and runs. */
int merge_cursor_open_runs(struct merge_cursor *cursor, struct tg_errmsg *msg);
/* Not merging: the segment of inputs[input] that holds `block`. */
int merge_cursor_open_segment(struct merge_cursor *cursor, uint32_t block, struct tg_errmsg *msg);
void merge_cursor_close_segment(struct merge_cursor *cursor);

#endif
