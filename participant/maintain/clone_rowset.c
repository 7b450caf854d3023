/* SPDX-License-Identifier: Apache-2.0 */
/* One rowset of a clone. */
#include "participant/maintain/clone_rowset.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/proto/message.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/rowset_reader.h"
#include "participant/store/rowset_store.h"

struct clone_batch {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint32_t outstanding;
};

struct clone_batch *clone_batch_open(void)
{
    struct clone_batch *batch = calloc(1, sizeof *batch);

    if (batch == NULL)
        return NULL;
    pthread_mutex_init(&batch->lock, NULL);
    pthread_cond_init(&batch->ended, NULL);
    return batch;
}

void clone_batch_close(struct clone_batch *batch)
{
    if (batch == NULL)
        return;
    pthread_mutex_lock(&batch->lock);
    while (batch->outstanding > 0)
        pthread_cond_wait(&batch->ended, &batch->lock);
    pthread_mutex_unlock(&batch->lock);
    pthread_cond_destroy(&batch->ended);
    pthread_mutex_destroy(&batch->lock);
    free(batch);
}

static void one_ended(void *data, int err)
{
    struct clone_batch *batch = data;

    if (err != 0)
        log_warn("clone", "not_stored err=%s", tg_err_name(err));
    pthread_mutex_lock(&batch->lock);
    if (--batch->outstanding == 0)
        pthread_cond_signal(&batch->ended);
    pthread_mutex_unlock(&batch->lock);
}

/* Bytes from offset on; the description with those at 0. */
static int fetch(struct clone_tablet *clone, rowset_id rowset, uint64_t offset, uint32_t len,
                 struct msg_clone_read_reply *reply, struct buf *payload, struct tg_errmsg *msg)
{
    struct msg_clone_read message = {.source = clone->order.source,
                                     .tablet = clone->order.tablet,
                                     .rowset = rowset,
                                     .offset = offset,
                                     .len = len};
    struct buf head = BUF_INIT;
    struct buf reply_head = BUF_INIT;

    msg_clone_read_encode(&message, &head);
    int err = clone->calls->call(clone->calls->ctx, clone->order.source, clone->order.address,
                                 MSG_CLONE_READ, &head, clone->stop, &reply_head, payload, msg);
    if (err == 0) {
        err = msg_clone_read_reply_decode(slice_of(reply_head.data, reply_head.len), reply);
        if (err != 0)
            tg_fail(msg, err, "the source's answer is malformed");
    }
    buf_close(&reply_head);
    if (err == 0) {
        atomic_fetch_add(&clone->bytes, payload->len);
        throttle_wait(clone->throttle, payload->len, clone->stop);
    }
    return err;
}

/* The source must describe what the log names. */
static int check_meta(const struct clone_tablet *clone, txn_id txn,
                      const struct publish_rowset *rowset, const struct msg_clone_read_reply *reply,
                      struct tg_errmsg *msg)
{
    const struct rowset_meta *meta = &reply->meta;

    if (!reply->with_meta || meta->tablet != clone->order.tablet ||
        meta->rowset != rowset->rowset || meta->table != clone->order.table || meta->txn != txn)
        return tg_fail(msg, TG_CORRUPT, "the source describes another rowset");
    if (!digest_equal(&meta->digest, &rowset->digest))
        return tg_fail(msg, TG_DIGEST, "the source's rowset %" PRIu64 " has another digest",
                       rowset->rowset);
    return 0;
}

/* A piece, and the seal with the last one. With a batch: does not wait. */
static int put(struct clone_tablet *clone, struct clone_batch *batch,
               const struct rowset_meta *meta, uint64_t offset, struct slice bytes, bool seal)
{
    struct replicate_piece piece = {
        .tablet = clone->order.tablet, .offset = offset, .len = (uint32_t)bytes.len};
    struct rowset_meta copy;
    struct msg_replicate message = {.txn = meta->txn,
                                    .rowset = meta->rowset,
                                    .table = clone->order.table,
                                    .piece_count = bytes.len > 0,
                                    .pieces = &piece};

    if (seal) {
        copy = *meta; /* borrowed */
        message.seal_count = 1;
        message.seals = &copy;
    }
    if (batch == NULL || !seal)
        return rowset_store_replicate_wait(clone->store, &message, bytes);
    pthread_mutex_lock(&batch->lock);
    batch->outstanding++;
    pthread_mutex_unlock(&batch->lock);
    rowset_store_replicate(clone->store, &message, bytes, one_ended, batch);
    return 0;
}

static int fetch_more(struct clone_tablet *clone, rowset_id rowset, uint64_t offset,
                      struct buf *payload, struct tg_errmsg *msg)
{
    struct msg_clone_read_reply reply;

    buf_close(payload);
    int err = fetch(clone, rowset, offset, CLONE_READ_BYTES_MAX, &reply, payload, msg);
    if (err == 0)
        msg_clone_read_reply_close(&reply);
    return err;
}

static int fetch_all(struct clone_tablet *clone, struct clone_batch *batch, txn_id txn,
                     const struct publish_rowset *rowset, struct msg_clone_read_reply *first,
                     struct buf *payload, struct tg_errmsg *msg)
{
    uint64_t offset = clone->resumed;
    int err =
        fetch(clone, rowset->rowset, 0, offset > 0 ? 0 : CLONE_READ_BYTES_MAX, first, payload, msg);

    if (err == 0)
        err = check_meta(clone, txn, rowset, first, msg);
    if (err == 0 && offset > first->meta.bytes)
        err = tg_fail(msg, TG_DIGEST, "more is here of rowset %" PRIu64 " than there is of it",
                      rowset->rowset);
    if (err == 0 && offset > 0 && offset < first->meta.bytes)
        err = fetch_more(clone, rowset->rowset, offset, payload, msg);
    while (err == 0) {
        bool last = offset + payload->len >= first->meta.bytes;

        if (payload->len == 0 && !last)
            return tg_fail(msg, TG_CORRUPT, "the source gives less than it describes");
        err = put(clone, batch, &first->meta, offset, slice_of(payload->data, payload->len), last);
        if (err != 0)
            return tg_fail(msg, err, "rowset %" PRIu64 " cannot be stored: %s", rowset->rowset,
                           tg_err_sentence(err));
        offset += payload->len;
        if (last)
            return 0;
        if (atomic_load(clone->stop))
            return tg_fail(msg, TG_CANCELED, "the node shuts down");
        err = fetch_more(clone, rowset->rowset, offset, payload, msg);
    }
    return err;
}

static int fetch_rowset(struct clone_tablet *clone, struct clone_batch *batch, txn_id txn,
                        const struct publish_rowset *rowset, struct tg_errmsg *msg)
{
    struct msg_clone_read_reply first;
    struct buf payload = BUF_INIT;

    memset(&first, 0, sizeof first);
    rowset_meta_init(&first.meta);
    /* Where an earlier round was cut off, this one goes on. */
    if (rowset_store_resume(clone->store, txn, clone->order.table, clone->order.tablet,
                            rowset->rowset, &clone->resumed) != 0)
        clone->resumed = 0;
    int err = fetch_all(clone, batch, txn, rowset, &first, &payload, msg);
    msg_clone_read_reply_close(&first);
    buf_close(&payload);
    return err;
}

int clone_rowset_replace(struct clone_tablet *clone, txn_id txn,
                         const struct publish_rowset *rowset, struct tg_errmsg *msg)
{
    int err = rowset_drop_one(clone->store, txn, clone->order.tablet, rowset->rowset);

    if (err != 0)
        return tg_fail(msg, err, "rowset %" PRIu64 " cannot be replaced: %s", rowset->rowset,
                       tg_err_sentence(err));
    return fetch_rowset(clone, NULL, txn, rowset, msg);
}

/* Also says that nothing is to be done. */
static int look(struct clone_tablet *clone, txn_id txn, const struct publish_rowset *rowset,
                enum rowset_here *here, bool *good, struct tg_errmsg *msg)
{
    struct digest digest;
    int err =
        rowset_store_find(clone->store, txn, clone->order.tablet, rowset->rowset, here, &digest);

    *good = err == 0 && *here == ROWSET_SEALED && digest_equal(&digest, &rowset->digest);
    if (err == 0 && *here == ROWSET_SEALED && !*good)
        log_error("clone", "other_digest tablet=%lu rowset=%lu txn=%lu", clone->order.tablet,
                  rowset->rowset, txn);
    return err == 0 ? 0 : tg_fail(msg, err, "%s", tg_err_sentence(err));
}

/* What was here of it was not what it seemed: it may not be the source's fault. */
static bool is_about_content(int err)
{
    return err == TG_STALE || err == TG_DIGEST || err == TG_INVALID;
}

int clone_rowset_prepare(struct clone_tablet *clone, struct clone_batch *batch, txn_id txn,
                         const struct publish_rowset *rowset, struct tg_errmsg *msg)
{
    enum rowset_here here;
    bool good;
    int err = look(clone, txn, rowset, &here, &good, msg);

    if (err != 0 || good || here == ROWSET_SEALED)
        return err;
    err = fetch_rowset(clone, batch, txn, rowset, msg);
    /* It is done alone then, from the begin. */
    return here == ROWSET_LEFTOVER && is_about_content(err) ? 0 : err;
}

int clone_rowset_stage(struct clone_tablet *clone, txn_id txn, const struct publish_rowset *rowset,
                       struct tg_errmsg *msg)
{
    enum rowset_here here;
    bool good;
    int err = look(clone, txn, rowset, &here, &good, msg);

    if (err != 0 || good)
        return err;
    if (here != ROWSET_SEALED) {
        err = fetch_rowset(clone, NULL, txn, rowset, msg);
        if (!is_about_content(err) || (err != TG_STALE && clone->resumed == 0))
            return err;
    }
    return clone_rowset_replace(clone, txn, rowset, msg);
}

static bool go_on(void *data, uint64_t bytes)
{
    struct clone_tablet *clone = data;

    throttle_wait(clone->throttle, bytes, clone->stop);
    return !atomic_load(clone->stop);
}

int clone_rowset_verify(struct clone_tablet *clone, const struct publish_rowset *rowset)
{
    struct rowset_reader reader;
    int err = rowset_reader_open_anew(clone->store, clone->order.tablet, rowset->rowset, &reader);

    if (err != 0)
        return err;
    err = digest_equal(&reader.meta->digest, &rowset->digest)
              ? rowset_reader_verify_slowly(&reader, go_on, clone)
              : TG_CORRUPT;
    rowset_reader_close(&reader);
    return err;
}
