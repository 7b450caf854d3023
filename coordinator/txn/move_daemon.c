/* SPDX-License-Identifier: Apache-2.0 */
/* Moves replicas between participants. */
#include "coordinator/txn/move_daemon.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/log.h"

struct move_call {
    struct consensus_request request;
    struct move_daemon *daemon; /* NULL once nobody waits */
    struct move_call *next;
    struct command command;
    enum move_reason reason;
};

struct move_daemon {
    struct consensus *consensus;
    struct health *health;
    struct clock *clock;
    struct move_options options;
    struct move_call *calls; /* under way: the next look waits for them */
    uint64_t look_ms;        /* when the next look is due */
    uint64_t members_seen;   /* what it looked at last */
    uint64_t moves_seen;
    bool running;
};

int move_daemon_open(struct consensus *consensus, struct health *health, struct clock *clock,
                     const struct move_options *options, struct move_daemon **daemon)
{
    struct move_daemon *d = calloc(1, sizeof *d);

    if (d == NULL)
        return TG_NOMEM;
    d->consensus = consensus;
    d->health = health;
    d->clock = clock;
    d->options = *options;
    *daemon = d;
    return 0;
}

void move_daemon_reset(struct move_daemon *d)
{
    for (struct move_call *call = d->calls; call != NULL; call = call->next)
        call->daemon = NULL;
    d->calls = NULL;
    d->look_ms = 0;
}

void move_daemon_close(struct move_daemon *d)
{
    if (d == NULL)
        return;
    move_daemon_reset(d);
    free(d);
}

static void on_proposed(struct consensus_request *request, int err,
                        const struct apply_result *result)
{
    struct move_call *call = request->data;
    struct move_daemon *d = call->daemon;
    bool adds = call->command.type == COMMAND_REPLICA_ADD;

    if (err == 0 && result->err != 0)
        log_info("moves", "refused %s tablet=%lu node=%u err=%s reason=%s", adds ? "add" : "remove",
                 call->command.move.tablet, call->command.move.node, tg_err_name(result->err),
                 log_quote(result->msg.text));
    else if (err == 0)
        log_info("moves", "%s tablet=%lu node=%u why=%s", adds ? "added" : "removed",
                 call->command.move.tablet, call->command.move.node,
                 move_reason_name(call->reason));
    if (d != NULL) {
        struct move_call **at = &d->calls;

        while (*at != call)
            at = &(*at)->next;
        *at = call->next;
    }
    free(call);
}

static void propose(struct move_daemon *d, const struct move_step *step)
{
    struct move_call *call = calloc(1, sizeof *call);

    TG_CHECK_MEMORY(call != NULL);
    call->daemon = d;
    call->reason = step->reason;
    call->command.type = step->act == MOVE_ADD ? COMMAND_REPLICA_ADD : COMMAND_REPLICA_REMOVE;
    call->command.move =
        (struct command_move){.tablet = step->tablet->id,
                              .node = step->node,
                              .placement_epoch = step->tablet->table->placement_epoch};
    call->request.done = on_proposed;
    call->request.data = call;
    call->next = d->calls;
    d->calls = call;
    consensus_propose(d->consensus, &call->command, &call->request);
}

/* Changes with every member that comes, goes, registers again or drains. */
static uint64_t members_mark(const struct members *members)
{
    uint64_t mark = members->next_epoch * NODES_MAX + members->count;

    for (uint32_t i = 0; i < members->count; i++)
        mark = mark * 31 + members->list[i].draining;
    return mark;
}

/* The placement epoch of a table stands for all its tablets, so of each table one step is taken at
 * a time. */
static bool is_first_of_table(const struct move_step *steps, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (steps[i].tablet->table == steps[at].tablet->table)
            return false;
    return true;
}

void move_daemon_run(struct move_daemon *d)
{
    struct move_step steps[MOVE_STEPS_MAX];
    uint64_t now = clock_monotonic_ms(d->clock);

    if (d->running || d->calls != NULL || !consensus_is_leader(d->consensus))
        return;
    const struct state *state = consensus_state(d->consensus);
    uint64_t mark = members_mark(&state->members);
    if (now < d->look_ms && mark == d->members_seen && state->catalog.moves == d->moves_seen)
        return;
    d->running = true;
    d->members_seen = mark;
    d->moves_seen = state->catalog.moves;
    health_keep_members(d->health, &state->members);
    uint32_t count = move_plan(state, d->health, &d->options, now, steps);
    for (uint32_t i = 0; i < count; i++)
        if (is_first_of_table(steps, i))
            propose(d, &steps[i]);
    /* While replicas are behind, one of them may be about to end its move. */
    bool busy = count > 0 || state->catalog.behind_count > 0;
    d->look_ms = now + (busy ? MOVE_LOOK_MS : MOVE_IDLE_MS);
    d->running = false;
}
