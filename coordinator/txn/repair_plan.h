/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be done next for replicas that are behind: a pure look at the state, at who is alive,
 * and at what was tried. */
#ifndef TG_COORDINATOR_TXN_REPAIR_PLAN_H
#define TG_COORDINATOR_TXN_REPAIR_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/hash.h"
#include "common/proto/msg_clone.h"
#include "coordinator/cluster/health.h"
#include "coordinator/state/state.h"

enum {
    REPAIR_CLONES_MAX = 32,       /* clones under way in the cluster, … */
    REPAIR_CLONES_PER_NODE = 4,   /* … into one participant, … */
    REPAIR_CLONES_PER_SOURCE = 8, /* … and out of one */
    REPAIR_CLOSE_MS = 5000,       /* a round that took no longer brought the replica close, … */
    REPAIR_ROUNDS_MAX = 8,        /* … and after so many it is written to again in any case */
    REPAIR_STEPS_MAX = 64         /* of one plan */
};

/* What this leader knows of one repair. */
struct repair {
    struct repair_key {
        tablet_id tablet;
        uint64_t node;
    } key;
    version_t behind_version; /* of the replica when this began: another one begins anew */
    bool in_air;              /* a message or a command is on its way */
    bool active;              /* a round was ordered and has not ended */
    bool done;                /* a round ended well: bound is what it said */
    bool verified;            /* … and what was bound here before was checked */
    node_id source;           /* of the round */
    bool trusted;
    uint64_t round;
    uint64_t round_began_ms;
    uint64_t round_took_ms;
    unsigned rounds;
    unsigned failures;   /* in a row: another source each time */
    bool answered;       /* a round ended, well or not, and said how far the replica reaches: */
    version_t bound;     /* the last version, … */
    version_t damaged;   /* … the first one that cannot be read, 0 if none was found */
    version_t proven;    /* what it holds up to here … */
    struct digest chain; /* … has this digest */
    uint64_t not_before_ms;
    uint64_t wait_ms;
    UT_hash_handle hh;
};

enum repair_act {
    REPAIR_ORDER = 1, /* a new round, from source */
    REPAIR_ASK = 2,   /* how far the round is */
    REPAIR_CATCH = 3, /* propose REPLICA_CATCH */
    REPAIR_HEAL = 4   /* propose REPLICA_PROVEN with what the round said */
};
struct repair_step {
    enum repair_act act;
    const struct tablet *tablet;
    node_id node;
    node_id source; /* REPAIR_ORDER */
    bool trusted;   /* the same: the source is good */
};

struct repair *repair_find(struct repair *repairs, tablet_id tablet, node_id node);
/* What a round has to prove, into its order: that it holds what the log knows that a replica which
 * is catching missed. */
void repair_to_prove(const struct tablet *tablet, const struct replica *replica,
                     struct msg_clone *message);
/* Up to REPAIR_STEPS_MAX steps; returns how many. Nothing for a node that is not alive. While no
 * replica is there that could be cloned from, a replica is ordered to prove what it has: that can
 * be enough.
 *
 * It happens that no replica is good and yet nothing is lost: transactions that were precommitted
 * while one or the other was behind are on different majorities, and each replica lacks one of
 * them. Then they clone from each other what they have, until one has bound all that it missed. */
uint32_t repair_plan(const struct state *state, const struct health *health, struct repair *repairs,
                     uint64_t now_ms, struct repair_step *steps);

#endif
