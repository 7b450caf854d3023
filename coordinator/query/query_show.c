/* SPDX-License-Identifier: Apache-2.0 */
/* SHOW DATABASES, SHOW TABLES, DESCRIBE, SHOW CREATE TABLE. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/query/query_call.h"
#include "coordinator/query/query_result.h"
#include "coordinator/query/table_text.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One column of names in order, those that the LIKE pattern takes. */
static int print_names(const struct query_call *call, const char *column, const char **names,
                       size_t count, struct json_writer *out, struct tg_errmsg *msg)
{
    const struct ddl *ddl = &call->ddl;
    struct query_column columns[] = {{column, "CHAR"}};
    int err = 0;

    qsort(names, count, sizeof *names, by_name);
    query_result_begin(out, columns, 1);
    for (size_t i = 0; i < count && err == 0; i++) {
        if (ddl->filter == DDL_FILTER_LIKE && !ddl_like(ddl->pattern, names[i]))
            continue;
        json_writer_array(out);
        json_writer_str(out, names[i]);
        json_writer_array_end(out);
        err = query_check_size(out, msg);
    }
    query_result_end(out, query_now_ms(call) - call->started_ms);
    free(names);
    return err;
}

int query_print_databases(const struct query_call *call, struct json_writer *out,
                          struct tg_errmsg *msg)
{
    const struct catalog *catalog = &query_state(call)->catalog;
    const char **names = calloc(HASH_CNT(hh, catalog->databases) + 1, sizeof *names);
    size_t count = 0;

    if (names == NULL)
        return TG_NOMEM;
    for (const struct database *db = catalog->databases; db != NULL; db = db->hh.next)
        names[count++] = db->name;
    return print_names(call, "Database", names, count, out, msg);
}

int query_print_tables(const struct query_call *call, struct json_writer *out,
                       struct tg_errmsg *msg)
{
    const struct database *db;
    char column[sizeof "Tables_in_" + NAME_BYTES] = "Tables_in_";
    size_t count = 0;
    int err = query_find_db(call, &db, msg);

    if (err != 0)
        return err;
    const char **names = calloc(HASH_CNT(hh_name, db->tables) + 1, sizeof *names);
    if (names == NULL)
        return TG_NOMEM;
    for (const struct table *table = db->tables; table != NULL; table = table->hh_name.next)
        names[count++] = table->name;
    strcat(column, db->name);
    return print_names(call, column, names, count, out, msg);
}

int query_print_describe(const struct query_call *call, struct json_writer *out,
                         struct tg_errmsg *msg)
{
    static const struct query_column columns[] = {{"Field", "CHAR"},   {"Type", "CHAR"},
                                                  {"Null", "CHAR"},    {"Key", "CHAR"},
                                                  {"Default", "CHAR"}, {"Extra", "CHAR"}};
    const struct table *table;
    struct buf text = BUF_INIT;
    int err = query_find_table(call, &table, msg);

    if (err != 0)
        return err;
    query_result_begin(out, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < table->schema.column_count; i++) {
        const struct schema_column *column = &table->schema.columns[i];

        json_writer_array(out);
        json_writer_str(out, column->name);
        buf_clear(&text);
        type_print_name(column->type, &text);
        json_writer_slice(out, slice_of(text.data, text.len));
        json_writer_str(out, column->nullable ? "Yes" : "No");
        json_writer_str(out, column->is_key ? "true" : "false");
        if (column->default_kind == DEFAULT_TEXT)
            json_writer_str(out, column->default_text);
        else if (column->default_kind == DEFAULT_NOW)
            json_writer_str(out, "CURRENT_TIMESTAMP");
        else
            json_writer_null(out);
        json_writer_str(out, column->is_key                          ? ""
                             : table->schema.key_model == KEY_UNIQUE ? "REPLACE"
                                                                     : "NONE");
        json_writer_array_end(out);
    }
    query_result_end(out, query_now_ms(call) - call->started_ms);
    buf_close(&text);
    return 0;
}

int query_print_create_table(const struct query_call *call, struct json_writer *out,
                             struct tg_errmsg *msg)
{
    static const struct query_column columns[] = {{"Table", "CHAR"}, {"Create Table", "CHAR"}};
    const struct table *table;
    struct buf text = BUF_INIT;
    int err = query_find_table(call, &table, msg);

    if (err != 0)
        return err;
    table_text_print(table, &text);
    query_result_begin(out, columns, 2);
    json_writer_array(out);
    json_writer_str(out, table->name);
    json_writer_slice(out, slice_of(text.data, text.len));
    json_writer_array_end(out);
    query_result_end(out, query_now_ms(call) - call->started_ms);
    err = text.err;
    buf_close(&text);
    return err;
}
