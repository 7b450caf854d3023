/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and keys of a table: building, checking, finding. The bytes of a schema are in
 * schema_codec.c. */
#include "common/model/schema.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/utf8.h"
#include "common/model/row_key.h"

static const struct column_type DELETE_SIGN_TYPE = {.kind = TYPE_TINYINT};

void schema_init(struct schema *schema)
{
    memset(schema, 0, sizeof *schema);
    schema->id = 1;
    schema->key_model = KEY_DUPLICATE;
    schema->next_column_id = 1;
}

static void close_column(struct schema_column *column)
{
    free(column->default_text);
    free(column->comment);
}

void schema_close(struct schema *schema)
{
    for (uint32_t i = 0; i < schema->column_count; i++)
        close_column(&schema->columns[i]);
    free(schema->columns);
    schema_init(schema);
}

/* Copies a column and its texts. 0 or TG_NOMEM (then nothing is owned by `to`). */
static int copy_column(const struct schema_column *from, struct schema_column *to)
{
    *to = *from;
    to->default_text = from->default_text != NULL ? strdup(from->default_text) : NULL;
    to->comment = from->comment != NULL ? strdup(from->comment) : NULL;
    if ((from->default_text != NULL && to->default_text == NULL) ||
        (from->comment != NULL && to->comment == NULL)) {
        close_column(to);
        return TG_NOMEM;
    }
    return 0;
}

int schema_copy(const struct schema *from, struct schema *to)
{
    struct schema copy = *from;
    copy.column_count = 0;
    copy.columns = calloc(from->column_count > 0 ? from->column_count : 1, sizeof *copy.columns);
    if (copy.columns == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < from->column_count; i++) {
        if (copy_column(&from->columns[i], &copy.columns[i]) != 0) {
            schema_close(&copy);
            return TG_NOMEM;
        }
        copy.column_count++;
    }
    *to = copy;
    return 0;
}

static int check_name(const char *name, struct tg_errmsg *msg)
{
    size_t len = strnlen(name, NAME_BYTES);
    if (len == 0)
        return tg_fail(msg, TG_INVALID, "a column has no name");
    if (len >= NAME_BYTES)
        return tg_fail(msg, TG_INVALID, "column name '%.64s…' is longer than %d bytes", name,
                       NAME_BYTES - 1);
    if (!utf8_valid(name, len))
        return tg_fail(msg, TG_INVALID, "a column name is not UTF-8");
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return tg_fail(msg, TG_INVALID, "column name '%s' holds a control character", name);
    }
    if (strcasecmp(name, COLUMN_NAME_DELETE_SIGN) == 0)
        return tg_fail(msg, TG_INVALID, "column name '%s' is reserved", name);
    return 0;
}

int schema_add_column(struct schema *schema, const struct schema_column *column,
                      struct tg_errmsg *msg)
{
    int err = check_name(column->name, msg);
    if (err != 0)
        return err;
    err = type_validate(column->type, msg);
    if (err != 0)
        return tg_wrap(msg, err, "column '%s'", column->name);
    if ((column->default_kind == DEFAULT_TEXT) != (column->default_text != NULL))
        return tg_fail(msg, TG_INVALID,
                       "column '%s': the text of its default does not fit its kind", column->name);
    if (column->comment != NULL && strlen(column->comment) > SCHEMA_COMMENT_MAX)
        return tg_fail(msg, TG_INVALID, "column '%s': the comment is longer than %d bytes",
                       column->name, SCHEMA_COMMENT_MAX);
    if (schema_find(schema, column->name, strlen(column->name)) >= 0)
        return tg_fail(msg, TG_EXISTS, "column '%s' is named twice", column->name);
    if (schema->column_count >= COLUMNS_MAX)
        return tg_fail(msg, TG_LIMIT, "more than %d columns", COLUMNS_MAX);
    struct schema_column *columns =
        realloc(schema->columns, (schema->column_count + 1) * sizeof *columns);
    if (columns == NULL)
        return tg_fail(msg, TG_NOMEM, "out of memory");
    schema->columns = columns;
    struct schema_column *to = &columns[schema->column_count];
    if (copy_column(column, to) != 0)
        return tg_fail(msg, TG_NOMEM, "out of memory");
    to->id = schema->next_column_id++;
    schema->column_count++;
    if (to->is_key)
        schema->key_count++;
    return 0;
}

static int check_default(const struct schema_column *column, struct tg_errmsg *msg)
{
    union type_value value;
    switch (column->default_kind) {
    case DEFAULT_NONE:
        return 0;
    case DEFAULT_NULL:
        if (!column->nullable)
            return tg_fail(msg, TG_INVALID, "column '%s': DEFAULT NULL, but it is NOT NULL",
                           column->name);
        return 0;
    case DEFAULT_NOW:
        if (column->type.kind != TYPE_DATETIME && column->type.kind != TYPE_DATE)
            return tg_fail(msg, TG_INVALID,
                           "column '%s': the current time can only be the default of DATE and "
                           "DATETIME",
                           column->name);
        return 0;
    case DEFAULT_TEXT:
        break;
    default:
        return tg_fail(msg, TG_INVALID, "column '%s': unknown kind of default", column->name);
    }
    const char *text = column->default_text;
    size_t len = strlen(text);
    enum type_parse_result result = type_is_bytes(column->type)
                                        ? type_check_bytes(column->type, text, len)
                                        : type_parse(column->type, text, len, 0, &value);
    if (result == TYPE_TOO_LONG)
        return tg_fail(msg, TG_INVALID, "column '%s': the default of %zu bytes is too long",
                       column->name, len);
    if (result != TYPE_PARSED)
        return tg_fail(msg, TG_INVALID, "column '%s': default '%.64s' is not a value of its type",
                       column->name, text);
    return 0;
}

static int check_key_column(const struct schema_column *column, struct tg_errmsg *msg)
{
    switch (column->type.kind) {
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_STRING:
    case TYPE_JSON: {
        struct buf name = BUF_INIT;
        type_print_name(column->type, &name);
        const char *text = buf_cstr(&name);
        int err = tg_fail(msg, TG_INVALID,
                          "column '%s': %s cannot be a key column; use an integer, DECIMAL, DATE, "
                          "DATETIME, CHAR or VARCHAR",
                          column->name, text != NULL ? text : "this type");
        buf_close(&name);
        return err;
    }
    default:
        return 0;
    }
}

/* The encoded key's worst case: a mark, the value; each byte of bytes may need two, and two end it.
 */
static uint64_t key_bytes_max(struct column_type type)
{
    return type_is_bytes(type) ? 3 + 2 * (uint64_t)type.length : 1 + type_width(type);
}

static int check_keys(const struct schema *schema, struct tg_errmsg *msg)
{
    uint32_t keys = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < schema->column_count; i++) {
        const struct schema_column *column = &schema->columns[i];
        if (!column->is_key)
            continue;
        if (i != keys)
            return tg_fail(msg, TG_INVALID,
                           "key column '%s' stands behind column '%s', which is none: key columns "
                           "come first, in the order of the key",
                           column->name, schema->columns[i - 1].name);
        int err = check_key_column(column, msg);
        if (err != 0)
            return err;
        bytes += key_bytes_max(column->type);
        keys++;
    }
    if (keys == 0)
        return tg_fail(msg, TG_INVALID, "the table has no key column");
    if (keys != schema->key_count)
        return tg_fail(msg, TG_INVALID, "%u columns are marked as key, but the key has %u", keys,
                       schema->key_count);
    if (bytes > ROW_KEY_BYTES_MAX)
        return tg_fail(msg, TG_INVALID,
                       "the key may need %llu bytes, more than %d: shorten its VARCHAR columns",
                       (unsigned long long)bytes, ROW_KEY_BYTES_MAX);
    return 0;
}

int schema_validate(const struct schema *schema, struct tg_errmsg *msg)
{
    if (schema->key_model == KEY_AGGREGATE)
        return tg_fail(msg, TG_UNSUPPORTED,
                       "AGGREGATE KEY tables are not supported; use UNIQUE KEY or DUPLICATE KEY");
    if (schema->key_model != KEY_DUPLICATE && schema->key_model != KEY_UNIQUE)
        return tg_fail(msg, TG_INVALID, "unknown key model number %u", (unsigned)schema->key_model);
    if (schema->column_count == 0)
        return tg_fail(msg, TG_INVALID, "the table has no columns");
    int err = check_keys(schema, msg);
    for (uint32_t i = 0; err == 0 && i < schema->column_count; i++)
        err = check_default(&schema->columns[i], msg);
    return err;
}

int schema_find(const struct schema *schema, const char *name, size_t len)
{
    if (len >= NAME_BYTES)
        return -1;
    for (uint32_t i = 0; i < schema->column_count; i++) {
        const char *own = schema->columns[i].name;
        if (strncasecmp(own, name, len) == 0 && own[len] == '\0')
            return (int)i;
    }
    return -1;
}

int schema_find_id(const struct schema *schema, uint32_t column_id)
{
    for (uint32_t i = 0; i < schema->column_count; i++) {
        if (schema->columns[i].id == column_id)
            return (int)i;
    }
    return -1;
}

uint32_t schema_stored_count(const struct schema *schema)
{
    return schema->column_count + (schema->key_model == KEY_UNIQUE ? 1 : 0);
}

uint32_t schema_stored_id(const struct schema *schema, uint32_t index)
{
    return index < schema->column_count ? schema->columns[index].id : COLUMN_ID_DELETE_SIGN;
}

struct column_type schema_stored_type(const struct schema *schema, uint32_t index)
{
    return index < schema->column_count ? schema->columns[index].type : DELETE_SIGN_TYPE;
}
