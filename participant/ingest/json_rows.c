/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of JSON objects. Objects of one file mostly have their keys in the same order, so the key is
 * guessed to be the field behind the last one; a hash table answers when it is not. */
#include "participant/ingest/json_rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "participant/ingest/json_flat.h"

enum { MEMBERS_MAX = 2048, PADDING = 64, REASON_MAX = 4096 };

/* Where a text lies that many rows share, at the front of the text buffer. */
struct shared_text {
    uint32_t begin;
    uint32_t end;
};

struct json_rows {
    const struct row_mapping *mapping;
    const struct load_options *options;
    uint32_t columns;
    uint32_t rows_max;
    uint32_t rows;
    struct buf text;
    size_t text_front; /* the shared texts end here */
    struct shared_text null_text;
    struct shared_text bools[2];
    struct shared_text *absent; /* per field */
    bool *refuses_null;         /* per field: its column takes no NULL */
    bool *refuses_absent;       /* per field: nor has it a default */
    uint32_t *begins;
    uint32_t *ends;
    struct slice *lines;
    uint32_t *line_at;     /* place in text of a printed line, plus 1; 0: the line is elsewhere */
    struct field_bad *bad; /* JSON_ROWS_MAX */
    uint32_t bad_count;
    struct field_literal *literals;
    uint32_t literal_count;
    uint32_t literal_capacity;
    uint32_t *seen; /* per field: stamp of the row that has it */
    uint32_t stamp;
    uint32_t *name_len;
    uint32_t slot_mask;
    int32_t *slots;             /* field + 1, 0 = free */
    struct json_field *members; /* MEMBERS_MAX */
    struct json_flat flat;
};

static uint32_t hash_name(const uint8_t *name, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ name[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static struct shared_text add_shared(struct json_rows *r, const char *text)
{
    struct shared_text shared = {.begin = (uint32_t)r->text.len};
    buf_append_str(&r->text, text);
    shared.end = (uint32_t)r->text.len;
    return shared;
}

static void fill_fields(struct json_rows *r)
{
    r->null_text = add_shared(r, "\\N");
    r->bools[0] = add_shared(r, "0");
    r->bools[1] = add_shared(r, "1");
    for (uint32_t i = 0; i < r->columns; i++) {
        const struct row_field *field = &r->mapping->fields[i];
        r->name_len[i] = (uint32_t)strlen(field->name);
        uint32_t slot = hash_name((const uint8_t *)field->name, r->name_len[i]) & r->slot_mask;
        while (r->slots[slot] != 0)
            slot = (slot + 1) & r->slot_mask;
        r->slots[slot] = (int32_t)i + 1;
        if (field->target < 0) {
            r->absent[i] = (int)i == r->mapping->sign_field ? r->bools[0] : r->null_text;
            continue;
        }
        const struct row_target *target = &r->mapping->targets[field->target];
        r->refuses_null[i] = !target->nullable;
        r->refuses_absent[i] = target->absent == NULL;
        if (target->absent != NULL)
            r->absent[i] = add_shared(r, target->absent);
        if (target->is_sign)
            r->refuses_null[i] = false;
    }
    r->text_front = r->text.len;
}

int json_rows_open(const struct row_mapping *mapping, const struct load_options *options,
                   struct json_rows **rows)
{
    struct json_rows *r = calloc(1, sizeof *r);
    if (r == NULL)
        return TG_NOMEM;
    r->mapping = mapping;
    r->options = options;
    r->columns = mapping->field_count;
    r->rows_max = JSON_ROWS_ENTRIES / r->columns;
    if (r->rows_max > JSON_ROWS_MAX)
        r->rows_max = JSON_ROWS_MAX;
    r->slot_mask = 1;
    while (r->slot_mask < 2 * r->columns)
        r->slot_mask *= 2;
    r->slot_mask--;
    size_t entries = (size_t)r->rows_max * r->columns;
    r->absent = calloc(r->columns, sizeof *r->absent);
    r->refuses_null = calloc(r->columns, sizeof *r->refuses_null);
    r->refuses_absent = calloc(r->columns, sizeof *r->refuses_absent);
    r->seen = calloc(r->columns, sizeof *r->seen);
    r->name_len = calloc(r->columns, sizeof *r->name_len);
    r->slots = calloc((size_t)r->slot_mask + 1, sizeof *r->slots);
    r->begins = malloc(entries * sizeof *r->begins);
    r->ends = malloc(entries * sizeof *r->ends);
    r->lines = malloc(r->rows_max * sizeof *r->lines);
    r->line_at = malloc(r->rows_max * sizeof *r->line_at);
    r->bad = malloc(JSON_ROWS_MAX * sizeof *r->bad);
    r->members = malloc(MEMBERS_MAX * sizeof *r->members);
    if (r->absent == NULL || r->refuses_null == NULL || r->refuses_absent == NULL ||
        r->seen == NULL || r->name_len == NULL || r->slots == NULL || r->begins == NULL ||
        r->ends == NULL || r->lines == NULL || r->line_at == NULL || r->bad == NULL ||
        r->members == NULL) {
        json_rows_close(r);
        return TG_NOMEM;
    }
    fill_fields(r);
    if (r->text.err != 0) {
        json_rows_close(r);
        return TG_NOMEM;
    }
    *rows = r;
    return 0;
}

void json_rows_clear(struct json_rows *rows)
{
    for (uint32_t i = 0; i < rows->bad_count; i++)
        free(rows->bad[i].reason);
    rows->bad_count = 0;
    rows->rows = 0;
    rows->literal_count = 0;
    rows->text.len = rows->text_front;
}

void json_rows_close(struct json_rows *rows)
{
    if (rows == NULL)
        return;
    json_rows_clear(rows);
    buf_close(&rows->text);
    json_flat_close(&rows->flat);
    free(rows->absent);
    free(rows->refuses_null);
    free(rows->refuses_absent);
    free(rows->seen);
    free(rows->name_len);
    free(rows->slots);
    free(rows->begins);
    free(rows->ends);
    free(rows->lines);
    free(rows->line_at);
    free(rows->bad);
    free(rows->members);
    free(rows->literals);
    free(rows);
}

bool json_rows_full(const struct json_rows *rows)
{
    return rows->rows == rows->rows_max || rows->bad_count == JSON_ROWS_MAX ||
           rows->text.len - rows->text_front >= JSON_ROWS_TEXT_MAX;
}

/* ---- bad rows ---- */

/* A line of no length is printed from value, behind the reason in its memory. */
static int add_bad(struct json_rows *r, const struct json_value *value, struct slice line,
                   const char *reason)
{
    struct buf memory = BUF_INIT;
    size_t reason_len = strlen(reason) + 1;

    buf_append(&memory, reason, reason_len);
    if (line.len == 0 && value != NULL)
        json_value_print(value, &memory);
    if (memory.err != 0) {
        buf_close(&memory);
        return TG_NOMEM;
    }
    size_t len;
    char *kept = (char *)buf_take(&memory, &len);
    if (line.len == 0)
        line = slice_of(kept + reason_len, len - reason_len);
    r->bad[r->bad_count++] =
        (struct field_bad){.kind = FIELD_BAD_TEXT, .line = line, .reason = kept};
    return 0;
}

int json_rows_add_bad(struct json_rows *rows, struct slice line, const char *format, ...)
{
    struct buf reason = BUF_INIT;
    va_list args;
    int err = TG_NOMEM;

    va_start(args, format);
    buf_vprintf(&reason, format, args);
    va_end(args);
    const char *text = buf_cstr(&reason);
    if (text != NULL)
        err = add_bad(rows, NULL, line, text);
    buf_close(&reason);
    return err;
}

static int add_nothing_found(struct json_rows *r, const struct json_value *value, struct slice line)
{
    struct buf reason = BUF_INIT;
    int err = TG_NOMEM;

    buf_append_str(&reason, "There is no column matching jsonpaths in the json file, columns:[");
    for (uint32_t i = 0; i < r->columns; i++)
        buf_printf(&reason, "%s, ", r->mapping->fields[i].name);
    buf_printf(&reason, "], please check columns and jsonpaths:%s",
               r->options->jsonpaths_text != NULL ? r->options->jsonpaths_text : "");
    const char *text = buf_cstr(&reason);
    if (text != NULL)
        err = add_bad(r, value, line, text);
    buf_close(&reason);
    return err;
}

/* ---- values ---- */

static int add_literal(struct json_rows *r, uint32_t field)
{
    if (r->literal_count == r->literal_capacity) {
        uint32_t capacity = r->literal_capacity == 0 ? 64 : r->literal_capacity * 2;
        struct field_literal *grown = realloc(r->literals, capacity * sizeof *grown);
        if (grown == NULL)
            return TG_NOMEM;
        r->literals = grown;
        r->literal_capacity = capacity;
    }
    r->literals[r->literal_count++] = (struct field_literal){r->rows, field};
    return 0;
}

static inline void put_shared(struct json_rows *r, uint32_t field, struct shared_text text)
{
    size_t at = (size_t)r->rows * r->columns + field;
    r->begins[at] = text.begin;
    r->ends[at] = text.end;
}

/* The text of a value as the field's. Returns a reason why the row cannot be, "" for none, NULL
 * when there is no memory. */
static const char *put_value(struct json_rows *r, uint32_t field, enum json_kind kind,
                             struct slice text, const struct json_value *value)
{
    size_t at = (size_t)r->rows * r->columns + field;

    switch (kind) {
    case JSON_NULL:
        if (r->refuses_null[field])
            return "Json value is null, but the column `%s` is not nullable.";
        put_shared(r, field,
                   r->mapping->fields[field].target >= 0 &&
                           r->mapping->targets[r->mapping->fields[field].target].is_sign
                       ? r->absent[field]
                       : r->null_text);
        return "";
    case JSON_BOOL:
        put_shared(r, field, r->bools[json_value_bool(value)]);
        return "";
    case JSON_NUMBER:
    case JSON_STRING:
        r->begins[at] = (uint32_t)r->text.len;
        buf_append(&r->text, text.data, text.len);
        r->ends[at] = (uint32_t)r->text.len;
        if (text.len == 2 && text.data[0] == '\\' && text.data[1] == 'N' &&
            add_literal(r, field) != 0)
            return NULL;
        return "";
    case JSON_ARRAY:
    case JSON_OBJECT:
        r->begins[at] = (uint32_t)r->text.len;
        json_value_print(value, &r->text);
        r->ends[at] = (uint32_t)r->text.len;
        return "";
    }
    return "";
}

/* Field of a key, -1 if none. *guess: the field that it is thought to be. */
static int find_field(const struct json_rows *r, struct slice name, uint32_t guess)
{
    if (guess < r->columns && name.len == r->name_len[guess] &&
        memcmp(name.data, r->mapping->fields[guess].name, name.len) == 0)
        return (int)guess;
    if (name.len >= NAME_BYTES)
        return -1;
    for (uint32_t slot = hash_name(name.data, name.len) & r->slot_mask; r->slots[slot] != 0;
         slot = (slot + 1) & r->slot_mask) {
        uint32_t field = (uint32_t)r->slots[slot] - 1;
        if (name.len == r->name_len[field] &&
            memcmp(name.data, r->mapping->fields[field].name, name.len) == 0)
            return (int)field;
    }
    return -1;
}

struct filling {
    uint32_t found;
    uint32_t guess;
    const char *reason; /* "" so far */
    uint32_t field;     /* that the reason is about */
};

static void fill_member(struct json_rows *r, struct filling *filling, struct slice name,
                        enum json_kind kind, struct slice text, const struct json_value *value)
{
    int field = find_field(r, name, filling->guess);

    if (field < 0)
        return;
    filling->guess = (uint32_t)field + 1;
    if (r->seen[field] == r->stamp) /* the first of equal keys counts */
        return;
    r->seen[field] = r->stamp;
    filling->found++;
    const char *reason = put_value(r, (uint32_t)field, kind, text, value);
    if (filling->reason != NULL && filling->reason[0] == 0) {
        filling->reason = reason;
        filling->field = (uint32_t)field;
    }
}

/* The keys of this row, for those behind it. Not where one comes twice. */
static void learn_keys(struct json_rows *r, size_t count, uint32_t found)
{
    uint32_t known = 0;

    json_flat_learn_begin(&r->flat);
    for (size_t i = 0; i < count; i++) {
        int field = find_field(r, r->members[i].name, known);

        known += field >= 0;
        json_flat_learn(&r->flat, r->members[i].name, field);
    }
    json_flat_learn_end(&r->flat);
    if (known != found)
        r->flat.count = 0;
}

static void fill_by_keys(struct json_rows *r, struct filling *filling,
                         const struct json_value *object)
{
    size_t count = json_object_fields(object, r->members, MEMBERS_MAX);
    struct json_iter iter;
    struct slice name;
    const struct json_value *value;

    if (count <= MEMBERS_MAX) {
        for (size_t i = 0; i < count; i++)
            fill_member(r, filling, r->members[i].name, r->members[i].kind, r->members[i].text,
                        r->members[i].value);
        if (r->flat.rest == 0)
            learn_keys(r, count, filling->found);
        return;
    }
    json_iter_init(&iter, object);
    while (json_iter_member(&iter, &name, &value))
        fill_member(r, filling, name, json_value_kind(value), json_value_text(value), value);
}

static void fill_by_paths(struct json_rows *r, struct filling *filling,
                          const struct json_value *object)
{
    const struct json_paths *paths = &r->options->jsonpaths;

    for (uint32_t i = 0; i < r->columns && i < paths->count; i++) {
        const struct json_value *value = json_path_find(&paths->paths[i], object);
        if (value == NULL)
            continue;
        r->seen[i] = r->stamp;
        filling->found++;
        const char *reason = put_value(r, i, json_value_kind(value), json_value_text(value), value);
        if (filling->reason != NULL && filling->reason[0] == 0) {
            filling->reason = reason;
            filling->field = i;
        }
    }
}

static void fill_absent(struct json_rows *r, struct filling *filling)
{
    for (uint32_t i = 0; i < r->columns; i++) {
        if (r->seen[i] == r->stamp)
            continue;
        if (r->refuses_absent[i] && filling->reason[0] == 0) {
            filling->reason = "The column `%s` is not nullable, but it's not found in jsondata.";
            filling->field = i;
        }
        put_shared(r, i, r->absent[i]);
    }
}

/* The column that a field feeds, as the table calls it. */
static const char *column_name(const struct json_rows *r, uint32_t field)
{
    int target = r->mapping->fields[field].target;
    return target >= 0 ? r->mapping->targets[target].name : r->mapping->fields[field].name;
}

static int add_refused(struct json_rows *r, const struct json_value *value, struct slice line,
                       const struct filling *filling)
{
    char reason[REASON_MAX];
    const char *at = strstr(filling->reason, "%s");

    snprintf(reason, sizeof reason, "%.*s%s%s", (int)(at - filling->reason), filling->reason,
             column_name(r, filling->field), at + 2);
    return add_bad(r, value, line, reason);
}

int json_rows_add(struct json_rows *rows, const struct json_value *value, struct slice line)
{
    struct json_rows *r = rows;
    struct filling filling = {.reason = ""};
    size_t text_before = r->text.len;
    uint32_t literals_before = r->literal_count;

    if (json_value_kind(value) != JSON_OBJECT)
        return add_bad(r, value, line, "Not an json object or json array");
    r->stamp++;
    if (r->options->jsonpaths.count > 0)
        fill_by_paths(r, &filling, value);
    else
        fill_by_keys(r, &filling, value);
    if (filling.reason == NULL || r->text.err != 0)
        return TG_NOMEM;
    if (filling.found > 0)
        fill_absent(r, &filling);
    if (filling.found == 0 || filling.reason[0] != 0) {
        r->text.len = text_before;
        r->literal_count = literals_before;
        return filling.found == 0 ? add_nothing_found(r, value, line)
                                  : add_refused(r, value, line, &filling);
    }
    r->lines[r->rows] = line;
    r->line_at[r->rows] = 0;
    if (line.len == 0) {
        r->line_at[r->rows] = (uint32_t)r->text.len + 1;
        json_value_print(value, &r->text);
        r->lines[r->rows].len = r->text.len + 1 - r->line_at[r->rows];
    }
    r->rows++;
    return r->text.err;
}

/* ---- lines that are all alike ---- */

static void put_text(struct json_rows *r, uint32_t field, const struct flat_value *value)
{
    enum { COPY_BYTES = 16 };
    size_t at = (size_t)r->rows * r->columns + field;
    uint8_t *to = r->text.data + r->text.len;

    r->begins[at] = (uint32_t)r->text.len;
    if (value->len <= COPY_BYTES)
        memcpy(to, value->text, COPY_BYTES);
    else
        memcpy(to, value->text, value->len);
    r->text.len += value->len;
    r->ends[at] = (uint32_t)r->text.len;
}

/* The value at p to its field. Behind it, or NULL where the parser must look. */
static const uint8_t *put_flat(struct json_rows *r, int32_t field, const uint8_t *p,
                               const uint8_t *end)
{
    struct flat_value value;
    const uint8_t *behind = json_flat_value(p, end, &value);

    if (behind == NULL || field < 0)
        return behind;
    r->seen[field] = r->stamp;
    if (value.kind == JSON_NULL) {
        const struct row_field *to = &r->mapping->fields[field];
        bool is_sign = to->target >= 0 && r->mapping->targets[to->target].is_sign;

        if (r->refuses_null[field])
            return NULL;
        put_shared(r, (uint32_t)field, is_sign ? r->absent[field] : r->null_text);
    } else if (value.kind == JSON_BOOL) {
        put_shared(r, (uint32_t)field, r->bools[value.truth]);
    } else {
        put_text(r, (uint32_t)field, &value);
    }
    return behind;
}

/* True if all of the line is an object with the keys that were learned. */
static bool read_flat(struct json_rows *r, struct slice line, uint32_t *found)
{
    const struct json_flat *flat = &r->flat;
    const uint8_t *p = line.data;
    const uint8_t *end = line.data + line.len;

    *found = 0;
    for (uint32_t i = 0; i < flat->count && p != NULL; i++) {
        if (*p != (i == 0 ? '{' : ','))
            return false;
        p = json_flat_key(flat, &flat->keys[i], p + 1, end);
        if (p != NULL)
            p = put_flat(r, flat->keys[i].field, p, end);
        *found += flat->keys[i].field >= 0;
    }
    return p != NULL && p < end && *p == '}' && p + 1 == end;
}

bool json_rows_add_flat(struct json_rows *rows, struct slice line)
{
    struct json_rows *r = rows;
    struct filling filling = {.reason = ""};
    size_t text_before = r->text.len;
    bool good;

    if (!json_flat_should_try(&r->flat))
        return false;
    /* All texts lie in the line, one behind another. */
    if (buf_reserve(&r->text, line.len + FLAT_SLACK) != 0)
        return false;
    r->stamp++;
    good = read_flat(r, line, &filling.found) && filling.found > 0;
    if (good && filling.found < r->columns)
        fill_absent(r, &filling);
    good = good && filling.reason[0] == 0;
    json_flat_tried(&r->flat, good);
    if (!good) {
        r->text.len = text_before;
        return false;
    }
    r->lines[r->rows] = line;
    r->line_at[r->rows++] = 0;
    return true;
}

void json_rows_give(struct json_rows *rows, struct field_rows *out)
{
    struct json_rows *r = rows;

    /* The converter reads ahead of a field. */
    if (buf_reserve(&r->text, PADDING) == 0)
        memset(r->text.data + r->text.len, 0, PADDING);
    for (uint32_t i = 0; i < r->rows; i++)
        if (r->line_at[i] != 0)
            r->lines[i].data = r->text.data + r->line_at[i] - 1;
    *out = (struct field_rows){.text = (const char *)r->text.data,
                               .rows = r->rows,
                               .columns = r->columns,
                               .begins = r->begins,
                               .ends = r->ends,
                               .lines = r->lines,
                               .bad = r->bad,
                               .bad_count = r->bad_count,
                               .literals = r->literals,
                               .literal_count = r->literal_count};
}
