/* SPDX-License-Identifier: Apache-2.0 */
/* Which replicas should be elsewhere. */
#include "coordinator/txn/move_plan.h"

#include <string.h>

#include "coordinator/state/move.h"

enum { FULL_PART = 10 }; /* a node with less than a tenth of its disk free gets nothing more */

/* By places among the members. */
struct plan {
    const struct state *state;
    const struct health *health;
    const struct move_options *options;
    uint64_t now_ms;
    uint32_t joining;
    uint32_t into[NODES_MAX]; /* replicas that join there */
    bool alive[NODES_MAX];
    bool dead[NODES_MAX];   /* long enough to be replaced */
    bool source[NODES_MAX]; /* may lose replicas to others, for balance */
    bool target[NODES_MAX]; /* may get replicas */
    /* Replicas, in all and of the table that is looked at: as they are, … */
    int32_t has_total[NODES_MAX];
    int32_t has[NODES_MAX];
    /* … and as they will be once all moves under way have ended. */
    int32_t total[NODES_MAX];
    int32_t of_table[NODES_MAX];
    struct move_step *steps;
    uint32_t count;
};

const char *move_reason_name(enum move_reason reason)
{
    static const char *const names[] = {
        [MOVE_MISSING] = "missing", [MOVE_DRAIN] = "drain",     [MOVE_DEAD] = "dead",
        [MOVE_BALANCE] = "balance", [MOVE_SURPLUS] = "surplus", [MOVE_GAVE_UP] = "gave_up"};

    return names[reason];
}

static int place_of(const struct plan *p, node_id node)
{
    const struct member *member = members_find(&p->state->members, node);

    return member != NULL ? (int)(member - p->state->members.list) : -1;
}

static bool is_draining(const struct plan *p, int place)
{
    return p->state->members.list[place].draining;
}

static void look_at_members(struct plan *p)
{
    const struct members *members = &p->state->members;

    for (uint32_t i = 0; i < members->count; i++) {
        node_id node = members->list[i].node;
        const struct health_node *seen = health_find(p->health, node);
        bool full = seen != NULL && seen->disk_total_bytes > 0 &&
                    seen->disk_free_bytes < seen->disk_total_bytes / FULL_PART;

        p->alive[i] = health_is_alive(p->health, node, p->now_ms);
        p->dead[i] = !p->alive[i] && p->options->replace_dead_ms > 0 &&
                     health_silent_ms(p->health, node, p->now_ms) >= p->options->replace_dead_ms;
        p->source[i] = p->alive[i] && !members->list[i].draining;
        p->target[i] = p->source[i] && !full;
    }
}

static bool add_step(struct plan *p, enum move_act act, enum move_reason reason,
                     const struct tablet *tablet, node_id node)
{
    if (p->count == MOVE_STEPS_MAX)
        return false;
    p->steps[p->count++] =
        (struct move_step){.act = act, .reason = reason, .tablet = tablet, .node = node};
    return true;
}

static unsigned count_of(unsigned slots)
{
    return (unsigned)__builtin_popcount(slots);
}

/* ---- what is too much ---- */

/* How good it is to be without the replica: nodes on their way out first, then the dead, then what
 * lacks something, then the node that has the most. */
static uint64_t badness(const struct plan *p, const struct replica *replica, int place)
{
    uint64_t rank = is_draining(p, place) ? 4
                    : p->dead[place]      ? 3
                    : !p->alive[place]    ? 2
                    : replica->behind     ? 1
                                          : 0;

    return rank << 56 | (uint64_t)p->has[place] << 28 | (uint64_t)p->has_total[place];
}

/* The slot that is best gone, -1 if none may go. allowed: bits of those that may. */
static int choose_victim(const struct plan *p, const struct tablet *tablet, unsigned allowed)
{
    uint64_t worst = 0;
    int victim = -1;

    for (int i = 0; i < tablet->replica_count; i++) {
        int place = (allowed >> i & 1) != 0 ? place_of(p, tablet->replicas[i].node) : -1;

        if (place < 0)
            continue;
        uint64_t bad = badness(p, &tablet->replicas[i], place);
        if (victim < 0 || bad > worst) {
            victim = i;
            worst = bad;
        }
    }
    return victim;
}

/* Those that may leave now, by what the log will say. */
static unsigned removable(const struct plan *p, const struct tablet *tablet)
{
    unsigned allowed = 0;

    for (unsigned i = 0; i < tablet->replica_count; i++) {
        unsigned others = tablet_good(tablet) & ~(1u << i);

        if (tablet->replicas[i].node != 0 && count_of(others) >= tablet->table->replication &&
            move_blocker(p->state, tablet, i) == NULL)
            allowed |= 1u << i;
    }
    return allowed;
}

/* One that is blocked by an old transaction is not replaced by another victim: it waits. */
static void end_move(struct plan *p, const struct tablet *tablet)
{
    int victim = choose_victim(p, tablet, tablet_all(tablet));
    unsigned allowed = removable(p, tablet);

    if (victim >= 0 && (allowed >> victim & 1) == 0 &&
        move_blocker(p->state, tablet, (unsigned)victim) == NULL)
        victim = choose_victim(p, tablet, allowed);
    if (victim >= 0 && (allowed >> victim & 1) != 0)
        add_step(p, MOVE_REMOVE, MOVE_SURPLUS, tablet, tablet->replicas[victim].node);
}

static void check_joining(struct plan *p, const struct tablet *tablet)
{
    unsigned slot = (unsigned)__builtin_ctz(tablet_joining(tablet));
    node_id node = tablet->replicas[slot].node;
    int place = place_of(p, node);

    if (place < 0 || is_draining(p, place) ||
        health_silent_ms(p->health, node, p->now_ms) >= MOVE_GIVE_UP_MS)
        add_step(p, MOVE_REMOVE, MOVE_GAVE_UP, tablet, node);
}

/* ---- what is too little ---- */

static int choose_target(const struct plan *p, const struct tablet *tablet)
{
    int best = -1;

    for (uint32_t i = 0; i < p->state->members.count; i++) {
        if (!p->target[i] || p->into[i] >= MOVES_PER_NODE ||
            tablet_slot(tablet, p->state->members.list[i].node) >= 0)
            continue;
        if (best < 0 || p->of_table[i] < p->of_table[best] ||
            (p->of_table[i] == p->of_table[best] && p->total[i] < p->total[best]))
            best = (int)i;
    }
    return best;
}

static void begin_move(struct plan *p, const struct tablet *tablet, int target,
                       enum move_reason reason)
{
    if (!add_step(p, MOVE_ADD, reason, tablet, p->state->members.list[target].node))
        return;
    p->joining++;
    p->into[target]++;
    p->total[target]++;
    p->of_table[target]++;
}

/* Somebody must be there to clone from. */
static bool has_source(const struct plan *p, const struct tablet *tablet)
{
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        int place =
            (tablet_good(tablet) >> i & 1) != 0 ? place_of(p, tablet->replicas[i].node) : -1;

        if (place >= 0 && p->alive[place])
            return true;
    }
    return false;
}

/* 0: all its replicas are where they may stay. */
static enum move_reason find_reason(const struct plan *p, const struct tablet *tablet)
{
    enum move_reason reason = 0;

    if (count_of(tablet_all(tablet)) < tablet->table->replication)
        return MOVE_MISSING;
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        int place = place_of(p, tablet->replicas[i].node);

        if (place >= 0 && p->dead[place])
            return MOVE_DEAD;
        if (place >= 0 && is_draining(p, place))
            reason = MOVE_DRAIN;
    }
    return reason;
}

/* ---- all tablets of a table ---- */

static void count_replicas(struct plan *p, const struct tablet *tablet)
{
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        int place = place_of(p, tablet->replicas[i].node);

        if (place >= 0)
            p->has[place]++;
    }
}

static bool is_moving(const struct tablet *tablet)
{
    return count_of(tablet_all(tablet)) > tablet->table->replication;
}

/* Moves under way end with the loss of one. */
static void count_table(struct plan *p, const struct table *table)
{
    memset(p->has, 0, sizeof p->has);
    for (uint32_t i = 0; i < table->bucket_count; i++)
        count_replicas(p, table->tablets[i]);
    memcpy(p->of_table, p->has, sizeof p->of_table);
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        const struct tablet *tablet = table->tablets[i];
        unsigned old = tablet_all(tablet) & (unsigned)~tablet_joining(tablet);
        int victim = is_moving(tablet) ? choose_victim(p, tablet, old) : -1;

        if (victim >= 0)
            p->of_table[place_of(p, tablet->replicas[victim].node)]--;
    }
}

static void plan_table(struct plan *p, const struct table *table)
{
    for (uint32_t i = 0; i < table->bucket_count && p->count < MOVE_STEPS_MAX; i++) {
        const struct tablet *tablet = table->tablets[i];

        if (tablet_joining(tablet) != 0) {
            check_joining(p, tablet);
        } else if (is_moving(tablet)) {
            end_move(p, tablet);
        } else if (p->joining < MOVES_MAX) {
            enum move_reason reason = find_reason(p, tablet);
            int target = reason != 0 && has_source(p, tablet) ? choose_target(p, tablet) : -1;

            if (target >= 0)
                begin_move(p, tablet, target, reason);
        }
    }
}

/* ---- balance ---- */

/* The targets with the most and with the fewest. */
static bool find_extremes(const struct plan *p, const int32_t *counts, int *most, int *fewest)
{
    *most = *fewest = -1;
    for (uint32_t i = 0; i < p->state->members.count; i++) {
        if (p->source[i] && (*most < 0 || counts[i] > counts[*most]))
            *most = (int)i;
        if (p->target[i] && p->into[i] < MOVES_PER_NODE &&
            (*fewest < 0 || counts[i] < counts[*fewest]))
            *fewest = (int)i;
    }
    return *fewest >= 0 && counts[*most] - counts[*fewest] >= 2;
}

static bool is_planned(const struct plan *p, const struct tablet *tablet)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->steps[i].tablet == tablet)
            return true;
    return false;
}

/* A tablet of the table that is well, at rest, on `from`, and not on `to`. */
static const struct tablet *find_movable(const struct plan *p, const struct table *table, int from,
                                         int to)
{
    const struct members *members = &p->state->members;

    for (uint32_t i = 0; i < table->bucket_count; i++) {
        const struct tablet *tablet = table->tablets[i];

        if (tablet_slot(tablet, members->list[from].node) >= 0 &&
            tablet_slot(tablet, members->list[to].node) < 0 &&
            count_of(tablet_good(tablet)) == table->replication && !is_moving(tablet) &&
            tablet_behind(tablet) == 0 && !is_planned(p, tablet))
            return tablet;
    }
    return NULL;
}

static bool move_between(struct plan *p, const struct table *table, int from, int to)
{
    const struct tablet *tablet = find_movable(p, table, from, to);

    if (tablet == NULL)
        return false;
    begin_move(p, tablet, to, MOVE_BALANCE);
    p->total[from]--;
    p->of_table[from]--;
    return true;
}

/* First each table for itself. Then all together, by moves that leave each table as even as it is.
 * Both end: the first makes the sum of the tables' squares smaller, the second that of the nodes'
 * and leaves the first alone. */
static void plan_balance(struct plan *p)
{
    uint32_t before = p->count;
    int from, to;

    for (const struct table *table = p->state->catalog.tables; table != NULL;
         table = table->hh.next) {
        if (table->dropped)
            continue;
        count_table(p, table);
        while (p->joining < MOVES_MAX && p->count < MOVE_STEPS_MAX &&
               find_extremes(p, p->of_table, &from, &to) && move_between(p, table, from, to))
            ;
    }
    if (p->count > before)
        return;
    for (const struct table *table = p->state->catalog.tables; table != NULL;
         table = table->hh.next) {
        if (table->dropped)
            continue;
        count_table(p, table);
        while (p->joining < MOVES_MAX && p->count < MOVE_STEPS_MAX &&
               find_extremes(p, p->total, &from, &to) && p->of_table[from] > p->of_table[to] &&
               move_between(p, table, from, to))
            ;
    }
}

static void take_census(struct plan *p)
{
    for (const struct table *table = p->state->catalog.tables; table != NULL;
         table = table->hh.next) {
        for (uint32_t i = 0; i < table->bucket_count && !table->dropped; i++) {
            const struct tablet *tablet = table->tablets[i];
            int slot = tablet_joining(tablet) != 0 ? __builtin_ctz(tablet_joining(tablet)) : -1;
            int place = slot >= 0 ? place_of(p, tablet->replicas[slot].node) : -1;

            p->joining += slot >= 0;
            if (place >= 0)
                p->into[place]++;
            for (unsigned j = 0; j < tablet->replica_count; j++) {
                place = place_of(p, tablet->replicas[j].node);
                if (place >= 0)
                    p->has_total[place]++;
            }
        }
    }
    for (const struct table *table = p->state->catalog.tables; table != NULL;
         table = table->hh.next) {
        if (table->dropped)
            continue;
        count_table(p, table);
        for (uint32_t i = 0; i < NODES_MAX; i++)
            p->total[i] += p->of_table[i];
    }
}

uint32_t move_plan(const struct state *state, const struct health *health,
                   const struct move_options *options, uint64_t now_ms, struct move_step *steps)
{
    struct plan p = {
        .state = state, .health = health, .options = options, .now_ms = now_ms, .steps = steps};

    look_at_members(&p);
    take_census(&p);
    for (const struct table *table = state->catalog.tables;
         table != NULL && p.count < MOVE_STEPS_MAX; table = table->hh.next) {
        if (table->dropped)
            continue;
        count_table(&p, table);
        plan_table(&p, table);
    }
    bool busy = false;
    for (uint32_t i = 0; i < p.count; i++)
        busy = busy || p.steps[i].act == MOVE_ADD;
    if (options->balance && !busy)
        plan_balance(&p);
    return p.count;
}
