/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a load: its report checked against what the log knows, or its failure. */
#include <inttypes.h>
#include <stdio.h>

#include "coordinator/state/apply.h"

static int compare_tablets(const void *a, const void *b)
{
    tablet_id left = ((const struct txn_load_tablet *)a)->tablet;
    tablet_id right = ((const struct txn_load_tablet *)b)->tablet;
    return (left > right) - (left < right);
}

/* What the ingest node says about the request must be what the log says. */
static int check_request(const struct state *state, const struct txn_load *load,
                         const struct msg_load_done *message, struct tg_errmsg *msg)
{
    if (message->node != load->key.node || message->request_id != load->key.request)
        return tg_fail(msg, TG_INVALID, "load %u was started by another request", load->load_no);
    if (message->epoch != load->key.epoch)
        return tg_fail(msg, TG_FENCED,
                       "the load was started in registration %" PRIu64 " of participant %u",
                       load->key.epoch, load->key.node);
    return txn_check_epoch(state, &load->key, msg);
}

static int check_finish(const struct txn *txn, enum load_finish finish, struct tg_errmsg *msg)
{
    enum load_finish wanted = txn->explicit_begin ? LOAD_FINISH_NONE
                              : txn->two_phase    ? LOAD_FINISH_PRECOMMIT
                                                  : LOAD_FINISH_COMMIT;
    if (finish != wanted)
        return tg_fail(msg, TG_INVALID, "a load of transaction [%" PRIu64 "] must not end with %d",
                       txn->id, (int)finish);
    return 0;
}

/* One tablet of the report; `sealed` gets what counts of it. Who left the tablet since the load was
 * planned counts no more, and who holds its slot now is not meant (rule 17). */
static int check_tablet(const struct state *state, const struct txn *txn,
                        const struct txn_load *load, const struct table *table,
                        const struct load_report_tablet *report, uint8_t *sealed,
                        struct tg_errmsg *msg)
{
    const struct tablet *tablet = catalog_tablet(&state->catalog, report->tablet);
    if (tablet == NULL || tablet->table != table)
        return tg_fail(msg, TG_INVALID, "tablet %" PRIu64 " does not belong to table %s",
                       report->tablet, table->name);
    if (table->placement_epoch == load->placement_epoch &&
        (report->sealed & (unsigned)~tablet_all(tablet)) != 0)
        return tg_fail(msg, TG_INVALID, "tablet %" PRIu64 " has only %u replicas", report->tablet,
                       tablet->replica_count);
    if (report->rows == 0)
        return tg_fail(msg, TG_INVALID, "tablet %" PRIu64 " is reported without rows",
                       report->tablet);
    /* One that is catching may have it, and counts for nothing. */
    unsigned held = report->sealed & tablet_planned(tablet, load->rowset) &
                    ~(unsigned)replica_lost_slots(state, tablet, load->rowset);
    uint8_t good = (uint8_t)(held & (unsigned)~tablet_behind(tablet));
    *sealed = (uint8_t)(held & (good | tablet_catching(tablet)));
    if ((uint32_t)__builtin_popcount(good) < tablet_write_quorum(tablet))
        return txn_fail_quorum(txn, tablet, good, msg);
    return 0;
}

/* The report as the state keeps it, checked; the caller owns *tablets. */
static int check_report(const struct state *state, const struct txn *txn,
                        const struct txn_load *load, const struct table *table,
                        const struct msg_load_done *message, struct txn_load_tablet **tablets,
                        struct tg_errmsg *msg)
{
    *tablets = NULL;
    if (message->tablet_count > table->bucket_count)
        return tg_fail(msg, TG_INVALID, "table %s has only %u tablets", table->name,
                       table->bucket_count);
    struct txn_load_tablet *checked = state_alloc(message->tablet_count, sizeof *checked);
    for (uint32_t i = 0; i < message->tablet_count; i++) {
        const struct load_report_tablet *report = &message->tablets[i];
        checked[i] = (struct txn_load_tablet){.tablet = report->tablet,
                                              .rows = report->rows,
                                              .bytes = report->bytes,
                                              .digest = report->digest};
        int err = check_tablet(state, txn, load, table, report, &checked[i].sealed, msg);
        if (err != 0) {
            free(checked);
            return err;
        }
    }
    qsort(checked, message->tablet_count, sizeof *checked, compare_tablets);
    for (uint32_t i = 1; i < message->tablet_count; i++) {
        if (checked[i - 1].tablet == checked[i].tablet) {
            free(checked);
            return tg_fail(msg, TG_INVALID, "a tablet is reported twice");
        }
    }
    *tablets = checked;
    return 0;
}

/* A report that came before, or one for a transaction that is past it. Sets *answered if there is
 * nothing more to do. */
static int answer_past(const struct txn *txn, const struct txn_load *load, enum load_finish finish,
                       struct apply_result *result, bool *answered)
{
    *answered = true;
    if (txn->state == TXN_ABORTED)
        return txn_fail_state(txn, &result->msg);
    if (load->state == LOAD_DONE) {
        bool is_past = finish == LOAD_FINISH_NONE || txn->state == TXN_COMMITTED ||
                       txn->state == TXN_VISIBLE ||
                       (finish == LOAD_FINISH_PRECOMMIT && txn->state == TXN_PRECOMMITTED);
        result->repeated = is_past;
        return is_past ? 0 : txn_fail_state(txn, &result->msg);
    }
    if (load->state == LOAD_FAILED || txn->failed || txn->state != TXN_PREPARE)
        return txn_fail_state(txn, &result->msg);
    *answered = false;
    return 0;
}

static int check_placement(const struct table *table, const struct txn_load *load,
                           const struct msg_load_done *message, struct tg_errmsg *msg)
{
    if (table == NULL || table->dropped)
        return tg_fail(msg, TG_NOT_FOUND, "table not found, tableName=%s",
                       table != NULL ? table->name : "");
    if (message->placement_epoch != load->placement_epoch)
        return tg_fail(msg, TG_STALE, "the load of table %s was planned with another placement",
                       table->name);
    return 0;
}

int txn_load_done(struct state *state, const struct command_load_done *command,
                  struct apply_result *result)
{
    const struct msg_load_done *message = &command->message;
    struct tg_errmsg *msg = &result->msg;
    struct txn *txn = txn_table_find(&state->txns, message->txn);
    if (txn == NULL)
        return txn_fail_not_found(message->txn, msg);
    txn_report(txn, result);
    struct txn_load *load = txn_find_load(txn, message->rowset);
    if (load == NULL)
        return tg_fail(msg, TG_INVALID, "transaction [%" PRIu64 "] has no load %" PRIu64, txn->id,
                       message->rowset);
    result->rowset = load->rowset;
    result->table = load->table;
    bool answered;
    int err = answer_past(txn, load, message->finish, result, &answered);
    if (answered)
        return err;

    const struct table *table = catalog_table_by_id(&state->catalog, load->table);
    struct txn_load_tablet *tablets = NULL;
    err = check_request(state, load, message, msg);
    if (err == 0)
        err = check_finish(txn, message->finish, msg);
    if (err == 0)
        err = check_placement(table, load, message, msg);
    if (err == 0)
        err = check_report(state, txn, load, table, message, &tablets, msg);
    if (err != 0)
        return err;

    struct txn_load before = *load;
    load->state = LOAD_DONE;
    load->rows = message->rows;
    load->bytes = message->bytes;
    load->tablet_count = message->tablet_count;
    load->tablets = tablets;
    if (message->finish == LOAD_FINISH_COMMIT) {
        err = txn_check_conflicts(state, txn, msg);
        if (err != 0) {
            *load = before;
            free(tablets);
            return err;
        }
        txn_set_committed(state, txn, NULL);
    } else if (message->finish == LOAD_FINISH_PRECOMMIT) {
        txn_set_precommitted(state, txn);
    }
    txn_report(txn, result);
    result->time_us = state->stamp_us;
    return 0;
}

/* A begin whose outcome nobody knows: what it made is given up, and if it has made nothing yet it
 * never will. A key of an older registration needs no fence, since that registration is over. */
static int fence(struct state *state, const struct command_load_failed *command,
                 struct apply_result *result)
{
    if (command->key.node == 0)
        return tg_fail(&result->msg, TG_INVALID, "only a participant's request can be given up");
    result->txn_state = TXN_ABORTED;
    if (txn_table_is_fenced(&state->txns, &command->key) ||
        !members_is_current(&state->members, command->key.node, command->key.epoch)) {
        result->repeated = true;
        return 0;
    }
    if (state->txns.fence_count >= TXN_FENCES_MAX)
        return tg_fail(&result->msg, TG_LIMIT, "%d requests are given up already", TXN_FENCES_MAX);
    txn_table_add_fence(&state->txns, &command->key);
    return 0;
}

/* In an explicit transaction a failed load does not end it: the client has other loads under way
 * and decides itself. But its rows may or may not be known to the client, so committing is over. */
static void fail_explicit(struct txn *txn, struct txn_load *load, const char *reason)
{
    load->state = LOAD_FAILED;
    if (txn->failed)
        return;
    txn->failed = true;
    char text[sizeof((struct command_load_failed *)0)->reason + 32];
    snprintf(text, sizeof text, "load %u failed: %s", load->load_no, reason);
    txn->reason = state_strdup(text);
}

int txn_load_failed(struct state *state, const struct command_load_failed *command,
                    struct apply_result *result)
{
    struct txn *txn = command->txn != 0 ? txn_table_find(&state->txns, command->txn)
                                        : txn_table_find_request(&state->txns, &command->key);
    if (txn == NULL && command->txn != 0)
        return txn_fail_not_found(command->txn, &result->msg);
    if (txn == NULL)
        return fence(state, command, result);
    struct txn_load *load = command->rowset != 0
                                ? txn_find_load(txn, command->rowset)
                                : txn_table_find_request_load(&state->txns, &command->key);
    if (load == NULL || !request_key_equal(&load->key, &command->key))
        return tg_fail(&result->msg, TG_INVALID,
                       "that request has no load in transaction [%" PRIu64 "]", txn->id);
    result->rowset = load->rowset;
    result->table = load->table;
    txn_report(txn, result);
    result->repeated = txn->state != TXN_PREPARE || load->state == LOAD_FAILED;
    if (txn->state != TXN_PREPARE)
        return 0; /* decided already: the answer says how */
    if (txn->explicit_begin) {
        fail_explicit(txn, load, command->reason);
        return tg_fail(&result->msg, TG_TXN_ABORTED,
                       "load %u of transaction [%" PRIu64 "] has failed, the transaction can only "
                       "be aborted",
                       load->load_no, txn->id);
    }
    txn_set_aborted(state, txn, NULL, command->reason);
    txn_report(txn, result);
    return 0;
}
