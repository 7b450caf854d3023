/* SPDX-License-Identifier: Apache-2.0 */
/* The small questions of connectors: a label's state, a table's columns, how many rows it has. */
#include <stdio.h>

#include "coordinator/query/query_call.h"

/* The newest transaction with the label decides; UNKNOWN if there is none. */
int query_print_load_state(const struct query_call *call, struct json_writer *out,
                           struct tg_errmsg *msg)
{
    const struct database *db;
    int err = query_find_db(call, &db, msg);

    if (err != 0)
        return err;
    const struct txn *txn = txn_table_find_label(&query_state(call)->txns, db->id, call->label);
    json_writer_str(out, txn_state_name(txn != NULL ? (enum txn_state)txn->state : TXN_UNKNOWN));
    return 0;
}

static void print_number(struct json_writer *out, const char *key, unsigned number)
{
    char text[16];

    snprintf(text, sizeof text, "%u", number);
    json_writer_key(out, key);
    json_writer_str(out, text);
}

static void print_column(const struct schema *schema, const struct schema_column *column,
                         struct json_writer *out)
{
    json_writer_object(out);
    json_writer_key(out, "name");
    json_writer_str(out, column->name);
    json_writer_key(out, "type");
    json_writer_str(out, type_schema_name(column->type));
    json_writer_key(out, "comment");
    json_writer_str(out, column->comment != NULL ? column->comment : "");
    json_writer_key(out, "aggregation_type");
    json_writer_str(out, column->is_key                    ? ""
                         : schema->key_model == KEY_UNIQUE ? "REPLACE"
                                                           : "NONE");
    if (column->type.kind == TYPE_DECIMAL) {
        print_number(out, "precision", column->type.precision);
        print_number(out, "scale", column->type.scale);
    }
    json_writer_object_end(out);
}

int query_print_schema(const struct query_call *call, struct json_writer *out,
                       struct tg_errmsg *msg)
{
    const struct table *table;
    int err = query_find_table(call, &table, msg);

    if (err != 0)
        return err;
    json_writer_object(out);
    json_writer_key(out, "status");
    json_writer_uint(out, 200);
    json_writer_key(out, "keysType");
    json_writer_str(out, table->schema.key_model == KEY_UNIQUE ? "UNIQUE_KEYS" : "DUP_KEYS");
    json_writer_key(out, "properties");
    json_writer_array(out);
    for (uint32_t i = 0; i < table->schema.column_count; i++)
        print_column(&table->schema, &table->schema.columns[i], out);
    json_writer_array_end(out);
    json_writer_object_end(out);
    return 0;
}

int query_print_count(const struct query_call *call, struct json_writer *out, struct tg_errmsg *msg)
{
    const struct table *table;
    int err = query_find_table(call, &table, msg);

    if (err != 0)
        return err;
    json_writer_object(out);
    json_writer_key(out, "status");
    json_writer_uint(out, 200);
    json_writer_key(out, "size");
    json_writer_uint(out, table->row_estimate);
    json_writer_object_end(out);
    return 0;
}
