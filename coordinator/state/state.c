/* SPDX-License-Identifier: Apache-2.0 */
/* The replicated state: time and order of batches, and the switch over commands. */
#include "coordinator/state/state.h"

#include <inttypes.h>

#include "common/base/mutant.h"
#include "coordinator/state/apply.h"

/* Times fit the upper 52 bits of a clock reading; a batch says how long it was since the last one.
 */
#define STAMP_MAX            (UINT64_C(1) << 52)
#define ELAPSED_DELTA_MAX_MS (UINT64_C(1) << 40)

int state_init(struct state *state)
{
    *state = (struct state){.feature_level = 1,
                            .txn_low_water = 1,
                            .next_db = 1,
                            .next_table = 1,
                            .next_partition = 1,
                            .next_tablet = 1,
                            .next_txn = 1,
                            .next_rowset = 1,
                            .members = {.next_epoch = 1}};
    state->limits = (struct state_limits){.running_txns_per_db_max = 10000,
                                          .unpublished_per_table_max = 1000,
                                          .label_memory_max = UINT64_C(256) * 1024 * 1024,
                                          .label_keep_ms = UINT64_C(12) * 3600 * 1000,
                                          .precommit_timeout_ms = UINT64_C(3600) * 1000,
                                          .prepare_timeout_ms = UINT64_C(259200) * 1000};
    return 0;
}

void state_close(struct state *state)
{
    txn_table_close(&state->txns);
    catalog_close(&state->catalog);
    memset(state, 0, sizeof *state);
}

uint64_t state_take_time(struct state *state)
{
    uint64_t time = state->batch_next_us++;
    if (time > state->stamp_us)
        state->stamp_us = time;
    return time;
}

static bool is_over(const struct txn *txn)
{
    return txn == NULL || txn->state == TXN_ABORTED || txn->confirmed;
}

/* Each id is passed once in the life of the cluster. */
void state_raise_low_water(struct state *state)
{
    while (state->txn_low_water < state->next_txn &&
           is_over(txn_table_find(&state->txns, state->txn_low_water)))
        state->txn_low_water++;
}

/* A node with a replica that is behind clones what transactions long over have written, and stages
 * it until it can be bound: for it only ABORTED is dead. What else it has staged goes when all its
 * replicas are good. */
bool state_staged_is_dead(const struct state *state, txn_id id, bool may_be_clone)
{
    const struct txn *txn = id < state->next_txn ? txn_table_find(&state->txns, id) : NULL;
    if (id >= state->next_txn || (txn != NULL && txn->state == TXN_ABORTED))
        return id < state->next_txn && !MUTANT(14);
    if (txn != NULL && id >= state->txn_low_water)
        return false;
    return !may_be_clone;
}

int state_begin_batch(struct state *state, const struct batch_header *header)
{
    if ((header->stamp_us <= state->stamp_us && !MUTANT(9)) || header->stamp_us >= STAMP_MAX ||
        header->elapsed_delta_ms > ELAPSED_DELTA_MAX_MS)
        return TG_INVALID;
    state->stamp_us = header->stamp_us;
    state->batch_next_us = header->stamp_us;
    state->elapsed_ms += header->elapsed_delta_ms;
    return 0;
}

static int cluster_init(struct state *state, const struct command_cluster_init *command,
                        struct apply_result *result)
{
    if (command->uuid[0] == '\0')
        return tg_fail(&result->msg, TG_INVALID, "a cluster needs a uuid");
    if (state->cluster_uuid[0] != '\0') {
        result->repeated = true;
        return 0;
    }
    memcpy(state->cluster_uuid, command->uuid, sizeof state->cluster_uuid);
    return 0;
}

/* NULL for commands that are no statements. */
static const struct request_key *statement_key(const struct command *command)
{
    switch (command->type) {
    case COMMAND_CREATE_TABLE:
        return &command->create_table.key;
    case COMMAND_CREATE_DB:
    case COMMAND_DROP_DB:
    case COMMAND_DROP_TABLE:
    case COMMAND_TRUNCATE_TABLE:
        return &command->name.key;
    default:
        return NULL;
    }
}

static bool was_done(const struct state *state, const struct request_key *key,
                     struct apply_result *result)
{
    const struct done_statement *done = statements_find(&state->statements, key);
    if (done == NULL)
        return false;
    result->repeated = true;
    result->table = done->table;
    result->txn = done->txn;
    result->time_us = done->time_us;
    return true;
}

static int set_limits(struct state *state, const struct limits *limits, struct apply_result *result)
{
    if (limits->running_txns_per_db_max == 0 || limits->unpublished_per_table_max == 0 ||
        limits->label_memory_max == 0)
        return tg_fail(&result->msg, TG_INVALID, "a limit of 0 would end all work");
    state->limits.running_txns_per_db_max = limits->running_txns_per_db_max;
    state->limits.unpublished_per_table_max = limits->unpublished_per_table_max;
    state->limits.label_memory_max = limits->label_memory_max;
    return 0;
}

static int apply(struct state *state, const struct command *command, struct apply_result *result)
{
    switch (command->type) {
    case COMMAND_CLUSTER_INIT:
        return cluster_init(state, &command->cluster_init, result);
    case COMMAND_MEMBER_REGISTER:
        return members_register(state, &command->member, false, result);
    case COMMAND_MEMBER_REJOIN:
        return members_register(state, &command->member, true, result);
    case COMMAND_CREATE_DB:
        return catalog_create_db(state, &command->name, result);
    case COMMAND_DROP_DB:
        return catalog_drop_db(state, &command->name, result);
    case COMMAND_CREATE_TABLE:
        return catalog_create_table(state, &command->create_table, result);
    case COMMAND_DROP_TABLE:
        return catalog_drop_table(state, &command->name, result);
    case COMMAND_TRUNCATE_TABLE:
        return txn_truncate(state, &command->name, result);
    case COMMAND_TXN_BEGIN:
        return txn_begin(state, &command->begin, result);
    case COMMAND_SET_LIMITS:
        return set_limits(state, &command->limits.limits, result);
    case COMMAND_LOAD_START:
        return txn_load_start(state, &command->load_start, result);
    case COMMAND_LOAD_DONE:
        return txn_load_done(state, &command->load_done, result);
    case COMMAND_LOAD_FAILED:
        return txn_load_failed(state, &command->load_failed, result);
    case COMMAND_TXN_PRECOMMIT:
        return txn_precommit(state, &command->finish, result);
    case COMMAND_TXN_COMMIT:
        return txn_commit(state, &command->finish, result);
    case COMMAND_TXN_ABORT:
        return txn_abort(state, &command->finish, result);
    case COMMAND_TXN_VISIBLE:
        return txn_visible(state, &command->visible, result);
    case COMMAND_TXN_CONFIRM:
        return txn_confirm(state, &command->visible, result);
    case COMMAND_REPLICA_BEHIND:
        return replica_behind(state, &command->behind, result);
    case COMMAND_REPLICA_LACKS:
        return replica_lacks(state, &command->replica, result);
    case COMMAND_REPLICA_CATCH:
        return replica_catch(state, &command->replica, result);
    case COMMAND_REPLICA_HEALED:
        return replica_healed(state, &command->replica, result);
    case COMMAND_REPLICA_PROVEN:
        return replica_proven(state, &command->proven, result);
    case COMMAND_DECLARE_LOST:
        return replica_declare_lost(state, &command->lost, result);
    case COMMAND_FORGET:
        return txn_forget(state, &command->forget, result);
    case COMMAND_COORDINATOR_FOUND:
        return coordinators_found(state, &command->coordinator, result);
    case COMMAND_COORDINATOR_ADD:
        return coordinators_add(state, &command->coordinator, result);
    case COMMAND_COORDINATOR_PROMOTE:
        return coordinators_promote(state, &command->coordinator, result);
    case COMMAND_COORDINATOR_DROP:
        return coordinators_drop(state, &command->coordinator, result);
    case COMMAND_COORDINATOR_GONE:
        return coordinators_gone(state, &command->coordinator, result);
    case COMMAND_NODE_DRAIN:
        return move_drain(state, &command->node, result);
    case COMMAND_NODE_DROP:
        return move_drop(state, &command->node, result);
    case COMMAND_REPLICA_ADD:
        return move_add(state, &command->move, result);
    case COMMAND_REPLICA_REMOVE:
        return move_remove(state, &command->move, result);
    }
    return tg_fail(&result->msg, TG_UNSUPPORTED, "unknown command %d", (int)command->type);
}

void state_apply(struct state *state, const struct command *command, struct apply_result *result)
{
    *result = (struct apply_result){0};
    state->seq++;
    const struct request_key *key = statement_key(command);
    if (key != NULL && was_done(state, key, result))
        return;
    result->err = apply(state, command, result);
    if (key != NULL && result->err == 0)
        statements_add(&state->statements, key, result);
    state_raise_low_water(state);
}
