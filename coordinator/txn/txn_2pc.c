/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asked of _stream_load_2pc, and the words it is answered with. */
#include "coordinator/txn/txn_2pc.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const operation_names[] = {"begin", "precommit", "commit", "abort"};

static bool __attribute__((format(printf, 3, 4)))
refuse(struct msg_txn_2pc_reply *reply, const char *status, const char *format, ...)
{
    va_list args;

    snprintf(reply->status, sizeof reply->status, "%s", status);
    va_start(args, format);
    vsnprintf(reply->msg, sizeof reply->msg, format, args);
    va_end(args);
    return false;
}

#define ANALYSIS "TStatus: errCode = 2, detailMessage = "

static bool find_operation(const struct msg_txn_2pc *message, struct txn_2pc_target *target)
{
    for (size_t i = 0; i < sizeof operation_names / sizeof operation_names[0]; i++)
        if (strcmp(message->operation, operation_names[i]) == 0) {
            target->operation = (enum txn_2pc_operation)i;
            return true;
        }
    return false;
}

/* Leading digits are enough, as with std::stoull, which Doris uses. An id beyond 64 bits, or a
 * negative one, is simply unknown. */
static bool find_id(const struct msg_txn_2pc *message, struct txn_2pc_target *target,
                    struct msg_txn_2pc_reply *reply)
{
    const char *text = message->txn_text;
    txn_id id = 0;

    if (text[0] == '-' && isdigit((unsigned char)text[1]))
        return refuse(reply, "ANALYSIS_ERROR", ANALYSIS "transaction [%s] not found", text);
    if (!isdigit((unsigned char)text[0]))
        return refuse(reply, "INTERNAL_ERROR", "convert txn_id [%s] failed, reason=stoull", text);
    for (const char *p = text; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(id, (txn_id)10, &id) ||
            __builtin_add_overflow(id, (txn_id)(*p - '0'), &id))
            return refuse(reply, "ANALYSIS_ERROR", ANALYSIS "transaction [%s] not found", text);
    target->by_id = true;
    target->txn = id;
    return true;
}

/* By label: commit wants PRECOMMITTED (or an explicitly begun PREPARE), abort PREPARE or
 * PRECOMMITTED. A commit of what is committed already goes to the log all the same, which tells the
 * outcome with its id. */
static bool find_label(const struct state *state, const struct msg_txn_2pc *message,
                       struct txn_2pc_target *target, struct msg_txn_2pc_reply *reply)
{
    const struct txn *txn = txn_table_find_label(&state->txns, target->db, message->label);
    bool usable;

    if (txn == NULL)
        return refuse(reply, "ANALYSIS_ERROR", ANALYSIS "transaction not found, label=%s",
                      message->label);
    if (target->operation == TXN_2PC_ABORT)
        usable = txn->state == TXN_PREPARE || txn->state == TXN_PRECOMMITTED ||
                 (txn->state == TXN_ABORTED && txn->finish_key.node == 0 &&
                  txn->finish_key.epoch == message->request_hi &&
                  txn->finish_key.request == message->request_lo);
    else
        usable = txn->state == TXN_PRECOMMITTED || txn->state == TXN_COMMITTED ||
                 txn->state == TXN_VISIBLE || (txn->state == TXN_PREPARE && txn->explicit_begin);
    if (!usable)
        return refuse(reply, "ANALYSIS_ERROR", ANALYSIS "running transaction not found, label=%s",
                      message->label);
    target->txn = txn->id;
    return true;
}

bool txn_2pc_resolve(const struct state *state, const struct msg_txn_2pc *message,
                     struct txn_2pc_target *target, struct msg_txn_2pc_reply *reply)
{
    const struct database *db;

    memset(target, 0, sizeof *target);
    memset(reply, 0, sizeof *reply);
    if (message->operation[0] == 0)
        return refuse(reply, "FAILED", "No transaction operation('commit' or 'abort') selected.");
    if (!find_operation(message, target))
        return refuse(reply, "INTERNAL_ERROR",
                      "transaction operation should be 'commit' or 'abort'");
    db = catalog_database(&state->catalog, message->db);
    if (target->operation == TXN_2PC_BEGIN) {
        if (message->label[0] == 0)
            return refuse(reply, "ANALYSIS_ERROR", ANALYSIS "begin needs a label");
    } else {
        if (message->txn_text[0] == 0 && message->label[0] == 0)
            return refuse(reply, "FAILED", "No transaction id or label selected.");
        if (message->txn_text[0] != 0 && !find_id(message, target, reply))
            return false;
    }
    if (db == NULL)
        return refuse(reply, "ANALYSIS_ERROR", ANALYSIS "unknown database, database=%s",
                      message->db);
    target->db = db->id;
    if (target->operation != TXN_2PC_BEGIN && !target->by_id)
        return find_label(state, message, target, reply);
    return true;
}

void txn_2pc_answer(const struct msg_txn_2pc *message, const struct txn_2pc_target *target, int err,
                    const char *sentence, txn_id txn, struct msg_txn_2pc_reply *reply)
{
    const char *operation = operation_names[target->operation];

    memset(reply, 0, sizeof *reply);
    reply->txn = txn;
    if (err == TG_LABEL_EXISTS) {
        refuse(reply, "Label Already Exists", "[LABEL_ALREADY_EXISTS]" ANALYSIS "%s", sentence);
        return;
    }
    if (err != 0) {
        refuse(reply, "ANALYSIS_ERROR", ANALYSIS "%s", sentence);
        return;
    }
    snprintf(reply->status, sizeof reply->status, "Success");
    snprintf(reply->label, sizeof reply->label, "%s", message->label);
    if (target->operation == TXN_2PC_BEGIN || (target->by_id && message->label[0] == 0))
        snprintf(reply->msg, sizeof reply->msg, "transaction [%lu] %s successfully.", txn,
                 operation);
    else if (target->by_id)
        snprintf(reply->msg, sizeof reply->msg, "label [%s] transaction [%lu] %s successfully.",
                 message->label, txn, operation);
    else
        snprintf(reply->msg, sizeof reply->msg, "label [%s] %s successfully.", message->label,
                 operation);
}
