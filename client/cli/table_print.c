/* SPDX-License-Identifier: Apache-2.0 */
/* A result set as a table. */
#include "client/cli/table_print.h"

#include <stdint.h>
#include <string.h>

/* Characters, not bytes: those that do not continue another. */
static size_t width_of(struct slice text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.len; i++)
        width += (text.data[i] & 0xc0) != 0x80;
    return width;
}

static struct slice cell_text(const struct json_value *cell)
{
    if (json_value_kind(cell) == JSON_NULL)
        return slice_str("NULL");
    if (json_value_kind(cell) == JSON_BOOL)
        return slice_str(json_value_bool(cell) ? "true" : "false");
    return json_value_text(cell);
}

static void widen(size_t widths[TABLE_COLUMNS_MAX], size_t i, struct slice text)
{
    size_t width = memchr(text.len > 0 ? text.data : (const void *)"", '\n', text.len) == NULL
                       ? width_of(text)
                       : 0;

    if (i < TABLE_COLUMNS_MAX && width > widths[i] && width <= TABLE_WIDTH_MAX)
        widths[i] = width;
}

static void print_cell(struct slice text, size_t width, bool last, FILE *out)
{
    fwrite(text.data, 1, text.len, out);
    for (size_t i = width_of(text); !last && i < width + 2; i++)
        fputc(' ', out);
}

bool table_print(const struct json_value *value, FILE *out)
{
    const struct json_value *meta = json_value_get(value, "meta");
    const struct json_value *rows = json_value_get(value, "data");
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    size_t columns = json_value_count(meta);
    const struct json_value *row;
    const struct json_value *cell;
    struct json_iter iter;
    struct json_iter cells;

    if (json_value_kind(meta) != JSON_ARRAY || json_value_kind(rows) != JSON_ARRAY ||
        columns > TABLE_COLUMNS_MAX)
        return false;
    json_iter_init(&iter, meta);
    for (size_t i = 0; json_iter_element(&iter, &cell); i++)
        widen(widths, i, json_value_text(json_value_get(cell, "name")));
    json_iter_init(&iter, rows);
    while (json_iter_element(&iter, &row)) {
        json_iter_init(&cells, row);
        for (size_t i = 0; json_iter_element(&cells, &cell); i++)
            widen(widths, i, cell_text(cell));
    }
    json_iter_init(&iter, meta);
    for (size_t i = 0; json_iter_element(&iter, &cell); i++)
        print_cell(json_value_text(json_value_get(cell, "name")), widths[i], i + 1 == columns, out);
    fputc('\n', out);
    json_iter_init(&iter, rows);
    while (json_iter_element(&iter, &row)) {
        json_iter_init(&cells, row);
        for (size_t i = 0; i < columns && json_iter_element(&cells, &cell); i++)
            print_cell(cell_text(cell), widths[i], i + 1 == columns, out);
        fputc('\n', out);
    }
    return true;
}
