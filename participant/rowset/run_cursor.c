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

int run_cursor_open(struct run_cursor *run, struct rowset_reader *reader,
                    const struct run_plan *plan, version_t version, uint32_t block_begin,
                    uint32_t block_end)
{
    memset(run, 0, sizeof *run);
    run->vectors = calloc(plan->column_count + 1, sizeof *run->vectors);
    if (run->vectors == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < plan->column_count; i++)
        vector_init(&run->vectors[i], plan->columns[i].type);
    run->reader = reader;
    run->plan = plan;
    run->version = version;
    run->block_begin = block_begin;
    run->block_end = block_end;
    return 0;
}

void run_cursor_close(struct run_cursor *run)
{
    if (run->vectors != NULL)
        for (uint32_t i = 0; i < run->plan->column_count; i++)
            vector_close(&run->vectors[i]);
    free(run->vectors);
    run->vectors = NULL;
    buf_close(&run->scratch);
}

int run_cursor_seek(struct run_cursor *run, uint32_t block, uint32_t row)
{
    uint32_t count = run->block_end - run->block_begin;

    if (block > count || (block == count && row != 0) ||
        (block < count && row > run->reader->meta->blocks[run->block_begin + block].rows))
        return TG_CORRUPT;
    run->block = block;
    run->row = row;
    run->loaded = false;
    return 0;
}

static int compare_head(struct slice a, struct slice b, size_t len)
{
    return memcmp(a.data, b.data, len);
}

/* Every key of the block is below from. A cut last key may stand for larger ones that begin with
 * it. */
static bool is_below(const struct rowset_block_ref *ref, struct slice from)
{
    if (from.len == 0)
        return false;
    if (ref->last_key.len < ROWSET_REF_KEY_MAX)
        return slice_compare(ref->last_key, from) < 0;
    size_t head = ref->last_key.len < from.len ? ref->last_key.len : from.len;
    return compare_head(ref->last_key, from, head) < 0;
}

/* Every key of the block is at or above to. A cut first key is below the real one, so this is safe.
 */
static bool is_above(const struct rowset_block_ref *ref, struct slice to)
{
    return to.len > 0 && slice_compare(ref->first_key, to) >= 0;
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
    uint32_t begin = run->row;
    uint32_t end = rows;

    if (run->plan->to.len > 0)
        end = lower_bound(run, begin < rows ? begin : rows, rows, run->plan->to, &key);
    if (run->plan->from.len > 0)
        begin = lower_bound(run, begin, end, run->plan->from, &key);
    run->row = begin;
    run->rows = end;
    int err = key.err;
    buf_close(&key);
    return err;
}

/* A column that this block does not have was added to the table later: it reads as NULL. */
static int fill_nulls(struct vector *vector, uint32_t rows)
{
    int err = vector_reserve(vector, rows, 0);

    for (uint32_t i = 0; i < rows && err == 0; i++)
        err = vector_push_null(vector);
    return err;
}

static int load_block(struct run_cursor *run, struct block_decoder *decoder, struct tg_errmsg *msg)
{
    const struct rowset_meta *meta = run->reader->meta;
    uint32_t index = run->block_begin + run->block;
    struct slice bytes;
    struct block block;
    int err = rowset_reader_block(run->reader, index, &run->scratch, &bytes);

    if (err == 0)
        err = block_open(&block, bytes.data, bytes.len, msg);
    else
        tg_fail(msg, err, "its bytes cannot be read");
    if (err == 0 && block.rows != meta->blocks[index].rows)
        err = tg_fail(msg, TG_CORRUPT, "it holds %u rows, its description says %u", block.rows,
                      meta->blocks[index].rows);
    for (uint32_t i = 0; i < run->plan->column_count && err == 0; i++) {
        struct vector *vector = &run->vectors[i];
        int column = block_find(&block, run->plan->columns[i].id);

        vector_clear(vector);
        err = column < 0 ? fill_nulls(vector, block.rows)
                         : block_decode_column(decoder, &block, (uint32_t)column, vector, msg);
    }
    if (err == 0)
        err = cut_to_range(run, block.rows);
    run->loaded = err == 0;
    return err == 0 ? 0
                    : tg_wrap(msg, err, "tablet %lu, rowset %lu, block %u", meta->tablet,
                              meta->rowset, index);
}

int run_cursor_ready(struct run_cursor *run, struct block_decoder *decoder, bool *end,
                     struct tg_errmsg *msg)
{
    *end = false;
    for (;;) {
        if (run->loaded && run->row < run->rows)
            return 0;
        if (run->loaded) {
            run->block++;
            run->row = 0;
            run->loaded = false;
        }
        if (run->block_begin + run->block >= run->block_end) {
            *end = true;
            return 0;
        }
        const struct rowset_block_ref *ref =
            &run->reader->meta->blocks[run->block_begin + run->block];
        if (is_above(ref, run->plan->to)) {
            run->block = run->block_end - run->block_begin;
            run->row = 0;
            *end = true;
            return 0;
        }
        if (is_below(ref, run->plan->from)) {
            run->block++;
            run->row = 0;
            continue;
        }
        int err = load_block(run, decoder, msg);
        if (err != 0)
            return err;
    }
}
