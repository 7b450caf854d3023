/* SPDX-License-Identifier: Apache-2.0 */
/* Statements as text to plain values. */
#include "coordinator/ddl/ddl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/ddl/ddl_lexer.h"
#include "coordinator/ddl/ddl_table.h"

void ddl_close(struct ddl *ddl)
{
    schema_close(&ddl->schema);
    free(ddl->comment);
    ddl->comment = NULL;
}

/* [db .] table */
static int parse_table_name(struct ddl_lexer *lexer, struct ddl *ddl)
{
    if (ddl_lexer_name(lexer, "a table name", ddl->table, sizeof ddl->table) != 0)
        return lexer->err;
    if (!ddl_lexer_take(lexer, "."))
        return lexer->err;
    memcpy(ddl->db, ddl->table, sizeof ddl->db);
    return ddl_lexer_name(lexer, "a table name", ddl->table, sizeof ddl->table);
}

static int parse_if(struct ddl_lexer *lexer, struct ddl *ddl, bool create)
{
    if (!ddl_lexer_take(lexer, "IF"))
        return lexer->err;
    if (create)
        ddl_lexer_expect(lexer, "NOT");
    ddl->if_exists = true;
    return ddl_lexer_expect(lexer, "EXISTS");
}

static int parse_create(struct ddl_lexer *lexer, struct ddl *ddl)
{
    if (ddl_lexer_take(lexer, "DATABASE") || ddl_lexer_take(lexer, "SCHEMA")) {
        ddl->kind = DDL_CREATE_DATABASE;
        parse_if(lexer, ddl, true);
        return ddl_lexer_name(lexer, "a database name", ddl->db, sizeof ddl->db);
    }
    if (!ddl_lexer_take(lexer, "TABLE"))
        return lexer->err != 0 ? lexer->err : ddl_lexer_fail(lexer, "DATABASE or TABLE");
    ddl->kind = DDL_CREATE_TABLE;
    parse_if(lexer, ddl, true);
    parse_table_name(lexer, ddl);
    return lexer->err != 0 ? lexer->err : ddl_table_parse(lexer, ddl);
}

static int parse_drop(struct ddl_lexer *lexer, struct ddl *ddl)
{
    bool database = ddl_lexer_take(lexer, "DATABASE") || ddl_lexer_take(lexer, "SCHEMA");

    if (!database && !ddl_lexer_take(lexer, "TABLE"))
        return lexer->err != 0 ? lexer->err : ddl_lexer_fail(lexer, "DATABASE or TABLE");
    ddl->kind = database ? DDL_DROP_DATABASE : DDL_DROP_TABLE;
    parse_if(lexer, ddl, false);
    if (database)
        ddl_lexer_name(lexer, "a database name", ddl->db, sizeof ddl->db);
    else
        parse_table_name(lexer, ddl);
    ddl->force = ddl_lexer_take(lexer, "FORCE");
    return lexer->err;
}

/* [FROM|IN db] */
static int parse_from(struct ddl_lexer *lexer, struct ddl *ddl)
{
    if (!ddl_lexer_take(lexer, "FROM") && !ddl_lexer_take(lexer, "IN"))
        return lexer->err;
    return ddl_lexer_name(lexer, "a database name", ddl->db, sizeof ddl->db);
}

static int parse_pattern(struct ddl_lexer *lexer, struct ddl *ddl)
{
    char *text = NULL;

    if (ddl_lexer_string(lexer, "a text in quotes", &text) == 0) {
        if (strlen(text) >= sizeof ddl->pattern)
            ddl_lexer_fail_at(lexer, TG_INVALID, "the text is longer than %zu bytes",
                              sizeof ddl->pattern - 1);
        else
            snprintf(ddl->pattern, sizeof ddl->pattern, "%s", text);
    }
    free(text);
    return lexer->err;
}

static int parse_like(struct ddl_lexer *lexer, struct ddl *ddl)
{
    if (!ddl_lexer_take(lexer, "LIKE"))
        return lexer->err;
    ddl->filter = DDL_FILTER_LIKE;
    return parse_pattern(lexer, ddl);
}

/* A misspelt state must not look like "none of them". */
static int check_status(struct ddl_lexer *lexer, const struct ddl *ddl, struct ddl_token place)
{
    static const char *const states[] = {"prepare", "precommitted", "committed", "visible",
                                         "aborted"};

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strcasecmp(ddl->pattern, states[i]) == 0)
            return lexer->err;
    lexer->token = place;
    return ddl_lexer_fail_at(lexer, TG_INVALID,
                             "status must be prepare, precommitted, committed, visible or aborted");
}

/* WHERE id = n | label = 'x' | label LIKE 'x%' | status = 'visible' */
static int parse_transaction_filter(struct ddl_lexer *lexer, struct ddl *ddl)
{
    if (!ddl_lexer_take(lexer, "WHERE"))
        return lexer->err;
    if (ddl_lexer_take(lexer, "ID")) {
        ddl->filter = DDL_FILTER_ID;
        ddl_lexer_expect(lexer, "=");
        return ddl_lexer_uint(lexer, "a transaction id", UINT64_MAX, &ddl->filter_id);
    }
    if (ddl_lexer_take(lexer, "LABEL")) {
        if (ddl_lexer_is(lexer, "LIKE"))
            return parse_like(lexer, ddl);
        ddl->filter = DDL_FILTER_LABEL;
    } else if (ddl_lexer_take(lexer, "STATUS") || ddl_lexer_take(lexer, "TRANSACTIONSTATUS")) {
        ddl->filter = DDL_FILTER_STATUS;
    } else {
        return lexer->err != 0 ? lexer->err : ddl_lexer_fail(lexer, "id, label or status");
    }
    ddl_lexer_expect(lexer, "=");
    struct ddl_token place = lexer->token;
    if (parse_pattern(lexer, ddl) == 0 && ddl->filter == DDL_FILTER_STATUS)
        return check_status(lexer, ddl, place);
    return lexer->err;
}

static int parse_show(struct ddl_lexer *lexer, struct ddl *ddl)
{
    ddl_lexer_take(lexer, "FULL");
    if (ddl_lexer_take(lexer, "DATABASES") || ddl_lexer_take(lexer, "SCHEMAS")) {
        ddl->kind = DDL_SHOW_DATABASES;
        return parse_like(lexer, ddl);
    }
    if (ddl_lexer_take(lexer, "TABLES")) {
        ddl->kind = DDL_SHOW_TABLES;
        parse_from(lexer, ddl);
        return parse_like(lexer, ddl);
    }
    if (ddl_lexer_take(lexer, "CREATE")) {
        ddl->kind = DDL_SHOW_CREATE_TABLE;
        ddl_lexer_expect(lexer, "TABLE");
        return parse_table_name(lexer, ddl);
    }
    if (ddl_lexer_take(lexer, "TRANSACTION")) {
        ddl->kind = DDL_SHOW_TRANSACTION;
        parse_from(lexer, ddl);
        return parse_transaction_filter(lexer, ddl);
    }
    return lexer->err != 0
               ? lexer->err
               : ddl_lexer_fail(lexer, "DATABASES, TABLES, CREATE TABLE or TRANSACTION");
}

static int parse_statement(struct ddl_lexer *lexer, struct ddl *ddl)
{
    if (ddl_lexer_take(lexer, "CREATE"))
        return parse_create(lexer, ddl);
    if (ddl_lexer_take(lexer, "DROP"))
        return parse_drop(lexer, ddl);
    if (ddl_lexer_take(lexer, "TRUNCATE")) {
        ddl->kind = DDL_TRUNCATE_TABLE;
        ddl_lexer_expect(lexer, "TABLE");
        return parse_table_name(lexer, ddl);
    }
    if (ddl_lexer_take(lexer, "SHOW"))
        return parse_show(lexer, ddl);
    if (ddl_lexer_take(lexer, "DESCRIBE") || ddl_lexer_take(lexer, "DESC")) {
        ddl->kind = DDL_DESCRIBE;
        return parse_table_name(lexer, ddl);
    }
    return lexer->err != 0 ? lexer->err
                           : ddl_lexer_fail(lexer, "CREATE, DROP, TRUNCATE, SHOW or DESCRIBE");
}

int ddl_parse(const char *text, size_t len, struct ddl *ddl, struct tg_errmsg *msg)
{
    struct ddl_lexer lexer;
    int err;

    memset(ddl, 0, sizeof *ddl);
    schema_init(&ddl->schema);
    ddl->schema.key_model = 0; /* until a key clause or the default says */
    err = ddl_lexer_open(&lexer, text, len, msg);
    if (err == 0)
        parse_statement(&lexer, ddl);
    if (lexer.err == 0)
        ddl_lexer_take(&lexer, ";");
    if (lexer.err == 0 && lexer.token.kind != DDL_END)
        ddl_lexer_fail(&lexer, "the end of the statement");
    err = err != 0 ? err : lexer.err;
    ddl_lexer_close(&lexer);
    if (err != 0)
        ddl_close(ddl);
    return err;
}
