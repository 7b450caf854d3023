/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a merge cursor: columns to decode, runs to walk, the position to go on from.
 *
 * A position names no block of every run, only where the read as a whole is:
 *   merging      [0, key, run, block, row]: all rows below key were given; of rows with that key,
 *                those of runs before `run`, and of `run` those before (block, row). Where the
 *                newest row wins, run is RUN_NONE: the key is done.
 *   not merging  [1, input, block, row] */
#include <stdlib.h>
#include <string.h>

#include "common/base/msgpack.h"
#include "common/model/row_key.h"
#include "participant/rowset/merge_cursor_private.h"
#include "participant/store/rowset_reader.h"

enum { POSITION_MERGED = 0, POSITION_SEQUENTIAL = 1, MERGED_FIELDS = 5, SEQUENTIAL_FIELDS = 4 };
#define RUN_NONE UINT32_MAX
/* Memory that the descriptions of all runs of a merge may take. */
#define MERGE_META_BYTES_MAX ((uint64_t)1 << 30)
enum { SMALL_ROWSET_BYTES = 16 * 1024, META_BYTES = 512, BLOCK_REF_BYTES = 192 };

/* ---- columns ---- */

static uint32_t add_column(struct merge_cursor *c, uint32_t id, struct column_type type)
{
    for (uint32_t i = 0; i < c->plan.column_count; i++)
        if (c->columns[i].id == id)
            return i;
    c->columns[c->plan.column_count] = (struct run_column){.id = id, .type = type};
    return c->plan.column_count++;
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
        c->wanted[i] = add_column(c, c->options.columns[i], schema_stored_type(schema, at));
    }
    c->delete_sign = -1;
    if (c->options.newest_wins && !c->options.include_deleted && schema->key_model == KEY_UNIQUE) {
        uint32_t before = c->plan.column_count;

        c->delete_sign = (int)add_column(c, COLUMN_ID_DELETE_SIGN,
                                         schema_stored_type(schema, schema->column_count));
        c->columns[c->delete_sign].only_if_deletes = c->plan.column_count > before;
    }
    c->plan.columns = c->columns;
    return 0;
}

/* ---- runs ---- */

static uint32_t segment_end(const struct rowset_meta *meta, uint32_t begin)
{
    uint32_t end = begin + 1;

    while (end < meta->block_count && meta->blocks[end].segment == meta->blocks[begin].segment)
        end++;
    return end;
}

static int open_reader(struct merge_cursor *c, uint32_t input, struct rowset_reader *reader,
                       struct tg_errmsg *msg)
{
    int err = rowset_reader_open(c->store, c->tablet, c->inputs[input].rowset, reader);

    return err == 0 ? 0
                    : tg_fail(msg, err, "tablet %lu, rowset %lu: %s", c->tablet,
                              c->inputs[input].rowset, tg_err_sentence(err));
}

static int open_readers(struct merge_cursor *c, uint32_t *runs, struct tg_errmsg *msg)
{
    uint64_t bytes = 0;

    *runs = 0;
    while (c->reader_count < c->input_count) {
        int err = open_reader(c, c->reader_count, &c->readers[c->reader_count], msg);

        if (err != 0)
            return err;
        const struct rowset_meta *meta = c->readers[c->reader_count++].meta;
        for (uint32_t at = 0; at < meta->block_count; at = segment_end(meta, at))
            ++*runs;
        bytes += META_BYTES + meta->block_count * (uint64_t)BLOCK_REF_BYTES +
                 (meta->bytes <= SMALL_ROWSET_BYTES ? meta->bytes : 0);
        if (*runs > MERGE_RUNS_MAX || bytes > MERGE_META_BYTES_MAX)
            return tg_fail(msg, TG_LIMIT, "tablet %lu consists of too many pieces to merge",
                           c->tablet);
    }
    return 0;
}

int merge_cursor_open_runs(struct merge_cursor *c, struct tg_errmsg *msg)
{
    uint32_t total;
    int err = open_readers(c, &total, msg);

    if (err != 0)
        return err;
    c->runs = calloc((size_t)total + 1, sizeof *c->runs);
    c->prefixes = calloc((size_t)total + 1, sizeof *c->prefixes);
    c->heap = calloc((size_t)total + 1, sizeof *c->heap);
    if (c->runs == NULL || c->prefixes == NULL || c->heap == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < c->reader_count; i++) {
        const struct rowset_meta *meta = c->readers[i].meta;

        for (uint32_t begin = 0; begin < meta->block_count;) {
            uint32_t end = segment_end(meta, begin);

            run_cursor_open(&c->runs[c->run_count++], &c->readers[i], &c->plan,
                            c->inputs[i].version, begin, end);
            begin = end;
        }
    }
    return 0;
}

int merge_cursor_open_segment(struct merge_cursor *c, uint32_t block, struct tg_errmsg *msg)
{
    if (c->reader_count == 0) {
        int err = open_reader(c, c->input, &c->readers[0], msg);

        if (err != 0)
            return err;
        c->reader_count = 1;
    }
    const struct rowset_meta *meta = c->readers[0].meta;
    if (block > meta->block_count)
        return TG_CORRUPT;
    uint32_t begin = 0;
    uint32_t end = 0;
    while (end <= block && end < meta->block_count) {
        begin = end;
        end = segment_end(meta, begin);
    }
    run_cursor_open(&c->runs[0], &c->readers[0], &c->plan, c->inputs[c->input].version, begin, end);
    c->run_count = 1;
    return 0;
}

void merge_cursor_close_segment(struct merge_cursor *c)
{
    if (c->run_count > 0)
        run_cursor_close(&c->runs[0]);
    c->run_count = 0;
}

/* ---- positions ---- */

static int go_to_merged(struct merge_cursor *c, struct cursor *in)
{
    struct slice key = mp_read_bin(in, ROW_KEY_BYTES_MAX);
    uint32_t run = (uint32_t)mp_read_uint_max(in, UINT32_MAX);
    uint32_t block = (uint32_t)mp_read_uint_max(in, UINT32_MAX);
    uint32_t row = (uint32_t)mp_read_uint_max(in, UINT32_MAX);

    if (cursor_finish(in) != 0 || key.len == 0 || (run != RUN_NONE && run >= c->run_count) ||
        slice_compare(key, c->plan.from) < 0)
        return TG_CORRUPT;
    /* No key is the beginning of another one, so this is the least bound above it. */
    buf_append(&c->at, key.data, key.len);
    buf_append(&c->behind, key.data, key.len);
    buf_append_u8(&c->behind, 0);
    if (c->at.err != 0 || c->behind.err != 0)
        return TG_NOMEM;
    for (uint32_t i = 0; i < c->run_count; i++) {
        bool done = run == RUN_NONE || i < run;

        run_cursor_from(&c->runs[i], done ? slice_of(c->behind.data, c->behind.len)
                                          : slice_of(c->at.data, c->at.len));
    }
    return run == RUN_NONE ? 0 : run_cursor_seek(&c->runs[run], block, row);
}

static int go_to_sequential(struct merge_cursor *c, struct cursor *in, struct tg_errmsg *msg)
{
    uint32_t block;
    uint32_t row;

    c->input = (uint32_t)mp_read_uint_max(in, c->input_count);
    block = (uint32_t)mp_read_uint_max(in, UINT32_MAX);
    row = (uint32_t)mp_read_uint_max(in, UINT32_MAX);
    if (cursor_finish(in) != 0)
        return TG_CORRUPT;
    if (c->input == c->input_count)
        return 0;
    int err = merge_cursor_open_segment(c, block, msg);
    return err != 0 ? err : run_cursor_seek(&c->runs[0], block, row);
}

static int go_to(struct merge_cursor *c, struct slice position, struct tg_errmsg *msg)
{
    bool merge = c->options.merge;
    struct cursor in;

    if (position.len == 0)
        return 0;
    buf_append(&c->opened_at, position.data, position.len);
    cursor_init(&in, position.data, position.len);
    mp_expect_array(&in, merge ? MERGED_FIELDS : SEQUENTIAL_FIELDS);
    if (mp_read_uint(&in) != (merge ? POSITION_MERGED : POSITION_SEQUENTIAL) || in.err != 0)
        return tg_fail(msg, TG_CORRUPT, "the position to go on from is malformed");
    int err = merge ? go_to_merged(c, &in) : go_to_sequential(c, &in, msg);
    if (err == TG_CORRUPT)
        tg_fail(msg, err, "the position to go on from is not one of this tablet");
    return err != 0 ? err : c->opened_at.err;
}

void merge_cursor_position(const struct merge_cursor *c, struct buf *out)
{
    bool by_key = c->options.newest_wins;

    if (!c->has_last) {
        buf_append(out, c->opened_at.data, c->opened_at.len);
    } else if (c->options.merge) {
        mp_array(out, MERGED_FIELDS);
        mp_uint(out, POSITION_MERGED);
        mp_bin(out, c->last_key.data, c->last_key.len);
        mp_uint(out, by_key ? RUN_NONE : c->last_run);
        mp_uint(out, by_key ? 0 : c->last_block);
        mp_uint(out, by_key ? 0 : c->last_row + 1);
    } else {
        mp_array(out, SEQUENTIAL_FIELDS);
        mp_uint(out, POSITION_SEQUENTIAL);
        mp_uint(out, c->last_run); /* the input */
        mp_uint(out, c->last_block);
        mp_uint(out, c->last_row + 1);
    }
}

/* ---- life ---- */

static int allocate(struct merge_cursor *c, const struct merge_input *inputs, uint32_t input_count,
                    const struct merge_options *options)
{
    size_t readers = options->merge ? (size_t)input_count + 1 : 1;

    buf_append(&c->from, options->from.data, options->from.len);
    buf_append(&c->to, options->to.data, options->to.len);
    c->plan.from = slice_of(c->from.data, c->from.len);
    c->plan.to = slice_of(c->to.data, c->to.len);
    c->decoder = block_decoder_open();
    c->inputs = calloc((size_t)input_count + 1, sizeof *c->inputs);
    c->readers = calloc(readers, sizeof *c->readers);
    c->a_keys = calloc(COLUMNS_MAX, sizeof *c->a_keys);
    c->b_keys = calloc(COLUMNS_MAX, sizeof *c->b_keys);
    if (c->from.err != 0 || c->to.err != 0 || c->decoder == NULL || c->inputs == NULL ||
        c->readers == NULL || c->a_keys == NULL || c->b_keys == NULL)
        return TG_NOMEM;
    if (!options->merge && (c->runs = calloc(1, sizeof *c->runs)) == NULL)
        return TG_NOMEM;
    c->input_count = input_count;
    for (uint32_t i = 0; i < input_count; i++)
        c->inputs[i] = inputs[i];
    return 0;
}

int merge_cursor_open(struct store *store, tablet_id tablet, const struct merge_input *inputs,
                      uint32_t input_count, const struct merge_options *options,
                      struct slice position, struct merge_cursor **cursor, struct tg_errmsg *msg)
{
    struct merge_cursor *c = calloc(1, sizeof *c);

    if (c == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory to read tablet %lu", tablet);
    c->store = store;
    c->tablet = tablet;
    c->options = *options;
    int err = allocate(c, inputs, input_count, options);
    if (err == 0)
        err = plan_columns(c, msg);
    if (err == 0 && options->merge)
        err = merge_cursor_open_runs(c, msg);
    if (err == 0)
        err = go_to(c, position, msg);
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
    buf_close(&c->at);
    buf_close(&c->behind);
    buf_close(&c->last_key);
    buf_close(&c->opened_at);
    free(c->columns);
    free(c->wanted);
    free(c->inputs);
    free(c->readers);
    free(c->runs);
    free(c->prefixes);
    free(c->heap);
    free(c->stretches);
    free(c->a_keys);
    free(c->b_keys);
    free(c);
}

struct column_type merge_cursor_type(const struct merge_cursor *c, uint32_t column)
{
    return c->columns[c->wanted[column]].type;
}
