/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that change something: text to a command, its outcome to an answer. */
#include <stdio.h>
#include <string.h>

#include "coordinator/query/query_call.h"

static void statement_applied(struct consensus_request *request, int err,
                              const struct apply_result *result)
{
    struct query_call *call = request->data;

    if (err != 0)
        query_fail(call, err, "");
    else if (result->err != 0)
        query_fail(call, result->err, result->msg.text);
    else if (call->ddl.kind == DDL_TRUNCATE_TABLE && result->txn != 0)
        query_wait_visible(call, result->txn);
    else
        query_answer_done(call);
}

static void propose(struct query_call *call, const struct command *command)
{
    call->request.done = statement_applied;
    consensus_propose(call->context.consensus, command, &call->request);
}

/* Participants that are alive, those with the most free disk first when one is nearly full: a node
 * below a tenth of its disk comes after all others. */
static uint32_t find_candidates(const struct query_call *call, node_id out[NODES_MAX])
{
    const struct state *state = query_state(call);
    const struct health *health = call->context.health;
    uint64_t now = query_now_ms(call);
    uint32_t count = 0;

    for (int turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < state->members.count; i++) {
            node_id node = state->members.list[i].node;
            const struct health_node *seen = health_find(health, node);
            bool full = seen != NULL && seen->disk_total_bytes > 0 &&
                        seen->disk_free_bytes < seen->disk_total_bytes / 10;

            if (full == (turn == 1) && health_is_alive(health, node, now) &&
                !state->members.list[i].draining)
                out[count++] = node;
        }
    return count;
}

static void create_table(struct query_call *call, const char *db)
{
    const struct ddl *ddl = &call->ddl;
    uint32_t members = members_active(&query_state(call)->members, 0);
    struct command command = {.type = COMMAND_CREATE_TABLE};
    struct command_create_table *create = &command.create_table;

    create->key = call->key;
    snprintf(create->db, sizeof create->db, "%s", db);
    memcpy(create->table, ddl->table, sizeof create->table);
    create->if_not_exists = ddl->if_exists;
    create->schema = ddl->schema; /* borrowed: propose encodes at once */
    create->distribution_count = ddl->distribution_count;
    memcpy(create->distribution, ddl->distribution,
           ddl->distribution_count * sizeof ddl->distribution[0]);
    create->bucket_count = ddl->bucket_count;
    create->replication = ddl->replication;
    if (ddl->replication == 0) {
        create->replication = QUERY_REPLICATION_DEFAULT;
        if (members > 0 && members < QUERY_REPLICATION_DEFAULT)
            create->replication = (uint8_t)members;
    }
    create->write_all = ddl->write_all;
    create->occ = ddl->occ;
    create->comment = ddl->comment;
    create->candidate_count = find_candidates(call, create->candidates);
    propose(call, &command);
}

static void change(struct query_call *call)
{
    static const enum command_type types[] = {
        [DDL_CREATE_DATABASE] = COMMAND_CREATE_DB,
        [DDL_DROP_DATABASE] = COMMAND_DROP_DB,
        [DDL_DROP_TABLE] = COMMAND_DROP_TABLE,
        [DDL_TRUNCATE_TABLE] = COMMAND_TRUNCATE_TABLE,
    };
    const struct ddl *ddl = &call->ddl;
    const char *db = ddl->db[0] != '\0' ? ddl->db : call->db;
    struct command command = {0};

    if (db[0] == '\0') {
        query_fail(call, TG_INVALID, "No database selected.");
        return;
    }
    if (ddl->kind == DDL_CREATE_TABLE) {
        create_table(call, db);
        return;
    }
    command.type = types[ddl->kind];
    command.name.key = call->key;
    snprintf(command.name.db, sizeof command.name.db, "%s", db);
    memcpy(command.name.table, ddl->table, sizeof command.name.table);
    command.name.if_exists = ddl->if_exists;
    command.name.force = ddl->force;
    propose(call, &command);
}

void query_statement(struct query_call *call)
{
    struct tg_errmsg msg = {{0}};
    int err = ddl_parse((const char *)call->text.data, call->text.len, &call->ddl, &msg);

    if (err != 0) {
        query_fail(call, err, msg.text);
        return;
    }
    call->has_ddl = true;
    switch (call->ddl.kind) {
    case DDL_CREATE_DATABASE:
    case DDL_DROP_DATABASE:
    case DDL_CREATE_TABLE:
    case DDL_DROP_TABLE:
    case DDL_TRUNCATE_TABLE:
        change(call);
        return;
    case DDL_SHOW_DATABASES:
        query_read(call, query_print_databases);
        return;
    case DDL_SHOW_TABLES:
        query_read(call, query_print_tables);
        return;
    case DDL_SHOW_CREATE_TABLE:
        query_read(call, query_print_create_table);
        return;
    case DDL_SHOW_TRANSACTION:
        query_read(call, query_print_transactions);
        return;
    case DDL_DESCRIBE:
        query_read(call, query_print_describe);
        return;
    }
    query_fail(call, TG_UNSUPPORTED, "this statement is not supported");
}
