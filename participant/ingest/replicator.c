/* SPDX-License-Identifier: Apache-2.0 */
/* Replication of one load. For each node that holds replicas there is a link: a message being
 * filled, and how much is on its way. Links and results are shared with the threads that bring the
 * answers, so they live in a core with a count of its users. */
#include "participant/ingest/replicator.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/proto/message.h"

enum {
    PIECES_FIRST = 16,                 /* of a message, before its list grows */
    WAIT_SLICE_MS = 100,               /* how often a waiting load looks whether it must stop */
    SEAL_HEAD_BYTES = 2 * 1024 * 1024, /* descriptions in one message, about */
    BLOCK_REF_BYTES = 160,             /* of a block in an encoded description, at most about */
    NO_LINK = UINT8_MAX                /* of a place in the plan that no node holds */
};

struct link {
    node_id node;
    char address[ADDRESS_BYTES];
    bool own;
    /* Of the load's thread: the message being filled. */
    struct replicate_piece *pieces;
    uint32_t piece_count;
    uint32_t piece_capacity;
    struct buf payload;
    /* Shared. */
    uint64_t backlog;    /* bytes sent and not answered */
    uint32_t unanswered; /* messages */
    int err;             /* 0: good so far */
    bool told;           /* the failure was logged */
};

struct core {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t users;
    uint32_t unanswered; /* messages of all links */
    bool sealing;        /* the load waits for its last answers, not for room */
    uint32_t link_count;
    struct link *links;
    uint8_t *sealed; /* per bucket: bit per replica */
};

struct replicator {
    struct replicator_options options;
    struct core *core;
    /* link of replica i of bucket b: link_of[b * REPLICAS_MAX + i] */
    uint8_t *link_of;
    bool *touched;
};

/* A message on its way. */
struct sent {
    struct core *core;
    uint32_t link;
    uint64_t bytes;
    uint32_t seal_count; /* the buckets that it seals … */
    uint32_t *buckets;
    uint8_t *bits; /* … and which replica of each this is */
    struct peer_call call;
};

/* ---- the core ---- */

static void core_release(struct core *core)
{
    pthread_mutex_lock(&core->lock);
    bool last = --core->users == 0;
    pthread_mutex_unlock(&core->lock);
    if (!last)
        return;
    for (uint32_t i = 0; i < core->link_count; i++) {
        free(core->links[i].pieces);
        buf_close(&core->links[i].payload);
    }
    free(core->links);
    free(core->sealed);
    pthread_cond_destroy(&core->changed);
    pthread_mutex_destroy(&core->lock);
    free(core);
}

static struct core *core_open(const struct msg_txn_begin_reply *plan)
{
    struct core *core = calloc(1, sizeof *core);
    pthread_condattr_t attr;

    if (core == NULL)
        return NULL;
    pthread_mutex_init(&core->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&core->changed, &attr);
    pthread_condattr_destroy(&attr);
    core->users = 1;
    core->links = calloc((size_t)plan->node_count + 1, sizeof *core->links);
    core->sealed = calloc(plan->bucket_count, 1);
    if (core->links == NULL || core->sealed == NULL) {
        core_release(core);
        return NULL;
    }
    return core;
}

/* With the lock held. */
static void wait_a_little(struct core *core)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    long ns = until.tv_nsec + WAIT_SLICE_MS * 1000000L;
    until = (struct timespec){until.tv_sec + ns / 1000000000L, ns % 1000000000L};
    pthread_cond_timedwait(&core->changed, &core->lock, &until);
}

static void answered(struct sent *sent, int err)
{
    struct core *core = sent->core;
    struct link *link = &core->links[sent->link];

    pthread_mutex_lock(&core->lock);
    link->backlog -= sent->bytes;
    link->unanswered--;
    core->unanswered--;
    if (err != 0 && link->err == 0)
        link->err = err;
    for (uint32_t i = 0; err == 0 && i < sent->seal_count; i++)
        core->sealed[sent->buckets[i]] |= sent->bits[i];
    /* To wake the load for each of its last answers would cost more than they do; how many make a
     * quorum it looks at every WAIT_SLICE_MS. */
    bool wake = !core->sealing || core->unanswered == 0 || err != 0;
    pthread_mutex_unlock(&core->lock);
    /* Without the lock, which the woken thread takes first. The core is still ours. */
    if (wake)
        pthread_cond_signal(&core->changed);
    core_release(core);
    free(sent->buckets);
    free(sent->bits);
    free(sent);
}

static void on_store_done(void *data, int err)
{
    answered(data, err);
}

static void on_peer_done(void *data, const struct rpc_reply *reply)
{
    answered(data, reply->err);
}

/* ---- opening ---- */

static uint32_t find_link(const struct core *core, node_id node)
{
    for (uint32_t i = 0; i < core->link_count; i++)
        if (core->links[i].node == node)
            return i;
    return UINT32_MAX;
}

int replicator_open(const struct replicator_options *options, struct replicator **replicator)
{
    const struct msg_txn_begin_reply *plan = options->plan;
    struct replicator *r = calloc(1, sizeof *r);

    if (r == NULL)
        return TG_NOMEM;
    r->options = *options;
    if (r->options.backlog_bytes == 0)
        r->options.backlog_bytes = REPLICATOR_BACKLOG_BYTES;
    r->core = core_open(plan);
    r->link_of = calloc((size_t)plan->bucket_count, REPLICAS_MAX);
    r->touched = calloc(plan->bucket_count, sizeof *r->touched);
    if (r->core == NULL || r->link_of == NULL || r->touched == NULL) {
        replicator_close(r);
        return TG_NOMEM;
    }
    for (uint32_t i = 0; i < plan->node_count; i++) {
        struct link *link = &r->core->links[r->core->link_count++];
        link->node = plan->nodes[i].node;
        link->own = link->node == options->node;
        memcpy(link->address, plan->nodes[i].rpc, sizeof link->address);
    }
    for (uint32_t b = 0; b < plan->bucket_count; b++) {
        for (uint32_t i = 0; i < plan->tablets[b].replica_count; i++) {
            uint32_t link = find_link(r->core, plan->tablets[b].replicas[i]);
            if (plan->tablets[b].replicas[i] == 0 && (plan->tablets[b].behind >> i & 1) != 0) {
                r->link_of[(size_t)b * REPLICAS_MAX + i] = NO_LINK;
                continue;
            }
            if (link == UINT32_MAX || plan->node_count > NODES_MAX) {
                replicator_close(r);
                return TG_CORRUPT; /* a plan that does not name its nodes */
            }
            r->link_of[(size_t)b * REPLICAS_MAX + i] = (uint8_t)link;
        }
    }
    *replicator = r;
    return 0;
}

void replicator_close(struct replicator *replicator)
{
    if (replicator == NULL)
        return;
    if (replicator->core != NULL)
        core_release(replicator->core);
    free(replicator->link_of);
    free(replicator->touched);
    free(replicator);
}

/* ---- judging replicas ---- */

/* A replica that is behind lacks an earlier version, so it could not bind this load's rowset: it is
 * neither sent to nor waited for. One that is catching up is, as others are once there is a quorum:
 * but it is not part of one. */
static bool is_target(const struct load_plan_tablet *tablet, uint32_t replica)
{
    return ((tablet->behind & ~tablet->catching) >> replica & 1) == 0;
}

static bool counts(const struct load_plan_tablet *tablet, uint32_t replica)
{
    return (tablet->behind >> replica & 1) == 0;
}

static uint32_t quorum_of(const struct replicator *r, uint32_t bucket)
{
    return r->options.plan->tablets[bucket].quorum;
}

/* Replicas of a bucket that may still end well, or with sealed_only did. With the lock held. */
static uint32_t count_good(const struct replicator *r, uint32_t bucket, bool sealed_only)
{
    const struct load_plan_tablet *tablet = &r->options.plan->tablets[bucket];
    uint32_t good = 0;

    for (uint32_t i = 0; i < tablet->replica_count; i++) {
        if (!counts(tablet, i))
            continue;
        const struct link *link = &r->core->links[r->link_of[(size_t)bucket * REPLICAS_MAX + i]];
        bool sealed = (r->core->sealed[bucket] >> i & 1) != 0;
        if (sealed_only ? sealed : sealed || link->err == 0)
            good++;
    }
    return good;
}

/* Doris's sentence for a tablet without its quorum. With the lock held. */
static int no_quorum(const struct replicator *r, uint32_t bucket, bool sealed_only,
                     struct tg_errmsg *msg)
{
    char why[128];
    const struct link *first = NULL;

    /* Of several reasons a full disk is the one that somebody can do something about. */
    for (uint32_t i = 0; i < r->core->link_count; i++) {
        const struct link *link = &r->core->links[i];
        if (link->err != 0 &&
            (first == NULL || (link->err == TG_NOSPACE && first->err != link->err)))
            first = link;
    }
    int err = first != NULL ? first->err : 0;
    if (err == TG_NOSPACE)
        snprintf(why, sizeof why, "disk full: %s on participant %u", tg_err_sentence(err),
                 first->node);
    else
        snprintf(why, sizeof why, "%s",
                 err != 0 ? tg_err_sentence(err) : "its other replicas are behind");
    return tg_fail(msg, TG_QUORUM,
                   "[INTERNAL_ERROR]Failed to commit txn %llu, cause tablet %llu succ replica num "
                   "%u < load required replica num %u. table %llu (%s)",
                   (unsigned long long)r->options.plan->txn,
                   (unsigned long long)r->options.plan->tablets[bucket].tablet,
                   count_good(r, bucket, sealed_only), quorum_of(r, bucket),
                   (unsigned long long)r->options.plan->table, why);
}

/* Whether every touched tablet can still get its quorum. With the lock held. */
static int check_quorums(struct replicator *r, struct tg_errmsg *msg)
{
    struct core *core = r->core;
    bool failed = false;

    for (uint32_t i = 0; i < core->link_count; i++) {
        struct link *link = &core->links[i];
        if (link->err != 0 && !link->told) {
            link->told = true;
            log_warn("replicator", "replica dropped txn=%llu node=%u err=%s",
                     (unsigned long long)r->options.plan->txn, link->node, tg_err_name(link->err));
        }
        failed |= link->err != 0;
    }
    for (uint32_t b = 0; failed && b < r->options.plan->bucket_count; b++)
        if (r->touched[b] && count_good(r, b, false) < quorum_of(r, b))
            return no_quorum(r, b, false, msg);
    return 0;
}

/* Waits until the link has room for more. A link that stays full is dropped if it can be spared. */
static int wait_for_room(struct replicator *r, struct link *link, struct tg_errmsg *msg)
{
    struct core *core = r->core;
    uint64_t began = clock_monotonic_ms(r->options.clock);
    uint64_t before = UINT64_MAX;
    int err = 0;

    pthread_mutex_lock(&core->lock);
    while (err == 0 && link->err == 0 && link->backlog >= r->options.backlog_bytes) {
        if (link->backlog < before) {
            before = link->backlog;
            began = clock_monotonic_ms(r->options.clock);
        }
        if (clock_monotonic_ms(r->options.clock) - began > REPLICATOR_SLOW_MS) {
            link->err = TG_TIMEOUT;
            break;
        }
        wait_a_little(core);
        if (r->options.stopped(r->options.ctx, msg))
            err = TG_CANCELED;
    }
    if (err == 0)
        err = check_quorums(r, msg);
    pthread_mutex_unlock(&core->lock);
    return err;
}

/* ---- sending ---- */

/* Makes the record of a message; with seals: whose they are. */
static struct sent *make_sent(struct replicator *r, uint32_t link_index, const uint32_t *buckets,
                              uint32_t seal_count)
{
    struct sent *sent = calloc(1, sizeof *sent);

    if (sent == NULL)
        return NULL;
    sent->core = r->core;
    sent->link = link_index;
    sent->bytes = r->core->links[link_index].payload.len;
    sent->seal_count = seal_count;
    sent->buckets = calloc((size_t)seal_count + 1, sizeof *sent->buckets);
    sent->bits = calloc((size_t)seal_count + 1, 1);
    if (sent->buckets == NULL || sent->bits == NULL) {
        free(sent->buckets);
        free(sent->bits);
        free(sent);
        return NULL;
    }
    for (uint32_t s = 0; s < seal_count; s++) {
        uint32_t bucket = buckets[s];
        sent->buckets[s] = bucket;
        for (uint32_t i = 0; i < r->options.plan->tablets[bucket].replica_count; i++)
            if (r->link_of[(size_t)bucket * REPLICAS_MAX + i] == link_index)
                sent->bits[s] = (uint8_t)(1u << i);
    }
    return sent;
}

/* Sends what the link has gathered, with seals of these buckets. */
static int send_message(struct replicator *r, uint32_t link_index, const uint32_t *buckets,
                        struct rowset_meta *seals, uint32_t seal_count)
{
    struct core *core = r->core;
    struct link *link = &core->links[link_index];
    const struct msg_txn_begin_reply *plan = r->options.plan;
    struct sent *sent = make_sent(r, link_index, buckets, seal_count);

    if (sent == NULL)
        return TG_NOMEM;
    struct msg_replicate message = {.sender = r->options.node,
                                    .sender_epoch = r->options.epoch,
                                    .receiver = link->node,
                                    .txn = plan->txn,
                                    .rowset = plan->rowset,
                                    .table = plan->table,
                                    .piece_count = link->piece_count,
                                    .pieces = link->pieces,
                                    .seal_count = seal_count,
                                    .seals = seals};
    pthread_mutex_lock(&core->lock);
    core->users++;
    core->unanswered++;
    link->backlog += sent->bytes;
    link->unanswered++;
    pthread_mutex_unlock(&core->lock);
    link->piece_count = 0;
    if (link->own) {
        struct buf payload = link->payload;
        buf_init(&link->payload);
        r->options.calls->store(r->options.calls->ctx, &message,
                                slice_of(payload.data, payload.len), on_store_done, sent);
        buf_clear(&payload);
        link->payload = payload; /* its memory serves the next message */
        return 0;
    }
    sent->call = (struct peer_call){.node = link->node,
                                    .type = MSG_REPLICATE,
                                    .payload = link->payload,
                                    .timeout_ms = REPLICATOR_CALL_MS,
                                    .done = on_peer_done,
                                    .data = sent};
    memcpy(sent->call.address, link->address, sizeof sent->call.address);
    msg_replicate_encode(&message, &sent->call.head);
    buf_init(&link->payload);
    if (sent->call.head.err != 0) {
        buf_close(&sent->call.head);
        buf_close(&sent->call.payload);
        answered(sent, TG_NOMEM);
        return 0;
    }
    r->options.calls->peer(r->options.calls->ctx, &sent->call);
    return 0;
}

static bool link_is_good(struct replicator *r, uint32_t link)
{
    pthread_mutex_lock(&r->core->lock);
    bool good = r->core->links[link].err == 0;
    pthread_mutex_unlock(&r->core->lock);
    return good;
}

static int grow_pieces(struct link *link)
{
    uint32_t capacity = link->piece_capacity == 0 ? PIECES_FIRST : link->piece_capacity * 2;
    struct replicate_piece *pieces;

    if (capacity > REPLICATE_PIECES_MAX)
        capacity = REPLICATE_PIECES_MAX;
    pieces = realloc(link->pieces, capacity * sizeof *pieces);
    if (pieces == NULL)
        return TG_NOMEM;
    link->pieces = pieces;
    link->piece_capacity = capacity;
    return 0;
}

static int add_piece(struct replicator *r, uint32_t link_index, uint32_t bucket, uint64_t offset,
                     struct slice content, struct tg_errmsg *msg)
{
    struct link *link = &r->core->links[link_index];
    int err = wait_for_room(r, link, msg);

    if (err != 0 || !link_is_good(r, link_index))
        return err;
    if (link->piece_count == link->piece_capacity && grow_pieces(link) != 0)
        return tg_fail(msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory");
    link->pieces[link->piece_count++] =
        (struct replicate_piece){.tablet = r->options.plan->tablets[bucket].tablet,
                                 .offset = offset,
                                 .len = (uint32_t)content.len};
    buf_append(&link->payload, content.data, content.len);
    if (link->payload.err != 0)
        return tg_fail(msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory");
    if (link->payload.len < REPLICATOR_MESSAGE_BYTES && link->piece_count < REPLICATE_PIECES_MAX)
        return 0;
    if (send_message(r, link_index, NULL, NULL, 0) != 0)
        return tg_fail(msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory");
    return 0;
}

int replicator_piece(struct replicator *replicator, uint32_t bucket, uint64_t offset,
                     struct slice content, struct tg_errmsg *msg)
{
    struct replicator *r = replicator;
    const struct load_plan_tablet *tablet = &r->options.plan->tablets[bucket];
    int err = 0;

    r->touched[bucket] = true;
    while (content.len > 0 && err == 0) {
        size_t len =
            content.len < REPLICATOR_MESSAGE_BYTES ? content.len : REPLICATOR_MESSAGE_BYTES;
        for (uint32_t i = 0; i < tablet->replica_count && err == 0; i++)
            if (is_target(tablet, i))
                err = add_piece(r, r->link_of[(size_t)bucket * REPLICAS_MAX + i], bucket, offset,
                                slice_of(content.data, len), msg);
        offset += len;
        content = slice_of(content.data + len, content.len - len);
    }
    return err;
}

/* ---- sealing ---- */

/* All seals that one node gets, in as few messages as their size allows: the first takes along what
 * is left of the pieces. */
static int send_seals(struct replicator *r, uint32_t link_index, const uint32_t *buckets,
                      const struct rowset_meta *const *metas, uint32_t count)
{
    uint32_t *mine = calloc((size_t)count + 1, sizeof *mine);
    struct rowset_meta *seals = calloc((size_t)count + 1, sizeof *seals);
    uint32_t n = 0;
    size_t bytes = 0;
    int err = mine == NULL || seals == NULL ? TG_NOMEM : 0;

    for (uint32_t b = 0; b < count && err == 0; b++) {
        const struct load_plan_tablet *tablet = &r->options.plan->tablets[buckets[b]];
        bool here = false;
        for (uint32_t i = 0; i < tablet->replica_count; i++)
            here |= is_target(tablet, i) &&
                    r->link_of[(size_t)buckets[b] * REPLICAS_MAX + i] == link_index;
        if (!here)
            continue;
        size_t size = (size_t)metas[b]->block_count * BLOCK_REF_BYTES;
        if (n > 0 && (bytes + size > SEAL_HEAD_BYTES || n == REPLICATE_SEALS_MAX)) {
            err = send_message(r, link_index, mine, seals, n);
            n = 0;
            bytes = 0;
        }
        mine[n] = buckets[b];
        seals[n++] = *metas[b]; /* borrowed, not closed */
        bytes += size;
    }
    if (err == 0 && n > 0)
        err = send_message(r, link_index, mine, seals, n);
    free(mine);
    free(seals);
    return err;
}

/* 1: every bucket has its quorum; 2: and nothing more is to come; 0: neither. With the lock held.
 */
static int seal_progress(const struct replicator *r, const uint32_t *buckets, uint32_t count)
{
    bool waiting = false;

    for (uint32_t i = 0; i < count; i++)
        if (count_good(r, buckets[i], true) < quorum_of(r, buckets[i]))
            return 0;
    for (uint32_t i = 0; i < r->core->link_count; i++)
        waiting |= r->core->links[i].unanswered > 0 && r->core->links[i].err == 0;
    return waiting ? 1 : 2;
}

int replicator_seal(struct replicator *replicator, const uint32_t *buckets,
                    const struct rowset_meta *const *metas, uint32_t count, struct tg_errmsg *msg)
{
    struct replicator *r = replicator;
    struct core *core = r->core;
    int err = 0;

    for (uint32_t i = 0; i < core->link_count && err == 0; i++)
        if (link_is_good(r, i))
            err = send_seals(r, i, buckets, metas, count);
    if (err != 0)
        return tg_fail(msg, err, "[INTERNAL_ERROR]out of memory");
    uint64_t began = clock_monotonic_ms(r->options.clock);
    uint64_t deadline = began + REPLICATOR_SEAL_MS;
    bool quorum = false;
    pthread_mutex_lock(&core->lock);
    core->sealing = true;
    /* Where too many are behind, there is nothing to wait for. */
    for (uint32_t i = 0; i < count && err == 0; i++)
        if (count_good(r, buckets[i], false) < quorum_of(r, buckets[i]))
            err = no_quorum(r, buckets[i], false, msg);
    while (err == 0) {
        int progress = seal_progress(r, buckets, count);
        uint64_t now = clock_monotonic_ms(r->options.clock);
        if (progress == 1 && !quorum) {
            quorum = true;
            if (now + REPLICATOR_GRACE_MS < deadline)
                deadline = now + REPLICATOR_GRACE_MS;
        }
        err = check_quorums(r, msg);
        if (progress == 2 || err != 0 || now >= deadline)
            break;
        wait_a_little(core);
        if (r->options.stopped(r->options.ctx, msg)) {
            err = TG_CANCELED;
            break;
        }
    }
    for (uint32_t i = 0; i < count && err == 0; i++)
        if (count_good(r, buckets[i], true) < quorum_of(r, buckets[i]))
            err = no_quorum(r, buckets[i], true, msg);
    pthread_mutex_unlock(&core->lock);
    return err;
}

uint8_t replicator_sealed(const struct replicator *replicator, uint32_t bucket)
{
    struct core *core = replicator->core;

    pthread_mutex_lock(&core->lock);
    uint8_t sealed = core->sealed[bucket];
    pthread_mutex_unlock(&core->lock);
    return sealed;
}
