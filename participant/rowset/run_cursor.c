/* SPDX-License-Identifier: Apache-2.0 */
/* Walks one run.
 *
 * Whole blocks outside the range are skipped by the keys in the rowset's description. Those keys
 * may be cut (ROWSET_REF_KEY_MAX), so a block is skipped only when it lies outside for sure; the
 * rows of a block that is read are cut to the range by their real keys. */
#include "participant/rowset/run_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/row_key.h"

void run_cursor_open(struct run_cursor *run, struct rowset_reader *reader,
                     const struct run_plan *plan, version_t version, uint32_t block_begin,
                     uint32_t block_end)
{
    *run = (struct run_cursor){
        .reader = reader,
        .plan = plan,
        .from = plan->from,
        .version = version,
        .block_begin = block_begin,
        .block_end = block_end,
        .block = block_begin,
        .has_deletes = reader->meta->delete_rows > 0,
    };
}

void run_cursor_close(struct run_cursor *run)
{
    if (run->vectors != NULL)
        for (uint32_t i = 0; i < run->plan->column_count; i++)
            vector_close(&run->vectors[i]);
    free(run->vectors);
    run->vectors = NULL;
    run->loaded = false;
    buf_close(&run->scratch);
}

void run_cursor_from(struct run_cursor *run, struct slice from)
{
    run->from = from;
}

int run_cursor_seek(struct run_cursor *run, uint32_t block, uint32_t row)
{
    if (block < run->block_begin || block > run->block_end ||
        row > (block < run->block_end ? run->reader->meta->blocks[block].rows : 0))
        return TG_CORRUPT;
    if (block < run->block_end && row == run->reader->meta->blocks[block].rows) {
        block++;
        row = 0;
    }
    run->block = block;
    run->row = row;
    run->loaded = false;
    return 0;
}

/* ---- the range ---- */

/* Every key of the block is below from. A cut last key may stand for larger ones that begin with
 * it. */
static bool is_below(const struct rowset_block_ref *ref, struct slice from)
{
    struct slice last = ref->last_key;

    if (last.len < ROWSET_REF_KEY_MAX)
        return slice_compare(last, from) < 0;
    return memcmp(last.data, from.data, last.len < from.len ? last.len : from.len) < 0;
}

/* Every key of the block is at or above to. A cut first key is below the real one, so this is safe.
 */
static bool is_above(const struct rowset_block_ref *ref, struct slice to)
{
    return to.len > 0 && slice_compare(ref->first_key, to) >= 0;
}

/* The first block from `block` on that is not below from: last keys ascend. */
static uint32_t skip_below(const struct run_cursor *run)
{
    const struct rowset_block_ref *blocks = run->reader->meta->blocks;
    uint32_t begin = run->block;
    uint32_t end = run->block_end;

    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;

        if (is_below(&blocks[middle], run->from))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* First row in [begin, end) whose key is at or above the bound; rows ascend. */
static uint32_t lower_bound(const struct run_cursor *run, uint32_t begin, uint32_t end,
                            struct slice bound, struct buf *key)
{
    const struct vector *columns[COLUMNS_MAX];

    for (uint32_t i = 0; i < run->plan->key_count; i++)
        columns[i] = &run->vectors[i];
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;

        buf_clear(key);
        row_key_encode(columns, run->plan->key_count, middle, key);
        if (slice_compare(slice_of(key->data, key->len), bound) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static int cut_to_range(struct run_cursor *run, uint32_t rows)
{
    struct buf key = BUF_INIT;
    uint32_t begin = run->row < rows ? run->row : rows;
    uint32_t end = rows;

    if (run->plan->to.len > 0)
        end = lower_bound(run, begin, rows, run->plan->to, &key);
    if (run->from.len > 0)
        begin = lower_bound(run, begin, end, run->from, &key);
    run->row = begin;
    run->rows = end;
    int err = key.err;
    buf_close(&key);
    return err;
}

/* ---- moving ---- */

bool run_cursor_move(struct run_cursor *run)
{
    if (run->loaded) {
        if (run->row < run->rows)
            return true;
        run->block++;
        run->row = 0;
        run->loaded = false;
    }
    if (run->from.len > 0) {
        uint32_t block = skip_below(run);

        if (block != run->block) {
            run->block = block;
            run->row = 0;
        }
    }
    if (run->block < run->block_end &&
        is_above(&run->reader->meta->blocks[run->block], run->plan->to)) {
        run->block = run->block_end;
        run->row = 0;
    }
    return run->block < run->block_end;
}

uint64_t run_cursor_bound(const struct run_cursor *run)
{
    struct slice key = run->reader->meta->blocks[run->block].first_key;
    uint64_t bound = 0;

    for (size_t i = 0; i < sizeof bound; i++)
        bound = bound << 8 | (i < key.len ? key.data[i] : 0);
    return bound;
}

/* A column that this block does not have was added to the table later: it reads as NULL. */
static int fill_nulls(struct vector *vector, uint32_t rows)
{
    int err = vector_reserve(vector, rows, 0);

    for (uint32_t i = 0; i < rows && err == 0; i++)
        err = vector_push_null(vector);
    return err;
}

/* Rows [begin, end) of a column: whole groups. */
static int decode_column(struct run_cursor *run, uint32_t index, uint32_t begin, uint32_t end,
                         struct block_decoder *decoder, struct tg_errmsg *msg)
{
    const struct run_column *wanted = &run->plan->columns[index];
    struct vector *vector = &run->vectors[index];
    int column = block_find(&run->bytes, wanted->id);

    vector_clear(vector);
    if (wanted->only_if_deletes && !run->has_deletes)
        return 0;
    return column < 0
               ? fill_nulls(vector, end - begin)
               : block_decode_rows(decoder, &run->bytes, (uint32_t)column, begin, end, vector, msg);
}

static int decode(struct run_cursor *run, bool first, uint32_t begin, uint32_t end,
                  struct block_decoder *decoder, struct tg_errmsg *msg)
{
    int err = 0;

    for (uint32_t i = 0; i < run->plan->column_count && err == 0; i++)
        if (run_cursor_loads_first(run->plan, i) == first)
            err = decode_column(run, i, begin, end, decoder, msg);
    return err;
}

static int wrap(const struct run_cursor *run, int err, struct tg_errmsg *msg)
{
    const struct rowset_meta *meta = run->reader->meta;

    return err == 0 ? 0
                    : tg_wrap(msg, err, "tablet %lu, rowset %lu, block %u", meta->tablet,
                              meta->rowset, run->block);
}

static int make_vectors(struct run_cursor *run)
{
    if (run->vectors != NULL)
        return 0;
    run->vectors = calloc(run->plan->column_count + 1, sizeof *run->vectors);
    if (run->vectors == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < run->plan->column_count; i++)
        vector_init(&run->vectors[i], run->plan->columns[i].type);
    return 0;
}

int run_cursor_load(struct run_cursor *run, struct block_decoder *decoder, struct tg_errmsg *msg)
{
    const struct rowset_meta *meta = run->reader->meta;
    struct slice bytes;
    int err = make_vectors(run);

    run->filled = false;
    if (err == 0) {
        err = rowset_reader_block(run->reader, run->block, &run->scratch, &bytes);
        if (err != 0)
            tg_fail(msg, err, "its bytes cannot be read: %s", tg_err_sentence(err));
    }
    if (err == 0)
        err = block_open(&run->bytes, bytes.data, bytes.len, msg);
    if (err == 0 && run->bytes.rows != meta->blocks[run->block].rows)
        err = tg_fail(msg, TG_CORRUPT, "it holds %u rows, its description says %u", run->bytes.rows,
                      meta->blocks[run->block].rows);
    if (err == 0)
        err = decode(run, true, 0, run->bytes.rows, decoder, msg);
    if (err == 0)
        err = cut_to_range(run, run->bytes.rows);
    run->loaded = err == 0;
    run->vectors_block = run->block;
    return wrap(run, err, msg);
}

int run_cursor_fill(struct run_cursor *run, struct block_decoder *decoder, struct tg_errmsg *msg)
{
    uint64_t bytes = 0;

    if (run->filled)
        return 0;
    /* Only the groups of rows that lie in the range: for a get, one of thirty. */
    uint32_t begin = run->row / BLOCK_WINDOW_ROWS * BLOCK_WINDOW_ROWS;
    uint32_t end = (run->rows + BLOCK_WINDOW_ROWS - 1) / BLOCK_WINDOW_ROWS * BLOCK_WINDOW_ROWS;
    end = end < run->bytes.rows ? end : run->bytes.rows;
    int err = decode(run, false, begin, end, decoder, msg);
    for (uint32_t i = 0; i < run->plan->column_count && err == 0; i++) {
        const struct vector *v = &run->vectors[i];
        bytes += v->rows > 0 ? v->width + v->bytes_len / v->rows : 0;
    }
    run->row_bytes = (uint32_t)bytes;
    run->filled_from = begin;
    run->filled = err == 0;
    return wrap(run, err, msg);
}
