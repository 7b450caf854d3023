/* SPDX-License-Identifier: Apache-2.0 */
/* Precommit, commit and abort: what stands against them, in the words that clients match. */
#include <inttypes.h>

#include "coordinator/state/apply.h"

#include "common/base/mutant.h"

void txn_report(const struct txn *txn, struct apply_result *result)
{
    result->txn = txn->id;
    result->txn_state = txn->state;
}

int txn_fail_not_found(txn_id txn, struct tg_errmsg *msg)
{
    return tg_fail(msg, TG_TXN_NOT_FOUND, "transaction [%" PRIu64 "] not found", txn);
}

int txn_fail_state(const struct txn *txn, struct tg_errmsg *msg)
{
    switch ((enum txn_state)txn->state) {
    case TXN_VISIBLE:
        return tg_fail(msg, TG_TXN_STATE,
                       "transaction [%" PRIu64 "] is already visible, not pre-committed.", txn->id);
    case TXN_COMMITTED:
        return tg_fail(msg, TG_TXN_STATE,
                       "transaction [%" PRIu64 "] is already committed, not pre-committed.",
                       txn->id);
    case TXN_ABORTED:
        return tg_fail(msg, TG_TXN_ABORTED,
                       "transaction [%" PRIu64 "] is already aborted. abort reason: %s", txn->id,
                       txn->reason != NULL ? txn->reason : "");
    case TXN_PRECOMMITTED:
        return tg_fail(msg, TG_TXN_STATE, "transaction [%" PRIu64 "] is already pre-committed.",
                       txn->id);
    case TXN_PREPARE:
    case TXN_UNKNOWN:
        break;
    }
    if (txn->failed)
        return tg_fail(msg, TG_TXN_STATE, "transaction [%" PRIu64 "] can only be aborted, %s",
                       txn->id, txn->reason);
    return tg_fail(msg, TG_TXN_STATE, "transaction [%" PRIu64 "] is prepare, not pre-committed.",
                   txn->id);
}

static int find(const struct state *state, const struct command_finish *command, struct txn **txn,
                struct apply_result *result)
{
    *txn = txn_table_find(&state->txns, command->txn);
    if (*txn == NULL || (command->db != 0 && (*txn)->db != command->db))
        return txn_fail_not_found(command->txn, &result->msg);
    txn_report(*txn, result);
    /* Compare and set (rule 8): somebody saw the transaction in a state and decided on that alone.
     */
    if (command->expect_state != TXN_UNKNOWN &&
        ((*txn)->state != command->expect_state || (*txn)->state_seq != command->expect_seq))
        return tg_fail(&result->msg, TG_TXN_STATE,
                       "transaction [%" PRIu64 "] is %s by now, no longer as it was seen",
                       command->txn, txn_state_name((*txn)->state));
    return 0;
}

static bool is_same_request(const struct txn *txn, const struct request_key *key)
{
    return !request_key_is_zero(key) && request_key_equal(&txn->finish_key, key);
}

int txn_check_tables(const struct state *state, const struct txn *txn, struct tg_errmsg *msg)
{
    if (catalog_database_by_id(&state->catalog, txn->db) == NULL)
        return tg_fail(msg, TG_NOT_FOUND, "unknown database, database id=%" PRIu64, txn->db);
    for (uint32_t i = 0; i < txn->table_count; i++) {
        const struct table *table = catalog_table_by_id(&state->catalog, txn->tables[i].table);
        if (table == NULL || table->dropped)
            return tg_fail(msg, TG_NOT_FOUND, "table not found, tableName=%s",
                           table != NULL ? table->name : "");
    }
    return 0;
}

/* The version of the table that the transaction saw when its first load of it started. */
static version_t seen_version(const struct txn *txn, table_id table)
{
    for (uint32_t i = 0; i < txn->load_count; i++) {
        if (txn->loads[i].table == table)
            return txn->loads[i].seen_version;
    }
    return 0;
}

int txn_check_conflicts(const struct state *state, const struct txn *txn, struct tg_errmsg *msg)
{
    for (uint32_t i = 0; i < txn->load_count; i++) {
        const struct txn_load *load = &txn->loads[i];
        const struct table *table = catalog_table_by_id(&state->catalog, load->table);
        if (!table->occ)
            continue;
        version_t seen = seen_version(txn, load->table);
        for (uint32_t j = 0; j < load->tablet_count; j++) {
            const struct tablet *tablet = catalog_tablet(&state->catalog, load->tablets[j].tablet);
            if (tablet_last_touched(tablet) > seen)
                return tg_fail(msg, TG_REFUSED,
                               "transaction [%" PRIu64 "] conflicts with version %" PRIu64
                               " of table %s, which wrote tablet %" PRIu64 " after version %" PRIu64
                               " that this transaction saw",
                               txn->id, tablet_last_touched(tablet), table->name, tablet->id, seen);
        }
    }
    return 0;
}

/* An explicit transaction leaves PREPARE when each of its loads is done; that of a single load does
 * so with its load's report, never by a request from outside. */
static int check_loads(const struct txn *txn, struct tg_errmsg *msg)
{
    if (!txn->explicit_begin || txn->failed)
        return txn_fail_state(txn, msg);
    for (uint32_t i = 0; i < txn->load_count; i++) {
        if (txn->loads[i].state != LOAD_DONE)
            return tg_fail(msg, TG_TXN_STATE,
                           "transaction [%" PRIu64 "] is prepare, not pre-committed: its load %u "
                           "still runs",
                           txn->id, txn->loads[i].load_no);
    }
    return 0;
}

int txn_precommit(struct state *state, const struct command_finish *command,
                  struct apply_result *result)
{
    struct txn *txn;
    int err = find(state, command, &txn, result);
    if (err != 0)
        return err;
    if (txn->state == TXN_PRECOMMITTED) {
        result->repeated = true;
        return 0;
    }
    if (txn->state != TXN_PREPARE)
        return txn_fail_state(txn, &result->msg);
    err = check_loads(txn, &result->msg);
    if (err == 0)
        err = txn_check_tables(state, txn, &result->msg);
    if (err == 0)
        err = txn_check_quorum(state, txn, &result->msg);
    if (err != 0)
        return err;
    txn_set_precommitted(state, txn);
    txn_report(txn, result);
    result->time_us = txn->precommit_us;
    return 0;
}

int txn_commit(struct state *state, const struct command_finish *command,
               struct apply_result *result)
{
    struct txn *txn;
    int err = find(state, command, &txn, result);
    if (err != 0)
        return err;
    if ((txn->state == TXN_COMMITTED || txn->state == TXN_VISIBLE) &&
        is_same_request(txn, &command->key)) {
        result->repeated = true;
        return 0;
    }
    if (txn->state == TXN_PREPARE)
        err = check_loads(txn, &result->msg);
    else if (txn->state != TXN_PRECOMMITTED)
        err = txn_fail_state(txn, &result->msg);
    if (err == 0)
        err = txn_check_tables(state, txn, &result->msg);
    /* Precommitted with a quorum, it may be committed whatever became of its replicas since. */
    if (err == 0 && txn->state == TXN_PREPARE)
        err = txn_check_quorum(state, txn, &result->msg);
    if (err == 0)
        err = txn_check_copies(txn, &result->msg);
    if (err == 0)
        err = txn_check_conflicts(state, txn, &result->msg);
    if (err != 0)
        return err;
    txn_set_committed(state, txn, &command->key);
    txn_report(txn, result);
    result->time_us = txn->commit_us;
    return 0;
}

int txn_abort(struct state *state, const struct command_finish *command,
              struct apply_result *result)
{
    struct txn *txn;
    int err = find(state, command, &txn, result);
    if (err != 0)
        return err;
    switch (MUTANT(3) ? TXN_PREPARE : (enum txn_state)txn->state) {
    case TXN_COMMITTED:
    case TXN_VISIBLE:
        return tg_fail(&result->msg, TG_TXN_STATE,
                       "transaction [%" PRIu64 "] is already %s, could not abort.", txn->id,
                       txn_state_name(txn->state));
    case TXN_ABORTED:
        result->repeated = is_same_request(txn, &command->key);
        if (result->repeated)
            return 0;
        return tg_fail(&result->msg, TG_TXN_ABORTED,
                       "transaction [%" PRIu64 "] is already aborted, abort reason: %s", txn->id,
                       txn->reason != NULL ? txn->reason : "");
    case TXN_PREPARE:
    case TXN_PRECOMMITTED:
    case TXN_UNKNOWN:
        break;
    }
    txn_set_aborted(state, txn, &command->key, command->reason);
    txn_report(txn, result);
    result->time_us = txn->visible_us;
    return 0;
}

void txn_set_precommitted(struct state *state, struct txn *txn)
{
    TG_CHECK(txn_state_may_move(txn->state, TXN_PRECOMMITTED));
    txn->state = TXN_PRECOMMITTED;
    txn->state_seq = state->seq;
    txn->precommit_elapsed_ms = state->elapsed_ms;
    txn->precommit_us = state_take_time(state);
}

void txn_set_aborted(struct state *state, struct txn *txn, const struct request_key *key,
                     const char *reason)
{
    TG_CHECK(txn_state_may_move(txn->state, TXN_ABORTED) || MUTANT(3));
    txn->state = TXN_ABORTED;
    txn->state_seq = state->seq;
    txn->visible_us = state_take_time(state);
    if (key != NULL)
        txn->finish_key = *key;
    free(txn->reason);
    txn->reason = state_strdup(reason);
    txn_list_remove(&state->txns.open, txn);
    txn_set_finished(state, txn);
}
