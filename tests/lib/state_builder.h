/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a replicated state for tests, command by command, the way a cluster would: each command
 * goes through its encoding, in a batch of its own, and is kept in a log that can be replayed. */
#ifndef TG_TESTS_LIB_STATE_BUILDER_H
#define TG_TESTS_LIB_STATE_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "coordinator/state/command.h"
#include "coordinator/state/state.h"

struct state_builder {
    struct state state;
    struct apply_result last; /* of the last command */
    uint64_t now_us;          /* stamps come from here; grows by a millisecond with each batch */
    uint64_t next_request;
    uint64_t next_nonce;
    struct buf log; /* batches: length (u64le), bytes */
};

/* An initialised cluster without members. */
void state_builder_init(struct state_builder *builder);
void state_builder_close(struct state_builder *builder);

/* One command as a batch of its own; returns and keeps the result's err. The command stays the
 * caller's. */
int state_builder_apply(struct state_builder *builder, const struct command *command);
/* An empty batch: that much time has passed on the leader. */
void state_builder_elapse(struct state_builder *builder, uint64_t ms);
/* Applies a log to an initialised, empty state. Ends the test if a batch is refused. */
void state_builder_replay(struct slice log, struct state *state);
/* The state of the builder becomes what comes out of its own snapshot. */
void state_builder_restore(struct state_builder *builder);

/* Participants `first`..`last` register with fresh directories. */
void state_builder_members(struct state_builder *builder, node_id first, node_id last);
uint64_t state_builder_epoch(const struct state_builder *builder, node_id node);
int state_builder_db(struct state_builder *builder, const char *db);

struct state_builder_table {
    const char *db;
    const char *table;
    uint32_t buckets;
    uint8_t replication;
    bool write_all;
    bool occ;
};
/* T(k INT, v VARCHAR(20)) DUPLICATE KEY(k), on all members. */
int state_builder_table(struct state_builder *builder, const struct state_builder_table *table);
struct table *state_builder_find(struct state_builder *builder, const char *db, const char *table);
int state_builder_name(struct state_builder *builder, enum command_type type, const char *db,
                       const char *table, bool if_exists, bool force);

/* Begins as participant `node`, or as a client (node 0) without a load. 0 or the error; the ids are
 * in builder->last. */
int state_builder_begin(struct state_builder *builder, node_id node, const char *db,
                        const char *table, const char *label, bool two_phase);
int state_builder_load_start(struct state_builder *builder, node_id node, txn_id txn,
                             const char *db, const char *table);
/* Load `rowset` is done: 10 rows in each bucket of the bit set `buckets`, sealed by the slots in
 * `sealed`. The finish is the one that fits the transaction. */
int state_builder_done(struct state_builder *builder, txn_id txn, rowset_id rowset,
                       uint64_t buckets, uint8_t sealed);
int state_builder_failed(struct state_builder *builder, txn_id txn, rowset_id rowset,
                         const char *reason);
/* TXN_PRECOMMIT, TXN_COMMIT or TXN_ABORT by a client's fresh request. */
int state_builder_finish(struct state_builder *builder, enum command_type type, txn_id txn);
/* TXN_VISIBLE or TXN_CONFIRM: these slots have bound every tablet. */
int state_builder_publish(struct state_builder *builder, enum command_type type, txn_id txn,
                          uint8_t confirmed);
int state_builder_forget(struct state_builder *builder, txn_id txn);
/* A whole plain load into all buckets, on all replicas, VISIBLE and confirmed everywhere. */
txn_id state_builder_load(struct state_builder *builder, const char *db, const char *table,
                          const char *label);

/* Ends the test, with a sentence, if the state breaks one of its invariants. */
void state_builder_check(const struct state *state);

#endif
