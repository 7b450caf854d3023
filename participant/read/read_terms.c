/* SPDX-License-Identifier: Apache-2.0 */
/* A read in terms of the table's schema: columns to ids, key texts to encoded keys, a whole
 * distribution key to its bucket. */
#include <stdlib.h>
#include <string.h>

#include "common/model/row_key.h"
#include "participant/read/read_request.h"

static int show(const struct schema *schema, const char *name, size_t len, struct read_terms *terms,
                struct tg_errmsg *msg)
{
    int at = schema_find(schema, name, len);
    struct result_column *shown = &terms->shown[terms->shown_count];

    for (uint32_t i = 0; at >= 0 && i < terms->shown_count; i++)
        if (terms->ids[i] == schema->columns[at].id)
            return tg_fail(msg, TG_INVALID, "the column '%.*s' is named twice", (int)len, name);
    if (at >= 0) {
        shown->name = schema->columns[at].name;
        shown->type = schema->columns[at].type;
        terms->ids[terms->shown_count++] = schema->columns[at].id;
        return 0;
    }
    return tg_fail(msg, TG_INVALID, "there is no column '%.*s'", (int)len, name);
}

static int show_columns(const struct read_request *request, const struct schema *schema,
                        struct read_terms *terms, struct tg_errmsg *msg)
{
    const char *at = request->columns;
    size_t room = schema->column_count;

    for (const char *p = at; *p != 0; p++)
        room += *p == ',';
    terms->ids = calloc(room + 2, sizeof *terms->ids);
    terms->shown = calloc(room + 2, sizeof *terms->shown);
    if (terms->ids == NULL || terms->shown == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; *at == 0 && i < schema->column_count; i++)
        show(schema, schema->columns[i].name, strlen(schema->columns[i].name), terms, msg);
    while (*at != 0) {
        const char *end = strchrnul(at, ',');
        const char *begin = at;
        const char *stop = end;

        while (begin < stop && (*begin == ' ' || *begin == '`'))
            begin++;
        while (stop > begin && (stop[-1] == ' ' || stop[-1] == '`'))
            stop--;
        int err = show(schema, begin, (size_t)(stop - begin), terms, msg);
        if (err != 0)
            return err;
        if (terms->shown_count > COLUMNS_MAX)
            return tg_fail(msg, TG_INVALID, "more than %d columns", COLUMNS_MAX);
        at = *end == 0 ? end : end + 1;
    }
    return 0;
}

static int append_value(const struct schema_column *column, const struct buf *text,
                        struct vector *vector, struct tg_errmsg *msg)
{
    const char *bytes = text->len > 0 ? (const char *)text->data : "";
    union type_value value;

    if (text->len == 2 && memcmp(bytes, "\\N", 2) == 0)
        return vector_append_null(vector);
    if (type_is_bytes(column->type))
        return vector_append_bytes(vector, bytes, text->len);
    if (type_parse(column->type, bytes, text->len, 0, &value) != TYPE_PARSED)
        return tg_fail(msg, TG_INVALID, "'%.*s' is not a value of key column %s",
                       (int)(text->len < 64 ? text->len : 64), bytes, column->name);
    return vector_append_fixed(vector, &value);
}

static int check_key(const struct buf *key, struct tg_errmsg *msg)
{
    if (key->err != 0)
        return key->err;
    return key->len < ROW_KEY_BYTES_MAX
               ? 0
               : tg_fail(msg, TG_INVALID, "the key is longer than %d bytes", ROW_KEY_BYTES_MAX);
}

/* A prefix of the key columns, as one row of vectors. */
struct key {
    uint32_t count;
    struct vector *vectors;
    const struct vector **columns;
};

static void key_close(struct key *key)
{
    for (uint32_t i = 0; i < key->count; i++)
        vector_close(&key->vectors[i]);
    free(key->vectors);
    free(key->columns);
}

static int key_open(const struct schema *schema, const struct buf *texts, uint32_t count,
                    struct key *key, struct tg_errmsg *msg)
{
    int err = 0;

    memset(key, 0, sizeof *key);
    if (count > schema->key_count)
        return tg_fail(msg, TG_INVALID, "%u key values are given, the table has %u key columns",
                       count, schema->key_count);
    key->vectors = calloc(count + 1, sizeof *key->vectors);
    key->columns = calloc(count + 1, sizeof *key->columns);
    if (key->vectors == NULL || key->columns == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < count && err == 0; i++) {
        vector_init(&key->vectors[i], schema->columns[i].type);
        key->columns[i] = &key->vectors[i];
        key->count++;
        err = append_value(&schema->columns[i], &texts[i], &key->vectors[i], msg);
    }
    return err;
}

static int encode_key(const struct schema *schema, const struct buf *texts, uint32_t count,
                      struct buf *out, struct tg_errmsg *msg)
{
    struct key key;
    int err = key_open(schema, texts, count, &key, msg);

    if (err == 0) {
        row_key_encode(key.columns, count, 0, out);
        err = check_key(out, msg);
    }
    key_close(&key);
    return err;
}

/* The key of a get: rows from it on, up to the first key that does not begin with it. Column
 * encodings never begin with 0xFF. */
static int make_get(const struct read_request *request, const struct msg_read_point_reply *point,
                    struct read_terms *terms, struct tg_errmsg *msg)
{
    const struct schema *schema = &point->schema;
    const struct vector *distribution[READ_KEYS_MAX];
    struct key key;
    uint64_t hash;
    int err = key_open(schema, request->from, request->from_count, &key, msg);

    if (err == 0) {
        row_key_encode(key.columns, key.count, 0, &terms->from);
        row_key_encode(key.columns, key.count, 0, &terms->to);
        buf_append_u8(&terms->to, 0xFF);
        err = check_key(&terms->to, msg);
    }
    bool whole = err == 0 && point->distribution_count > 0 &&
                 point->distribution_count <= READ_KEYS_MAX && point->tablet_count > 0;
    for (uint32_t i = 0; whole && i < point->distribution_count; i++) {
        whole = point->distribution[i] < key.count;
        if (whole)
            distribution[i] = key.columns[point->distribution[i]];
    }
    if (whole) {
        row_key_hash(distribution, point->distribution_count, 0, 1, &hash);
        terms->bucket = row_key_bucket(hash, point->tablet_count);
    }
    key_close(&key);
    return err;
}

int read_terms_make(const struct read_request *request, const struct msg_read_point_reply *point,
                    struct read_terms *terms, struct tg_errmsg *msg)
{
    const struct schema *schema = &point->schema;
    int err;

    memset(terms, 0, sizeof *terms);
    terms->bucket = -1;
    terms->delete_sign = -1;
    err = show_columns(request, schema, terms, msg);
    if (err != 0)
        return err;
    terms->column_count = terms->shown_count;
    if (schema->key_model == KEY_UNIQUE &&
        (request->kind == READ_CHANGES || request->include_deleted)) {
        terms->delete_sign = (int)terms->column_count;
        terms->ids[terms->column_count++] = COLUMN_ID_DELETE_SIGN;
    }
    if (request->kind == READ_GET)
        return make_get(request, point, terms, msg);
    if (request->from_count > 0)
        err = encode_key(schema, request->from, request->from_count, &terms->from, msg);
    if (err == 0 && request->to_count > 0)
        err = encode_key(schema, request->to, request->to_count, &terms->to, msg);
    return err;
}

void read_terms_close(struct read_terms *terms)
{
    free(terms->ids);
    free(terms->shown);
    buf_close(&terms->from);
    buf_close(&terms->to);
}
