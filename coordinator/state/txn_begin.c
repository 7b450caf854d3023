/* SPDX-License-Identifier: Apache-2.0 */
/* Beginning a transaction, alone or with its first load; and forgetting finished ones. */
#include <inttypes.h>

#include "coordinator/state/apply.h"

#include "common/base/mutant.h"

int txn_check_epoch(const struct state *state, const struct request_key *key, struct tg_errmsg *msg)
{
    if (key->node != 0 && !members_is_current(&state->members, key->node, key->epoch))
        return tg_fail(msg, TG_FENCED,
                       "registration %" PRIu64 " of participant %u is no longer valid", key->epoch,
                       key->node);
    return 0;
}

int txn_check_unpublished(const struct state *state, const struct table *table,
                          struct tg_errmsg *msg)
{
    version_t waiting = table->committed - table->visible;
    if (waiting == 0 || waiting < state->limits.unpublished_per_table_max)
        return 0;
    return tg_fail(msg, TG_LIMIT,
                   "table %s has %" PRIu64 " committed transactions that are not visible yet, the "
                   "limit is %u; the first of them, which all others wait for, is transaction "
                   "[%" PRIu64 "]",
                   table->name, waiting, state->limits.unpublished_per_table_max,
                   table->versions[table->visible].txn);
}

static int check_label(const struct state *state, db_id db, const char *label,
                       struct apply_result *result)
{
    const struct txn *txn = txn_table_find_label(&state->txns, db, label);
    while (txn != NULL && txn->state == TXN_ABORTED)
        txn = txn->same_label;
    if (txn == NULL)
        return 0;
    txn_report(txn, result);
    return tg_fail(&result->msg, TG_LABEL_EXISTS,
                   "Label [%s] has already been used, relate to txn [%" PRIu64 "], status [%s].",
                   label, txn->id, txn_state_name(txn->state));
}

static int check_limits(const struct state *state, const struct database *database,
                        struct tg_errmsg *msg)
{
    const struct state_limits *limits = &state->limits;
    if (database->running_txns >= limits->running_txns_per_db_max)
        return tg_fail(msg, TG_LIMIT,
                       "current running txns on db %" PRIu64 " is %u, larger than limit %u",
                       database->id, database->running_txns, limits->running_txns_per_db_max);
    if (state->txns.finished_bytes >= limits->label_memory_max)
        return tg_fail(msg, TG_LIMIT,
                       "the labels of %u finished transactions fill the memory kept for them "
                       "(%" PRIu64 " bytes); a label is forgotten %" PRIu64 " s after its end",
                       state->txns.finished.count, limits->label_memory_max,
                       limits->label_keep_ms / 1000);
    return 0;
}

/* True if this request came before: then the result says what it did. */
static bool answer_repeated(const struct state *state, const struct request_key *key,
                            struct apply_result *result)
{
    const struct txn *txn = txn_table_find_request(&state->txns, key);
    if (txn == NULL)
        return false;
    result->repeated = true;
    txn_report(txn, result);
    const struct txn_load *load = txn_table_find_request_load(&state->txns, key);
    if (load != NULL) {
        result->rowset = load->rowset;
        result->table = load->table;
    }
    return true;
}

static int check_not_fenced(const struct state *state, const struct request_key *key,
                            struct tg_errmsg *msg)
{
    if (txn_table_is_fenced(&state->txns, key))
        return tg_fail(msg, TG_REFUSED, "this request was given up before it arrived");
    return 0;
}

static struct txn_table_ref *add_table(struct txn *txn, struct table *table)
{
    for (uint32_t i = 0; i < txn->table_count; i++) {
        if (txn->tables[i].table == table->id)
            return &txn->tables[i];
    }
    txn->tables = state_realloc(txn->tables, txn->table_count + 1u, sizeof *txn->tables);
    struct txn_table_ref *ref = &txn->tables[txn->table_count++];
    *ref = (struct txn_table_ref){.table = table->id};
    catalog_table_ref(table);
    return ref;
}

struct txn_load *txn_add_load(struct state *state, struct txn *txn, struct table *table,
                              const struct request_key *key)
{
    add_table(txn, table);
    txn->loads = state_realloc(txn->loads, txn->load_count + 1u, sizeof *txn->loads);
    struct txn_load *load = &txn->loads[txn->load_count++];
    *load = (struct txn_load){.rowset = state->next_rowset++,
                              .load_no = txn->load_count,
                              .state = LOAD_RUNNING,
                              .table = table->id,
                              .key = *key,
                              .seen_version = table->visible,
                              .placement_epoch = table->placement_epoch};
    return load;
}

int txn_begin(struct state *state, const struct command_begin *command, struct apply_result *result)
{
    struct tg_errmsg *msg = &result->msg;
    if (answer_repeated(state, &command->key, result))
        return 0;
    int err = check_not_fenced(state, &command->key, msg);
    if (err == 0)
        err = txn_check_epoch(state, &command->key, msg);
    struct database *database = NULL;
    struct table *table = NULL;
    if (err == 0)
        err = catalog_find_db(&state->catalog, command->db, &database, msg);
    if (err == 0 && command->table[0] != '\0')
        err = catalog_find_table(database, command->table, &table, msg);
    if (err == 0 && command->label[0] == '\0')
        err = tg_fail(msg, TG_INVALID, "a transaction needs a label");
    if (err == 0 && !MUTANT(8))
        err = check_label(state, database->id, command->label, result);
    if (err == 0)
        err = check_limits(state, database, msg);
    if (err == 0 && table != NULL)
        err = txn_check_unpublished(state, table, msg);
    if (err != 0)
        return err;

    struct txn *txn = txn_table_create(state, database, command->label, command->user);
    txn->two_phase = command->two_phase;
    txn->explicit_begin = table == NULL;
    txn->begin_key = command->key;
    txn->timeout_ms =
        command->timeout_ms > 0 ? command->timeout_ms : state->limits.prepare_timeout_ms;
    if (table != NULL) {
        const struct txn_load *load = txn_add_load(state, txn, table, &command->key);
        result->rowset = load->rowset;
        result->table = load->table;
    }
    txn_table_add_request(&state->txns, &command->key, txn, table != NULL ? 0 : TXN_NO_LOAD);
    txn_report(txn, result);
    result->time_us = txn->begin_us;
    return 0;
}

/* May a further load start in this transaction? */
static int check_join(const struct state *state, const struct txn *txn, const struct table *table,
                      struct tg_errmsg *msg)
{
    if (txn->state != TXN_PREPARE)
        return txn_fail_state(txn, msg);
    if (!txn->explicit_begin)
        return tg_fail(msg, TG_TXN_STATE,
                       "transaction [%" PRIu64 "] is that of a single load, others cannot join it",
                       txn->id);
    if (txn->failed)
        return txn_fail_state(txn, msg);
    if (txn->load_count >= LOADS_PER_TXN_MAX)
        return tg_fail(msg, TG_LIMIT, "transaction [%" PRIu64 "] has %d loads already", txn->id,
                       LOADS_PER_TXN_MAX);
    bool known = false;
    for (uint32_t i = 0; i < txn->table_count; i++)
        known = known || txn->tables[i].table == table->id;
    if (!known && txn->table_count >= TABLES_PER_TXN_MAX)
        return tg_fail(msg, TG_LIMIT, "transaction [%" PRIu64 "] writes %d tables already", txn->id,
                       TABLES_PER_TXN_MAX);
    return txn_check_unpublished(state, table, msg);
}

int txn_load_start(struct state *state, const struct command_load_start *command,
                   struct apply_result *result)
{
    struct tg_errmsg *msg = &result->msg;
    if (!MUTANT(22) && answer_repeated(state, &command->key, result))
        return result->txn == command->txn
                   ? 0
                   : tg_fail(msg, TG_INVALID, "this request belongs to transaction [%" PRIu64 "]",
                             result->txn);
    int err = check_not_fenced(state, &command->key, msg);
    if (err == 0)
        err = txn_check_epoch(state, &command->key, msg);
    struct database *database = NULL;
    struct table *table = NULL;
    if (err == 0)
        err = catalog_find_db(&state->catalog, command->db, &database, msg);
    struct txn *txn = txn_table_find(&state->txns, command->txn);
    if (err == 0 && (txn == NULL || txn->db != database->id))
        err = txn_fail_not_found(command->txn, msg);
    if (err != 0)
        return err;
    txn_report(txn, result);
    err = catalog_find_table(database, command->table, &table, msg);
    if (err == 0)
        err = check_join(state, txn, table, msg);
    if (err != 0)
        return err;

    const struct txn_load *load = txn_add_load(state, txn, table, &command->key);
    txn_table_add_request(&state->txns, &command->key, txn, load->load_no - 1);
    result->rowset = load->rowset;
    result->table = load->table;
    return 0;
}

/* Who is asked to forget too early says so: the ages are looked at again here. */
int txn_forget(struct state *state, const struct command_forget *command,
               struct apply_result *result)
{
    uint32_t forgotten = 0;
    for (uint32_t i = 0; i < command->count; i++) {
        struct txn *txn = txn_table_find(&state->txns, command->txns[i]);
        if (txn == NULL || !(txn->state == TXN_ABORTED || txn->confirmed) ||
            state->elapsed_ms - txn->final_elapsed_ms < state->limits.label_keep_ms)
            continue;
        txn_table_forget(&state->txns, txn);
        forgotten++;
    }
    result->repeated = forgotten == 0;
    return 0;
}
