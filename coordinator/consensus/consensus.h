/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of a coordinator sees of consensus: propose a command, wait until reads are safe,
 * know who leads. raft is behind this and nowhere else; a test brings a log of one. Everything
 * happens on the loop's thread. */
#ifndef TG_COORDINATOR_CONSENSUS_CONSENSUS_H
#define TG_COORDINATOR_CONSENSUS_CONSENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ids.h"
#include "coordinator/state/command.h"
#include "coordinator/state/state.h"

/* A proposal on its way. Owned by the caller, must live until done. */
struct consensus_request {
    /* err 0: applied here, result says what it did. TG_NOT_LEADER: refused, certainly not in the
     * log. TG_UNKNOWN_OUTCOME: leadership was lost meanwhile, it may or may not come to be: look at
     * the state of the next leader. TG_BUSY: the queue is full. TG_NOSPACE: the log's disk is under
     * its reserve. Never called from inside consensus_propose. */
    void (*done)(struct consensus_request *request, int err, const struct apply_result *result);
    void *data;
    struct consensus_request *next; /* consensus' own from here on */
    uint32_t bytes_at;
    int err;
    uint64_t closes_us;
    uint64_t due_us;
};

/* A server in raft's configuration, and its part there. */
enum consensus_role { CONSENSUS_SPARE = 1, CONSENSUS_STANDBY = 2, CONSENSUS_VOTER = 3 };
struct consensus_server {
    uint64_t id;
    enum consensus_role role;
    uint64_t match_index; /* on the leader: up to here it has stored the log; elsewhere 0 */
};
struct consensus_servers {
    uint32_t count;
    bool changing;       /* a change is under way: none can begin */
    uint64_t last_index; /* of the own log */
    struct consensus_server list[COORDINATORS_MAX];
};
/* One step of a change of the configuration. */
enum consensus_step {
    CONSENSUS_STEP_ADD = 1, /* as a spare, which gets nothing */
    CONSENSUS_STEP_STANDBY, /* gets the log */
    CONSENSUS_STEP_VOTER,
    CONSENSUS_STEP_REMOVE
};

/* What the other coordinators' clocks say of the own one (rule 14). */
enum consensus_clock {
    CONSENSUS_CLOCK_GOOD = 0,
    CONSENSUS_CLOCK_UNKNOWN, /* they have said nothing yet */
    CONSENSUS_CLOCK_AHEAD    /* neither stamps nor leads: another one must lead */
};

struct consensus {
    const struct consensus_ops *ops;
};

struct consensus_ops {
    /* Encodes the command at once (it stays the caller's) and puts it into the next batch. Batches
     * form by what is waiting: one entry in flight, flushed at the end of each loop turn. */
    void (*propose)(struct consensus *consensus, const struct command *command,
                    struct consensus_request *request);
    /* Done with err 0 once this node is proven to lead at a moment after the call and everything
     * committed before was applied here; closes_us: additionally a batch with a stamp ≥ closes_us
     * was applied (0: any). Shared by all that wait. result is NULL. */
    void (*barrier)(struct consensus *consensus, uint64_t closes_us,
                    struct consensus_request *request);
    /* Leads, and has applied a barrier of its own term. */
    bool (*is_leader)(const struct consensus *consensus);
    /* Raft id of the leader as far as known, 0 = unknown. */
    uint64_t (*leader)(const struct consensus *consensus);
    uint64_t (*term)(const struct consensus *consensus);
    uint64_t (*applied_index)(const struct consensus *consensus);
    const struct state *(*state)(const struct consensus *consensus);
    /* The larger of wall clock and the last stamp used. */
    uint64_t (*now_us)(const struct consensus *consensus);
    /* elapsed_ms of the state plus what has passed since the last batch, on this leader's monotonic
     * clock. */
    uint64_t (*elapsed_ms)(const struct consensus *consensus);
    /* Raft's configuration as it is now, a change that is not yet committed included. */
    void (*servers)(const struct consensus *consensus, struct consensus_servers *servers);
    /* Begins a step; how far it came is seen in servers(). address: of its raft port, for ADD. 0,
     * TG_NOT_LEADER, TG_BUSY (a change or a transfer is under way), TG_EXISTS, TG_NOT_FOUND,
     * TG_INVALID (it has that role already), TG_NOSPACE. */
    int (*step)(struct consensus *consensus, enum consensus_step step, uint64_t id,
                const char *address);
    /* Begins to hand the leadership over: to that voter, or to whom it fits best (0). 0,
     * TG_NOT_LEADER, TG_BUSY, TG_NOT_FOUND (no such voter). */
    int (*transfer)(struct consensus *consensus, uint64_t id);
};

/* What consensus tells: at most one observer, set before start. */
struct consensus_observer {
    void (*leadership)(void *data, bool leads); /* gained (is_leader true from now on) or lost */
    void (*applied)(void *data);                /* a batch was applied, after its requests' done */
    void *data;
};

static inline void consensus_propose(struct consensus *c, const struct command *command,
                                     struct consensus_request *request)
{
    c->ops->propose(c, command, request);
}
static inline void consensus_barrier(struct consensus *c, uint64_t closes_us,
                                     struct consensus_request *request)
{
    c->ops->barrier(c, closes_us, request);
}
static inline bool consensus_is_leader(const struct consensus *c)
{
    return c->ops->is_leader(c);
}
static inline const struct state *consensus_state(const struct consensus *c)
{
    return c->ops->state(c);
}

#endif
