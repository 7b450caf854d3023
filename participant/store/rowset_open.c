/* SPDX-License-Identifier: Apache-2.0 */
/* One rowset being written: pieces in, extents out. */
#include "participant/store/rowset_open.h"

#include <stdlib.h>

#include "common/base/err.h"
#include "common/base/mutant.h"
#include "participant/store/open_table_internal.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

/* Tails of all open rowsets together: above the first, tails go out in small extents; above the
 * second, whole. So a load into very many tablets costs some space instead of memory. */
enum { TAILS_SOFT_BYTES = 48 * 1024 * 1024, TAILS_HARD_BYTES = 96 * 1024 * 1024 };

enum { STAGED_RECORD_BYTES = 64 };

/* ---- the staged record, before anything else of the rowset is on disk ---- */
struct staged_job {
    struct store_job job; /* first */
    struct store *store;
    struct open_rowset *open;
};

static int staged_apply(struct store_job *job, struct lmdb_txn *txn)
{
    struct staged_job *self = (struct staged_job *)job;
    struct open_rowset *open = self->open;
    struct store_key key;
    struct slice there;
    store_key_staged(&key, open->txn, open->rowset, open->tablet);
    if (lmdb_txn_get(txn, self->store->db_staged, store_key_slice(&key), &there))
        return TG_STALE;
    struct staged_value value = {.state = STAGED_OPEN, .extents = true, .table = open->table_id};
    struct buf bytes = BUF_INIT;
    staged_value_encode(&value, &bytes);
    int err = bytes.err;
    if (err == 0)
        lmdb_txn_put(txn, self->store->db_staged, store_key_slice(&key),
                     slice_of(bytes.data, bytes.len));
    buf_close(&bytes);
    return err;
}

static void staged_done(struct store_job *job, int err)
{
    struct staged_job *self = (struct staged_job *)job;
    struct open_rowset *open = self->open;
    pthread_mutex_lock(&open->lock);
    if (err == 0)
        open->staged = STAGED_DURABLE;
    else if (open->err == 0)
        open->err = err;
    pthread_cond_broadcast(&open->staged_changed);
    pthread_mutex_unlock(&open->lock);
    open_rowset_release(open);
    free(self);
}

/* Under open->lock. */
static int submit_staged(struct store *store, struct open_rowset *open)
{
    if (open->staged != STAGED_NOT)
        return 0;
    struct staged_job *self = calloc(1, sizeof *self);
    if (self == NULL)
        return TG_NOMEM;
    self->job = (struct store_job){
        .bytes = STAGED_RECORD_BYTES, .apply = staged_apply, .done = staged_done};
    self->store = store;
    self->open = open;
    atomic_fetch_add(&open->refs, 1);
    int err = store_writer_submit(store->meta_writer, &self->job);
    if (err != 0) {
        atomic_fetch_sub(&open->refs, 1); /* the caller has another */
        free(self);
        return err;
    }
    open->staged = STAGED_COMING;
    return 0;
}

/* ---- extents ---- */
struct extent_job {
    struct store_job job; /* first */
    struct store *store;
    struct open_rowset *open;
    enum block_class class;
    uint64_t offset;
    struct buf bytes;
};

/* Waits for the meta environment's writer, which never waits for this one. Usually it is long done.
 */
static int wait_staged(struct open_rowset *open)
{
    pthread_mutex_lock(&open->lock);
    while (open->err == 0 && open->staged != STAGED_DURABLE)
        pthread_cond_wait(&open->staged_changed, &open->lock);
    int err = open->err;
    pthread_mutex_unlock(&open->lock);
    return err;
}

static int extent_apply(struct store_job *job, struct lmdb_txn *txn)
{
    struct extent_job *self = (struct extent_job *)job;
    int err = wait_staged(self->open);
    if (err != 0)
        return err;
    struct store_key key;
    store_key_block(&key, self->open->tablet, self->open->rowset, self->offset);
    lmdb_txn_put(txn, self->store->db_block[self->class], store_key_slice(&key),
                 slice_of(self->bytes.data, self->bytes.len));
    return 0;
}

static void extent_done(struct store_job *job, int err)
{
    struct extent_job *self = (struct extent_job *)job;
    struct open_rowset *open = self->open;
    struct open_waiter *waiter = NULL;
    pthread_mutex_lock(&open->lock);
    if (err != 0 && open->err == 0 && !(MUTANT(24) && err == TG_NOSPACE))
        open->err = err;
    err = open->err;
    if (--open->pending == 0) {
        waiter = open->waiter;
        open->waiter = NULL;
    }
    pthread_mutex_unlock(&open->lock);
    if (waiter != NULL)
        waiter->ready(waiter, err);
    buf_close(&self->bytes);
    free(self);
    open_rowset_release(open);
}

/* Under open->lock. Takes the bytes over, also on failure; they begin at tail_at. */
static int submit_extent(struct store *store, struct open_rowset *open, struct buf *bytes)
{
    struct extent_job *self = calloc(1, sizeof *self);
    int err = self == NULL ? TG_NOMEM : submit_staged(store, open);
    if (err != 0) {
        buf_close(bytes);
        free(self);
        return err;
    }
    size_t len = bytes->len;
    self->job = (struct store_job){.bytes = len, .apply = extent_apply, .done = extent_done};
    self->store = store;
    self->open = open;
    self->class = len > EXTENT_64K_BYTES ? BLOCKS_256K : BLOCKS_64K;
    self->offset = open->tail_at;
    self->bytes = *bytes;
    *bytes = (struct buf)BUF_INIT;
    atomic_fetch_add(&open->refs, 1);
    open->pending++;
    err = store_writer_submit(store->block_writer[self->class], &self->job);
    if (err != 0) {
        open->pending--;
        atomic_fetch_sub(&open->refs, 1);
        buf_close(&self->bytes);
        free(self);
        return err;
    }
    open->extents = true;
    open->tail_at += len;
    return 0;
}

/* Under open->lock: submits extents from the tail's front while it has more than `keep` bytes. */
static int cut_tail(struct store *store, struct open_rowset *open, size_t keep)
{
    size_t at = 0;
    int err = 0;
    while (open->tail.len - at > keep && err == 0) {
        size_t len = open->tail.len - at;
        if (len > EXTENT_64K_BYTES)
            len = EXTENT_64K_BYTES;
        struct buf extent = BUF_INIT;
        buf_append(&extent, open->tail.data + at, len);
        err = extent.err;
        if (err == 0)
            err = submit_extent(store, open, &extent);
        at += len;
    }
    buf_consume(&open->tail, at);
    return err;
}

int open_rowset_flush(struct store *store, struct open_rowset *open)
{
    size_t before = open->tail.len;
    if (open->err == 0)
        open->err = cut_tail(store, open, 0);
    atomic_fetch_sub(&open->table->tail_bytes, before - open->tail.len);
    return open->err;
}

/* Under open->lock. */
static int take_bytes(struct store *store, struct open_rowset *open, struct slice bytes)
{
    int err = 0;
    digest_stream_add(open->digest, bytes.data, bytes.len);
    open->end += bytes.len;
    while (bytes.len > 0 && err == 0) {
        size_t room = EXTENT_256K_BYTES - open->tail.len;
        size_t len = bytes.len < room ? bytes.len : room;
        buf_append(&open->tail, bytes.data, len);
        err = open->tail.err;
        bytes = slice_of(bytes.data + len, bytes.len - len);
        if (err == 0 && open->tail.len == EXTENT_256K_BYTES)
            err = submit_extent(store, open, &open->tail);
    }
    return err;
}

static void relieve_memory(struct store *store, struct open_rowset *open)
{
    size_t all = atomic_load(&open->table->tail_bytes);
    if (open->err != 0 || all <= TAILS_SOFT_BYTES)
        return;
    size_t before = open->tail.len;
    open->err = cut_tail(store, open, all > TAILS_HARD_BYTES ? 0 : EXTENT_64K_BYTES - 1);
    atomic_fetch_sub(&open->table->tail_bytes, before - open->tail.len);
}

int open_rowset_append(struct store *store, struct open_rowset *open, uint64_t offset,
                       struct slice bytes)
{
    pthread_mutex_lock(&open->lock);
    int err = open->err;
    /* A repetition: those bytes are here. Whether they were the same, the seal's digest tells. */
    bool here = offset <= open->end && bytes.len <= open->end - offset;
    if (err == 0 && !here) {
        if (offset != open->end || open->sealing) {
            err = TG_STALE;
        } else {
            size_t before = open->tail.len;
            open->err = take_bytes(store, open, bytes);
            /* Shorter or longer than before: modular arithmetic does both. */
            atomic_fetch_add(&open->table->tail_bytes, open->tail.len - before);
            relieve_memory(store, open);
            err = open->err;
        }
    }
    pthread_mutex_unlock(&open->lock);
    return err;
}
