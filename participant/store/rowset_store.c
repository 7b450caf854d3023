/* SPDX-License-Identifier: Apache-2.0 */
/* Rowsets on their way in: a message's pieces, then its seals. */
#include "participant/store/rowset_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "participant/store/disk_reserve.h"
#include "participant/store/rowset_open.h"
#include "participant/store/rowset_seal.h"
#include "participant/store/store_internal.h"

enum { DISK_GOOD_MS = 100 };

/* Whether the disk has more than its reserve, or what was dropped has left as much in our files.
 * Asked again after DISK_GOOD_MS only: many small rowsets begin in that time, and they cannot fill a
 * reserve of its usual size. */
static int check_disk(struct store *store)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (now_ms < atomic_load(&store->disk_good_until_ms))
        return 0;
    uint64_t room = disk_reserve_free(store->disk);
    int err = 0;
    for (int i = 0; i < BLOCK_CLASSES && err == 0; i++) {
        struct lmdb_pages pages;
        if (room >= store->options.disk_reserve_bytes)
            break;
        err = lmdb_env_pages(&store->blocks[i], true, &pages);
        room += (pages.usable + pages.fresh + pages.behind) * store->blocks[i].page_bytes;
    }
    if (err == 0 && room < store->options.disk_reserve_bytes)
        err = TG_NOSPACE;
    if (err == 0)
        atomic_store(&store->disk_good_until_ms, now_ms + DISK_GOOD_MS);
    return err;
}

/* A piece of a rowset that is not open: a beginning, a repetition of what is sealed, or too late.
 */
static int begin_rowset(struct store *store, const struct msg_replicate *message,
                        const struct replicate_piece *piece, struct open_rowset **open)
{
    struct lmdb_txn txn;
    enum seal_found found;
    struct digest digest;
    *open = NULL;
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0)
        return err;
    err = rowset_seal_find(store, &txn, message->txn, piece->tablet, message->rowset, &found,
                           &digest);
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    if (err != 0 || found == SEAL_FOUND_SEALED)
        return err;
    if (found == SEAL_FOUND_LEFTOVER || piece->offset != 0)
        return TG_STALE;
    err = check_disk(store);
    if (err != 0)
        return err;
    return open_table_add(store->open, message->txn, message->rowset, message->table, piece->tablet,
                          open);
}

static int take_piece(struct store *store, const struct msg_replicate *message,
                      const struct replicate_piece *piece, struct slice bytes)
{
    struct open_rowset *open = open_table_find(store->open, piece->tablet, message->rowset);
    if (open == NULL) {
        int err = begin_rowset(store, message, piece, &open);
        if (err != 0 || open == NULL)
            return err;
    }
    int err = open->txn == message->txn && open->table_id == message->table ? 0 : TG_INVALID;
    if (err == 0)
        err = open_rowset_append(store, open, piece->offset, bytes);
    open_rowset_release(open);
    return err;
}

static int check_message(struct store *store, const struct msg_replicate *message,
                         struct slice payload)
{
    uint64_t bytes = 0;
    if (message->piece_count > REPLICATE_PIECES_MAX || message->seal_count > REPLICATE_SEALS_MAX)
        return TG_INVALID;
    for (uint32_t i = 0; i < message->piece_count; i++) {
        bytes += message->pieces[i].len;
        if (message->pieces[i].offset > INT64_MAX)
            return TG_INVALID;
    }
    if (bytes != payload.len || message->txn == 0 || message->rowset == 0)
        return TG_INVALID;
    for (uint32_t i = 0; i < message->seal_count; i++) {
        const struct rowset_meta *seal = &message->seals[i];
        if (seal->txn != message->txn || seal->rowset != message->rowset ||
            seal->table != message->table)
            return TG_INVALID;
    }
    for (uint32_t i = 0; i < message->piece_count; i++) {
        if (open_table_is_dead(store->open, message->txn, message->pieces[i].tablet))
            return TG_REFUSED;
    }
    return 0;
}

/* A sender that waits until the writers have room. */
struct room_call {
    struct store_waiter waiter; /* first */
    rowset_store_done done;
    void *data;
};

static void room_ready(struct store_waiter *waiter)
{
    struct room_call *call = (struct room_call *)waiter;
    call->done(call->data, 0);
    free(call);
}

static void answer_pieces(struct store *store, rowset_store_done done, void *data)
{
    struct room_call *call = malloc(sizeof *call);
    if (call == NULL) {
        done(data, TG_NOMEM);
        return;
    }
    *call = (struct room_call){.waiter = {.ready = room_ready}, .done = done, .data = data};
    for (int i = BLOCK_CLASSES - 1; i >= 0; i--) {
        if (store_writer_wait_room(store->block_writer[i], &call->waiter))
            return;
    }
    room_ready(&call->waiter);
}

void rowset_store_replicate(struct store *store, const struct msg_replicate *message,
                            struct slice payload, rowset_store_done done, void *data)
{
    int err = check_message(store, message, payload);
    size_t at = 0;
    for (uint32_t i = 0; i < message->piece_count && err == 0; i++) {
        const struct replicate_piece *piece = &message->pieces[i];
        err = take_piece(store, message, piece, slice_of(payload.data + at, piece->len));
        at += piece->len;
    }
    if (err != 0)
        done(data, err);
    else if (message->seal_count > 0)
        rowset_seal_begin(store, message, done, data);
    else
        answer_pieces(store, done, data);
}

struct wait_call {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool is_done;
    int err;
};

static void wait_done(void *data, int err)
{
    struct wait_call *call = data;
    pthread_mutex_lock(&call->lock);
    call->err = err;
    call->is_done = true;
    pthread_cond_signal(&call->finished);
    pthread_mutex_unlock(&call->lock);
}

int rowset_store_replicate_wait(struct store *store, const struct msg_replicate *message,
                                struct slice payload)
{
    struct wait_call call = {.is_done = false};
    pthread_mutex_init(&call.lock, NULL);
    pthread_cond_init(&call.finished, NULL);
    rowset_store_replicate(store, message, payload, wait_done, &call);
    pthread_mutex_lock(&call.lock);
    while (!call.is_done)
        pthread_cond_wait(&call.finished, &call.lock);
    pthread_mutex_unlock(&call.lock);
    pthread_cond_destroy(&call.finished);
    pthread_mutex_destroy(&call.lock);
    return call.err;
}

int rowset_store_find(struct store *store, txn_id txn_number, tablet_id tablet, rowset_id rowset,
                      enum rowset_here *here, struct digest *digest)
{
    struct lmdb_txn txn;
    enum seal_found found = SEAL_FOUND_NOTHING;
    *here = ROWSET_NOT_HERE;
    memset(digest, 0, sizeof *digest);
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0)
        return err;
    err = rowset_seal_find(store, &txn, txn_number, tablet, rowset, &found, digest);
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    if (err == TG_CORRUPT) { /* a record that cannot be read is as good as none */
        *here = ROWSET_LEFTOVER;
        return 0;
    }
    *here = found == SEAL_FOUND_SEALED     ? ROWSET_SEALED
            : found == SEAL_FOUND_LEFTOVER ? ROWSET_LEFTOVER
                                           : ROWSET_NOT_HERE;
    return err;
}

int rowset_store_hold(struct store *store, tablet_id tablet)
{
    pthread_mutex_lock(&store->drop_lock);
    int err = open_table_hold(store->open, tablet);
    pthread_mutex_unlock(&store->drop_lock);
    return err;
}

void rowset_store_let_go(struct store *store, tablet_id tablet)
{
    open_table_let_go(store->open, tablet);
}

void rowset_store_set_low_water(struct store *store, txn_id low_water)
{
    open_table_set_low_water(store->open, low_water);
}

void rowset_store_open_count(struct store *store, uint64_t *rowsets, uint64_t *bytes)
{
    open_table_count(store->open, rowsets, bytes);
}
