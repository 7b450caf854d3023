/* SPDX-License-Identifier: Apache-2.0 */
/* Walks all runs of a tablet's version as one.
 *
 * A binary heap holds the runs that have rows, the smallest key on top, of equal keys the newest
 * run (the one with the largest index) first. Keys are compared by their 64-bit prefix; only equal
 * prefixes look at the columns. Rows taken from runs are noted as (run, first row, count) stretches
 * and gathered column by column when a run has to load its next block or the batch is full. */
#include "participant/rowset/merge_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/msgpack.h"
#include "common/model/row_key.h"
#include "participant/rowset/run_cursor.h"
#include "participant/store/rowset_reader.h"

struct stretch {
    uint32_t run;
    uint32_t row;
    uint32_t count;
};

struct merge_cursor {
    struct merge_options options;
    struct buf from, to;
    struct run_plan plan;
    struct run_column *columns; /* keys first, then wanted ones and the delete sign */
    uint32_t *wanted;           /* where each wanted column is in columns */
    int delete_sign;            /* index in columns, -1 if not read */
    uint32_t reader_count;
    struct rowset_reader *readers;
    uint32_t run_count;
    struct run_cursor *runs;
    uint64_t *prefixes; /* of each run's current row */
    uint32_t heap_count;
    uint32_t *heap;      /* runs */
    uint32_t sequential; /* not merging: the run being read */
    bool primed;
    struct block_decoder *decoder;
    uint32_t stretch_count, stretch_capacity;
    struct stretch *stretches;
    const struct vector **a_keys, **b_keys;
};

/* ---- opening ---- */

static int add_column(struct merge_cursor *c, uint32_t id, struct column_type type)
{
    for (uint32_t i = 0; i < c->plan.column_count; i++)
        if (c->columns[i].id == id)
            return (int)i;
    c->columns[c->plan.column_count] = (struct run_column){.id = id, .type = type};
    return (int)c->plan.column_count++;
}

static int plan_columns(struct merge_cursor *c, struct tg_errmsg *msg)
{
    const struct schema *schema = c->options.schema;
    uint32_t stored = schema_stored_count(schema);
    bool keys = c->options.merge || c->options.from.len > 0 || c->options.to.len > 0;

    c->columns = calloc(stored + 1, sizeof *c->columns);
    c->wanted = calloc(c->options.column_count + 1, sizeof *c->wanted);
    if (c->columns == NULL || c->wanted == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; keys && i < schema->key_count; i++)
        add_column(c, schema_stored_id(schema, i), schema_stored_type(schema, i));
    c->plan.key_count = keys ? schema->key_count : 0;
    for (uint32_t i = 0; i < c->options.column_count; i++) {
        uint32_t at = 0;

        while (at < stored && schema_stored_id(schema, at) != c->options.columns[i])
            at++;
        if (at == stored)
            return tg_fail(msg, TG_INVALID, "the table has no stored column %u",
                           c->options.columns[i]);
        c->wanted[i] =
            (uint32_t)add_column(c, c->options.columns[i], schema_stored_type(schema, at));
    }
    c->delete_sign = -1;
    if (c->options.newest_wins && !c->options.include_deleted && schema->key_model == KEY_UNIQUE)
        c->delete_sign =
            add_column(c, COLUMN_ID_DELETE_SIGN, schema_stored_type(schema, schema->column_count));
    c->plan.columns = c->columns;
    return 0;
}

static uint32_t count_runs(const struct rowset_meta *meta)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < meta->block_count; i++)
        count += i == 0 || meta->blocks[i].segment != meta->blocks[i - 1].segment;
    return count;
}

static int open_runs(struct merge_cursor *c, const struct merge_input *inputs)
{
    uint32_t total = 0;

    for (uint32_t i = 0; i < c->reader_count; i++)
        total += count_runs(c->readers[i].meta);
    if (total > MERGE_RUNS_MAX)
        return TG_LIMIT;
    c->runs = calloc(total + 1, sizeof *c->runs);
    c->prefixes = calloc(total + 1, sizeof *c->prefixes);
    c->heap = calloc(total + 1, sizeof *c->heap);
    if (c->runs == NULL || c->prefixes == NULL || c->heap == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < c->reader_count; i++) {
        const struct rowset_meta *meta = c->readers[i].meta;

        for (uint32_t begin = 0; begin < meta->block_count;) {
            uint32_t end = begin + 1;

            while (end < meta->block_count &&
                   meta->blocks[end].segment == meta->blocks[begin].segment)
                end++;
            int err = run_cursor_open(&c->runs[c->run_count], &c->readers[i], &c->plan,
                                      inputs[i].version, begin, end);
            if (err != 0)
                return err;
            c->run_count++;
            begin = end;
        }
    }
    return 0;
}

static int go_to(struct merge_cursor *c, struct slice position)
{
    struct cursor in;

    if (position.len == 0)
        return 0;
    cursor_init(&in, position.data, position.len);
    mp_expect_array(&in, 2);
    c->sequential = (uint32_t)mp_read_uint_max(&in, c->run_count);
    uint32_t count = mp_read_array(&in, MERGE_RUNS_MAX * 2);
    if (in.err != 0 || count != c->run_count * 2)
        return TG_CORRUPT;
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t block = (uint32_t)mp_read_uint_max(&in, UINT32_MAX);
        uint32_t row = (uint32_t)mp_read_uint_max(&in, UINT32_MAX);
        int err = in.err != 0 ? in.err : run_cursor_seek(&c->runs[i], block, row);

        if (err != 0)
            return err;
    }
    return cursor_finish(&in);
}

int merge_cursor_open(struct store *store, tablet_id tablet, const struct merge_input *inputs,
                      uint32_t input_count, const struct merge_options *options,
                      struct slice position, struct merge_cursor **cursor, struct tg_errmsg *msg)
{
    struct merge_cursor *c = calloc(1, sizeof *c);
    int err = 0;

    if (c == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory to read tablet %lu", tablet);
    c->options = *options;
    buf_append(&c->from, options->from.data, options->from.len);
    buf_append(&c->to, options->to.data, options->to.len);
    c->plan.from = slice_of(c->from.data, c->from.len);
    c->plan.to = slice_of(c->to.data, c->to.len);
    c->decoder = block_decoder_open();
    c->readers = calloc(input_count + 1, sizeof *c->readers);
    c->a_keys = calloc(COLUMNS_MAX, sizeof *c->a_keys);
    c->b_keys = calloc(COLUMNS_MAX, sizeof *c->b_keys);
    if (c->from.err != 0 || c->to.err != 0 || c->decoder == NULL || c->readers == NULL ||
        c->a_keys == NULL || c->b_keys == NULL)
        err = TG_NOMEM;
    if (err == 0)
        err = plan_columns(c, msg);
    for (uint32_t i = 0; i < input_count && err == 0; i++) {
        err = rowset_reader_open(store, tablet, inputs[i].rowset, &c->readers[i]);
        if (err == 0)
            c->reader_count++;
        else
            tg_fail(msg, err, "tablet %lu, rowset %lu: %s", tablet, inputs[i].rowset,
                    tg_err_sentence(err));
    }
    if (err == 0)
        err = open_runs(c, inputs);
    if (err == 0)
        err = go_to(c, position);
    if (err != 0) {
        merge_cursor_close(c);
        return err;
    }
    *cursor = c;
    return 0;
}

void merge_cursor_close(struct merge_cursor *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->run_count; i++)
        run_cursor_close(&c->runs[i]);
    for (uint32_t i = 0; i < c->reader_count; i++)
        rowset_reader_close(&c->readers[i]);
    block_decoder_close(c->decoder);
    buf_close(&c->from);
    buf_close(&c->to);
    free(c->columns);
    free(c->wanted);
    free(c->readers);
    free(c->runs);
    free(c->prefixes);
    free(c->heap);
    free(c->stretches);
    free(c->a_keys);
    free(c->b_keys);
    free(c);
}

void merge_cursor_position(const struct merge_cursor *c, struct buf *out)
{
    mp_array(out, 2);
    mp_uint(out, c->sequential);
    mp_array(out, c->run_count * 2);
    for (uint32_t i = 0; i < c->run_count; i++) {
        mp_uint(out, c->runs[i].block);
        mp_uint(out, c->runs[i].row);
    }
}

struct column_type merge_cursor_type(const struct merge_cursor *c, uint32_t column)
{
    return c->columns[c->wanted[column]].type;
}

/* ---- the heap ---- */

static const struct vector *const *keys_of(const struct merge_cursor *c, uint32_t run,
                                           const struct vector **keys)
{
    for (uint32_t i = 0; i < c->plan.key_count; i++)
        keys[i] = &c->runs[run].vectors[i];
    return keys;
}

static int compare_keys(const struct merge_cursor *c, uint32_t a, uint32_t b)
{
    if (c->prefixes[a] != c->prefixes[b])
        return c->prefixes[a] < c->prefixes[b] ? -1 : 1;
    return row_key_compare(keys_of(c, a, c->a_keys), c->runs[a].row, keys_of(c, b, c->b_keys),
                           c->runs[b].row, c->plan.key_count);
}

static bool comes_before(const struct merge_cursor *c, uint32_t a, uint32_t b)
{
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

static void note_prefix(struct merge_cursor *c, uint32_t run)
{
    c->prefixes[run] =
        row_key_prefix(keys_of(c, run, c->a_keys), c->plan.key_count, c->runs[run].row);
}

static int prime(struct merge_cursor *c, struct tg_errmsg *msg)
{
    c->primed = true;
    c->heap_count = 0;
    for (uint32_t i = 0; i < c->run_count; i++) {
        bool end;
        int err = run_cursor_ready(&c->runs[i], c->decoder, &end, msg);

        if (err != 0)
            return err;
        if (end)
            continue;
        note_prefix(c, i);
        c->heap[c->heap_count++] = i;
    }
    for (uint32_t i = c->heap_count / 2; i-- > 0;)
        sift_down(c, i);
    return 0;
}

/* ---- taking rows ---- */

static int take(struct merge_cursor *c, uint32_t run, uint32_t row, uint32_t count)
{
    if (c->stretch_count > 0) {
        struct stretch *last = &c->stretches[c->stretch_count - 1];

        if (last->run == run && last->row + last->count == row) {
            last->count += count;
            return 0;
        }
    }
    if (c->stretch_count == c->stretch_capacity) {
        uint32_t capacity = c->stretch_capacity == 0 ? 256 : c->stretch_capacity * 2;
        struct stretch *stretches = realloc(c->stretches, capacity * sizeof *stretches);

        if (stretches == NULL)
            return TG_NOMEM;
        c->stretches = stretches;
        c->stretch_capacity = capacity;
    }
    c->stretches[c->stretch_count++] = (struct stretch){run, row, count};
    return 0;
}

static int gather(struct merge_cursor *c, struct vector *out, struct vector *versions)
{
    int err = 0;

    for (uint32_t column = 0; column < c->options.column_count && err == 0; column++)
        for (uint32_t i = 0; i < c->stretch_count && err == 0; i++) {
            const struct stretch *s = &c->stretches[i];
            const struct vector *from = &c->runs[s->run].vectors[c->wanted[column]];

            err = s->count == 1 ? vector_append_row(&out[column], from, s->row)
                                : vector_append_range(&out[column], from, s->row, s->count);
        }
    for (uint32_t i = 0; i < c->stretch_count && versions != NULL && err == 0; i++) {
        int64_t version = (int64_t)c->runs[c->stretches[i].run].version;

        for (uint32_t n = 0; n < c->stretches[i].count && err == 0; n++)
            err = vector_append_fixed(versions, &version);
    }
    c->stretch_count = 0;
    return err;
}

static bool is_deleted(const struct merge_cursor *c, uint32_t run)
{
    if (c->delete_sign < 0)
        return false;
    const struct vector *sign = &c->runs[run].vectors[c->delete_sign];
    return !vector_is_null(sign, c->runs[run].row) &&
           *(const int8_t *)vector_fixed(sign, c->runs[run].row) != 0;
}

/* Steps the run on top of the heap to its next row. A run that loads a block overwrites rows that
 * were taken from it, so those are gathered first. */
static int step_top(struct merge_cursor *c, struct vector *out, struct vector *versions,
                    struct tg_errmsg *msg)
{
    uint32_t run = c->heap[0];
    struct run_cursor *r = &c->runs[run];
    bool end = false;

    r->row++;
    if (r->row >= r->rows) {
        int err = gather(c, out, versions);

        if (err == 0)
            err = run_cursor_ready(r, c->decoder, &end, msg);
        if (err != 0)
            return err;
    }
    if (end)
        c->heap[0] = c->heap[--c->heap_count];
    else
        note_prefix(c, run);
    if (c->heap_count > 0)
        sift_down(c, 0);
    return 0;
}

/* The older rows of the key that was just taken. The runs' current rows are compared with it by
 * value: the winner's own row must still be in its vectors, so it is stepped last. */
static int skip_older(struct merge_cursor *c, struct vector *out, struct vector *versions,
                      struct tg_errmsg *msg)
{
    uint32_t winner = c->heap[0];
    uint32_t others = c->heap_count;
    int err = 0;

    if (others == 1)
        return step_top(c, out, versions, msg);
    /* Put the winner aside at the heap's end, and step what equals it. */
    c->heap[0] = c->heap[--c->heap_count];
    sift_down(c, 0);
    while (c->heap_count > 0 && err == 0 && compare_keys(c, c->heap[0], winner) == 0)
        err = step_top(c, out, versions, msg);
    if (err != 0)
        return err;
    /* Back in, on top: then step it as usual. */
    c->heap[c->heap_count++] = c->heap[0];
    c->heap[0] = winner;
    if (c->heap_count == 1)
        return step_top(c, out, versions, msg);
    for (uint32_t at = c->heap_count - 1; at > 0;) { /* the moved one may be out of place */
        uint32_t parent = (at - 1) / 2;

        if (parent == 0 || !comes_before(c, c->heap[at], c->heap[parent]))
            break;
        uint32_t run = c->heap[at];
        c->heap[at] = c->heap[parent];
        c->heap[parent] = run;
        at = parent;
    }
    return step_top(c, out, versions, msg);
}

/* A run that is alone needs no heap: the rest of its block at once. Only where every row is kept,
 * or no row of it can be deleted or repeated unseen. */
static int take_alone(struct merge_cursor *c, uint32_t max, struct vector *out,
                      struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    struct run_cursor *r = &c->runs[c->heap[0]];
    uint32_t left = r->rows - r->row;
    uint32_t count = left < max - *rows ? left : max - *rows;
    int err = take(c, c->heap[0], r->row, count);

    if (err != 0)
        return err;
    *rows += count;
    r->row += count - 1;
    return step_top(c, out, versions, msg);
}

static int next_merged(struct merge_cursor *c, uint32_t max, struct vector *out,
                       struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    int err = c->primed ? 0 : prime(c, msg);

    while (err == 0 && c->heap_count > 0 && *rows < max) {
        uint32_t top = c->heap[0];

        if (c->heap_count == 1 && c->delete_sign < 0) {
            err = take_alone(c, max, out, versions, rows, msg);
            continue;
        }
        if (!c->options.newest_wins || !is_deleted(c, top)) {
            err = take(c, top, c->runs[top].row, 1);
            ++*rows;
        }
        if (err == 0)
            err = c->options.newest_wins ? skip_older(c, out, versions, msg)
                                         : step_top(c, out, versions, msg);
    }
    return err;
}

static int next_sequential(struct merge_cursor *c, uint32_t max, struct vector *out,
                           struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    while (c->sequential < c->run_count && *rows < max) {
        struct run_cursor *r = &c->runs[c->sequential];
        bool end;
        int err;

        if (r->loaded && r->row >= r->rows && (err = gather(c, out, versions)) != 0)
            return err;
        err = run_cursor_ready(r, c->decoder, &end, msg);
        if (err != 0)
            return err;
        if (end) {
            c->sequential++;
            continue;
        }
        uint32_t left = r->rows - r->row;
        uint32_t count = left < max - *rows ? left : max - *rows;
        err = take(c, c->sequential, r->row, count);
        if (err != 0)
            return err;
        r->row += count;
        *rows += count;
    }
    return 0;
}

int merge_cursor_next(struct merge_cursor *c, uint32_t max, struct vector *out,
                      struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    *rows = 0;
    int err = c->options.merge ? next_merged(c, max, out, versions, rows, msg)
                               : next_sequential(c, max, out, versions, rows, msg);

    if (err == 0)
        err = gather(c, out, versions);
    if (err != 0)
        c->stretch_count = 0;
    return err;
}
