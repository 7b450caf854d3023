/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping rowsets in bounded pieces. Order, so that a crash between two pieces is found again:
 * first the rowset stops being one (under the writer, where binding happens too), then its extents
 * go, and last the record by which it is listed. */
#include "participant/store/rowset_drop.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/mutant.h"
#include "participant/store/rowset_cache.h"
#include "participant/store/rowset_open.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

enum {
    DROP_ROWSETS = 256,        /* of one transaction in the meta environment */
    DROP_EXTENTS = 64,         /* of one transaction in a block environment */
    DROP_RECORDS = 4096,       /* version records of one transaction */
    DROP_JOB_BYTES = 64 * 1024 /* what a drop dirties, roughly: for the writer's grouping */
};

/* One rowset on its way out. */
struct victim {
    txn_id txn;
    tablet_id tablet;
    rowset_id rowset;
    bool extents;
    uint64_t from; /* of its extents: those that begin here or later */
};

struct drop {
    struct store *store;
    uint32_t count;
    struct victim victims[DROP_ROWSETS];
};

/* ---- extents ---- */
struct extent_drop {
    struct store *store;
    enum block_class class;
    const struct victim *victim;
    bool more;
};

static int apply_extents(void *data, struct lmdb_txn *txn)
{
    struct extent_drop *self = data;
    struct lmdb_cursor cursor;
    struct store_key key;
    uint64_t numbers[3];
    self->more = false;
    store_key_block(&key, self->victim->tablet, self->victim->rowset, self->victim->from);
    if (!lmdb_cursor_open(&cursor, txn, self->store->db_block[self->class]))
        return 0;
    uint32_t deleted = 0;
    bool there = lmdb_cursor_seek(&cursor, store_key_slice(&key));
    while (there && store_key_parse(cursor.key, 3, numbers) == 0 &&
           numbers[0] == self->victim->tablet && numbers[1] == self->victim->rowset) {
        if (deleted == DROP_EXTENTS) {
            self->more = true;
            break;
        }
        lmdb_cursor_delete(&cursor);
        deleted++;
        there = lmdb_cursor_next(&cursor);
    }
    lmdb_cursor_close(&cursor);
    return 0;
}

static int drop_extents(struct store *store, const struct victim *victim)
{
    int err = 0;
    for (int i = 0; i < BLOCK_CLASSES && err == 0 && victim->extents; i++) {
        struct extent_drop self = {.store = store, .class = (enum block_class)i, .victim = victim};
        do {
            err = store_writer_run(store->block_writer[i], true, DROP_JOB_BYTES, apply_extents,
                                   &self);
        } while (err == 0 && self.more);
    }
    return err;
}

int rowset_drop_extents(struct store *store, tablet_id tablet, rowset_id rowset, uint64_t from)
{
    const struct victim victim = {
        .tablet = tablet, .rowset = rowset, .extents = true, .from = from};
    return drop_extents(store, &victim);
}

/* ---- a transaction's staged rowsets ---- */

/* Collects some staged records of the transaction; those of tablets that are being cloned stay. */
static int find_staged(struct store *store, txn_id txn_number, struct drop *drop)
{
    struct lmdb_txn txn;
    struct lmdb_cursor cursor;
    struct store_key key;
    uint64_t numbers[3];
    struct staged_value value;
    drop->count = 0;
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0)
        return err;
    if (lmdb_cursor_open(&cursor, &txn, store->db_staged)) {
        store_key_staged(&key, txn_number, 0, 0);
        bool there = lmdb_cursor_seek(&cursor, store_key_slice(&key));
        while (there && drop->count < DROP_ROWSETS) {
            err = store_key_parse(cursor.key, 3, numbers);
            if (err == 0 && numbers[0] != txn_number)
                break;
            if (err == 0)
                err = staged_value_decode(cursor.value, &value);
            if (err != 0)
                break;
            if (!open_table_is_held(store->open, numbers[2]) || MUTANT(13))
                drop->victims[drop->count++] = (struct victim){.txn = numbers[0],
                                                               .rowset = numbers[1],
                                                               .tablet = numbers[2],
                                                               .extents = value.extents};
            there = lmdb_cursor_next(&cursor);
        }
        lmdb_cursor_close(&cursor);
    }
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

/* Looked at again under the writer: what was bound since has no staged record any more and stays
 *. What has no extents is gone with this; the others are marked. */
static int apply_condemn(void *data, struct lmdb_txn *txn)
{
    struct drop *drop = data;
    struct store *store = drop->store;
    for (uint32_t i = 0; i < drop->count; i++) {
        const struct victim *victim = &drop->victims[i];
        struct store_key staged_key;
        struct store_key rowset_key;
        struct slice bytes;
        struct staged_value value;
        store_key_staged(&staged_key, victim->txn, victim->rowset, victim->tablet);
        store_key_rowset(&rowset_key, victim->tablet, victim->rowset);
        if (MUTANT(12))
            lmdb_txn_delete(txn, store->db_rowset, store_key_slice(&rowset_key));
        if (!lmdb_txn_get(txn, store->db_staged, store_key_slice(&staged_key), &bytes))
            continue;
        int err = staged_value_decode(bytes, &value);
        if (err != 0) {
            txn->err = err;
            return err;
        }
        lmdb_txn_delete(txn, store->db_rowset, store_key_slice(&rowset_key));
        if (!value.extents) {
            lmdb_txn_delete(txn, store->db_staged, store_key_slice(&staged_key));
            continue;
        }
        value.state = STAGED_DROPPING;
        struct buf encoded = BUF_INIT;
        staged_value_encode(&value, &encoded);
        lmdb_txn_put(txn, store->db_staged, store_key_slice(&staged_key),
                     slice_of(encoded.data, encoded.len));
        if (encoded.err != 0)
            txn->err = encoded.err;
        buf_close(&encoded);
    }
    return txn->err;
}

/* The end: only of those that are marked. */
static int apply_bury(void *data, struct lmdb_txn *txn)
{
    struct drop *drop = data;
    for (uint32_t i = 0; i < drop->count; i++) {
        const struct victim *victim = &drop->victims[i];
        struct store_key key;
        struct slice bytes;
        struct staged_value value;
        store_key_staged(&key, victim->txn, victim->rowset, victim->tablet);
        if (lmdb_txn_get(txn, drop->store->db_staged, store_key_slice(&key), &bytes) &&
            staged_value_decode(bytes, &value) == 0 && value.state == STAGED_DROPPING)
            lmdb_txn_delete(txn, drop->store->db_staged, store_key_slice(&key));
    }
    return txn->err;
}

/* Extents of a rowset go only if it is marked, not if it was bound meanwhile. */
static int keep_condemned(struct drop *drop)
{
    struct lmdb_txn txn;
    int err = lmdb_txn_read(&drop->store->meta, &txn);
    if (err != 0)
        return err;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < drop->count; i++) {
        struct store_key key;
        struct slice bytes;
        struct staged_value value;
        const struct victim victim = drop->victims[i];
        store_key_staged(&key, victim.txn, victim.rowset, victim.tablet);
        if (lmdb_txn_get(&txn, drop->store->db_staged, store_key_slice(&key), &bytes) &&
            staged_value_decode(bytes, &value) == 0 && value.state == STAGED_DROPPING)
            drop->victims[kept++] = victim;
    }
    drop->count = kept;
    err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

static int drop_some(struct drop *drop)
{
    struct store *store = drop->store;
    int err = store_writer_run(store->meta_writer, true, DROP_JOB_BYTES, apply_condemn, drop);
    if (err != 0)
        return err;
    for (uint32_t i = 0; i < drop->count; i++)
        rowset_cache_remove(store->cache, drop->victims[i].tablet, drop->victims[i].rowset);
    err = keep_condemned(drop);
    FAILPOINT("gc.mid_delete");
    for (uint32_t i = 0; i < drop->count && err == 0; i++)
        err = drop_extents(store, &drop->victims[i]);
    if (err == 0 && drop->count > 0)
        err = store_writer_run(store->meta_writer, true, DROP_JOB_BYTES, apply_bury, drop);
    return err;
}

static int apply_nothing(void *data, struct lmdb_txn *txn)
{
    (void)data;
    return txn->err;
}

int rowset_drop_txn(struct store *store, txn_id txn)
{
    struct drop *drop = malloc(sizeof *drop);
    if (drop == NULL)
        return TG_NOMEM;
    drop->store = store;
    /* First nothing new comes in; then all that was under way is either seen below or refused. */
    open_table_kill(store->open, txn);
    int err = store_writer_run(store->meta_writer, true, 0, apply_nothing, NULL);
    uint64_t dropped = 0;
    bool more = true;
    while (err == 0 && more) {
        pthread_mutex_lock(&store->drop_lock);
        err = find_staged(store, txn, drop);
        more = drop->count > 0;
        dropped += drop->count;
        FAILPOINT("gc.after_scan");
        if (err == 0 && more)
            err = drop_some(drop);
        pthread_mutex_unlock(&store->drop_lock);
    }
    free(drop);
    if (dropped > 0 || err != 0)
        log_info("store", "dropped txn=%lu rowsets=%lu result=%s", txn, dropped, tg_err_name(err));
    return err;
}

/* ---- one rowset, staged or bound ---- */

/* A staged record that says "being dropped" makes a crash in the middle harmless: what is left is
 * found by it, and nothing takes the rowset for a good one. */
static int apply_condemn_one(void *data, struct lmdb_txn *txn)
{
    const struct drop *drop = data;
    const struct victim *victim = &drop->victims[0];
    struct store_key key;
    struct staged_value value = {.state = STAGED_DROPPING, .extents = true};
    struct buf encoded = BUF_INIT;
    store_key_rowset(&key, victim->tablet, victim->rowset);
    lmdb_txn_delete(txn, drop->store->db_rowset, store_key_slice(&key));
    staged_value_encode(&value, &encoded);
    store_key_staged(&key, victim->txn, victim->rowset, victim->tablet);
    if (encoded.err == 0)
        lmdb_txn_put(txn, drop->store->db_staged, store_key_slice(&key),
                     slice_of(encoded.data, encoded.len));
    int err = encoded.err;
    buf_close(&encoded);
    return err != 0 ? err : txn->err;
}

int rowset_drop_one(struct store *store, txn_id txn, tablet_id tablet, rowset_id rowset)
{
    struct drop *drop = malloc(sizeof *drop);
    if (drop == NULL)
        return TG_NOMEM;
    drop->store = store;
    drop->count = 1;
    drop->victims[0] =
        (struct victim){.txn = txn, .tablet = tablet, .rowset = rowset, .extents = true};
    struct open_rowset *open = open_table_find(store->open, tablet, rowset);
    if (open != NULL) {
        open_table_remove(store->open, open, TG_STALE);
        open_rowset_release(open);
    }
    pthread_mutex_lock(&store->drop_lock);
    int err = store_writer_run(store->meta_writer, true, DROP_JOB_BYTES, apply_condemn_one, drop);
    rowset_cache_remove(store->cache, tablet, rowset);
    if (err == 0)
        err = drop_extents(store, &drop->victims[0]);
    if (err == 0)
        err = store_writer_run(store->meta_writer, true, DROP_JOB_BYTES, apply_bury, drop);
    pthread_mutex_unlock(&store->drop_lock);
    free(drop);
    return err;
}

/* ---- a tablet ---- */
struct tablet_drop {
    struct drop *drop;
    tablet_id tablet;
    bool more;
};

static int apply_mark_tablet(void *data, struct lmdb_txn *txn)
{
    struct tablet_drop *self = data;
    struct store *store = self->drop->store;
    struct store_key key;
    struct slice bytes;
    struct tablet_value value;
    store_key_tablet(&key, self->tablet);
    if (!lmdb_txn_get(txn, store->db_tablet, store_key_slice(&key), &bytes))
        return txn->err;
    int err = tablet_value_decode(bytes, &value);
    if (err != 0 && err != TG_CORRUPT) /* what is damaged goes all the same */
        return err;
    struct buf encoded = BUF_INIT;
    value.state = TABLET_DROPPING;
    tablet_value_encode(&value, &encoded);
    err = encoded.err;
    if (err == 0)
        lmdb_txn_put(txn, store->db_tablet, store_key_slice(&key),
                     slice_of(encoded.data, encoded.len));
    buf_close(&encoded);
    return err;
}

/* Some sealed rowsets of the tablet, bound or not. */
static int find_rowsets(struct tablet_drop *self)
{
    struct drop *drop = self->drop;
    struct store *store = drop->store;
    struct lmdb_txn txn;
    struct lmdb_cursor cursor;
    struct store_key key;
    uint64_t numbers[2];
    struct rowset_value value;
    drop->count = 0;
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0)
        return err;
    if (lmdb_cursor_open(&cursor, &txn, store->db_rowset)) {
        store_key_rowset(&key, self->tablet, 0);
        bool there = lmdb_cursor_seek(&cursor, store_key_slice(&key));
        while (there && drop->count < DROP_ROWSETS) {
            err = store_key_parse(cursor.key, 2, numbers);
            if (err == 0 && numbers[0] != self->tablet)
                break;
            if (err == 0)
                err = rowset_value_peek(cursor.value, &value);
            if (err == TG_CORRUPT) { /* dropped by its key, with what extents there may be */
                value = (struct rowset_value){0};
                err = 0;
            }
            if (err != 0)
                break;
            drop->victims[drop->count++] = (struct victim){.txn = value.txn,
                                                           .tablet = numbers[0],
                                                           .rowset = numbers[1],
                                                           .extents = !value.is_inline};
            there = lmdb_cursor_next(&cursor);
        }
        lmdb_cursor_close(&cursor);
    }
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

static int apply_drop_rowsets(void *data, struct lmdb_txn *txn)
{
    struct drop *drop = data;
    for (uint32_t i = 0; i < drop->count; i++) {
        const struct victim *victim = &drop->victims[i];
        struct store_key key;
        store_key_staged(&key, victim->txn, victim->rowset, victim->tablet);
        lmdb_txn_delete(txn, drop->store->db_staged, store_key_slice(&key));
        store_key_rowset(&key, victim->tablet, victim->rowset);
        lmdb_txn_delete(txn, drop->store->db_rowset, store_key_slice(&key));
    }
    return txn->err;
}

/* Version records in pieces; with the last of them the tablet's own record. */
static int apply_drop_versions(void *data, struct lmdb_txn *txn)
{
    struct tablet_drop *self = data;
    struct store *store = self->drop->store;
    struct lmdb_cursor cursor;
    struct store_key key;
    uint64_t numbers[2];
    self->more = false;
    if (!lmdb_cursor_open(&cursor, txn, store->db_version))
        return txn->err;
    store_key_version(&key, self->tablet, 0);
    uint32_t deleted = 0;
    bool there = lmdb_cursor_seek(&cursor, store_key_slice(&key));
    while (there && store_key_parse(cursor.key, 2, numbers) == 0 && numbers[0] == self->tablet) {
        if (deleted++ == DROP_RECORDS) {
            self->more = true;
            break;
        }
        lmdb_cursor_delete(&cursor);
        there = lmdb_cursor_next(&cursor);
    }
    lmdb_cursor_close(&cursor);
    store_key_tablet(&key, self->tablet);
    if (!self->more)
        lmdb_txn_delete(txn, store->db_tablet, store_key_slice(&key));
    return txn->err;
}

static int drop_rowsets(struct tablet_drop *self)
{
    struct drop *drop = self->drop;
    struct store *store = drop->store;
    int err = find_rowsets(self);
    while (err == 0 && drop->count > 0) {
        for (uint32_t i = 0; i < drop->count; i++)
            rowset_cache_remove(store->cache, drop->victims[i].tablet, drop->victims[i].rowset);
        for (uint32_t i = 0; i < drop->count && err == 0; i++)
            err = drop_extents(store, &drop->victims[i]);
        if (err == 0)
            err = store_writer_run(store->meta_writer, true, DROP_JOB_BYTES, apply_drop_rowsets,
                                   drop);
        if (err == 0)
            err = find_rowsets(self);
    }
    return err;
}

int rowset_drop_tablet(struct store *store, tablet_id tablet)
{
    struct tablet_drop self = {.drop = malloc(sizeof(struct drop)), .tablet = tablet};
    if (self.drop == NULL)
        return TG_NOMEM;
    self.drop->store = store;
    pthread_mutex_lock(&store->drop_lock);
    int err = store_writer_run(store->meta_writer, true, DROP_JOB_BYTES, apply_mark_tablet, &self);
    if (err == 0)
        err = drop_rowsets(&self);
    do {
        if (err == 0)
            err = store_writer_run(store->meta_writer, true, DROP_JOB_BYTES, apply_drop_versions,
                                   &self);
    } while (err == 0 && self.more);
    pthread_mutex_unlock(&store->drop_lock);
    free(self.drop);
    log_info("store", "dropped tablet=%lu result=%s", tablet, tg_err_name(err));
    return err;
}

int rowset_drop_tablet_unfinished(struct store *store, tablet_id tablet, bool *unfinished)
{
    struct lmdb_txn txn;
    struct store_key key;
    struct slice bytes;
    struct tablet_value value;
    *unfinished = false;
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0)
        return err;
    store_key_tablet(&key, tablet);
    if (lmdb_txn_get(&txn, store->db_tablet, store_key_slice(&key), &bytes)) {
        err = tablet_value_decode(bytes, &value);
        *unfinished = err == TG_CORRUPT || (err == 0 && value.state == TABLET_DROPPING);
        err = err == TG_CORRUPT ? 0 : err;
    }
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

/* ---- what there is to ask about ---- */
static int compare_txns(const void *a, const void *b)
{
    const txn_id *left = a;
    const txn_id *right = b;
    return (*left > *right) - (*left < *right);
}

/* Up to max transactions of `staged`, stepping from one to the next. */
static int list_staged(struct store *store, txn_id after, txn_id *txns, uint32_t max,
                       uint32_t *count)
{
    struct lmdb_txn txn;
    struct lmdb_cursor cursor;
    struct store_key key;
    uint64_t numbers[3];
    *count = 0;
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0)
        return err;
    if (lmdb_cursor_open(&cursor, &txn, store->db_staged)) {
        while (*count < max && after != UINT64_MAX) {
            store_key_staged(&key, after + 1, 0, 0);
            if (!lmdb_cursor_seek(&cursor, store_key_slice(&key)))
                break;
            err = store_key_parse(cursor.key, 3, numbers);
            if (err != 0)
                break;
            after = numbers[0];
            txns[(*count)++] = after;
        }
        lmdb_cursor_close(&cursor);
    }
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

int rowset_drop_list(struct store *store, txn_id after, txn_id *txns, uint32_t max, uint32_t *count)
{
    txn_id *open;
    uint32_t open_count;
    int err = list_staged(store, after, txns, max, count);
    if (err == 0)
        err = open_table_txns(store->open, after, &open, &open_count);
    if (err != 0 || open_count == 0) {
        if (err == 0)
            free(open);
        return err;
    }
    /* Both lists together, each number once, the smallest max of them. */
    txn_id *all = malloc(((size_t)open_count + *count) * sizeof *all);
    if (all == NULL) {
        free(open);
        return TG_NOMEM;
    }
    memcpy(all, open, open_count * sizeof *all);
    memcpy(all + open_count, txns, *count * sizeof *all);
    size_t total = (size_t)open_count + *count;
    qsort(all, total, sizeof *all, compare_txns);
    *count = 0;
    for (size_t i = 0; i < total && *count < max; i++) {
        if (*count == 0 || txns[*count - 1] != all[i])
            txns[(*count)++] = all[i];
    }
    free(all);
    free(open);
    return 0;
}
