/* SPDX-License-Identifier: Apache-2.0 */
/* Consensus on the raft library, over whatever raft_io carries its messages and bytes: libuv's in
 * production (raft_node), memory in the simulation. Everything happens on one thread;
 * raft_core_turn does what gathered since the last turn, and is the only place from which raft is
 * asked to append.
 *
 *   follows ──raft LEADER──▶ barrier of the own term ──applied──▶ leads: takes commands
 *      ▲                                │                                   │
 *      └───────────────────────── term changed ─────────────────────────────┘
 */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_CORE_H
#define TG_COORDINATOR_CONSENSUS_RAFT_CORE_H

#include <raft.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/consensus/proposer.h"
#include "coordinator/consensus/raft_fsm.h"
#include "coordinator/consensus/raft_guard.h"
#include "coordinator/state/state.h"

struct raft_core_options {
    uint64_t id;
    const char *address; /* what peers call this server */
    uint32_t window;     /* entries in flight: 1..PROPOSER_WINDOW_MAX */
    unsigned election_timeout_ms;
    unsigned heartbeat_ms;
    unsigned install_snapshot_timeout_ms;
    uint64_t snapshot_bytes;   /* of log between snapshots */
    uint32_t snapshot_entries; /* the same in entries; 0: RAFT_FSM_SNAPSHOT_ENTRIES_MAX */
    struct clock *clock;
    struct consensus_observer observer;
    /* Whether the clock may stamp now; NULL: always. */
    enum consensus_clock (*clock_state)(void *data, struct proposer_time now);
    /* Whether another voter is fit to lead, as far as known; NULL: all are. */
    bool (*fit)(void *data, uint64_t id);
    void (*wake)(void *data); /* raft_core_turn is due; may come from inside raft */
    void (*fatal)(void *data, const char *why); /* the process must end */
    void *data;
};

enum {
    CORE_CLOCK_WAIT_MS = 1000, /* a new leader waits so long to hear of the others' clocks */
    /* One that is to vote lacks little when it is promoted (MEMBERS_LAG_MAX): if it does not get that
     * within this, it is gone, and other changes must not wait for it. */
    CORE_CATCH_UP_ROUND_MS = 10000,
    CORE_TRANSFER_PAUSE_MS = 200 /* between two attempts to be rid of the leadership */
};

enum raft_core_role { CORE_FOLLOWS = 0, CORE_PROVES, CORE_LEADS };

struct raft_core_entry {
    struct raft_apply apply; /* the library's until its callback */
    struct raft_core *core;
    struct proposer_batch *batch; /* NULL once its outcome was given up */
    bool busy;
};

struct raft_core {
    struct consensus consensus; /* first */
    struct raft_core_options options;
    struct raft raft;
    struct raft_fsm_shell shell;
    struct state state;
    struct proposer proposer;
    enum raft_core_role role;
    uint64_t lead_term;
    bool told_leads;
    bool attached; /* raft_init succeeded */
    bool closed;   /* raft_close was called: raft is left alone */
    bool failed;   /* fatal was called */
    struct raft_barrier barrier;
    bool barrier_busy;
    bool proven;            /* CORE_PROVES: the barrier was applied */
    uint64_t elected_us;    /* monotonic, when this leadership began to be proven */
    uint64_t shed_after_us; /* monotonic: no attempt to hand over before */
    struct raft_core_entry entries[PROPOSER_WINDOW_MAX];
    struct raft_guard guard; /* raft.data points to it */
    /* raft keeps both past their callbacks for a moment, so they live as long as the core. */
    struct raft_change change;
    struct raft_transfer transfer;
    bool transferring;
    void (*transfer_done)(void *data, int err);
    void *transfer_data;
    uint64_t times_led;
};

/* Fills core, which must stay where it is. TG_NOMEM. */
int raft_core_init(struct raft_core *core, const struct raft_core_options *options);
/* raft_init on io, whose backend is ready, and raft's settings. On failure nothing is attached. */
int raft_core_attach(struct raft_core *core, struct raft_io *io, struct tg_errmsg *msg);
/* Loads what the disk holds and starts. On failure raft_core_shut must still be called. */
int raft_core_start(struct raft_core *core, struct tg_errmsg *msg);
void raft_core_turn(struct raft_core *core);
/* Monotonic time in microseconds at which a turn is due for a read that waits; 0: none. */
uint64_t raft_core_due_us(const struct raft_core *core);
/* Closes raft; never from one of its callbacks. closed is called when io and core may go. Requests
 * end with TG_UNKNOWN_OUTCOME or TG_NOT_LEADER before it returns. */
void raft_core_shut(struct raft_core *core, raft_close_cb closed);
/* Frees; after closed, or if never attached. */
void raft_core_close(struct raft_core *core);
void raft_core_set_room(struct raft_core *core, enum proposer_room room);
/* Monotonic age of the oldest entry in flight in microseconds; 0 if there is none. */
uint64_t raft_core_flight_us(const struct raft_core *core);

/* Hands leadership to another voter (id 0: the fittest). done comes later from a callback of raft:
 * 0 if another leads then, TG_UNREACHABLE if nobody took over within an election timeout; or from
 * inside with why it cannot even begin: TG_NOT_LEADER, TG_BUSY, TG_NOT_FOUND. */
void raft_core_transfer(struct raft_core *core, uint64_t id, void (*done)(void *data, int err),
                        void *data);

/* The leadership goes to somebody else if anybody takes it: tried now and then as long as it is
 * called. why is for the log. */
void raft_core_shed(struct raft_core *core, const char *why);

/* What consensus_ops has of members (raft_members.c). */
void raft_members_servers(const struct consensus *consensus, struct consensus_servers *servers);
int raft_members_step(struct consensus *consensus, enum consensus_step step, uint64_t id,
                      const char *address);
int raft_members_transfer(struct consensus *consensus, uint64_t id);

/* r->data of the library's struct. */
static inline struct raft_core *raft_core_of(const struct raft *raft)
{
    return (struct raft_core *)((char *)raft->data - offsetof(struct raft_core, guard));
}

#endif
