/* SPDX-License-Identifier: Apache-2.0 */
/* VISIBLE and what comes after it: replicas that confirm later. */
#include <inttypes.h>

#include "coordinator/state/apply.h"

#include "common/base/mutant.h"

int txn_may_become_visible(const struct state *state, const struct txn *txn,
                           const uint8_t *confirmed, bool one_is_enough)
{
    if (txn->state != TXN_COMMITTED)
        return TG_TXN_STATE;
    for (uint32_t i = 0; i < txn->table_count; i++) {
        const struct txn_table_ref *ref = &txn->tables[i];
        if (ref->gone)
            continue;
        const struct table *table = catalog_table_by_id(&state->catalog, ref->table);
        if (ref->version != table->visible + 1)
            return TG_STALE;
    }
    for (uint32_t i = 0; i < txn->publish_count; i++) {
        const struct txn_publish_tablet *publish = &txn->publish[i];
        if (txn->tables[publish->table_index].gone || publish->lost)
            continue;
        const struct tablet *tablet = catalog_tablet(&state->catalog, publish->tablet);
        uint8_t bits = (uint8_t)(publish->confirmed | (confirmed != NULL ? confirmed[i] : 0));
        if (!tablet_published(tablet, bits, one_is_enough))
            return TG_QUORUM;
    }
    return 0;
}

static void merge_confirmed(const struct state *state, struct txn *txn, const uint8_t *confirmed)
{
    for (uint32_t i = 0; i < txn->publish_count; i++) {
        struct txn_publish_tablet *publish = &txn->publish[i];
        const struct tablet *tablet = catalog_tablet(&state->catalog, publish->tablet);
        publish->confirmed |= (uint8_t)(confirmed[i] & tablet_all(tablet));
    }
}

static void set_visible(struct state *state, struct txn *txn)
{
    txn->state = TXN_VISIBLE;
    txn->state_seq = state->seq;
    txn->visible_us = state_take_time(state);
    txn->final_elapsed_ms = state->elapsed_ms;
    for (uint32_t i = 0; i < (MUTANT(6) ? 1 : txn->table_count); i++) {
        const struct txn_table_ref *ref = &txn->tables[i];
        if (ref->gone)
            continue;
        struct table *table = catalog_table_by_id(&state->catalog, ref->table);
        struct version_record *record = &table->versions[ref->version - 1];
        record->time_us = txn->visible_us;
        table->visible = ref->version;
        table->row_estimate = ref->truncate ? 0 : table->row_estimate + record->rows;
    }
    struct database *database = catalog_database_by_id(&state->catalog, txn->db);
    if (database != NULL)
        database->running_txns--;
}

/* One named transaction that is VISIBLE already: what it says of replicas still counts. */
static int confirm(struct state *state, const struct visible_txn *named, struct tg_errmsg *msg)
{
    struct txn *txn = txn_table_find(&state->txns, named->txn);
    if (txn == NULL)
        return txn_fail_not_found(named->txn, msg);
    if (txn->confirmed)
        return 0;
    if (txn->state != TXN_VISIBLE)
        return tg_fail(msg, TG_TXN_STATE, "transaction [%" PRIu64 "] is %s, not visible", txn->id,
                       txn_state_name(txn->state));
    if (named->tablet_count != txn->publish_count)
        return tg_fail(msg, TG_INVALID, "transaction [%" PRIu64 "] publishes %u tablets", txn->id,
                       txn->publish_count);
    merge_confirmed(state, txn, named->confirmed);
    txn_finish_if_complete(state, txn);
    return 0;
}

static int make_visible(struct state *state, const struct visible_txn *named, struct tg_errmsg *msg)
{
    struct txn *txn = txn_table_find(&state->txns, named->txn);
    if (txn == NULL || txn->state != TXN_COMMITTED)
        return confirm(state, named, msg);
    if (named->tablet_count != txn->publish_count)
        return tg_fail(msg, TG_INVALID, "transaction [%" PRIu64 "] publishes %u tablets", txn->id,
                       txn->publish_count);
    int err = txn_may_become_visible(state, txn, named->confirmed, named->one_is_enough);
    if (err == TG_STALE)
        return tg_fail(msg, err,
                       "an older version of a table of transaction [%" PRIu64 "] is not visible",
                       txn->id);
    if (err != 0)
        return tg_fail(msg, err,
                       "too few good replicas have bound a tablet of transaction [%" PRIu64 "]",
                       txn->id);
    merge_confirmed(state, txn, named->confirmed);
    set_visible(state, txn);
    txn_finish_if_complete(state, txn);
    return 0;
}

/* Each named transaction for itself, in order: one that is not ready must not hold up the others.
 * The command is refused if none could be helped; then nothing has changed. */
static int for_each(struct state *state, const struct command_visible *command,
                    int (*apply)(struct state *, const struct visible_txn *, struct tg_errmsg *),
                    struct apply_result *result)
{
    int first_err = 0;
    uint32_t done = 0;
    for (uint32_t i = 0; i < command->count; i++) {
        struct tg_errmsg *msg = first_err == 0 ? &result->msg : NULL;
        int err = apply(state, &command->txns[i], msg);
        if (err == 0)
            done++;
        else if (first_err == 0)
            first_err = err;
    }
    result->time_us = state->stamp_us;
    return done > 0 ? 0 : first_err;
}

int txn_visible(struct state *state, const struct command_visible *command,
                struct apply_result *result)
{
    return for_each(state, command, make_visible, result);
}

int txn_confirm(struct state *state, const struct command_visible *command,
                struct apply_result *result)
{
    return for_each(state, command, confirm, result);
}
