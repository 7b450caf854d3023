/* SPDX-License-Identifier: Apache-2.0 */
/* Walks all runs of a tablet's version as one.
 *
 * A binary heap holds the runs that have rows, the smallest key on top, of equal keys the newest
 * run (the one with the largest index) first. Keys are compared by their 64-bit prefix; only equal
 * prefixes look at the columns. A run whose next block is not loaded takes part with a bound from
 * the rowset's description, and is loaded when it comes on top: so runs that do not overlap are
 * read one after the other, and memory holds the blocks of those that do.
 *
 * As long as the top's prefixes stay below every other run's, its rows are taken without touching
 * the heap. Rows taken are noted as (run, first row, count) stretches and gathered column by column
 * when a block's memory is about to be used again or the batch is full. */
#include "participant/rowset/merge_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/row_key.h"
#include "participant/rowset/merge_cursor_private.h"

/* ---- taking rows ---- */

struct batch {
    uint32_t max;
    struct vector *out;
    struct vector *versions;
    uint32_t *rows;
    struct tg_errmsg *msg;
};

static int add_stretch(struct merge_cursor *c, uint32_t run, uint32_t row, uint32_t count)
{
    if (c->stretch_count > 0) {
        struct merge_stretch *last = &c->stretches[c->stretch_count - 1];

        if (last->run == run && last->row + last->count == row) {
            last->count += count;
            return 0;
        }
    }
    if (c->stretch_count == c->stretch_capacity) {
        uint32_t capacity = c->stretch_capacity == 0 ? 256 : c->stretch_capacity * 2;
        struct merge_stretch *stretches = realloc(c->stretches, capacity * sizeof *stretches);

        if (stretches == NULL)
            return TG_NOMEM;
        c->stretches = stretches;
        c->stretch_capacity = capacity;
    }
    c->stretches[c->stretch_count++] = (struct merge_stretch){run, row, count};
    return 0;
}

/* How many of `count` rows still fit the batch, at least one while it is empty. Rows of narrow
 * blocks count as their average: a block of them is small as a whole. */
static uint32_t fit(struct merge_cursor *c, const struct run_cursor *r, uint32_t count)
{
    enum { NARROW_ROW_BYTES = 512 };
    uint32_t n = 0;

    if (r->row_bytes <= NARROW_ROW_BYTES) {
        c->batch_bytes += (uint64_t)r->row_bytes * count;
        return count;
    }
    while (n < count && c->batch_bytes < MERGE_BATCH_BYTES) {
        for (uint32_t i = 0; i < c->plan.column_count; i++)
            c->batch_bytes +=
                r->vectors[i].width > 0 || r->vectors[i].rows == 0
                    ? r->vectors[i].width
                    : vector_bytes(&r->vectors[i], run_cursor_at(r, i, r->row + n)).len;
        n++;
    }
    return n;
}

/* Takes up to count rows from the run's current one on, as many as fit, and steps behind them. */
static int take(struct merge_cursor *c, uint32_t run, uint32_t count, const struct batch *batch)
{
    struct run_cursor *r = &c->runs[run];
    int err = run_cursor_fill(r, c->decoder, batch->msg);

    if (err != 0)
        return err;
    count = fit(c, r, count);
    err = add_stretch(c, run, r->row, count);
    r->row += count;
    *batch->rows += count;
    return err;
}

static bool is_full(const struct merge_cursor *c, uint32_t max, uint32_t rows)
{
    return rows == max || c->batch_bytes >= MERGE_BATCH_BYTES;
}

/* The position is taken from the last row that is copied out. */
static int note_last(struct merge_cursor *c)
{
    const struct merge_stretch *last = &c->stretches[c->stretch_count - 1];
    const struct run_cursor *run = &c->runs[last->run];
    uint32_t row = last->row + last->count - 1;

    c->has_last = true;
    c->last_row = row;
    c->last_block = run->vectors_block;
    c->last_run = c->options.merge ? last->run : c->input;
    if (!c->options.merge)
        return 0;
    for (uint32_t i = 0; i < c->plan.key_count; i++)
        c->a_keys[i] = &run->vectors[i];
    buf_clear(&c->last_key);
    row_key_encode(c->a_keys, c->plan.key_count, row, &c->last_key);
    return c->last_key.err;
}

static int gather(struct merge_cursor *c, struct vector *out, struct vector *versions)
{
    int err = c->stretch_count > 0 ? note_last(c) : 0;

    for (uint32_t column = 0; column < c->options.column_count && err == 0; column++)
        for (uint32_t i = 0; i < c->stretch_count && err == 0; i++) {
            const struct merge_stretch *s = &c->stretches[i];
            const struct run_cursor *run = &c->runs[s->run];
            const struct vector *from = &run->vectors[c->wanted[column]];
            uint32_t row = run_cursor_at(run, c->wanted[column], s->row);

            err = s->count == 1 ? vector_append_row(&out[column], from, row)
                                : vector_append_range(&out[column], from, row, s->count);
        }
    for (uint32_t i = 0; i < c->stretch_count && versions != NULL && err == 0; i++) {
        int64_t version = (int64_t)c->runs[c->stretches[i].run].version;

        for (uint32_t n = 0; n < c->stretches[i].count && err == 0; n++)
            err = vector_append_fixed(versions, &version);
    }
    c->stretch_count = 0;
    return err;
}

/* ---- the heap ---- */

static const struct vector *const *keys_of(const struct merge_cursor *c, uint32_t run,
                                           const struct vector **keys)
{
    for (uint32_t i = 0; i < c->plan.key_count; i++)
        keys[i] = &c->runs[run].vectors[i];
    return keys;
}

/* Both loaded. */
static int compare_keys(const struct merge_cursor *c, uint32_t a, uint32_t b)
{
    if (c->prefixes[a] != c->prefixes[b])
        return c->prefixes[a] < c->prefixes[b] ? -1 : 1;
    return row_key_compare(keys_of(c, a, c->a_keys), c->runs[a].row, keys_of(c, b, c->b_keys),
                           c->runs[b].row, c->plan.key_count);
}

static bool comes_before(const struct merge_cursor *c, uint32_t a, uint32_t b)
{
    if (c->prefixes[a] != c->prefixes[b])
        return c->prefixes[a] < c->prefixes[b];
    /* One that only has a bound must be looked at before anything is decided. */
    if (!c->runs[a].loaded || !c->runs[b].loaded)
        return c->runs[a].loaded == c->runs[b].loaded ? a < b : !c->runs[a].loaded;
    int order = compare_keys(c, a, b);

    if (order != 0)
        return order < 0;
    /* Newest first where only one row survives; oldest first where all do. */
    return c->options.newest_wins ? a > b : a < b;
}

static void sift_down(struct merge_cursor *c, uint32_t at)
{
    for (;;) {
        uint32_t least = at;

        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < c->heap_count; child++)
            if (comes_before(c, c->heap[child], c->heap[least]))
                least = child;
        if (least == at)
            return;
        uint32_t run = c->heap[at];
        c->heap[at] = c->heap[least];
        c->heap[least] = run;
        at = least;
    }
}

static void push(struct merge_cursor *c, uint32_t run)
{
    uint32_t at = c->heap_count++;

    while (at > 0 && comes_before(c, run, c->heap[(at - 1) / 2])) {
        c->heap[at] = c->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    c->heap[at] = run;
}

static void note_prefix(struct merge_cursor *c, uint32_t run)
{
    struct run_cursor *r = &c->runs[run];

    c->prefixes[run] = r->loaded
                           ? row_key_prefix(keys_of(c, run, c->a_keys), c->plan.key_count, r->row)
                           : run_cursor_bound(r);
}

static void prime(struct merge_cursor *c)
{
    c->primed = true;
    for (uint32_t i = 0; i < c->run_count; i++) {
        if (!run_cursor_move(&c->runs[i]))
            continue;
        note_prefix(c, i);
        c->heap[c->heap_count++] = i;
    }
    for (uint32_t i = c->heap_count / 2; i-- > 0;)
        sift_down(c, i);
}

/* The run stands at its next row, or where its next block begins. False at its end: then its memory
 * goes, once what was taken from it is copied. */
static int step(struct merge_cursor *c, uint32_t run, bool *more, const struct batch *batch)
{
    *more = run_cursor_move(&c->runs[run]);
    if (*more) {
        note_prefix(c, run);
        return 0;
    }
    int err = gather(c, batch->out, batch->versions);
    run_cursor_close(&c->runs[run]);
    return err;
}

/* Puts the top where it belongs after it moved. */
static int settle_top(struct merge_cursor *c, const struct batch *batch)
{
    bool more;
    int err = step(c, c->heap[0], &more, batch);

    if (err == 0 && !more)
        c->heap[0] = c->heap[--c->heap_count];
    if (err == 0 && c->heap_count > 0)
        sift_down(c, 0);
    return err;
}

static int load_top(struct merge_cursor *c, const struct batch *batch)
{
    int err = gather(c, batch->out, batch->versions);

    if (err == 0)
        err = run_cursor_load(&c->runs[c->heap[0]], c->decoder, batch->msg);
    return err == 0 ? settle_top(c, batch) : err;
}

/* ---- merging ---- */

static bool is_deleted(const struct merge_cursor *c, uint32_t run, uint32_t row)
{
    if (c->delete_sign < 0 || !c->runs[run].has_deletes)
        return false;
    const struct vector *sign = &c->runs[run].vectors[c->delete_sign];
    return !vector_is_null(sign, row) && *(const int8_t *)vector_fixed(sign, row) != 0;
}

/* How many rows of the top come before every other run's for sure, at most `limit`. */
static uint32_t rows_ahead(const struct merge_cursor *c, uint32_t limit)
{
    uint32_t top = c->heap[0];
    const struct run_cursor *r = &c->runs[top];
    uint32_t left = r->rows - r->row;

    if (limit > left)
        limit = left;
    if (c->heap_count == 1)
        return limit;
    uint64_t others = c->prefixes[c->heap[1]];
    if (c->heap_count > 2 && c->prefixes[c->heap[2]] < others)
        others = c->prefixes[c->heap[2]];
    if (c->prefixes[top] >= others)
        return 0;
    /* Steps that double find a row that is not ahead, halving finds the first such. */
    const struct vector *const *keys = keys_of(c, top, c->a_keys);
    uint32_t ahead = 1;
    uint32_t stop = 2;
    while (stop <= limit && row_key_prefix(keys, c->plan.key_count, r->row + stop - 1) < others) {
        ahead = stop;
        stop = stop * 2 <= limit || stop == limit ? stop * 2 : limit;
    }
    if (stop > limit)
        return ahead;
    while (ahead + 1 < stop) {
        uint32_t middle = ahead + (stop - ahead) / 2;

        if (row_key_prefix(keys, c->plan.key_count, r->row + middle - 1) < others)
            ahead = middle;
        else
            stop = middle;
    }
    return ahead;
}

static int take_ahead(struct merge_cursor *c, uint32_t count, const struct batch *batch)
{
    uint32_t top = c->heap[0];
    struct run_cursor *r = &c->runs[top];
    int err = 0;

    if (c->delete_sign < 0 || !r->has_deletes)
        err = take(c, top, count, batch);
    else
        for (uint32_t i = 0; i < count && err == 0 && !is_full(c, batch->max, *batch->rows); i++) {
            if (is_deleted(c, top, r->row))
                r->row++;
            else
                err = take(c, top, 1, batch);
        }
    return err == 0 ? settle_top(c, batch) : err;
}

/* The top's row against others that may have the same key. */
static int take_newest(struct merge_cursor *c, const struct batch *batch)
{
    uint32_t winner = c->heap[0];
    struct run_cursor *r = &c->runs[winner];
    bool more;
    int err = 0;

    /* The winner stands aside, so that its key can be compared while the others move. Those that
     * have only a bound stand before it, so none that could be newer is left unloaded here; an
     * older one may have to load its next block on the way. */
    c->heap[0] = c->heap[--c->heap_count];
    sift_down(c, 0);
    while (c->heap_count > 0 && err == 0 && c->prefixes[c->heap[0]] == c->prefixes[winner]) {
        uint32_t other = c->heap[0];

        if (!c->runs[other].loaded) {
            err = load_top(c, batch);
            continue;
        }
        if (compare_keys(c, other, winner) != 0)
            break;
        c->runs[other].row++;
        err = settle_top(c, batch);
    }
    if (err != 0)
        return err;
    if (is_deleted(c, winner, r->row))
        r->row++;
    else
        err = take(c, winner, 1, batch);
    if (err == 0)
        err = step(c, winner, &more, batch);
    if (err == 0 && more)
        push(c, winner);
    return err;
}

static int take_one(struct merge_cursor *c, const struct batch *batch)
{
    int err = take(c, c->heap[0], 1, batch);

    return err == 0 ? settle_top(c, batch) : err;
}

static int next_merged(struct merge_cursor *c, const struct batch *batch)
{
    int err = 0;

    if (!c->primed)
        prime(c);
    while (err == 0 && c->heap_count > 0 && !is_full(c, batch->max, *batch->rows)) {
        if (!c->runs[c->heap[0]].loaded) {
            err = load_top(c, batch);
            continue;
        }
        uint32_t ahead = rows_ahead(c, batch->max - *batch->rows);

        if (ahead > 0)
            err = take_ahead(c, ahead, batch);
        else
            err = c->options.newest_wins ? take_newest(c, batch) : take_one(c, batch);
    }
    return err;
}

/* ---- not merging ---- */

/* The next segment of the rowset, or the first of the next one. */
static int next_segment(struct merge_cursor *c, const struct batch *batch)
{
    uint32_t block = 0;
    int err = gather(c, batch->out, batch->versions);

    if (err != 0)
        return err;
    if (c->run_count > 0) {
        block = c->runs[0].block_end;
        merge_cursor_close_segment(c);
        if (block == c->readers[0].meta->block_count) {
            rowset_reader_close(&c->readers[0]);
            c->reader_count = 0;
            c->input++;
            block = 0;
        }
    }
    return c->input < c->input_count ? merge_cursor_open_segment(c, block, batch->msg) : 0;
}

static int next_sequential(struct merge_cursor *c, const struct batch *batch)
{
    while (c->input < c->input_count && !is_full(c, batch->max, *batch->rows)) {
        struct run_cursor *r = &c->runs[0];
        int err;

        if (c->run_count == 0 || !run_cursor_move(r)) {
            err = next_segment(c, batch);
        } else if (!r->loaded) {
            err = gather(c, batch->out, batch->versions);
            if (err == 0)
                err = run_cursor_load(r, c->decoder, batch->msg);
        } else {
            uint32_t left = r->rows - r->row;
            uint32_t room = batch->max - *batch->rows;

            err = take(c, 0, left < room ? left : room, batch);
        }
        if (err != 0)
            return err;
    }
    return 0;
}

int merge_cursor_next(struct merge_cursor *c, uint32_t max, struct vector *out,
                      struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    struct batch batch = {max, out, versions, rows, msg};

    *rows = 0;
    c->batch_bytes = 0;
    int err = c->options.merge ? next_merged(c, &batch) : next_sequential(c, &batch);
    if (err == 0)
        err = gather(c, out, versions);
    if (err != 0)
        c->stretch_count = 0;
    return err;
}

bool merge_cursor_is_done(const struct merge_cursor *c)
{
    return c->options.merge ? c->primed && c->heap_count == 0 : c->input == c->input_count;
}
