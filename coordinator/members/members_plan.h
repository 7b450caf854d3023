/* SPDX-License-Identifier: Apache-2.0 */
/* What the leader does next so that raft's configuration becomes what the replicated list of
 * coordinators says, and whether an operator's order may be taken at all. Pure: looks and says.
 *
 *   list        raft's configuration        next
 *   (nothing)   a server                    write it into the list (a cluster that was just formed)
 *   JOINS       nothing ▸ spare ▸ standby   add ▸ standby ▸ once it has caught up: PROMOTE
 *   VOTES       standby                     voter
 *   VOTES       nothing                     GONE: an operator rewrote the configuration
 *   LEAVES      a server                    remove; if it is the leader, first let another lead
 *   LEAVES      nothing                     GONE
 *
 * One change of the configuration at a time; all others wait for it. */
#ifndef TG_COORDINATOR_MEMBERS_MEMBERS_PLAN_H
#define TG_COORDINATOR_MEMBERS_MEMBERS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/state/coordinators.h"

/* A standby that lacks no more entries than this has caught up: raft waits for the rest. */
enum { MEMBERS_LAG_MAX = 512 };

enum members_act {
    MEMBERS_REST = 0,
    MEMBERS_PROPOSE, /* command */
    MEMBERS_STEP,    /* step */
    MEMBERS_TRANSFER /* the leader itself leaves */
};

struct members_plan {
    enum members_act act;
    uint64_t id;
    enum command_type command;
    enum consensus_step step;
};

/* self: the leader's id. */
struct members_plan members_plan(const struct coordinators *coordinators,
                                 const struct consensus_servers *servers, uint64_t self);

/* Who of raft's voters is alive: ids. */
struct members_alive {
    uint32_t count;
    uint64_t ids[COORDINATORS_MAX];
};
/* 0, or TG_REFUSED with a sentence: without that voter too few of the others would be alive to
 * decide anything. */
int members_may_drop(const struct consensus_servers *servers, const struct members_alive *alive,
                     uint64_t id, struct tg_errmsg *msg);

/* What one with an empty directory is told that asks under an id. */
enum members_entry {
    MEMBERS_ENTRY_WAIT = 0, /* the id is free: nobody has added it yet */
    MEMBERS_ENTRY_START,    /* admitted: it may take part from its empty directory */
    MEMBERS_ENTRY_REFUSED   /* rule 12 */
};
enum members_entry members_may_start(const struct coordinators *coordinators, uint64_t id,
                                     uint64_t nonce, struct tg_errmsg *msg);

#endif
