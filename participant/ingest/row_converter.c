/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion column by column. The normal case costs nothing for errors: the batch converter's
 * answer is one word, and only when it is not zero are the rows looked at one by one. */
#include "participant/ingest/row_converter.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/type_convert.h"

enum { SHOWN_BYTES = 32 };

/* Why a row was dropped. */
enum drop {
    DROP_NONE = 0,
    DROP_VALUE,  /* strict mode: no value of the type */
    DROP_LENGTH, /* strict mode: too long */
    DROP_NULL,   /* NULL in a column that takes none */
    DROP_SIGN    /* a delete sign where rows cannot be deleted */
};

/* One row with the value that targets without a field have. */
static int make_constant(const struct row_target *target, int64_t tz_offset_us,
                         struct vector *constant)
{
    size_t len = strlen(target->absent);
    char *text = calloc(1, len + 64); /* the converter reads ahead */
    uint32_t begin = 0;
    uint32_t end = (uint32_t)len;
    uint8_t bad = 0;

    if (text == NULL)
        return TG_NOMEM;
    memcpy(text, target->absent, len);
    uint64_t flags =
        type_convert_column(target->type, text, &begin, &end, 1, 1, tz_offset_us, constant, &bad);
    free(text);
    if (flags & CONVERT_NOMEM)
        return TG_NOMEM;
    return bad != 0 || (flags & CONVERT_LIMIT) ? TG_INVALID : 0;
}

int row_converter_init(struct row_converter *converter, const struct row_mapping *mapping,
                       const struct load_options *options, struct error_log *log)
{
    static const struct column_type SIGN = {.kind = TYPE_TINYINT};
    struct row_converter *c = converter;

    *c = (struct row_converter){.mapping = mapping, .options = options, .log = log};
    vector_init(&c->sign, SIGN);
    c->columns = calloc(mapping->target_count, sizeof *c->columns);
    c->constants = calloc(mapping->target_count, sizeof *c->constants);
    if (c->columns == NULL || c->constants == NULL) {
        free(c->columns);
        free(c->constants);
        c->columns = c->constants = NULL; /* vectors are closed only if they were initialised */
        return TG_NOMEM;
    }
    for (uint32_t i = 0; i < mapping->target_count; i++) {
        vector_init(&c->columns[i], mapping->targets[i].type);
        vector_init(&c->constants[i], mapping->targets[i].type);
    }
    for (uint32_t i = 0; i < mapping->target_count; i++) {
        if (mapping->targets[i].field >= 0)
            continue;
        int err = make_constant(&mapping->targets[i], options->tz_offset_us, &c->constants[i]);
        if (err != 0)
            return err;
    }
    return 0;
}

void row_converter_close(struct row_converter *converter)
{
    struct row_converter *c = converter;

    if (c->mapping == NULL)
        return;
    for (uint32_t i = 0; c->columns != NULL && i < c->mapping->target_count; i++) {
        vector_close(&c->columns[i]);
        vector_close(&c->constants[i]);
    }
    vector_close(&c->sign);
    free(c->columns);
    free(c->constants);
    free(c->bad);
    free(c->dropped);
    free(c->dropped_column);
    free(c->selected);
    free(c->zeros);
    *c = (struct row_converter){0};
}

static int make_room(struct row_converter *c, uint32_t rows)
{
    if (rows <= c->capacity)
        return 0;
    free(c->bad);
    free(c->dropped);
    free(c->dropped_column);
    free(c->selected);
    free(c->zeros);
    c->bad = calloc(rows, 1);
    c->dropped = calloc(rows, 1);
    c->dropped_column = calloc(rows, sizeof *c->dropped_column);
    c->selected = calloc(rows, sizeof *c->selected);
    c->zeros = calloc(rows, sizeof *c->zeros);
    c->capacity = rows;
    if (c->bad != NULL && c->dropped != NULL && c->dropped_column != NULL && c->selected != NULL &&
        c->zeros != NULL)
        return 0;
    c->capacity = 0;
    return TG_NOMEM;
}

/* ---- one column ---- */

static uint64_t convert_range(struct row_converter *c, const struct field_rows *rows,
                              uint32_t field, uint32_t begin, uint32_t end, struct vector *out)
{
    size_t at = (size_t)begin * rows->columns + field;

    if (begin == end)
        return 0;
    return type_convert_column(out->type, rows->text, rows->begins + at, rows->ends + at,
                               rows->columns, end - begin, c->options->tz_offset_us, out,
                               c->bad + begin);
}

/* A field that says \N as text: two characters for a bytes column, no value for others. */
static uint64_t push_literal(struct row_converter *c, uint32_t row, struct vector *out)
{
    int err;

    if (!type_is_bytes(out->type) || type_check_bytes(out->type, "\\N", 2) != TYPE_PARSED) {
        c->bad[row] = CONVERT_BAD_VALUE;
        err = vector_append_null(out);
        return err == 0 ? CONVERT_BAD | CONVERT_NULL : CONVERT_NOMEM;
    }
    err = vector_append_bytes(out, "\\N", 2);
    return err == 0 ? 0 : CONVERT_NOMEM;
}

static uint64_t convert_field(struct row_converter *c, const struct field_rows *rows,
                              uint32_t field, struct vector *out)
{
    uint64_t flags = 0;
    uint32_t done = 0;

    for (uint32_t i = 0; i < rows->literal_count; i++) {
        if (rows->literals[i].field != field)
            continue;
        flags |= convert_range(c, rows, field, done, rows->literals[i].row, out);
        flags |= push_literal(c, rows->literals[i].row, out);
        done = rows->literals[i].row + 1;
    }
    return flags | convert_range(c, rows, field, done, rows->rows, out);
}

static void drop(struct row_converter *c, uint32_t row, enum drop why, uint32_t target)
{
    if (c->dropped[row] != DROP_NONE)
        return;
    c->dropped[row] = (uint8_t)why;
    c->dropped_column[row] = (uint16_t)target;
}

/* empty_field_as_null: what is empty becomes NULL and is no error. */
static int null_empty(struct row_converter *c, const struct field_rows *rows, uint32_t field,
                      struct vector *out, uint64_t *flags)
{
    for (uint32_t r = 0; r < rows->rows; r++) {
        size_t at = (size_t)r * rows->columns + field;
        if (rows->begins[at] != rows->ends[at])
            continue;
        if (!out->has_nulls && vector_use_nulls(out) != 0)
            return TG_NOMEM;
        out->nulls[r] = 1;
        c->bad[r] = 0;
        *flags |= CONVERT_NULL;
    }
    return 0;
}

/* Judges the rows of a column that has bad values or nulls. Clears c->bad. */
static bool judge(struct row_converter *c, uint32_t rows, uint32_t index)
{
    const struct row_target *target = &c->mapping->targets[index];
    const struct vector *column = &c->columns[index];
    const bool strict = c->options->strict_mode;
    bool any = false;

    for (uint32_t r = 0; r < rows; r++) {
        uint8_t bad = c->bad[r];
        enum drop why = DROP_NONE;
        if (bad != 0 && (strict || target->is_sign))
            why = bad == CONVERT_BAD_TOO_LONG ? DROP_LENGTH : DROP_VALUE;
        else if (!target->nullable && vector_is_null(column, r))
            why = DROP_NULL;
        c->bad[r] = 0;
        if (why != DROP_NONE) {
            drop(c, r, why, index);
            any = true;
        }
    }
    return any;
}

/* 1 if rows were dropped, 0, or a negative error. */
static int convert_target(struct row_converter *c, const struct field_rows *rows, uint32_t index)
{
    const struct row_target *target = &c->mapping->targets[index];
    struct vector *column = &c->columns[index];

    vector_clear(column);
    if (target->field < 0)
        return vector_gather(column, &c->constants[index], c->zeros, rows->rows);
    uint64_t flags = convert_field(c, rows, (uint32_t)target->field, column);
    if (flags & CONVERT_NOMEM)
        return TG_NOMEM;
    if (flags & CONVERT_LIMIT)
        return TG_LIMIT;
    if (c->options->empty_field_as_null && c->options->format == LOAD_CSV &&
        null_empty(c, rows, (uint32_t)target->field, column, &flags) != 0)
        return TG_NOMEM;
    return flags != 0 && judge(c, rows->rows, index);
}

/* Rows of a table without a delete sign must not ask for deletion. */
static int check_sign(struct row_converter *c, const struct field_rows *rows)
{
    int any = 0;

    vector_clear(&c->sign);
    uint64_t flags = convert_field(c, rows, (uint32_t)c->mapping->sign_field, &c->sign);
    if (flags & CONVERT_NOMEM)
        return TG_NOMEM;
    for (uint32_t r = 0; r < rows->rows; r++) {
        c->bad[r] = 0;
        if (c->sign.fixed[r] != 0) {
            drop(c, r, DROP_SIGN, 0);
            any = 1;
        }
    }
    return any;
}

/* ---- what is told of bad rows ---- */

static void print_drop(const struct row_converter *c, const struct field_rows *rows, uint32_t row,
                       struct buf *out)
{
    const struct row_target *target = &c->mapping->targets[c->dropped_column[row]];
    const char *text = "";
    int len = 0;

    if (target->field >= 0) {
        size_t at = (size_t)row * rows->columns + (uint32_t)target->field;
        text = rows->text + rows->begins[at];
        len = (int)(rows->ends[at] - rows->begins[at]);
    }
    switch ((enum drop)c->dropped[row]) {
    case DROP_VALUE:
        buf_printf(out,
                   "column(%s) value is incorrect while strict mode is true, src value is %.*s",
                   target->name, len < ERROR_LOG_LINE_MAX ? len : ERROR_LOG_LINE_MAX, text);
        break;
    case DROP_LENGTH:
        buf_printf(out,
                   "column_name[%s], the length of input is too long than schema. first 32 bytes "
                   "of input str: [%.*s] schema length: %u; actual length: %d; ",
                   target->name, len < SHOWN_BYTES ? len : SHOWN_BYTES, text,
                   target->type.length != 0 ? target->type.length : STRING_BYTES_MAX, len);
        break;
    case DROP_NULL:
        buf_printf(out, "column(%s) values is null while columns is not nullable", target->name);
        break;
    case DROP_SIGN:
    case DROP_NONE:
        buf_append_str(out, "delete sign is set, but the table has no unique keys");
        break;
    }
}

static void print_bad(const struct row_converter *c, const struct field_bad *bad, struct buf *out)
{
    switch (bad->kind) {
    case FIELD_BAD_COUNT:
        buf_printf(out, "Column count mismatch: expected %u, but found %u (sep:",
                   c->mapping->field_count, bad->found);
        load_text_print_separator(&c->options->column_separator, out);
        buf_append_str(out, " delim:");
        load_text_print_separator(&c->options->line_delimiter, out);
        buf_append_str(out, ")");
        break;
    case FIELD_BAD_UTF8:
        buf_append_str(out, "Invalid file encoding: all CSV files must be UTF-8 encoded");
        break;
    case FIELD_BAD_TOO_LONG:
        buf_append_str(out, "the row is too long");
        break;
    case FIELD_BAD_OPEN:
        buf_append_str(out, "an enclosed field is not closed before the end of the data");
        break;
    case FIELD_BAD_TEXT:
        buf_append_str(out, bad->reason);
        break;
    }
}

static void tell(struct row_converter *c, struct buf *reason, struct slice line)
{
    const char *text = buf_cstr(reason);
    if (text != NULL)
        error_log_add(c->log, text, line);
    buf_clear(reason);
}

static void tell_bad_rows(struct row_converter *c, const struct field_rows *rows, bool any_dropped)
{
    struct buf reason = BUF_INIT;

    for (uint32_t i = 0; i < rows->bad_count && error_log_has_room(c->log); i++) {
        print_bad(c, &rows->bad[i], &reason);
        tell(c, &reason, rows->bad[i].line);
    }
    for (uint32_t r = 0; any_dropped && r < rows->rows && error_log_has_room(c->log); r++) {
        if (c->dropped[r] == DROP_NONE)
            continue;
        print_drop(c, rows, r, &reason);
        tell(c, &reason, rows->lines[r]);
    }
    buf_close(&reason);
}

/* The rows that stay; clears the marks. */
static void select_rows(struct row_converter *c, uint32_t rows, struct row_batch *batch)
{
    uint32_t count = 0;

    for (uint32_t r = 0; r < rows; r++) {
        if (c->dropped[r] == DROP_NONE)
            c->selected[count++] = r;
        c->dropped[r] = DROP_NONE;
    }
    batch->selected = c->selected;
    batch->count = count;
}

int row_converter_run(struct row_converter *converter, const struct field_rows *rows,
                      struct row_batch *batch)
{
    struct row_converter *c = converter;
    int any_dropped = 0;
    int err = make_room(c, rows->rows);

    for (uint32_t i = 0; err >= 0 && rows->rows > 0 && i < c->mapping->target_count; i++) {
        err = convert_target(c, rows, i);
        any_dropped |= err > 0;
    }
    if (err >= 0 && rows->rows > 0 && c->mapping->sign_field >= 0) {
        err = check_sign(c, rows);
        any_dropped |= err > 0;
    }
    if (err < 0)
        return err;
    *batch = (struct row_batch){.columns = c->columns,
                                .column_count = c->mapping->target_count,
                                .rows = rows->rows,
                                .count = rows->rows};
    if (rows->bad_count > 0 || any_dropped)
        tell_bad_rows(c, rows, any_dropped);
    if (any_dropped)
        select_rows(c, rows->rows, batch);
    c->total += (uint64_t)rows->rows + rows->bad_count;
    c->filtered += (uint64_t)rows->bad_count + (rows->rows - batch->count);
    return 0;
}
