/* SPDX-License-Identifier: Apache-2.0 */
/* One round of cloning a tablet.
 *
 *   hold the tablet: what is staged for it is not dropped
 *   ▶ check what is bound here, if it was reported as damaged, and replace what is
 *   ▶ ask for the versions behind the last one here; compare the chains up to it
 *   ▶ for each version: stage its rowsets (those that are here are not fetched again), bind it
 *   ▶ ask again, until there are no more
 *
 * Binding is the store's usual one, with the usual decision: whatever else happens meanwhile,
 * a version is bound only behind its predecessor and with sealed rowsets of the right digests. So
 * a round that ends anywhere, by a crash too, leaves a good beginning for the next. */
#include "participant/maintain/clone_tablet.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/proto/message.h"
#include "participant/maintain/clone_rowset.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/rowset_store.h"
#include "participant/tablet/publish.h"

enum { CLONE_BIND_TRIES = 3, CLONE_PAGES_MAX = 1 << 20 };

/* ---- binding ---- */

struct bind_wait {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    int err;
    uint32_t count;             /* of binds */
    uint32_t bound;             /* of them, from the first one on */
    enum publish_status status; /* of the first that was not, else PUBLISH_BOUND */
};

static void on_bound(void *data, int err, struct msg_publish_reply *reply)
{
    struct bind_wait *wait = data;

    pthread_mutex_lock(&wait->lock);
    wait->err = err;
    while (err == 0 && wait->bound < reply->count && wait->bound < wait->count &&
           reply->status[wait->bound] == PUBLISH_BOUND)
        wait->bound++;
    if (wait->bound == wait->count)
        wait->status = PUBLISH_BOUND;
    else if (err == 0 && wait->bound < reply->count)
        wait->status = (enum publish_status)reply->status[wait->bound];
    wait->over = true;
    pthread_cond_signal(&wait->ended);
    pthread_mutex_unlock(&wait->lock);
    msg_publish_reply_close(reply);
}

/* publish_apply takes its message over. */
static int copy_binds(const struct clone_tablet *clone, const struct publish_bind *binds,
                      uint32_t count, struct msg_publish *message)
{
    message->binds = calloc((size_t)count + 1, sizeof *message->binds);
    if (message->binds == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct publish_bind *copy = &message->binds[message->bind_count++];

        *copy = binds[i];
        copy->table = clone->order.table;
        copy->rowsets = calloc((size_t)binds[i].rowset_count + 1, sizeof *copy->rowsets);
        if (copy->rowsets == NULL)
            return TG_NOMEM;
        if (binds[i].rowset_count > 0)
            memcpy(copy->rowsets, binds[i].rowsets, binds[i].rowset_count * sizeof *copy->rowsets);
    }
    return 0;
}

/* All in one storage transaction. *bound: how many, from the first one on; *status of the next. */
static int bind_versions(struct clone_tablet *clone, const struct publish_bind *binds,
                         uint32_t count, uint32_t *bound, enum publish_status *status)
{
    struct bind_wait wait = {.count = count, .status = PUBLISH_FAILED};
    struct msg_publish message = {0};
    int err = copy_binds(clone, binds, count, &message);

    if (err != 0) {
        msg_publish_close(&message);
        return err;
    }
    pthread_mutex_init(&wait.lock, NULL);
    pthread_cond_init(&wait.ended, NULL);
    publish_apply(clone->store, clone->tablets, clone->clock, &message, on_bound, &wait);
    pthread_mutex_lock(&wait.lock);
    while (!wait.over)
        pthread_cond_wait(&wait.ended, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
    pthread_cond_destroy(&wait.ended);
    pthread_mutex_destroy(&wait.lock);
    *bound = wait.bound;
    *status = wait.status;
    return wait.err;
}

static int bind_version(struct clone_tablet *clone, const struct publish_bind *bind,
                        enum publish_status *status)
{
    uint32_t bound;

    return bind_versions(clone, bind, 1, &bound, status);
}

/* One by one, and stubbornly. */
static int take_version(struct clone_tablet *clone, const struct publish_bind *bind,
                        struct tg_errmsg *msg)
{
    enum publish_status status = PUBLISH_FAILED;
    int err = 0;

    for (int i = 0; i < CLONE_BIND_TRIES; i++) {
        for (uint32_t j = 0; j < bind->rowset_count && err == 0; j++) {
            /* A second try is for a rowset that looked sealed and was not what it seemed. */
            err = i == 0 ? clone_rowset_stage(clone, bind->txn, &bind->rowsets[j], msg)
                         : clone_rowset_replace(clone, bind->txn, &bind->rowsets[j], msg);
        }
        if (err == 0)
            err = bind_version(clone, bind, &status);
        if (err != 0)
            return tg_wrap(msg, err, "version %" PRIu64, bind->version);
        if (status == PUBLISH_BOUND)
            return 0;
        if (status != PUBLISH_MISSING && status != PUBLISH_DIGEST)
            break;
    }
    return tg_fail(msg, TG_BEHIND, "version %" PRIu64 " cannot be bound: status %d", bind->version,
                   (int)status);
}

/* All of a page at once: their seals share a sync, and so do their bindings. What does not come
 * through this way is done one by one. */
static int take_versions(struct clone_tablet *clone, const struct publish_bind *binds,
                         uint32_t count, struct tg_errmsg *msg)
{
    struct clone_batch *batch = clone_batch_open();
    enum publish_status status;
    uint32_t bound = 0;
    int err = batch == NULL ? tg_fail(msg, TG_NOMEM, "out of memory") : 0;

    for (uint32_t i = 0; i < count && err == 0; i++) {
        for (uint32_t j = 0; j < binds[i].rowset_count && err == 0; j++)
            err = clone_rowset_prepare(clone, batch, binds[i].txn, &binds[i].rowsets[j], msg);
        if (err == 0 && atomic_load(clone->stop))
            err = tg_fail(msg, TG_CANCELED, "the node shuts down");
    }
    clone_batch_close(batch);
    if (err == 0 && count > 0 && bind_versions(clone, binds, count, &bound, &status) != 0)
        bound = 0;
    for (uint32_t i = bound; i < count && err == 0; i++)
        err = take_version(clone, &binds[i], msg);
    return err;
}

/* ---- what is here already ---- */

int clone_tablet_verify(struct clone_tablet *clone, version_t from, version_t *damaged,
                        struct tg_errmsg *msg)
{
    struct version_map map;
    int err = 0;

    *damaged = 0;
    tablet_set_share(clone->tablets, clone->order.tablet, &map);
    uint32_t end = version_map_count(&map, UINT64_MAX);
    for (uint32_t i = from > 0 ? version_map_count(&map, from - 1) : 0;
         i < end && err == 0 && *damaged == 0 && !atomic_load(clone->stop); i++) {
        struct publish_bind bind;

        err = version_map_entry(&map, i, &bind);
        for (uint32_t j = 0; err == 0 && j < bind.rowset_count && *damaged == 0; j++) {
            int bad = clone_rowset_verify(clone, &bind.rowsets[j]);

            if (bad == TG_CORRUPT || bad == TG_NOT_FOUND || bad == TG_UNSUPPORTED)
                *damaged = bind.version;
            else
                err = bad;
        }
        free(bind.rowsets);
    }
    version_map_close(&map);
    return err == 0 ? 0 : tg_fail(msg, err, "%s", tg_err_sentence(err));
}

/* One version that is bound here: its rowsets are read, and replaced if they are damaged. In any
 * case it is bound again, which changes nothing but the end of what such a repair staged before. */
static int mend_version(struct clone_tablet *clone, struct publish_bind *bind,
                        struct tg_errmsg *msg)
{
    int err = 0;

    for (uint32_t i = 0; i < bind->rowset_count && err == 0; i++) {
        int bad = clone_rowset_verify(clone, &bind->rowsets[i]);

        if (atomic_load(clone->stop))
            return tg_fail(msg, TG_CANCELED, "the node shuts down");
        if (bad == 0)
            continue;
        if (bad != TG_CORRUPT && bad != TG_NOT_FOUND && bad != TG_UNSUPPORTED)
            return tg_fail(msg, bad, "%s", tg_err_sentence(bad));
        log_error("clone", "damaged tablet=%lu version=%lu rowset=%lu: replaced from node=%u",
                  clone->order.tablet, bind->version, bind->rowsets[i].rowset, clone->order.source);
        err = clone_rowset_replace(clone, bind->txn, &bind->rowsets[i], msg);
    }
    enum publish_status status = PUBLISH_FAILED;
    if (err == 0)
        err = bind_version(clone, bind, &status);
    if (err == 0 && status != PUBLISH_BOUND)
        err = tg_fail(msg, TG_BEHIND, "version %" PRIu64 " is bound otherwise", bind->version);
    return err;
}

/* Only what the source holds as well: see compare. */
static int mend(struct clone_tablet *clone, version_t from, version_t until, struct tg_errmsg *msg)
{
    struct version_map map;
    int err = 0;

    tablet_set_share(clone->tablets, clone->order.tablet, &map);
    uint32_t end = version_map_count(&map, until);
    for (uint32_t i = version_map_count(&map, from - 1); i < end && err == 0; i++) {
        struct publish_bind bind;

        err = version_map_entry(&map, i, &bind);
        bind.tablet = clone->order.tablet;
        if (err == 0)
            err = mend_version(clone, &bind, msg);
        free(bind.rowsets);
    }
    version_map_close(&map);
    return err;
}

static int drop_chain(struct clone_tablet *clone, const char *why, struct tg_errmsg *msg)
{
    log_error("clone", "chain_dropped tablet=%lu last=%lu source=%u why=%s", clone->order.tablet,
              tablet_set_last(clone->tablets, clone->order.tablet), clone->order.source,
              log_quote(why));
    int err = rowset_drop_tablet(clone->store, clone->order.tablet);
    if (err != 0)
        return tg_fail(msg, err, "the tablet's old data cannot be dropped: %s",
                       tg_err_sentence(err));
    tablet_set_remove(clone->tablets, clone->order.tablet);
    return 0;
}

static int finish_old_drop(struct clone_tablet *clone, struct tg_errmsg *msg)
{
    bool unfinished;
    int err = rowset_drop_tablet_unfinished(clone->store, clone->order.tablet, &unfinished);

    if (err != 0 && err != TG_CORRUPT)
        return tg_fail(msg, err, "%s", tg_err_sentence(err));
    return unfinished || err != 0 ? drop_chain(clone, "a drop was interrupted", msg) : 0;
}

/* ---- the round ---- */

static int ask(struct clone_tablet *clone, version_t after, struct msg_clone_list_reply *reply,
               struct tg_errmsg *msg)
{
    struct msg_clone_list message = {
        .source = clone->order.source, .tablet = clone->order.tablet, .after = after};
    struct buf head = BUF_INIT;
    struct buf reply_head = BUF_INIT;
    struct buf payload = BUF_INIT;

    msg_clone_list_encode(&message, &head);
    int err = clone->calls->call(clone->calls->ctx, clone->order.source, clone->order.address,
                                 MSG_CLONE_LIST, &head, clone->stop, &reply_head, &payload, msg);
    if (err == 0) {
        err = msg_clone_list_reply_decode(slice_of(reply_head.data, reply_head.len), reply);
        if (err != 0)
            tg_fail(msg, err, "the source's answer is malformed");
    }
    buf_close(&reply_head);
    buf_close(&payload);
    return err;
}

/* Whether both hold the same up to where both hold something. */
static int compare(struct clone_tablet *clone, const struct msg_clone_list_reply *reply, bool *same)
{
    struct version_map map;
    struct digest chain;

    tablet_set_share(clone->tablets, clone->order.tablet, &map);
    int err = version_map_chain(&map, reply->at, &chain);
    version_map_close(&map);
    *same = err == 0 && digest_equal(&chain, &reply->chain);
    return err;
}

/* One page of versions. *more: there may be another one. */
static int take_page(struct clone_tablet *clone, bool *dropped, bool *more, struct tg_errmsg *msg)
{
    version_t last = tablet_set_last(clone->tablets, clone->order.tablet);
    struct msg_clone_list_reply reply;
    bool same;
    int err = ask(clone, last, &reply, msg);

    *more = false;
    if (err != 0)
        return err;
    err = compare(clone, &reply, &same);
    if (err == 0 && !same) {
        /* Damaged or split: the log's word is what good replicas hold. */
        if (*dropped || !clone->order.trusted)
            err = tg_fail(msg, TG_CORRUPT, "versions differ from those of the source");
        else
            err = drop_chain(clone, "versions differ from the source's", msg);
        *dropped = true;
        *more = err == 0;
    } else if (err == 0) {
        if (clone->order.lacks != 0 && clone->order.lacks <= reply.at) {
            err = mend(clone, clone->order.lacks, reply.at, msg);
            clone->order.lacks = 0;
        }
        if (err == 0)
            err = take_versions(clone, reply.binds, reply.count, msg);
        *more = err == 0 && reply.count > 0;
    }
    /* What was fetched just now needs no mending. */
    clone->order.lacks = 0;
    msg_clone_list_reply_close(&reply);
    return err;
}

static int take_pages(struct clone_tablet *clone, bool *dropped, struct tg_errmsg *msg)
{
    bool more = true;
    int err = 0;

    for (uint32_t i = 0; err == 0 && more && i < CLONE_PAGES_MAX; i++)
        err = take_page(clone, dropped, &more, msg);
    return err;
}

/* There is nobody to be cloned from: only what is here counts, if it can be read. */
static int check_own(struct clone_tablet *clone, struct clone_end *end, struct tg_errmsg *msg)
{
    version_t damaged = 0;
    int err =
        clone->order.lacks == 0 ? 0 : clone_tablet_verify(clone, clone->order.lacks, &damaged, msg);

    if (err == 0 && damaged != 0 && damaged <= clone->order.last) {
        end->damaged = damaged;
        err = tg_fail(msg, TG_CORRUPT,
                      "version %" PRIu64 " is damaged, and no other copy can be reached", damaged);
    }
    return err;
}

/* What was declared lost is no part of the tablet any more, also where it is still here: by the
 * log there is nothing behind what the replica missed, up to what it is to prove. */
static int cut_lost(struct clone_tablet *clone, struct tg_errmsg *msg)
{
    struct version_map map;

    tablet_set_share(clone->tablets, clone->order.tablet, &map);
    bool has_more = clone->order.catching && version_map_count(&map, clone->order.missed) <
                                                 version_map_count(&map, clone->order.prove);
    version_map_close(&map);
    if (!has_more)
        return 0;
    int err = rowset_drop_above(clone->store, clone->order.tablet, clone->order.missed);
    if (err == 0)
        err = tablet_set_cut(clone->tablets, clone->order.tablet, clone->order.missed);
    return err == 0 ? 0
                    : tg_fail(msg, err, "versions that are lost cannot be taken away: %s",
                              tg_err_sentence(err));
}

static void look_at_end(struct clone_tablet *clone, struct clone_end *end)
{
    struct version_map map;

    tablet_set_share(clone->tablets, clone->order.tablet, &map);
    end->bound = version_map_last(&map);
    end->proven = clone->order.prove;
    (void)version_map_chain(&map, end->proven, &end->chain);
    version_map_close(&map);
}

static bool contradicts_log(const struct clone_tablet *clone, const struct clone_end *end)
{
    return clone->order.chain_known && !digest_equal(&end->chain, &clone->order.chain);
}

/* What is here is complete, and not what the log has: one more try from nothing. Not where it might
 * be the last that there is. */
static int begin_anew(struct clone_tablet *clone, bool dropped, struct clone_end *end,
                      struct tg_errmsg *msg)
{
    bool self = clone->order.source == clone->order.node;
    int err = 0;

    if (dropped || !clone->order.trusted || self)
        return tg_fail(msg, TG_DIGEST, "versions differ from those of the log");
    err = drop_chain(clone, "versions differ from the log's", msg);
    dropped = true;
    if (err == 0)
        err = take_pages(clone, &dropped, msg);
    look_at_end(clone, end);
    if (err == 0 && contradicts_log(clone, end))
        err = tg_fail(msg, TG_DIGEST, "the source's versions differ from those of the log");
    return err;
}

int clone_tablet_run(struct clone_tablet *clone, struct clone_end *end, struct tg_errmsg *msg)
{
    bool dropped = false;
    int err = rowset_store_hold(clone->store, clone->order.tablet);

    if (err != 0)
        return tg_fail(msg, err, "too many tablets are cloned at once");
    memset(end, 0, sizeof *end);
    err = finish_old_drop(clone, msg);
    if (err == 0)
        err = cut_lost(clone, msg);
    if (err == 0)
        err = clone->order.source == clone->order.node ? check_own(clone, end, msg)
                                                       : take_pages(clone, &dropped, msg);
    look_at_end(clone, end);
    if (err == 0 && end->bound >= clone->order.missed && contradicts_log(clone, end))
        err = begin_anew(clone, dropped, end, msg);
    rowset_store_let_go(clone->store, clone->order.tablet);
    return err;
}
