/* SPDX-License-Identifier: Apache-2.0 */
/* Drives COMMITTED transactions to VISIBLE.
 *
 * What is known for sure is in the state: per publish tablet the replicas that the log has seen
 * confirmed. On top of it this daemon keeps what answers told since (struct progress). One
 * MSG_PUBLISH is in the air per participant; while it is, later commits gather, and the next
 * message takes them all. A participant binds a tablet's versions in order, so each message is
 * sorted by version; binding may run ahead of visibility. */
#include "coordinator/txn/publish_daemon.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/mutant.h"
#include "coordinator/txn/publish_message.h"

/* What answers told about one transaction. */
struct progress {
    txn_id txn;
    uint32_t tablet_count;
    uint8_t *bound;         /* per publish tablet: replica slots that answered BOUND */
    uint64_t moves;         /* of the catalog, when bound was begun */
    bool proposed;          /* a VISIBLE or CONFIRM command with it is under way */
    uint64_t confirm_by_ms; /* visible and complete: when CONFIRM goes out at the latest; 0: not */
    UT_hash_handle hh;
};

/* One participant's line. */
struct line {
    node_id node;
    struct publish_call *call; /* in the air, or NULL */
    uint64_t not_before_ms;    /* after a failure */
    uint64_t retry_ms;
};

struct publish_call {
    struct publish_daemon *daemon; /* NULL once nobody waits for the answer */
    node_id node;
    struct msg_publish message;
};

struct proposal {
    struct consensus_request request;
    struct publish_daemon *daemon; /* NULL once nobody waits */
    struct proposal *next;
    struct command command;
};

struct publish_daemon {
    struct consensus *consensus;
    struct participants *participants;
    struct clock *clock;
    struct publish_daemon_options options;
    struct progress *progress;
    struct line lines[NODES_MAX];
    uint32_t line_count;
    struct proposal *proposals;
    bool running;
};

int publish_daemon_open(struct consensus *consensus, struct participants *participants,
                        struct clock *clock, const struct publish_daemon_options *options,
                        struct publish_daemon **daemon)
{
    struct publish_daemon *d = calloc(1, sizeof *d);

    if (d == NULL)
        return TG_NOMEM;
    d->consensus = consensus;
    d->participants = participants;
    d->clock = clock;
    d->options = *options;
    *daemon = d;
    return 0;
}

static void forget(struct publish_daemon *d, struct progress *p)
{
    HASH_DEL(d->progress, p);
    free(p->bound);
    free(p);
}

void publish_daemon_reset(struct publish_daemon *d)
{
    struct progress *p, *next;

    HASH_ITER(hh, d->progress, p, next)
    forget(d, p);
    for (uint32_t i = 0; i < d->line_count; i++)
        if (d->lines[i].call != NULL)
            d->lines[i].call->daemon = NULL;
    d->line_count = 0;
    for (struct proposal *q = d->proposals; q != NULL; q = q->next)
        q->daemon = NULL;
    d->proposals = NULL;
}

void publish_daemon_close(struct publish_daemon *d)
{
    if (d == NULL)
        return;
    publish_daemon_reset(d);
    free(d);
}

static struct progress *progress_of(struct publish_daemon *d, const struct txn *txn)
{
    uint64_t moves = consensus_state(d->consensus)->catalog.moves;
    struct progress *p;

    HASH_FIND(hh, d->progress, &txn->id, sizeof txn->id, p);
    if (p != NULL && p->moves == moves)
        return p;
    if (p != NULL) {
        /* Another may hold a slot by now: what the log knows is right, the rest is asked again. */
        p->moves = moves;
        for (uint32_t i = 0; i < txn->publish_count; i++)
            p->bound[i] = txn->publish[i].confirmed;
        return p;
    }
    p = calloc(1, sizeof *p);
    TG_CHECK_MEMORY(p != NULL);
    p->txn = txn->id;
    p->moves = moves;
    p->tablet_count = txn->publish_count;
    p->bound = calloc(txn->publish_count + 1, 1);
    TG_CHECK_MEMORY(p->bound != NULL);
    for (uint32_t i = 0; i < txn->publish_count; i++)
        p->bound[i] = txn->publish[i].confirmed;
    HASH_ADD(hh, d->progress, txn, sizeof p->txn, p);
    return p;
}

static struct line *line_of(struct publish_daemon *d, node_id node)
{
    for (uint32_t i = 0; i < d->line_count; i++)
        if (d->lines[i].node == node)
            return &d->lines[i];
    struct line *line = d->line_count < NODES_MAX ? &d->lines[d->line_count++] : NULL;
    for (uint32_t i = 0; i < NODES_MAX && line == NULL; i++) /* one of a node that was dropped */
        if (d->lines[i].call == NULL &&
            members_find(&consensus_state(d->consensus)->members, d->lines[i].node) == NULL)
            line = &d->lines[i];
    if (line == NULL)
        return NULL;
    *line = (struct line){.node = node, .retry_ms = PUBLISH_RETRY_MS_MIN};
    return line;
}

/* ---- answers ---- */

/* A replica that says BEHIND although it has confirmed everything earlier, or lacks a rowset that
 * it once sealed, was wiped or damaged: that it is behind becomes part of the state, so that it
 * counts for no quorum. */
static void declare_behind(struct publish_daemon *d, tablet_id tablet, node_id node, txn_id txn);

static bool earlier_is_open(const struct publish_daemon *d, const struct publish_bind *bind,
                            unsigned slot)
{
    const struct state *state = consensus_state(d->consensus);

    for (const struct txn *txn = state->txns.publishing.first; txn != NULL; txn = txn->next) {
        struct progress *p;

        HASH_FIND(hh, d->progress, &txn->id, sizeof txn->id, p);
        bool current = p != NULL && p->moves == state->catalog.moves;
        for (uint32_t i = 0; i < txn->publish_count; i++) {
            uint8_t bound = current ? p->bound[i] : txn->publish[i].confirmed;

            if (txn->publish[i].tablet == bind->tablet &&
                txn->tables[txn->publish[i].table_index].version < bind->version &&
                (bound >> slot & 1) == 0)
                return true;
        }
    }
    return false;
}

static void take_status(struct publish_daemon *d, node_id node, const struct publish_bind *bind,
                        enum publish_status status)
{
    const struct state *state = consensus_state(d->consensus);
    const struct txn *txn = txn_table_find(&state->txns, bind->txn);
    const struct tablet *tablet = catalog_tablet(&state->catalog, bind->tablet);
    int slot = tablet != NULL ? tablet_slot(tablet, node) : -1;

    if (txn == NULL || txn->confirmed || slot < 0)
        return;
    for (uint32_t i = 0; i < txn->publish_count; i++) {
        if (txn->publish[i].tablet != bind->tablet)
            continue;
        if (status == PUBLISH_BOUND || MUTANT(11)) {
            progress_of(d, txn)->bound[i] |= (uint8_t)(1u << slot);
        } else if (status == PUBLISH_MISSING || status == PUBLISH_DIGEST ||
                   (status == PUBLISH_BEHIND && !earlier_is_open(d, bind, (unsigned)slot))) {
            if (!tablet->replicas[slot].behind)
                declare_behind(d, bind->tablet, node, bind->txn);
        }
        return;
    }
}

static void on_answer(void *data, int err, const struct msg_publish_reply *reply)
{
    struct publish_call *call = data;
    struct publish_daemon *d = call->daemon;

    if (d != NULL) {
        struct line *line = line_of(d, call->node);
        uint64_t now = clock_monotonic_ms(d->clock);
        bool good = err == 0 && reply->count == call->message.bind_count;

        line->call = NULL;
        if (good) {
            line->retry_ms = PUBLISH_RETRY_MS_MIN;
            for (uint32_t i = 0; i < reply->count; i++) {
                take_status(d, call->node, &call->message.binds[i], reply->status[i]);
                good = good && reply->status[i] == PUBLISH_BOUND;
            }
        } else {
            log_debug("publish", "no_answer node=%u err=%s", call->node, tg_err_name(err));
        }
        if (!good) {
            line->not_before_ms = now + line->retry_ms;
            line->retry_ms = line->retry_ms * 2 < PUBLISH_RETRY_MS_MAX ? line->retry_ms * 2
                                                                       : PUBLISH_RETRY_MS_MAX;
        }
    }
    msg_publish_close(&call->message);
    free(call);
    if (d != NULL)
        publish_daemon_run(d);
}

/* ---- proposals ---- */

static void on_proposed(struct consensus_request *request, int err,
                        const struct apply_result *result)
{
    struct proposal *q = request->data;
    struct publish_daemon *d = q->daemon;

    if (d != NULL) {
        struct proposal **at = &d->proposals;

        while (*at != q)
            at = &(*at)->next;
        *at = q->next;
        if (q->command.type != COMMAND_REPLICA_BEHIND)
            for (uint32_t i = 0; i < q->command.visible.count; i++) {
                struct progress *p;

                HASH_FIND(hh, d->progress, &q->command.visible.txns[i].txn, sizeof(txn_id), p);
                if (p != NULL)
                    p->proposed = false;
            }
        if (err == 0 && result->err != 0)
            log_warn("publish", "proposal_refused err=%s reason=%s", tg_err_name(result->err),
                     log_quote(result->msg.text));
    }
    command_close(&q->command);
    free(q);
}

static void propose(struct publish_daemon *d, struct proposal *q)
{
    q->daemon = d;
    q->next = d->proposals;
    d->proposals = q;
    q->request.done = on_proposed;
    q->request.data = q;
    consensus_propose(d->consensus, &q->command, &q->request);
}

static struct proposal *new_proposal(enum command_type type)
{
    struct proposal *q = calloc(1, sizeof *q);

    TG_CHECK_MEMORY(q != NULL);
    q->command.type = type;
    return q;
}

static void declare_behind(struct publish_daemon *d, tablet_id tablet, node_id node, txn_id txn)
{
    for (struct proposal *q = d->proposals; q != NULL; q = q->next)
        if (q->command.type == COMMAND_REPLICA_BEHIND && q->command.behind.tablet == tablet &&
            q->command.behind.node == node)
            return;
    log_warn("publish", "replica_behind tablet=%lu node=%u txn=%lu", tablet, node, txn);
    struct proposal *q = new_proposal(COMMAND_REPLICA_BEHIND);
    q->command.behind = (struct command_behind){.tablet = tablet, .node = node, .txn = txn};
    propose(d, q);
}

static void add_txn(struct proposal **q, enum command_type type, struct progress *p,
                    bool one_is_enough)
{
    if (*q == NULL) {
        *q = new_proposal(type);
        (*q)->command.visible.txns = calloc(PUBLISH_VISIBLE_MAX, sizeof(struct visible_txn));
        TG_CHECK_MEMORY((*q)->command.visible.txns != NULL);
    }
    struct command_visible *visible = &(*q)->command.visible;
    struct visible_txn *v = &visible->txns[visible->count++];
    v->txn = p->txn;
    v->tablet_count = p->tablet_count;
    v->one_is_enough = one_is_enough;
    v->confirmed = calloc(p->tablet_count + 1, 1);
    TG_CHECK_MEMORY(v->confirmed != NULL);
    memcpy(v->confirmed, p->bound, p->tablet_count);
    p->proposed = true;
}

/* How far each table will be visible once what is under way has been applied. */
struct reach {
    table_id table;
    version_t visible;
    UT_hash_handle hh;
};

static struct reach *reach_of(struct reach **reaches, const struct state *state, table_id id)
{
    struct reach *r;

    HASH_FIND(hh, *reaches, &id, sizeof id, r);
    if (r == NULL) {
        const struct table *table = catalog_table_by_id(&state->catalog, id);

        r = calloc(1, sizeof *r);
        TG_CHECK_MEMORY(r != NULL);
        r->table = id;
        r->visible = table != NULL ? table->visible : 0;
        HASH_ADD(hh, *reaches, table, sizeof r->table, r);
    }
    return r;
}

static bool is_next(struct reach **reaches, const struct state *state, const struct txn *txn)
{
    for (uint32_t i = 0; i < txn->table_count; i++)
        if (!txn->tables[i].gone &&
            reach_of(reaches, state, txn->tables[i].table)->visible + 1 != txn->tables[i].version)
            return false;
    return true;
}

/* Enough replicas of every tablet, not counting those that are behind (rule 3). Not the whole of
 * txn_may_become_visible: what is next in order is judged here by what is under way. */
static bool has_quorum(const struct state *state, const struct txn *txn, const uint8_t *bound,
                       bool one_is_enough)
{
    for (uint32_t i = 0; i < txn->publish_count; i++) {
        const struct tablet *tablet =
            txn->tables[txn->publish[i].table_index].gone || txn->publish[i].lost
                ? NULL
                : catalog_tablet(&state->catalog, txn->publish[i].tablet);

        if (tablet != NULL && !tablet_published(tablet, bound[i], one_is_enough))
            return false;
    }
    return true;
}

/* Whether a visible transaction's last straggler has answered, so that it can be confirmed. Nobody
 * waits for that: *urgent is set once one of them has waited long enough. */
static bool can_confirm(const struct state *state, const struct txn *txn, struct progress *p,
                        uint64_t now_ms, bool *urgent)
{
    if (p->proposed || !publish_message_is_complete(state, txn, p->bound))
        return false;
    if (p->confirm_by_ms == 0)
        p->confirm_by_ms = now_ms + PUBLISH_CONFIRM_MS;
    *urgent |= now_ms >= p->confirm_by_ms;
    return true;
}

/* Proposes CONFIRM for all that can be. */
static void propose_confirm(struct publish_daemon *d)
{
    const struct state *state = consensus_state(d->consensus);
    uint64_t now = clock_monotonic_ms(d->clock);
    struct proposal *confirm = NULL;
    bool urgent = false;

    for (const struct txn *txn = state->txns.publishing.first;
         txn != NULL && (confirm == NULL || confirm->command.visible.count < PUBLISH_VISIBLE_MAX);
         txn = txn->next) {
        struct progress *p = progress_of(d, txn);

        if (txn->state == TXN_VISIBLE && can_confirm(state, txn, p, now, &urgent))
            add_txn(&confirm, COMMAND_TXN_CONFIRM, p, false);
    }
    if (confirm != NULL)
        propose(d, confirm);
}

/* Proposes VISIBLE for every transaction that has its quorum and whose versions are next in all its
 * tables. The publishing list is in order of commit, so one pass finds them all. CONFIRM rides in
 * the entry of the next VISIBLE, or goes alone after a short while. */
static void propose_progress(struct publish_daemon *d)
{
    const struct state *state = consensus_state(d->consensus);
    uint64_t elapsed = d->consensus->ops->elapsed_ms(d->consensus);
    uint64_t now = clock_monotonic_ms(d->clock);
    bool urgent = false;
    struct proposal *visible = NULL;
    struct reach *reaches = NULL;
    struct reach *r, *next;

    for (const struct txn *txn = state->txns.publishing.first; txn != NULL; txn = txn->next) {
        struct progress *p = progress_of(d, txn);
        bool one = elapsed - txn->commit_elapsed_ms >= d->options.publish_wait_ms;

        if (txn->state == TXN_VISIBLE) {
            (void)can_confirm(state, txn, p, now, &urgent);
            continue;
        }
        if (!is_next(&reaches, state, txn))
            continue;
        if (!p->proposed) {
            if (!has_quorum(state, txn, p->bound, one) ||
                (visible != NULL && visible->command.visible.count == PUBLISH_VISIBLE_MAX))
                continue;
            add_txn(&visible, COMMAND_TXN_VISIBLE, p, one);
        }
        for (uint32_t i = 0; i < txn->table_count; i++)
            if (!txn->tables[i].gone)
                reach_of(&reaches, state, txn->tables[i].table)->visible++;
    }
    HASH_ITER(hh, reaches, r, next)
    {
        HASH_DEL(reaches, r);
        free(r);
    }
    if (visible != NULL) {
        propose(d, visible);
        FAILPOINT("coord.visible_proposed");
    }
    if (visible != NULL || urgent)
        propose_confirm(d);
}

/* ---- sending ---- */

static void send_lines(struct publish_daemon *d)
{
    const struct state *state = consensus_state(d->consensus);
    uint64_t now = clock_monotonic_ms(d->clock);

    for (uint32_t i = 0; i < state->members.count; i++) {
        const struct member *member = &state->members.list[i];
        struct line *line = line_of(d, member->node);
        struct publish_call *call;

        if (line == NULL || line->call != NULL || now < line->not_before_ms)
            continue;
        call = calloc(1, sizeof *call);
        TG_CHECK_MEMORY(call != NULL);
        call->message.node = member->node;
        call->message.epoch = member->epoch;
        for (const struct txn *txn = state->txns.publishing.first;
             txn != NULL && call->message.bind_count < PUBLISH_BINDS_MAX; txn = txn->next)
            publish_message_add(state, txn, progress_of(d, txn)->bound, &call->message);
        if (call->message.bind_count == 0) {
            msg_publish_close(&call->message);
            free(call);
            continue;
        }
        publish_message_sort(&call->message);
        call->daemon = d;
        call->node = member->node;
        line->call = call;
        d->participants->ops->publish(d->participants, member->node, member->rpc, &call->message,
                                      d->options.rpc_timeout_ms, on_answer, call);
    }
}

/* Progress of transactions that are over. */
static void forget_finished(struct publish_daemon *d)
{
    const struct state *state = consensus_state(d->consensus);
    struct progress *p, *next;

    if (HASH_COUNT(d->progress) <= state->txns.publishing.count)
        return;
    HASH_ITER(hh, d->progress, p, next)
    {
        const struct txn *txn = txn_table_find(&state->txns, p->txn);

        if (txn == NULL || txn->confirmed)
            forget(d, p);
    }
}

void publish_daemon_run(struct publish_daemon *d)
{
    if (d->running || !consensus_is_leader(d->consensus))
        return;
    d->running = true;
    propose_progress(d);
    send_lines(d);
    forget_finished(d);
    d->running = false;
}
