/* SPDX-License-Identifier: Apache-2.0 */
/* Walks all runs of a tablet's version as one. Merging (in key order, for UNIQUE tables the newest
 * row of a key wins and deletes take effect) or one run after the other (oldest first: the fast way
 * for tables that keep every row, and the order of change feeds). Re-opens at a saved position, so
 * that no read pins anything between two answers. */
#ifndef TG_PARTICIPANT_ROWSET_MERGE_CURSOR_H
#define TG_PARTICIPANT_ROWSET_MERGE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/schema.h"
#include "common/model/vector.h"
#include "participant/store/store.h"

enum {
    MERGE_RUNS_MAX = 256 * 1024,        /* merged at once */
    MERGE_BATCH_BYTES = 8 * 1024 * 1024 /* in one batch, about: it ends early then */
};

/* A rowset to read, oldest first. */
struct merge_input {
    version_t version;
    rowset_id rowset;
};

struct merge_options {
    const struct schema *schema; /* must live as long as the cursor */
    uint32_t column_count;
    const uint32_t *columns; /* stored column ids wanted, in order */
    bool merge;              /* in key order */
    bool newest_wins; /* merging: of equal keys only the newest row; drops rows with the delete sign
                         … */
    bool include_deleted;  /* … unless this is set */
    struct slice from, to; /* encoded keys: [from, to), empty = open. Copied */
};

struct merge_cursor;

/* position: empty, or what merge_cursor_position gave for the same inputs and options. 0;
 * TG_NOT_FOUND (a rowset is gone; when not merging, merge_cursor_next may find that out),
 * TG_CORRUPT (position or data), TG_LIMIT (too many runs to merge), TG_INVALID (an unknown column),
 * TG_NOMEM, TG_IO. */
int merge_cursor_open(struct store *store, tablet_id tablet, const struct merge_input *inputs,
                      uint32_t input_count, const struct merge_options *options,
                      struct slice position, struct merge_cursor **cursor, struct tg_errmsg *msg);
void merge_cursor_close(struct merge_cursor *cursor);
/* Appends up to max rows to out[0..column_count) (initialised with the columns' types); versions,
 * if not NULL, gets each row's version (BIGINT). *rows 0: there are no more; fewer than max says
 * nothing. After an error the cursor is only good for closing. */
int merge_cursor_next(struct merge_cursor *cursor, uint32_t max, struct vector *out,
                      struct vector *versions, uint32_t *rows, struct tg_errmsg *msg);
/* True: the next call would give no row for sure. */
bool merge_cursor_is_done(const struct merge_cursor *cursor);
/* Where the next call goes on: a key, or a place in a rowset, and little more. Appends msgpack.
 * Nothing if no row was given yet. */
void merge_cursor_position(const struct merge_cursor *cursor, struct buf *out);
/* Types of the wanted columns, in order. */
struct column_type merge_cursor_type(const struct merge_cursor *cursor, uint32_t column);

#endif
