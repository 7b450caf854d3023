/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and small questions on the leader. */
#include "coordinator/query/query.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/mutant.h"
#include "coordinator/query/query_call.h"

uint64_t query_now_ms(const struct query_call *call)
{
    return clock_monotonic_ms(call->context.clock);
}

/* ---- ends ---- */

static void query_free(struct query_call *call)
{
    if (call->has_ddl)
        ddl_close(&call->ddl);
    buf_close(&call->text);
    free(call);
}

void query_fail(struct query_call *call, int err, const char *sentence)
{
    call->done(call->data, err, sentence[0] != '\0' ? sentence : tg_err_sentence(err),
               slice_of(NULL, 0));
    query_free(call);
}

void query_answer(struct query_call *call, struct buf *json)
{
    struct msg_query_reply reply = {.data = *json};
    struct buf head = BUF_INIT;

    buf_init(json);
    msg_query_reply_encode(&reply, &head);
    TG_CHECK_MEMORY(reply.data.err == 0 && head.err == 0);
    call->done(call->data, 0, "", slice_of(head.data, head.len));
    buf_close(&head);
    msg_query_reply_close(&reply);
    query_free(call);
}

void query_answer_done(struct query_call *call)
{
    struct buf json = BUF_INIT;
    struct json_writer out;

    json_writer_init(&out, &json, 0);
    json_writer_object(&out);
    json_writer_key(&out, "type");
    json_writer_str(&out, "exec_status");
    json_writer_key(&out, "status");
    json_writer_object(&out);
    json_writer_object_end(&out);
    json_writer_key(&out, "time");
    json_writer_uint(&out, query_now_ms(call) - call->started_ms);
    json_writer_object_end(&out);
    query_answer(call, &json);
}

int query_check_size(const struct json_writer *out, struct tg_errmsg *msg)
{
    if (out->out->len > QUERY_DATA_MAX)
        return tg_fail(msg, TG_TOO_LARGE,
                       "the answer is larger than %d bytes: ask for less, by name, label or limit",
                       QUERY_DATA_MAX);
    return 0;
}

/* ---- reads ---- */

static void barrier_passed(struct consensus_request *request, int err,
                           const struct apply_result *result)
{
    struct query_call *call = request->data;
    struct tg_errmsg msg = {{0}};
    struct buf json = BUF_INIT;
    struct json_writer out;

    (void)result;
    if (err != 0) {
        query_fail(call, err, "");
        return;
    }
    json_writer_init(&out, &json, 0);
    err = call->print(call, &out, &msg);
    if (err == 0)
        err = query_check_size(&out, &msg);
    if (err == 0) {
        query_answer(call, &json);
        return;
    }
    buf_close(&json);
    query_fail(call, err, msg.text);
}

void query_read(struct query_call *call,
                int (*print)(const struct query_call *call, struct json_writer *out,
                             struct tg_errmsg *msg))
{
    call->print = print;
    call->request.done = barrier_passed;
    if (MUTANT(19))
        barrier_passed(&call->request, 0, NULL);
    else
        consensus_barrier(call->context.consensus, 0, &call->request);
}

/* ---- which database, which table ---- */

int query_find_db(const struct query_call *call, const struct database **db, struct tg_errmsg *msg)
{
    const char *name = call->has_ddl && call->ddl.db[0] != '\0' ? call->ddl.db : call->db;

    if (name[0] == '\0')
        return tg_fail(msg, TG_INVALID, "No database selected.");
    *db = catalog_database(&query_state(call)->catalog, name);
    if (*db == NULL)
        return tg_fail(msg, TG_NOT_FOUND, "Unknown database '%s'", name);
    return 0;
}

int query_find_table(const struct query_call *call, const struct table **table,
                     struct tg_errmsg *msg)
{
    const char *name = call->has_ddl ? call->ddl.table : call->table;
    const struct database *db;
    int err = query_find_db(call, &db, msg);

    if (err != 0)
        return err;
    *table = catalog_table(db, name);
    if (*table == NULL)
        return tg_fail(msg, TG_NOT_FOUND, "Unknown table '%s'", name);
    return 0;
}

/* ---- _cancel ---- */

static void cancel_applied(struct consensus_request *request, int err,
                           const struct apply_result *result)
{
    struct query_call *call = request->data;
    struct buf json = BUF_INIT;

    if (err != 0) {
        query_fail(call, err, "");
        return;
    }
    if (result->err != 0) { /* another command was faster */
        struct tg_errmsg msg;

        tg_fail(&msg, TG_TXN_STATE, "running transaction not found, label=%s", call->label);
        query_fail(call, TG_TXN_STATE, msg.text);
        return;
    }
    buf_append_str(&json, "null");
    query_answer(call, &json);
}

/* Behind a barrier, so that "not found" is the log's word. PREPARE only, as in Doris. */
static void cancel(struct consensus_request *request, int err, const struct apply_result *result)
{
    struct query_call *call = request->data;
    struct command command = {.type = COMMAND_TXN_ABORT};
    const struct database *db = NULL;
    struct tg_errmsg msg = {{0}};

    (void)result;
    if (err == 0)
        err = query_find_db(call, &db, &msg);
    if (err != 0) {
        query_fail(call, err, msg.text);
        return;
    }
    const struct txn *txn = txn_table_find_label(&query_state(call)->txns, db->id, call->label);
    if (txn == NULL || txn->state != TXN_PREPARE) {
        err = tg_fail(&msg, TG_TXN_NOT_FOUND, "%stransaction not found, label=%s",
                      txn == NULL ? "" : "running ", call->label);
        query_fail(call, err, msg.text);
        return;
    }
    command.finish.txn = txn->id;
    command.finish.db = db->id;
    command.finish.expect_state = TXN_PREPARE;
    command.finish.expect_seq = txn->state_seq;
    memcpy(command.finish.reason, "user cancel", sizeof "user cancel");
    call->request.done = cancel_applied;
    consensus_propose(call->context.consensus, &command, &call->request);
}

/* ---- begin ---- */

void query_run(const struct query_context *context, const struct msg_query *message,
               query_done *done, void *data)
{
    struct query_call *call = calloc(1, sizeof *call);

    TG_CHECK_MEMORY(call != NULL);
    call->context = *context;
    call->kind = message->kind;
    memcpy(call->db, message->db, sizeof call->db);
    memcpy(call->table, message->table, sizeof call->table);
    memcpy(call->label, message->label, sizeof call->label);
    memcpy(call->user, message->user, sizeof call->user);
    buf_append(&call->text, message->text.data, message->text.len);
    call->key = (struct request_key){.epoch = message->request_hi, .request = message->request_lo};
    call->request.data = call;
    call->done = done;
    call->data = data;
    call->started_ms = query_now_ms(call);
    switch (message->kind) {
    case QUERY_STATEMENT:
        query_statement(call);
        return;
    case QUERY_LOAD_STATE:
        query_read(call, query_print_load_state);
        return;
    case QUERY_CANCEL:
        call->request.done = cancel;
        consensus_barrier(context->consensus, 0, &call->request);
        return;
    case QUERY_SCHEMA:
        query_read(call, query_print_schema);
        return;
    case QUERY_COUNT:
        query_read(call, query_print_count);
        return;
    case QUERY_BACKENDS:
        query_read(call, query_print_backends);
        return;
    case QUERY_TIMELINE:
        query_read(call, query_print_timeline);
        return;
    case QUERY_HEALTH:
        query_read(call, query_print_health);
        return;
    case QUERY_CLUSTER:
        query_read(call, query_print_cluster);
        return;
    case QUERY_NODES:
        query_read(call, query_print_nodes);
        return;
    case QUERY_NODE_ORDER:
        query_node_order(call);
        return;
    case QUERY_REPLICAS:
        query_read(call, query_print_replicas);
        return;
    case QUERY_DECLARE_LOST:
        break; /* the dispatcher's */
    }
    query_fail(call, TG_UNSUPPORTED, "unknown kind of question");
}
