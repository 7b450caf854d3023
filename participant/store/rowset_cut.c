/* SPDX-License-Identifier: Apache-2.0 */
/* Taking versions away that the log does not have any more. From the last one down, each in one
 * transaction, so that what is left is always a whole chain; its rowsets become staged ones on their
 * way out, which are collected like others. */
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "participant/store/rowset_cache.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

enum { CUT_JOB_BYTES = 64 * 1024 };

struct cut {
    struct store *store;
    tablet_id tablet;
    version_t keep;
    bool done;
};

static void release_rowset(struct cut *cut, struct lmdb_txn *txn, txn_id txn_number,
                           rowset_id rowset)
{
    struct staged_value value = {.state = STAGED_DROPPING, .extents = true};
    struct store_key key;
    struct buf bytes = BUF_INIT;

    store_key_rowset(&key, cut->tablet, rowset);
    lmdb_txn_delete(txn, cut->store->db_rowset, store_key_slice(&key));
    staged_value_encode(&value, &bytes);
    store_key_staged(&key, txn_number, rowset, cut->tablet);
    if (bytes.err == 0)
        lmdb_txn_put(txn, cut->store->db_staged, store_key_slice(&key),
                     slice_of(bytes.data, bytes.len));
    else if (txn->err == 0)
        txn->err = bytes.err;
    buf_close(&bytes);
    rowset_cache_remove(cut->store->cache, cut->tablet, rowset);
}

static int set_last(struct cut *cut, struct lmdb_txn *txn, version_t last)
{
    struct tablet_value value;
    struct store_key key;
    struct slice bytes;
    struct buf encoded = BUF_INIT;

    store_key_tablet(&key, cut->tablet);
    if (!lmdb_txn_get(txn, cut->store->db_tablet, store_key_slice(&key), &bytes))
        return txn->err;
    int err = tablet_value_decode(bytes, &value);
    value.last = last;
    if (err == 0) {
        tablet_value_encode(&value, &encoded);
        err = encoded.err;
    }
    if (err == 0)
        lmdb_txn_put(txn, cut->store->db_tablet, store_key_slice(&key),
                     slice_of(encoded.data, encoded.len));
    buf_close(&encoded);
    return err;
}

/* The last version, if it is above what is kept. Its record lies in the map only until the first
 * change, so it is copied. */
static int apply_last(void *data, struct lmdb_txn *txn)
{
    struct cut *cut = data;
    struct lmdb_cursor cursor;
    struct store_key key;
    struct version_value value = {0};
    struct buf copy = BUF_INIT;
    uint64_t numbers[2] = {0};
    int err = 0;

    cut->done = true;
    if (!lmdb_cursor_open(&cursor, txn, cut->store->db_version))
        return txn->err;
    store_key_version(&key, cut->tablet, UINT64_MAX);
    if (lmdb_cursor_seek_back(&cursor, store_key_slice(&key)) &&
        (err = store_key_parse(cursor.key, 2, numbers)) == 0 && numbers[0] == cut->tablet &&
        numbers[1] > cut->keep) {
        buf_append(&copy, cursor.value.data, cursor.value.len);
        cut->done = false;
    }
    lmdb_cursor_close(&cursor);
    if (err == 0)
        err = copy.err;
    if (err == 0 && !cut->done)
        err = version_value_decode(slice_of(copy.data, copy.len), &value);
    for (uint32_t i = 0; err == 0 && !cut->done && i < value.rowset_count; i++) {
        struct publish_rowset rowset;

        version_value_rowset(&value, i, &rowset);
        release_rowset(cut, txn, value.txn, rowset.rowset);
    }
    if (err == 0 && !cut->done) {
        store_key_version(&key, cut->tablet, numbers[1]);
        lmdb_txn_delete(txn, cut->store->db_version, store_key_slice(&key));
        err = set_last(cut, txn, value.prev);
    }
    buf_close(&copy);
    return err != 0 ? err : txn->err;
}

int rowset_drop_above(struct store *store, tablet_id tablet, version_t keep)
{
    struct cut cut = {.store = store, .tablet = tablet, .keep = keep};
    uint64_t count = 0;
    int err = 0;

    pthread_mutex_lock(&store->drop_lock);
    while (err == 0 && !cut.done) {
        err = store_writer_run(store->meta_writer, true, CUT_JOB_BYTES, apply_last, &cut);
        count += err == 0 && !cut.done;
    }
    pthread_mutex_unlock(&store->drop_lock);
    log_warn("store", "cut tablet=%lu kept=%lu versions=%lu result=%s", tablet, keep, count,
             tg_err_name(err));
    return err;
}
