/* SPDX-License-Identifier: Apache-2.0 */
/* Makes replicas that are behind good again. */
#include "coordinator/txn/repair_daemon.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "coordinator/txn/repair_plan.h"

/* A message or a command on its way. */
struct repair_call {
    struct consensus_request request;
    struct repair_call *next;
    struct repair_daemon *daemon; /* NULL once nobody waits for the answer */
    struct repair_key key;
    struct msg_clone message;
    struct command command;
};

struct repair_daemon {
    struct consensus *consensus;
    struct participants *participants;
    struct health *health;
    struct clock *clock;
    struct repair *repairs;
    struct repair_call *calls;
    uint64_t look_ms; /* when the next look is due */
    bool running;
};

int repair_daemon_open(struct consensus *consensus, struct participants *participants,
                       struct health *health, struct clock *clock, struct repair_daemon **daemon)
{
    struct repair_daemon *d = calloc(1, sizeof *d);

    if (d == NULL)
        return TG_NOMEM;
    d->consensus = consensus;
    d->participants = participants;
    d->health = health;
    d->clock = clock;
    *daemon = d;
    return 0;
}

static void forget(struct repair_daemon *d, struct repair *repair)
{
    HASH_DEL(d->repairs, repair);
    free(repair);
}

void repair_daemon_reset(struct repair_daemon *d)
{
    struct repair *repair, *next;

    HASH_ITER(hh, d->repairs, repair, next)
    forget(d, repair);
    for (struct repair_call *call = d->calls; call != NULL; call = call->next)
        call->daemon = NULL;
    d->calls = NULL;
    d->look_ms = 0;
}

void repair_daemon_close(struct repair_daemon *d)
{
    if (d == NULL)
        return;
    repair_daemon_reset(d);
    free(d);
}

uint32_t repair_daemon_active(const struct repair_daemon *d)
{
    uint32_t active = 0;

    for (const struct repair *repair = d->repairs; repair != NULL; repair = repair->hh.next)
        active += repair->active;
    return active;
}

static struct repair *repair_of(struct repair_daemon *d, tablet_id tablet, node_id node)
{
    struct repair *repair = repair_find(d->repairs, tablet, node);

    if (repair != NULL)
        return repair;
    repair = calloc(1, sizeof *repair);
    TG_CHECK_MEMORY(repair != NULL);
    repair->key = (struct repair_key){.tablet = tablet, .node = node};
    HASH_ADD(hh, d->repairs, key, sizeof repair->key, repair);
    return repair;
}

static struct repair_call *new_call(struct repair_daemon *d, const struct repair_key *key)
{
    struct repair_call *call = calloc(1, sizeof *call);

    TG_CHECK_MEMORY(call != NULL);
    call->daemon = d;
    call->key = *key;
    call->next = d->calls;
    d->calls = call;
    return call;
}

/* The end of a call: its repair, NULL if nobody waits for it any more. Frees the call. */
static struct repair *end_call(struct repair_call *call)
{
    struct repair_daemon *d = call->daemon;
    struct repair *repair = NULL;

    if (d != NULL) {
        struct repair_call **at = &d->calls;

        while (*at != call)
            at = &(*at)->next;
        *at = call->next;
        repair = repair_find(d->repairs, call->key.tablet, (node_id)call->key.node);
        if (repair != NULL)
            repair->in_air = false;
    }
    free(call);
    return repair;
}

/* ---- clones ---- */

static void wait_longer(struct repair_daemon *d, struct repair *repair, uint64_t min, uint64_t max)
{
    repair->wait_ms = repair->wait_ms < min ? min : repair->wait_ms * 2;
    if (repair->wait_ms > max)
        repair->wait_ms = max;
    repair->not_before_ms = clock_monotonic_ms(d->clock) + repair->wait_ms;
}

/* After rounds in a row that brought nothing. */
static void back_off(struct repair_daemon *d, struct repair *repair)
{
    uint64_t wait = REPAIR_RETRY_MS_MIN;

    for (unsigned i = 1; i < repair->failures && wait < REPAIR_RETRY_MS_MAX; i++)
        wait *= 2;
    if (wait > REPAIR_RETRY_MS_MAX)
        wait = REPAIR_RETRY_MS_MAX;
    repair->not_before_ms = clock_monotonic_ms(d->clock) + wait;
}

static void take_reach(struct repair *repair, const struct msg_clone_reply *reply)
{
    repair->answered = true;
    repair->bound = reply->bound;
    repair->damaged = reply->damaged;
}

static void round_failed(struct repair_daemon *d, struct repair *repair, int err,
                         const char *reason)
{
    log_warn("repair", "clone_failed tablet=%lu node=%lu source=%u err=%s reason=%s",
             repair->key.tablet, repair->key.node, repair->source, tg_err_name(err),
             log_quote(reason));
    repair->active = false;
    repair->failures++;
    back_off(d, repair);
}

static void round_done(struct repair_daemon *d, struct repair *repair,
                       const struct msg_clone_reply *reply)
{
    bool progress = !repair->done || reply->bound > repair->bound;

    repair->active = false;
    repair->done = true;
    repair->verified = true;
    repair->failures = progress ? 0 : repair->failures + 1;
    repair->rounds++;
    repair->round_took_ms = clock_monotonic_ms(d->clock) - repair->round_began_ms;
    take_reach(repair, reply);
    repair->proven = reply->proven;
    repair->chain = reply->chain;
    repair->not_before_ms = 0;
    if (progress)
        repair->wait_ms = 0;
    else /* the source has no more: later, or another one */
        back_off(d, repair);
    log_info("repair", "cloned tablet=%lu node=%lu source=%u version=%lu bytes=%lu took_ms=%lu",
             repair->key.tablet, repair->key.node, repair->source, reply->bound, reply->bytes,
             repair->round_took_ms);
}

static void on_answer(void *data, int err, const struct msg_clone_reply *reply)
{
    struct repair_call *call = data;
    struct repair_daemon *d = call->daemon;
    struct repair *repair = end_call(call);

    if (repair == NULL)
        return;
    if (err == 0 && reply->state == CLONE_FAILED)
        take_reach(repair, reply);
    if (err == TG_BUSY || (err == 0 && reply->state == CLONE_FAILED))
        round_failed(d, repair, err != 0 ? err : reply->err,
                     err != 0 ? tg_err_sentence(err) : reply->reason);
    else if (err == 0 && reply->state == CLONE_DONE)
        round_done(d, repair, reply);
    else if (err == 0)
        wait_longer(d, repair, REPAIR_ASK_MS_MIN, REPAIR_ASK_MS_MAX);
    else /* not known to have arrived: the same round is ordered again */
        wait_longer(d, repair, REPAIR_RETRY_MS_MIN, REPAIR_RETRY_MS_MAX);
    d->look_ms = 0;
}

static void send_clone(struct repair_daemon *d, const struct repair_step *step)
{
    const struct state *state = consensus_state(d->consensus);
    const struct member *member = members_find(&state->members, step->node);
    struct repair *repair = repair_of(d, step->tablet->id, step->node);
    const struct replica *replica = &step->tablet->replicas[tablet_slot(step->tablet, step->node)];

    if (step->act == REPAIR_ORDER) {
        repair->active = true;
        repair->source = step->source;
        repair->trusted = step->trusted;
        repair->behind_version = replica->behind_version;
        repair->round = d->consensus->ops->now_us(d->consensus);
        repair->round_began_ms = clock_monotonic_ms(d->clock);
        repair->wait_ms = 0;
    }
    const struct member *source = members_find(&state->members, repair->source);
    TG_CHECK(member != NULL && source != NULL);
    struct repair_call *call = new_call(d, &repair->key);
    call->message = (struct msg_clone){.node = step->node,
                                       .epoch = member->epoch,
                                       .tablet = step->tablet->id,
                                       .table = step->tablet->table->id,
                                       .round = repair->round,
                                       .lacks = repair->verified ? 0 : replica->behind_version,
                                       .source = repair->source,
                                       .trusted = repair->trusted};
    repair_to_prove(step->tablet, replica, &call->message);
    memcpy(call->message.address, source->rpc, sizeof call->message.address);
    repair->in_air = true;
    d->participants->ops->clone(d->participants, step->node, member->rpc, &call->message,
                                REPAIR_RPC_MS, on_answer, call);
}

int repair_daemon_reach(const struct repair_daemon *d, const struct tablet *tablet, bool force,
                        version_t *version, struct tg_errmsg *msg)
{
    uint64_t now = clock_monotonic_ms(d->clock);

    *version = 0;
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        node_id node = tablet->replicas[i].node;
        const struct repair *repair = repair_find(d->repairs, tablet->id, node);

        if (node == 0) /* a free slot */
            continue;
        if (!health_is_alive(d->health, node, now)) {
            if (force)
                continue;
            return tg_fail(msg, TG_REFUSED,
                           "participant %u is silent and may hold what the others lack of tablet "
                           "%" PRIu64 ": start it, or use force",
                           node, tablet->id);
        }
        if (repair == NULL || !repair->answered || repair->active)
            return tg_fail(msg, TG_REFUSED,
                           "participant %u has not said yet how much it holds of tablet %" PRIu64
                           ": ask again in a moment",
                           node, tablet->id);
        version_t last =
            tablet_need(tablet, repair->damaged != 0 ? repair->damaged - 1 : repair->bound);
        if (last > *version)
            *version = last;
    }
    return 0;
}

/* ---- commands ---- */

static void on_proposed(struct consensus_request *request, int err,
                        const struct apply_result *result)
{
    struct repair_call *call = request->data;
    struct repair_daemon *d = call->daemon;
    struct repair_key key = call->key;
    enum command_type type = call->command.type;
    struct repair *repair = end_call(call);

    if (err == 0 && result->err == 0 && !result->repeated && d != NULL)
        log_info("repair", "%s tablet=%lu node=%lu",
                 type == COMMAND_REPLICA_PROVEN  ? "healed"
                 : type == COMMAND_REPLICA_CATCH ? "written_again"
                                                 : "damaged",
                 key.tablet, key.node);
    if (err == 0 && result->err == TG_DIGEST)
        log_error("repair", "not_proven tablet=%lu node=%lu reason=%s", key.tablet, key.node,
                  log_quote(result->msg.text));
    if (repair == NULL)
        return;
    if (err != 0 || result->err != 0) {
        /* It lacks more by now, or this node leads no more: another round. */
        repair->done = false;
        wait_longer(d, repair, REPAIR_ASK_MS_MIN, REPAIR_RETRY_MS_MAX);
    }
    d->look_ms = 0;
}

/* damaged: REPLICA_LACKS. */
static void propose(struct repair_daemon *d, struct repair *repair, enum command_type type,
                    version_t damaged)
{
    struct repair_call *call = new_call(d, &repair->key);
    tablet_id tablet = repair->key.tablet;
    node_id node = (node_id)repair->key.node;

    call->command.type = type;
    if (type == COMMAND_REPLICA_PROVEN)
        call->command.proven = (struct command_proven){.tablet = tablet,
                                                       .node = node,
                                                       .bound = repair->bound,
                                                       .version = repair->proven,
                                                       .chain = repair->chain};
    else
        call->command.replica =
            (struct command_replica){.tablet = tablet, .node = node, .version = damaged};
    call->request.done = on_proposed;
    call->request.data = call;
    repair->in_air = true;
    consensus_propose(d->consensus, &call->command, &call->request);
}

/* What participants found damaged: the state must say so before it is repaired. What is known of a
 * repair under way is void then. */
static void take_damaged(struct repair_daemon *d)
{
    const struct state *state = consensus_state(d->consensus);

    for (uint32_t i = 0; i < state->members.count; i++) {
        node_id node = state->members.list[i].node;
        uint32_t count;
        struct damaged_version *damaged = health_take_damaged(d->health, node, &count);

        for (uint32_t j = 0; j < count; j++) {
            const struct tablet *tablet = catalog_tablet(&state->catalog, damaged[j].tablet);
            int slot = tablet != NULL ? tablet_slot(tablet, node) : -1;

            if (slot < 0 || (tablet->replicas[slot].behind &&
                             tablet->replicas[slot].behind_version <= damaged[j].version))
                continue;
            struct repair *repair = repair_of(d, damaged[j].tablet, node);
            if (repair->in_air)
                continue; /* it is reported again */
            log_warn("repair", "damaged tablet=%lu node=%u version=%lu", damaged[j].tablet, node,
                     damaged[j].version);
            repair->active = repair->done = repair->verified = false;
            propose(d, repair, COMMAND_REPLICA_LACKS, damaged[j].version);
        }
        free(damaged);
    }
}

/* ---- the whole ---- */

/* Repairs that are over, or about something that has changed since they began; and rounds on nodes
 * that are gone, which would keep others from theirs. */
static void forget_past(struct repair_daemon *d)
{
    const struct state *state = consensus_state(d->consensus);
    uint64_t now = clock_monotonic_ms(d->clock);
    struct repair *repair, *next;

    HASH_ITER(hh, d->repairs, repair, next)
    {
        node_id node = (node_id)repair->key.node;
        const struct tablet *tablet = catalog_tablet(&state->catalog, repair->key.tablet);
        int slot = tablet != NULL ? tablet_slot(tablet, node) : -1;

        if (repair->in_air)
            continue;
        if (slot < 0 || !tablet->replicas[slot].behind ||
            (repair->behind_version != 0 &&
             repair->behind_version != tablet->replicas[slot].behind_version) ||
            (repair->active && members_find(&state->members, repair->source) == NULL))
            forget(d, repair);
        else if (repair->active && !health_is_alive(d->health, node, now))
            repair->active = false;
    }
}

/* The next look: soon if a round is to be asked for. */
static void plan_look(struct repair_daemon *d, uint64_t now)
{
    d->look_ms = now + REPAIR_LOOK_MS;
    for (const struct repair *repair = d->repairs; repair != NULL; repair = repair->hh.next)
        if (!repair->in_air && repair->not_before_ms > now && repair->not_before_ms < d->look_ms)
            d->look_ms = repair->not_before_ms;
}

void repair_daemon_run(struct repair_daemon *d)
{
    struct repair_step steps[REPAIR_STEPS_MAX];
    uint64_t now = clock_monotonic_ms(d->clock);

    if (d->running || now < d->look_ms || !consensus_is_leader(d->consensus))
        return;
    d->running = true;
    take_damaged(d);
    forget_past(d);
    uint32_t count = repair_plan(consensus_state(d->consensus), d->health, d->repairs, now, steps);
    for (uint32_t i = 0; i < count; i++) {
        const struct repair_step *step = &steps[i];

        if (step->act == REPAIR_ORDER || step->act == REPAIR_ASK)
            send_clone(d, step);
        else
            propose(d, repair_of(d, step->tablet->id, step->node),
                    step->act == REPAIR_HEAL ? COMMAND_REPLICA_PROVEN : COMMAND_REPLICA_CATCH, 0);
    }
    plan_look(d, now);
    d->running = false;
}
