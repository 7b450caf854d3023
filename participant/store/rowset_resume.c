/* SPDX-License-Identifier: Apache-2.0 */
/* Going on with a rowset whose writing was broken off, by a peer's end or by this node's own. */
#include <string.h>

#include "common/base/log.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/rowset_open.h"
#include "participant/store/rowset_store.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

/* The extent that begins at the rowset's offset, in either environment. */
static bool next_extent(struct store *store, struct lmdb_txn *txns, const struct open_rowset *open,
                        struct slice *bytes)
{
    struct store_key key;

    store_key_block(&key, open->tablet, open->rowset, open->end);
    for (int i = BLOCK_CLASSES - 1; i >= 0; i--)
        if (lmdb_txn_get(&txns[i], store->db_block[i], store_key_slice(&key), bytes) &&
            bytes->len > 0)
            return true;
    return false;
}

/* As if those bytes had just been received and written. */
static int take_extents(struct store *store, struct open_rowset *open)
{
    struct lmdb_txn txns[BLOCK_CLASSES];
    struct slice bytes;
    int err = lmdb_txn_read(&store->blocks[BLOCKS_64K], &txns[BLOCKS_64K]);

    if (err != 0)
        return err;
    err = lmdb_txn_read(&store->blocks[BLOCKS_256K], &txns[BLOCKS_256K]);
    if (err != 0) {
        lmdb_txn_abort(&txns[BLOCKS_64K]);
        return err;
    }
    while (next_extent(store, txns, open, &bytes)) {
        digest_stream_add(open->digest, bytes.data, bytes.len);
        open->end += bytes.len;
    }
    err = txns[BLOCKS_64K].err != 0 ? txns[BLOCKS_64K].err : txns[BLOCKS_256K].err;
    lmdb_txn_abort(&txns[BLOCKS_256K]);
    lmdb_txn_abort(&txns[BLOCKS_64K]);
    open->tail_at = open->end;
    open->extents = open->end > 0;
    open->staged = STAGED_DURABLE;
    return err;
}

static int is_broken_off(struct store *store, txn_id txn_number, table_id table, tablet_id tablet,
                         rowset_id rowset, bool *broken_off)
{
    struct lmdb_txn txn;
    struct store_key key;
    struct slice bytes;
    struct staged_value value;
    int err = lmdb_txn_read(&store->meta, &txn);

    *broken_off = false;
    if (err != 0)
        return err;
    store_key_staged(&key, txn_number, rowset, tablet);
    if (lmdb_txn_get(&txn, store->db_staged, store_key_slice(&key), &bytes)) {
        err = staged_value_decode(bytes, &value);
        *broken_off = err == 0 && value.state == STAGED_OPEN && value.table == table;
    }
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

static int open_again(struct store *store, txn_id txn, table_id table, tablet_id tablet,
                      rowset_id rowset, uint64_t *offset)
{
    struct open_rowset *open;
    bool broken_off;
    int err = is_broken_off(store, txn, table, tablet, rowset, &broken_off);

    if (err != 0 || !broken_off)
        return err;
    err = open_table_add(store->open, txn, rowset, table, tablet, &open);
    if (err != 0)
        return err;
    pthread_mutex_lock(&open->lock);
    err = take_extents(store, open);
    *offset = open->end;
    pthread_mutex_unlock(&open->lock);
    /* What lies behind a gap would lie beside what comes now. */
    if (err == 0 && *offset > 0)
        err = rowset_drop_extents(store, tablet, rowset, *offset);
    if (err != 0 || *offset == 0)
        open_table_remove(store->open, open, TG_STALE);
    open_rowset_release(open);
    if (err == 0 && *offset > 0)
        log_info("store", "goes_on tablet=%lu rowset=%lu offset=%lu", tablet, rowset, *offset);
    return err;
}

int rowset_store_resume(struct store *store, txn_id txn, table_id table, tablet_id tablet,
                        rowset_id rowset, uint64_t *offset)
{
    struct open_rowset *open = open_table_find(store->open, tablet, rowset);

    *offset = 0;
    if (open == NULL)
        return open_again(store, txn, table, tablet, rowset, offset);
    pthread_mutex_lock(&open->lock);
    if (open->txn == txn && open->table_id == table && open->err == 0 && !open->sealing)
        *offset = open->end;
    pthread_mutex_unlock(&open->lock);
    open_rowset_release(open);
    return 0;
}
