/* SPDX-License-Identifier: Apache-2.0 */
/* Reading sealed rowsets: the description from the cache, content from its extents. */
#include "participant/store/rowset_reader.h"

#include <string.h>

#include "common/base/log.h"
#include "participant/store/rowset_cache.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

enum { VERIFY_STEP_BYTES = 1024 * 1024 };

static int fill_cached(struct slice bytes, tablet_id tablet, rowset_id rowset,
                       struct rowset_cached *cached)
{
    struct rowset_value value;
    struct cursor cursor;
    int err = rowset_value_decode(bytes, &value);
    if (err != 0)
        return err;
    cursor_init(&cursor, value.meta.data, value.meta.len);
    err = rowset_meta_decode(&cursor, &cached->meta);
    if (err == 0)
        err = cursor_finish(&cursor);
    if (err != 0)
        return err;
    cached->is_inline = value.is_inline;
    if (cached->meta.tablet != tablet || cached->meta.rowset != rowset ||
        (value.is_inline && value.content.len != cached->meta.bytes))
        return TG_CORRUPT;
    buf_append(&cached->content, value.content.data, value.content.len);
    return cached->content.err;
}

static int load(struct store *store, tablet_id tablet, rowset_id rowset,
                struct rowset_cached *cached)
{
    struct lmdb_txn txn;
    struct store_key key;
    struct slice bytes;
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0)
        return err;
    store_key_rowset(&key, tablet, rowset);
    if (lmdb_txn_get(&txn, store->db_rowset, store_key_slice(&key), &bytes))
        err = fill_cached(bytes, tablet, rowset, cached);
    else
        err = txn.err != 0 ? txn.err : TG_NOT_FOUND;
    lmdb_txn_abort(&txn);
    if (err == TG_CORRUPT)
        log_error("store", "damaged rowset description tablet=%lu rowset=%lu", tablet, rowset);
    return err;
}

int rowset_reader_open(struct store *store, tablet_id tablet, rowset_id rowset,
                       struct rowset_reader *reader)
{
    memset(reader, 0, sizeof *reader);
    struct rowset_cached *cached = rowset_cache_find(store->cache, tablet, rowset);
    if (cached == NULL) {
        cached = rowset_cached_new();
        if (cached == NULL)
            return TG_NOMEM;
        int err = load(store, tablet, rowset, cached);
        if (err != 0) {
            rowset_cached_release(cached);
            return err;
        }
        rowset_cache_put(store->cache, cached);
    }
    *reader = (struct rowset_reader){.store = store, .meta = &cached->meta, .cached = cached};
    return 0;
}

int rowset_reader_open_anew(struct store *store, tablet_id tablet, rowset_id rowset,
                            struct rowset_reader *reader)
{
    memset(reader, 0, sizeof *reader);
    struct rowset_cached *cached = rowset_cached_new();
    if (cached == NULL)
        return TG_NOMEM;
    int err = load(store, tablet, rowset, cached);
    if (err != 0) {
        rowset_cached_release(cached);
        return err;
    }
    *reader = (struct rowset_reader){.store = store, .meta = &cached->meta, .cached = cached};
    return 0;
}

void rowset_reader_close(struct rowset_reader *reader)
{
    rowset_cached_release(reader->cached);
    memset(reader, 0, sizeof *reader);
}

/* The extent of one block environment that covers `offset`, if there is one: its bytes from there
 * on. */
static bool find_extent(struct rowset_reader *reader, struct lmdb_txn *txn, MDB_dbi database,
                        uint64_t offset, struct slice *bytes)
{
    struct lmdb_cursor cursor;
    struct store_key key;
    uint64_t numbers[3];
    bool found = false;
    if (!lmdb_cursor_open(&cursor, txn, database))
        return false;
    store_key_block(&key, reader->meta->tablet, reader->meta->rowset, offset);
    if (lmdb_cursor_seek_back(&cursor, store_key_slice(&key)) &&
        store_key_parse(cursor.key, 3, numbers) == 0 && numbers[0] == reader->meta->tablet &&
        numbers[1] == reader->meta->rowset && offset - numbers[2] < cursor.value.len) {
        uint64_t skip = offset - numbers[2];
        *bytes = slice_of(cursor.value.data + skip, cursor.value.len - skip);
        found = true;
    }
    lmdb_cursor_close(&cursor);
    return found;
}

/* Content is where no extent is: dropped meanwhile, or lost? */
static int explain_gap(struct rowset_reader *reader, uint64_t offset)
{
    struct rowset_cached *again = rowset_cached_new();
    if (again == NULL)
        return TG_NOMEM;
    int err = load(reader->store, reader->meta->tablet, reader->meta->rowset, again);
    rowset_cached_release(again);
    if (err != 0)
        return err;
    log_error("store", "missing extent tablet=%lu rowset=%lu offset=%lu", reader->meta->tablet,
              reader->meta->rowset, offset);
    return TG_CORRUPT;
}

/* Appends [offset, offset+len) from extents: one snapshot of both block environments, which is let
 * go before returning. */
static int gather(struct rowset_reader *reader, uint64_t offset, uint64_t len, struct buf *out)
{
    struct store *store = reader->store;
    struct lmdb_txn txns[BLOCK_CLASSES];
    uint64_t end = offset + len;
    bool gap = false;
    if (buf_reserve(out, len) != 0)
        return out->err;
    int err = lmdb_txn_read(&store->blocks[BLOCKS_64K], &txns[BLOCKS_64K]);
    if (err != 0)
        return err;
    err = lmdb_txn_read(&store->blocks[BLOCKS_256K], &txns[BLOCKS_256K]);
    while (err == 0 && !gap && offset < end) {
        struct slice bytes = {0};
        gap = true;
        for (int i = BLOCK_CLASSES - 1; i >= 0 && gap && err == 0; i--) {
            gap = !find_extent(reader, &txns[i], store->db_block[i], offset, &bytes);
            err = txns[i].err;
        }
        if (gap || err != 0)
            break;
        uint64_t take = bytes.len < end - offset ? bytes.len : end - offset;
        buf_append(out, bytes.data, take);
        offset += take;
    }
    lmdb_txn_abort(&txns[BLOCKS_256K]);
    lmdb_txn_abort(&txns[BLOCKS_64K]);
    if (err == 0 && gap)
        err = explain_gap(reader, offset);
    return err != 0 ? err : out->err;
}

int rowset_reader_bytes(struct rowset_reader *reader, uint64_t offset, uint64_t len,
                        struct buf *out)
{
    const struct rowset_meta *meta = reader->meta;
    if (offset > meta->bytes || len > meta->bytes - offset)
        return TG_INVALID;
    if (!reader->cached->is_inline)
        return gather(reader, offset, len, out);
    if (len > 0)
        buf_append(out, reader->cached->content.data + offset, len);
    return out->err;
}

int rowset_reader_block(struct rowset_reader *reader, uint32_t index, struct buf *scratch,
                        struct slice *bytes)
{
    if (index >= reader->meta->block_count)
        return TG_INVALID;
    const struct rowset_block_ref *block = &reader->meta->blocks[index];
    if (block->offset > reader->meta->bytes || block->len > reader->meta->bytes - block->offset)
        return TG_CORRUPT;
    if (reader->cached->is_inline) {
        *bytes = slice_of(reader->cached->content.data + block->offset, block->len);
        return 0;
    }
    buf_clear(scratch);
    int err = gather(reader, block->offset, block->len, scratch);
    *bytes = slice_of(scratch->data, scratch->len);
    return err;
}

static bool at_once(void *data, uint64_t bytes)
{
    (void)data;
    (void)bytes;
    return true;
}

int rowset_reader_verify(struct rowset_reader *reader)
{
    return rowset_reader_verify_slowly(reader, at_once, NULL);
}

int rowset_reader_verify_slowly(struct rowset_reader *reader,
                                bool (*go_on)(void *data, uint64_t bytes), void *data)
{
    struct buf step = BUF_INIT;
    struct digest_stream *stream = digest_stream_open();
    if (stream == NULL)
        return TG_NOMEM;
    uint64_t at = 0;
    int err = 0;
    while (err == 0 && at < reader->meta->bytes) {
        uint64_t left = reader->meta->bytes - at;
        uint64_t len = left < VERIFY_STEP_BYTES ? left : VERIFY_STEP_BYTES;
        buf_clear(&step);
        err = rowset_reader_bytes(reader, at, len, &step);
        if (err == 0)
            digest_stream_add(stream, step.data, step.len);
        if (err == 0 && !go_on(data, len))
            err = TG_CANCELED;
        at += len;
    }
    struct digest digest = digest_stream_value(stream);
    if (err == 0 && !digest_equal(&digest, &reader->meta->digest)) {
        log_error("store", "damaged content tablet=%lu rowset=%lu", reader->meta->tablet,
                  reader->meta->rowset);
        err = TG_CORRUPT;
    }
    digest_stream_close(stream);
    buf_close(&step);
    return err;
}
