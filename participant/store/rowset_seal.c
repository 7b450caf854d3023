/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing: count, digest, durable extents, then the descriptions in one transaction. */
#include "participant/store/rowset_seal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/mutant.h"
#include "participant/store/rowset_open.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

struct seal_call;

struct seal_item {
    struct open_waiter waiter; /* first */
    struct seal_call *call;
    struct open_rowset *open; /* NULL: must be sealed already, or be empty */
    tablet_id tablet;
    rowset_id rowset;
    txn_id txn;
    table_id table;
    bool is_empty;
    bool extents;
    bool skip; /* found sealed already */
    struct digest digest;
    struct buf record; /* the rowset's value */
};

/* Steps: each item is checked and its extents are awaited (`waiting` counts them, and one for the
 * loop that starts them); whoever brings it to 0 submits the job, or ends the call if an item
 * failed. */
struct seal_call {
    struct store_job job; /* first */
    struct store *store;
    atomic_uint waiting;
    atomic_int err;
    rowset_store_done done;
    void *data;
    uint32_t count;
    struct seal_item items[];
};

int rowset_seal_find(struct store *store, struct lmdb_txn *txn, txn_id txn_number, tablet_id tablet,
                     rowset_id rowset, enum seal_found *found, struct digest *digest)
{
    struct store_key key;
    struct slice bytes;
    struct staged_value staged;
    struct rowset_value value;
    *found = SEAL_FOUND_NOTHING;
    store_key_staged(&key, txn_number, rowset, tablet);
    if (lmdb_txn_get(txn, store->db_staged, store_key_slice(&key), &bytes)) {
        int err = staged_value_decode(bytes, &staged);
        *found = staged.state == STAGED_SEALED ? SEAL_FOUND_SEALED : SEAL_FOUND_LEFTOVER;
        *digest = staged.digest;
        return err;
    }
    store_key_rowset(&key, tablet, rowset);
    if (!lmdb_txn_get(txn, store->db_rowset, store_key_slice(&key), &bytes))
        return 0;
    *found = SEAL_FOUND_SEALED;
    int err = rowset_value_peek(bytes, &value);
    *digest = value.digest;
    return err;
}

static int sticky_err(struct open_rowset *open)
{
    pthread_mutex_lock(&open->lock);
    int err = open->err;
    pthread_mutex_unlock(&open->lock);
    return err;
}

/* Before anything is written: may this item be sealed? */
static int check_item(struct seal_call *call, struct seal_item *item, struct lmdb_txn *txn)
{
    if (open_table_is_dead(call->store->open, item->txn, item->tablet))
        return TG_REFUSED;
    if (item->open != NULL) {
        int err = sticky_err(item->open);
        if (err != 0)
            return err;
    }
    enum seal_found found;
    struct digest digest;
    item->skip = false;
    int err =
        rowset_seal_find(call->store, txn, item->txn, item->tablet, item->rowset, &found, &digest);
    if (err != 0)
        return err;
    switch (found) {
    case SEAL_FOUND_SEALED:
        item->skip = true;
        return digest_equal(&digest, &item->digest) ? 0 : TG_DIGEST;
    case SEAL_FOUND_LEFTOVER:
        /* Its own staged record, made before its first extent, is what an open rowset with extents
         * finds here. */
        return item->open != NULL && item->extents ? 0 : TG_STALE;
    default:
        return (item->open != NULL && !item->extents) || item->is_empty ? 0 : TG_STALE;
    }
}

static int write_item(struct store *store, struct seal_item *item, struct lmdb_txn *txn)
{
    struct staged_value staged = {.state = STAGED_SEALED,
                                  .extents = item->extents,
                                  .table = item->table,
                                  .digest = item->digest};
    struct buf bytes = BUF_INIT;
    struct store_key key;
    staged_value_encode(&staged, &bytes);
    int err = bytes.err;
    if (err == 0) {
        store_key_staged(&key, item->txn, item->rowset, item->tablet);
        lmdb_txn_put(txn, store->db_staged, store_key_slice(&key), slice_of(bytes.data, bytes.len));
        store_key_rowset(&key, item->tablet, item->rowset);
        lmdb_txn_put(txn, store->db_rowset, store_key_slice(&key),
                     slice_of(item->record.data, item->record.len));
    }
    buf_close(&bytes);
    return err;
}

static int seal_apply(struct store_job *job, struct lmdb_txn *txn)
{
    struct seal_call *call = (struct seal_call *)job;
    for (uint32_t i = 0; i < call->count; i++) {
        int err = check_item(call, &call->items[i], txn);
        if (err != 0)
            return err;
    }
    for (uint32_t i = 0; i < call->count; i++) {
        if (call->items[i].skip)
            continue;
        int err = write_item(call->store, &call->items[i], txn);
        if (err != 0) {
            /* Half a message must not stay: the whole transaction is given up. */
            txn->err = err;
            return err;
        }
    }
    return 0;
}

static void end_call(struct seal_call *call, int err)
{
    for (uint32_t i = 0; i < call->count; i++) {
        struct seal_item *item = &call->items[i];
        /* Sealed, or nothing: in both cases it is not open any more. */
        if (item->open != NULL) {
            open_table_remove(call->store->open, item->open, TG_STALE);
            open_rowset_release(item->open);
        }
        buf_close(&item->record);
    }
    FAILPOINT("part.prepared_before_reply");
    call->done(call->data, err);
    free(call);
}

static void seal_done(struct store_job *job, int err)
{
    end_call((struct seal_call *)job, err);
}

static void arrive(struct seal_call *call)
{
    if (atomic_fetch_sub(&call->waiting, 1) != 1)
        return;
    int err = atomic_load(&call->err);
    if (err == 0)
        err = store_writer_submit(call->store->meta_writer, &call->job);
    if (err != 0)
        end_call(call, err);
}

static void note_err(struct seal_call *call, int err)
{
    int none = 0;
    if (err != 0)
        (void)atomic_compare_exchange_strong(&call->err, &none, err);
}

static void extents_ready(struct open_waiter *waiter, int err)
{
    struct seal_item *item = (struct seal_item *)waiter;
    note_err(item->call, err);
    arrive(item->call);
}

/* The blocks must lie one behind another and fill the content. */
static int check_blocks(const struct rowset_meta *meta)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < meta->block_count; i++) {
        if (meta->blocks[i].offset != at)
            return TG_INVALID;
        at += meta->blocks[i].len;
    }
    return at == meta->bytes ? 0 : TG_INVALID;
}

static int make_record(const struct rowset_meta *meta, bool is_inline, struct slice content,
                       struct buf *record)
{
    struct buf encoded = BUF_INIT;
    rowset_meta_encode(meta, &encoded);
    struct rowset_value value = {.is_inline = is_inline,
                                 .txn = meta->txn,
                                 .digest = meta->digest,
                                 .meta = slice_of(encoded.data, encoded.len),
                                 .content = content};
    int err = encoded.err;
    if (err == 0)
        rowset_value_encode(&value, record);
    buf_close(&encoded);
    return err != 0 ? err : record->err;
}

/* Under open->lock: counts, digest, and the last extents or the inline content. */
static int close_open(struct seal_item *item, const struct rowset_meta *meta)
{
    struct open_rowset *open = item->open;
    if (open->err != 0)
        return open->err;
    if (open->sealing)
        return TG_BUSY;
    if (open->txn != meta->txn || open->table_id != meta->table)
        return TG_INVALID;
    struct digest digest = digest_stream_value(open->digest);
    if (open->end != meta->bytes || !digest_equal(&digest, &meta->digest)) {
        log_warn("store", "seal refused txn=%lu tablet=%lu rowset=%lu bytes=%lu expected=%lu",
                 meta->txn, meta->tablet, meta->rowset, open->end, meta->bytes);
        return TG_DIGEST;
    }
    open->sealing = true;
    bool is_inline = !open->extents && open->tail.len <= ROWSET_INLINE_BYTES_MAX;
    int err = 0;
    if (!is_inline)
        err = open_rowset_flush(item->call->store, open);
    item->extents = open->extents;
    if (err == 0)
        err =
            make_record(meta, is_inline, slice_of(open->tail.data, open->tail.len), &item->record);
    return err;
}

static int start_item(struct seal_item *item, const struct rowset_meta *meta)
{
    int err = check_blocks(meta);
    if (err != 0)
        return err;
    item->open = open_table_find(item->call->store->open, meta->tablet, meta->rowset);
    if (item->open == NULL)
        return make_record(meta, true, slice_of(NULL, 0), &item->record);
    pthread_mutex_lock(&item->open->lock);
    err = close_open(item, meta);
    if (err == 0 && item->open->pending > 0 && !MUTANT(1)) {
        item->waiter.ready = extents_ready;
        item->open->waiter = &item->waiter;
        atomic_fetch_add(&item->call->waiting, 1);
    }
    pthread_mutex_unlock(&item->open->lock);
    if (err == TG_BUSY) {
        /* The other call's: it must stay open for it. */
        open_rowset_release(item->open);
        item->open = NULL;
    }
    return err;
}

void rowset_seal_begin(struct store *store, const struct msg_replicate *message,
                       rowset_store_done done, void *data)
{
    size_t bytes = sizeof(struct seal_call) + message->seal_count * sizeof(struct seal_item);
    struct seal_call *call = calloc(1, bytes);
    if (call == NULL) {
        done(data, TG_NOMEM);
        return;
    }
    call->job = (struct store_job){.apply = seal_apply, .done = seal_done};
    call->store = store;
    call->done = done;
    call->data = data;
    atomic_init(&call->waiting, 1);
    struct digest nothing = digest_of(NULL, 0);
    for (uint32_t i = 0; i < message->seal_count && atomic_load(&call->err) == 0; i++) {
        const struct rowset_meta *meta = &message->seals[i];
        struct seal_item *item = &call->items[i];
        item->call = call;
        item->tablet = meta->tablet;
        item->rowset = meta->rowset;
        item->txn = meta->txn;
        item->table = meta->table;
        item->digest = meta->digest;
        item->is_empty = meta->bytes == 0 && digest_equal(&meta->digest, &nothing);
        call->count = i + 1;
        note_err(call, start_item(item, meta));
        call->job.bytes += item->record.len + STORE_KEY_MAX * 4;
    }
    arrive(call);
}
