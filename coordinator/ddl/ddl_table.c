/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE TABLE, from behind the table's name on. */
#include "coordinator/ddl/ddl_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coordinator/ddl/ddl_type.h"

static const char *const aggregations[] = {
    "SUM", "MIN", "MAX", "REPLACE", "REPLACE_IF_NOT_NULL", "GENERIC", "HLL_UNION", "BITMAP_UNION"};

static int parse_default(struct ddl_lexer *lexer, struct schema_column *column)
{
    if (ddl_lexer_take(lexer, "NULL")) {
        column->default_kind = DEFAULT_NULL;
        return lexer->err;
    }
    if (ddl_lexer_take(lexer, "CURRENT_TIMESTAMP")) {
        uint64_t digits;

        column->default_kind = DEFAULT_NOW;
        if (!ddl_lexer_take(lexer, "("))
            return lexer->err;
        if (!ddl_lexer_is(lexer, ")"))
            ddl_lexer_uint(lexer, "the digits of the fraction", DATETIME_SCALE_MAX, &digits);
        return ddl_lexer_expect(lexer, ")");
    }
    bool minus = ddl_lexer_take(lexer, "-");
    const struct ddl_token *token = &lexer->token;
    if (token->kind != DDL_STRING && token->kind != DDL_NUMBER &&
        !(token->kind == DDL_WORD && (ddl_lexer_is(lexer, "TRUE") || ddl_lexer_is(lexer, "FALSE"))))
        return ddl_lexer_fail(lexer, "a default value");
    char *text = malloc(token->len + 2);
    if (text == NULL)
        return ddl_lexer_fail_at(lexer, TG_NOMEM, "out of memory");
    snprintf(text, token->len + 2, "%s%s", minus ? "-" : "", token->text);
    free(column->default_text);
    column->default_text = text;
    column->default_kind = DEFAULT_TEXT;
    ddl_lexer_step(lexer);
    return lexer->err;
}

static int parse_column(struct ddl_lexer *lexer, struct schema *schema)
{
    struct schema_column column = {.nullable = true};
    struct tg_errmsg why = {{0}};
    struct ddl_token place = lexer->token;

    ddl_lexer_name(lexer, "a column name", column.name, sizeof column.name);
    if (lexer->err == 0)
        ddl_type_parse(lexer, &column.type);
    while (lexer->err == 0 && !ddl_lexer_is(lexer, ",") && !ddl_lexer_is(lexer, ")")) {
        for (size_t i = 0; i < sizeof aggregations / sizeof aggregations[0]; i++)
            if (ddl_lexer_is(lexer, aggregations[i]))
                ddl_lexer_fail_at(lexer, TG_UNSUPPORTED, "aggregated columns are not supported");
        if (ddl_lexer_take(lexer, "KEY"))
            column.is_key = true;
        else if (ddl_lexer_take(lexer, "NULL"))
            column.nullable = true;
        else if (ddl_lexer_take(lexer, "NOT")) {
            ddl_lexer_expect(lexer, "NULL");
            column.nullable = false;
        } else if (ddl_lexer_take(lexer, "DEFAULT"))
            parse_default(lexer, &column);
        else if (ddl_lexer_take(lexer, "COMMENT"))
            ddl_lexer_string(lexer, "a comment in quotes", &column.comment);
        else if (ddl_lexer_is(lexer, "AUTO_INCREMENT"))
            ddl_lexer_fail_at(lexer, TG_UNSUPPORTED, "AUTO_INCREMENT is not supported");
        else
            ddl_lexer_fail(lexer, "',' or ')' behind the column");
    }
    if (lexer->err == 0) {
        int err = schema_add_column(schema, &column, &why);

        if (err != 0) {
            lexer->token = place;
            ddl_lexer_fail_at(lexer, err, "%s", why.text);
        }
    }
    free(column.default_text);
    free(column.comment);
    return lexer->err;
}

/* (a, b, …): indexes of columns. */
static uint32_t parse_column_list(struct ddl_lexer *lexer, const struct schema *schema,
                                  uint32_t *indexes, uint32_t max)
{
    uint32_t count = 0;

    ddl_lexer_expect(lexer, "(");
    do {
        char name[NAME_BYTES];
        struct ddl_token place = lexer->token;

        if (ddl_lexer_name(lexer, "a column name", name, sizeof name) != 0)
            return 0;
        int index = schema_find(schema, name, strlen(name));
        if (index < 0 || count == max) {
            lexer->token = place;
            if (index < 0)
                ddl_lexer_fail_at(lexer, TG_INVALID, "there is no column '%s'", name);
            else
                ddl_lexer_fail_at(lexer, TG_LIMIT, "more than %u columns", max);
            return 0;
        }
        for (uint32_t i = 0; i < count; i++)
            if (indexes[i] == (uint32_t)index) {
                lexer->token = place;
                ddl_lexer_fail_at(lexer, TG_INVALID, "the column '%s' is named twice", name);
                return 0;
            }
        indexes[count++] = (uint32_t)index;
    } while (ddl_lexer_take(lexer, ","));
    ddl_lexer_expect(lexer, ")");
    return lexer->err == 0 ? count : 0;
}

static int parse_key_clause(struct ddl_lexer *lexer, struct schema *schema)
{
    uint32_t keys[COLUMNS_MAX];
    struct ddl_token place;

    ddl_lexer_expect(lexer, "KEY");
    place = lexer->token;
    uint32_t count = parse_column_list(lexer, schema, keys, COLUMNS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (keys[i] != i) {
            lexer->token = place;
            return ddl_lexer_fail_at(lexer, TG_INVALID,
                                     "key columns must be the first columns, in their order");
        }
        schema->columns[i].is_key = true;
    }
    schema->key_count = count;
    return lexer->err;
}

/* Without a key clause Doris takes leading columns as the duplicate key: up to three, that can be
 * keys. */
static void default_keys(struct schema *schema)
{
    schema->key_model = KEY_DUPLICATE;
    for (uint32_t i = 0; i < schema->column_count && i < 3; i++) {
        uint8_t kind = schema->columns[i].type.kind;

        if (kind == TYPE_FLOAT || kind == TYPE_DOUBLE || kind == TYPE_STRING || kind == TYPE_JSON)
            break;
        schema->columns[i].is_key = true;
        schema->key_count = i + 1;
        if (kind == TYPE_VARCHAR)
            break;
    }
}

static bool value_is_true(const char *value)
{
    return strcasecmp(value, "true") == 0;
}

/* Properties of Doris that steer its storage or its jobs, not what a table means: statements that
 * have them are taken as they are, and they have no effect. */
static bool has_no_effect(const char *name)
{
    static const char *const names[] = {"binlog.enable",
                                        "binlog.ttl_seconds",
                                        "binlog.max_bytes",
                                        "binlog.max_history_nums",
                                        "bloom_filter_columns",
                                        "colocate_with",
                                        "compaction_policy",
                                        "compression",
                                        "disable_auto_compaction",
                                        "enable_mow_light_delete",
                                        "enable_single_replica_compaction",
                                        "estimate_partition_size",
                                        "file_cache_ttl_seconds",
                                        "group_commit_data_bytes",
                                        "group_commit_interval_ms",
                                        "in_memory",
                                        "inverted_index_storage_format",
                                        "is_being_synced",
                                        "light_schema_change",
                                        "min_load_replica_num",
                                        "row_store_page_size",
                                        "skip_write_index_on_load",
                                        "storage_cooldown_time",
                                        "storage_format",
                                        "storage_medium",
                                        "storage_page_size",
                                        "storage_policy",
                                        "store_row_column",
                                        "row_store_columns",
                                        "variant_max_subcolumns_count",
                                        "version_info"};
    static const char compaction[] = "time_series_compaction_";

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return strncasecmp(name, compaction, sizeof compaction - 1) == 0;
}

static int take_property(struct ddl_lexer *lexer, struct ddl *ddl, const char *name,
                         const char *value)
{
    if (strcasecmp(name, "replication_num") == 0) {
        if (strlen(value) != 1 || value[0] < '1' || value[0] > '0' + REPLICATION_MAX)
            return ddl_lexer_fail_at(lexer, TG_INVALID, "replication_num must be 1 to %d",
                                     REPLICATION_MAX);
        ddl->replication = (uint8_t)(value[0] - '0');
    } else if (strcasecmp(name, "replication_allocation") == 0) {
        const char *colon = strrchr(value, ':');
        const char *number = colon != NULL ? colon + 1 + strspn(colon + 1, " ") : "";

        if (strlen(number) != 1 || number[0] < '1' || number[0] > '0' + REPLICATION_MAX)
            return ddl_lexer_fail_at(lexer, TG_INVALID,
                                     "replication_allocation must be 'tag.location.default: N' "
                                     "with N from 1 to %d",
                                     REPLICATION_MAX);
        ddl->replication = (uint8_t)(number[0] - '0');
    } else if (strcasecmp(name, "write_quorum") == 0) {
        if (strcasecmp(value, "majority") != 0 && strcasecmp(value, "all") != 0)
            return ddl_lexer_fail_at(lexer, TG_INVALID, "write_quorum must be majority or all");
        ddl->write_all = strcasecmp(value, "all") == 0;
    } else if (strcasecmp(name, "concurrency") == 0) {
        if (strcasecmp(value, "nbcc") != 0 && strcasecmp(value, "occ") != 0)
            return ddl_lexer_fail_at(lexer, TG_INVALID, "concurrency must be nbcc or occ");
        ddl->occ = strcasecmp(value, "occ") == 0;
    } else if (strcasecmp(name, "enable_unique_key_merge_on_write") == 0) {
        if (value_is_true(value))
            return ddl_lexer_fail_at(
                lexer, TG_UNSUPPORTED,
                "merge-on-write is not supported: UNIQUE tables merge at read; "
                "set enable_unique_key_merge_on_write to false");
    } else if (strncasecmp(name, "function_column.", 16) == 0) {
        return ddl_lexer_fail_at(lexer, TG_UNSUPPORTED, "sequence columns are not supported");
    } else if (strncasecmp(name, "dynamic_partition.", 18) == 0) {
        return ddl_lexer_fail_at(lexer, TG_UNSUPPORTED, "partitions are not supported");
    } else if (!has_no_effect(name)) {
        return ddl_lexer_fail_at(lexer, TG_INVALID, "unknown property '%s'", name);
    }
    return lexer->err;
}

static int parse_properties(struct ddl_lexer *lexer, struct ddl *ddl)
{
    char *name = NULL;
    char *value = NULL;

    ddl_lexer_expect(lexer, "(");
    while (lexer->err == 0 && !ddl_lexer_is(lexer, ")")) {
        struct ddl_token place = lexer->token;
        ddl_lexer_string(lexer, "a property name in quotes", &name);
        ddl_lexer_expect(lexer, "=");
        if (lexer->err == 0 && ddl_lexer_string(lexer, "a property value in quotes", &value) == 0) {
            struct ddl_token next = lexer->token;

            lexer->token = place; /* where a complaint points */
            if (take_property(lexer, ddl, name, value) == 0)
                lexer->token = next;
        }
        if (!ddl_lexer_take(lexer, ","))
            break;
    }
    free(name);
    free(value);
    return ddl_lexer_expect(lexer, ")");
}

static int parse_distribution(struct ddl_lexer *lexer, struct ddl *ddl)
{
    uint64_t buckets = DDL_BUCKETS_DEFAULT;

    ddl_lexer_expect(lexer, "BY");
    if (ddl_lexer_is(lexer, "RANDOM"))
        return ddl_lexer_fail_at(lexer, TG_UNSUPPORTED,
                                 "DISTRIBUTED BY RANDOM is not supported: name columns with HASH");
    ddl_lexer_expect(lexer, "HASH");
    ddl->distribution_count =
        parse_column_list(lexer, &ddl->schema, ddl->distribution, DDL_DISTRIBUTION_MAX);
    if (ddl_lexer_take(lexer, "BUCKETS") && !ddl_lexer_take(lexer, "AUTO")) {
        ddl_lexer_uint(lexer, "the number of buckets", BUCKETS_MAX, &buckets);
        if (lexer->err == 0 && buckets == 0)
            return ddl_lexer_fail_at(lexer, TG_INVALID, "a table needs at least one bucket");
    }
    ddl->bucket_count = (uint32_t)buckets;
    return lexer->err;
}

static int parse_clause(struct ddl_lexer *lexer, struct ddl *ddl)
{
    struct schema *schema = &ddl->schema;

    if (ddl_lexer_take(lexer, "ENGINE")) {
        char engine[NAME_BYTES];

        ddl_lexer_take(lexer, "=");
        return ddl_lexer_name(lexer, "an engine name", engine, sizeof engine);
    }
    if (ddl_lexer_take(lexer, "DUPLICATE")) {
        schema->key_model = KEY_DUPLICATE;
        return parse_key_clause(lexer, schema);
    }
    if (ddl_lexer_take(lexer, "UNIQUE")) {
        schema->key_model = KEY_UNIQUE;
        return parse_key_clause(lexer, schema);
    }
    if (ddl_lexer_is(lexer, "AGGREGATE"))
        return ddl_lexer_fail_at(lexer, TG_UNSUPPORTED, "AGGREGATE KEY tables are not supported");
    if (ddl_lexer_is(lexer, "PARTITION") || ddl_lexer_is(lexer, "AUTO"))
        return ddl_lexer_fail_at(lexer, TG_UNSUPPORTED, "partitions are not supported");
    if (ddl_lexer_take(lexer, "COMMENT"))
        return ddl_lexer_string(lexer, "a comment in quotes", &ddl->comment);
    if (ddl_lexer_take(lexer, "DISTRIBUTED"))
        return parse_distribution(lexer, ddl);
    if (ddl_lexer_take(lexer, "PROPERTIES"))
        return parse_properties(lexer, ddl);
    return ddl_lexer_fail(lexer, "KEY, COMMENT, DISTRIBUTED BY, PROPERTIES or the end");
}

int ddl_table_parse(struct ddl_lexer *lexer, struct ddl *ddl)
{
    struct schema *schema = &ddl->schema;
    struct tg_errmsg why = {{0}};

    ddl_lexer_expect(lexer, "(");
    do {
        if (ddl_lexer_is(lexer, "INDEX"))
            ddl_lexer_fail_at(lexer, TG_UNSUPPORTED, "INDEX is not supported");
        else
            parse_column(lexer, schema);
    } while (lexer->err == 0 && ddl_lexer_take(lexer, ","));
    ddl_lexer_expect(lexer, ")");
    while (lexer->err == 0 && lexer->token.kind != DDL_END && !ddl_lexer_is(lexer, ";"))
        parse_clause(lexer, ddl);
    if (lexer->err != 0)
        return lexer->err;
    if (schema->key_model == 0)
        default_keys(schema);
    if (schema_validate(schema, &why) != 0)
        return ddl_lexer_fail_at(lexer, TG_INVALID, "%s", why.text);
    if (ddl->distribution_count == 0)
        return ddl_lexer_fail(lexer, "DISTRIBUTED BY HASH (columns) BUCKETS number");
    for (uint32_t i = 0; i < ddl->distribution_count; i++)
        if (schema->key_model == KEY_UNIQUE && !schema->columns[ddl->distribution[i]].is_key)
            return ddl_lexer_fail_at(
                lexer, TG_INVALID,
                "distribution column '%s' must be a key column of the UNIQUE table",
                schema->columns[ddl->distribution[i]].name);
    return 0;
}
