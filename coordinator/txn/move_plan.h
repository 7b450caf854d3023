/* SPDX-License-Identifier: Apache-2.0 */
/* Which replicas should be elsewhere: a pure look at the state and at who is alive.
 *
 * Each step is one command; what it leads to is seen in the state by the next look, so nothing is
 * remembered in between:
 *
 *   too few replicas, or one on a node that drains or is long dead, or uneven ▶ ADD one elsewhere
 *   a new one whose node went away ▶ REMOVE it
 *   one more than asked for, all well ▶ REMOVE the one that is best gone */
#ifndef TG_COORDINATOR_TXN_MOVE_PLAN_H
#define TG_COORDINATOR_TXN_MOVE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/cluster/health.h"
#include "coordinator/state/state.h"

enum {
    MOVES_MAX = 16,         /* replicas that join, in the cluster, … */
    MOVES_PER_NODE = 4,     /* … and on one participant */
    MOVE_STEPS_MAX = 64,    /* of one plan */
    MOVE_GIVE_UP_MS = 60000 /* silence of a new replica's node after which another is chosen */
};

enum move_act { MOVE_ADD = 1, MOVE_REMOVE = 2 };
enum move_reason {
    MOVE_MISSING = 1, /* the tablet has too few */
    MOVE_DRAIN = 2,   /* a replica's node is on its way out */
    MOVE_DEAD = 3,    /* a replica's node is silent for longer than replace_dead_ms */
    MOVE_BALANCE = 4,
    MOVE_SURPLUS = 5, /* REMOVE: the end of a move */
    MOVE_GAVE_UP = 6  /* REMOVE: the new replica's node is silent or drains */
};
struct move_step {
    enum move_act act;
    enum move_reason reason;
    const struct tablet *tablet;
    node_id node;
};

struct move_options {
    uint64_t replace_dead_ms; /* 0: never */
    bool balance;
};

/* Up to MOVE_STEPS_MAX steps; returns how many. */
uint32_t move_plan(const struct state *state, const struct health *health,
                   const struct move_options *options, uint64_t now_ms, struct move_step *steps);
const char *move_reason_name(enum move_reason reason);

#endif
