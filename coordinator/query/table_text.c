/* SPDX-License-Identifier: Apache-2.0 */
/* A table as the CREATE TABLE statement that makes one like it. */
#include "coordinator/query/table_text.h"

static void print_name(struct buf *out, const char *name)
{
    buf_append_u8(out, '`');
    for (; *name != '\0'; name++) {
        if (*name == '`')
            buf_append_u8(out, '`');
        buf_append_u8(out, (uint8_t)*name);
    }
    buf_append_u8(out, '`');
}

static void print_string(struct buf *out, const char *text)
{
    buf_append_u8(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            buf_append_str(out, "\\n");
            continue;
        }
        if (*text == '"' || *text == '\\')
            buf_append_u8(out, '\\');
        buf_append_u8(out, (uint8_t)*text);
    }
    buf_append_u8(out, '"');
}

static void print_column(const struct schema_column *column, struct buf *out)
{
    buf_append_str(out, "  ");
    print_name(out, column->name);
    buf_append_u8(out, ' ');
    type_print_name(column->type, out);
    buf_append_str(out, column->nullable ? " NULL" : " NOT NULL");
    switch ((enum schema_default)column->default_kind) {
    case DEFAULT_NONE:
        break;
    case DEFAULT_TEXT:
        buf_append_str(out, " DEFAULT ");
        print_string(out, column->default_text);
        break;
    case DEFAULT_NULL:
        buf_append_str(out, " DEFAULT NULL");
        break;
    case DEFAULT_NOW:
        buf_append_str(out, " DEFAULT CURRENT_TIMESTAMP");
        break;
    }
    if (column->comment != NULL) {
        buf_append_str(out, " COMMENT ");
        print_string(out, column->comment);
    }
}

static void print_properties(const struct table *table, struct buf *out)
{
    buf_printf(out, "PROPERTIES (\n\"replication_num\" = \"%u\",\n\"write_quorum\" = \"%s\"",
               table->replication, table->write_all ? "all" : "majority");
    buf_printf(out, ",\n\"concurrency\" = \"%s\"\n)", table->occ ? "occ" : "nbcc");
}

void table_text_print(const struct table *table, struct buf *out)
{
    const struct schema *schema = &table->schema;

    buf_append_str(out, "CREATE TABLE ");
    print_name(out, table->name);
    buf_append_str(out, " (\n");
    for (uint32_t i = 0; i < schema->column_count; i++) {
        print_column(&schema->columns[i], out);
        buf_append_str(out, i + 1 < schema->column_count ? ",\n" : "\n");
    }
    buf_append_str(out, ") ENGINE=OLAP\n");
    if (schema->key_count > 0) {
        buf_append_str(out, schema->key_model == KEY_UNIQUE ? "UNIQUE KEY(" : "DUPLICATE KEY(");
        for (uint32_t i = 0; i < schema->key_count; i++) {
            buf_append_str(out, i > 0 ? ", " : "");
            print_name(out, schema->columns[i].name);
        }
        buf_append_str(out, ")\n");
    }
    if (table->comment != NULL) {
        buf_append_str(out, "COMMENT ");
        print_string(out, table->comment);
        buf_append_u8(out, '\n');
    }
    buf_append_str(out, "DISTRIBUTED BY HASH(");
    for (uint32_t i = 0; i < table->distribution_count; i++) {
        buf_append_str(out, i > 0 ? ", " : "");
        print_name(out, schema->columns[table->distribution[i]].name);
    }
    buf_printf(out, ") BUCKETS %u\n", table->bucket_count);
    print_properties(table, out);
    buf_append_u8(out, ';');
}
