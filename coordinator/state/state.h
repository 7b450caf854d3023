/* SPDX-License-Identifier: Apache-2.0 */
/* The replicated state: a deterministic function of the commands applied to it. It knows no clock,
 * socket, raft or randomness. It belongs to one thread; readers on that thread look at it directly
 * through the tables' headers. */
#ifndef TG_COORDINATOR_STATE_STATE_H
#define TG_COORDINATOR_STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "coordinator/state/catalog.h"
#include "coordinator/state/command.h"
#include "coordinator/state/coordinators.h"
#include "coordinator/state/members.h"
#include "coordinator/state/statements.h"
#include "coordinator/state/txn_table.h"

/* Limits that apply decides by: data, equal on every coordinator. Those of struct limits are changed
 * by COMMAND_SET_LIMITS. */
struct state_limits {
    uint32_t running_txns_per_db_max;
    uint32_t unpublished_per_table_max;
    uint64_t label_memory_max;
    uint64_t label_keep_ms;        /* 12 h of elapsed time */
    uint64_t precommit_timeout_ms; /* 3 600 000 */
    uint64_t prepare_timeout_ms;   /* default for begin without timeout: 259 200 000 */
};

struct state {
    char cluster_uuid[UUID_BYTES];
    uint32_t feature_level;
    uint64_t seq;           /* commands applied so far; the command being applied has this number */
    uint64_t stamp_us;      /* the last time used: also the closed timestamp C */
    uint64_t batch_next_us; /* next time to hand out inside the batch being applied */
    uint64_t elapsed_ms;    /* age clock: sum of the leaders' deltas */
    txn_id txn_low_water;   /* every transaction below is final, confirmed everywhere it can be, and
                               may be gone from memory */
    uint64_t next_db, next_table, next_partition, next_tablet, next_txn, next_rowset;
    struct state_limits limits;
    struct members members;
    struct coordinators coordinators;
    struct catalog catalog;
    struct txn_table txns;
    struct statements statements;
};

int state_init(struct state *state); /* 0 or TG_NOMEM */
void state_close(struct state *state);

/* What a command did, for whoever proposed it. */
struct apply_result {
    /* 0 or why it was refused: then nothing changed. One exception: LOAD_FAILED in an explicit
     * transaction always answers TG_TXN_ABORTED: that load is over for good, although its
     * transaction waits for the client's abort. */
    int err;
    struct tg_errmsg msg; /* sentence for the client, in Doris's words where it has some */
    bool repeated; /* nothing to do: the same request had done this before, or it was so already */
    txn_id txn;
    enum txn_state txn_state;
    rowset_id rowset; /* TXN_BEGIN, LOAD_START */
    table_id table;   /* TXN_BEGIN, LOAD_START, CREATE_TABLE */
    node_id node;     /* MEMBER_REGISTER */
    uint64_t epoch;
    uint64_t time_us;
};

/* Begins a batch: advances stamp and elapsed time. A stamp that does not grow is refused with
 * TG_INVALID (rule 14): the whole batch is then void, on every coordinator alike. */
int state_begin_batch(struct state *state, const struct batch_header *header);
/* Applies one command. Running out of memory here ends the process: a coordinator must not diverge.
 */
void state_apply(struct state *state, const struct command *command, struct apply_result *result);

/* Rule 10: may a participant drop what it staged for this transaction and has not bound? Only if it
 * is ABORTED here; or forgotten or below txn_low_water, and it cannot be a clone on its way.
 * may_be_clone: a replica of the node is behind (catalog_has_behind). */
bool state_staged_is_dead(const struct state *state, txn_id txn, bool may_be_clone);

/* The whole state to bytes and back (rule 18). Decode needs an initialised, empty state. */
void state_encode(const struct state *state, struct buf *out);
int state_decode(struct state *state, struct slice bytes, struct tg_errmsg *msg);
/* XXH3 of the encoding: equal on all coordinators at the same applied index. */
uint64_t state_hash(const struct state *state);

#endif
