/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a schema: msgpack, an array that begins with its version. */
#include <stdlib.h>
#include <string.h>

#include "common/base/msgpack.h"
#include "common/model/schema.h"

/* [1, id, key model, next column id, [column …]]
 * column: [id, name, kind, precision, scale, length, nullable, is key, default kind, default text
 * or nil, comment or nil] */
enum {
    SCHEMA_VERSION = 1,
    SCHEMA_FIELDS = 5,
    COLUMN_FIELDS = 11,
    SCHEMA_TEXT_MAX = STRING_BYTES_MAX /* a default or a comment */
};

static void encode_text(const char *text, struct buf *out)
{
    if (text == NULL)
        mp_nil(out);
    else
        mp_str(out, text);
}

static void encode_column(const struct schema_column *column, struct buf *out)
{
    mp_array(out, COLUMN_FIELDS);
    mp_uint(out, column->id);
    mp_str(out, column->name);
    mp_uint(out, column->type.kind);
    mp_uint(out, column->type.precision);
    mp_uint(out, column->type.scale);
    mp_uint(out, column->type.length);
    mp_bool(out, column->nullable);
    mp_bool(out, column->is_key);
    mp_uint(out, column->default_kind);
    encode_text(column->default_text, out);
    encode_text(column->comment, out);
}

void schema_encode(const struct schema *schema, struct buf *out)
{
    mp_array(out, SCHEMA_FIELDS);
    mp_uint(out, SCHEMA_VERSION);
    mp_uint(out, schema->id);
    mp_uint(out, schema->key_model);
    mp_uint(out, schema->next_column_id);
    mp_array(out, schema->column_count);
    for (uint32_t i = 0; i < schema->column_count; i++)
        encode_column(&schema->columns[i], out);
}

static char *decode_text(struct cursor *cursor)
{
    if (mp_read_nil(cursor))
        return NULL;
    struct slice text = mp_read_str(cursor, SCHEMA_TEXT_MAX);
    if (cursor->err != 0)
        return NULL;
    if (text.len > 0 && memchr(text.data, 0, text.len) != NULL) {
        cursor_fail(cursor, TG_CORRUPT);
        return NULL;
    }
    char *copy = malloc(text.len + 1);
    if (copy == NULL) {
        cursor_fail(cursor, TG_NOMEM);
        return NULL;
    }
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return copy;
}

static void decode_column(struct cursor *cursor, struct schema_column *column)
{
    mp_expect_array(cursor, COLUMN_FIELDS);
    column->id = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    mp_read_cstr(cursor, column->name, sizeof column->name);
    column->type.kind = (uint8_t)mp_read_uint_max(cursor, UINT8_MAX);
    column->type.precision = (uint8_t)mp_read_uint_max(cursor, UINT8_MAX);
    column->type.scale = (uint8_t)mp_read_uint_max(cursor, UINT8_MAX);
    column->type.length = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    column->nullable = mp_read_bool(cursor);
    column->is_key = mp_read_bool(cursor);
    column->default_kind = (uint8_t)mp_read_uint_max(cursor, DEFAULT_NOW);
    column->default_text = decode_text(cursor);
    column->comment = decode_text(cursor);
    if (cursor->err == 0 &&
        (type_validate(column->type, NULL) != 0 || column->name[0] == '\0' ||
         (column->default_kind == DEFAULT_TEXT) != (column->default_text != NULL)))
        cursor_fail(cursor, TG_CORRUPT);
}

/* What the readers of a schema rely on: keys first, ids and names that tell columns apart. */
static bool is_sound(const struct schema *schema)
{
    for (uint32_t i = 0; i < schema->column_count; i++) {
        const struct schema_column *column = &schema->columns[i];
        if (column->is_key != (i < schema->key_count) || column->id == 0 ||
            column->id >= schema->next_column_id || schema_find_id(schema, column->id) != (int)i ||
            schema_find(schema, column->name, strlen(column->name)) != (int)i)
            return false;
    }
    return true;
}

int schema_decode(struct cursor *cursor, struct schema *schema)
{
    schema_close(schema);
    mp_expect_array(cursor, SCHEMA_FIELDS);
    if (mp_read_uint(cursor) != SCHEMA_VERSION)
        cursor_fail(cursor, TG_CORRUPT);
    schema->id = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    schema->key_model = (uint8_t)mp_read_uint_max(cursor, KEY_AGGREGATE);
    schema->next_column_id = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    uint32_t count = mp_read_array(cursor, COLUMNS_MAX);
    if (cursor->err == 0 && schema->key_model < KEY_DUPLICATE)
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err == 0 && count > 0) {
        schema->columns = calloc(count, sizeof *schema->columns);
        if (schema->columns == NULL)
            cursor_fail(cursor, TG_NOMEM);
    }
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        struct schema_column *column = &schema->columns[schema->column_count++];
        decode_column(cursor, column);
        schema->key_count += column->is_key ? 1 : 0;
    }
    if (cursor->err == 0 && !is_sound(schema))
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        schema_close(schema);
    return cursor->err;
}
