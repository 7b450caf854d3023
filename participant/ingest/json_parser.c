/* SPDX-License-Identifier: Apache-2.0 */
/* Documents out of the body, and rows out of documents. */
#include "participant/ingest/json_parser.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "participant/ingest/json_rows.h"

enum { PADDING = 64, SHOWN_BYTES = 64 * 1024 };

enum mode { BY_LINE, ARRAY, DOCUMENT };

/* Where in the outer array the text goes on. */
enum place { BEFORE_ARRAY, BEFORE_FIRST, BEFORE_ELEMENT, BEHIND_ELEMENT, BEHIND_ARRAY };

struct json_parser {
    const struct load_options *options;
    enum mode mode;
    uint8_t *data;
    size_t capacity;
    size_t len;
    size_t from;
    bool at_start;
    bool broken;
    bool skipping;    /* the rest of a line that is too long */
    bool may_be_flat; /* a line is a row, and its keys are columns */
    enum place place;
    struct json_pool *pool;
    struct json_doc *doc;
    /* Elements of an array inside a document that are still to be given out. */
    bool in_array;
    struct json_iter iter;
    struct slice array_line;
    struct json_rows *rows;
};

int json_parser_open(const struct row_mapping *mapping, const struct load_options *options,
                     size_t chunk_bytes, struct json_parser **parser)
{
    struct json_parser *p = calloc(1, sizeof *p);
    if (p == NULL)
        return TG_NOMEM;
    p->options = options;
    p->at_start = true;
    if (options->by_line)
        p->mode = BY_LINE;
    else
        p->mode = options->strip_outer_array && !options->has_json_root ? ARRAY : DOCUMENT;
    p->may_be_flat = options->by_line && !options->strip_outer_array && !options->has_json_root &&
                     options->jsonpaths.count == 0;
    p->capacity = chunk_bytes < JSON_CHUNK_BYTES_MIN ? JSON_CHUNK_BYTES_MIN : chunk_bytes;
    p->data = malloc(p->capacity + PADDING);
    p->pool = json_pool_open();
    if (p->data == NULL || p->pool == NULL || json_rows_open(mapping, options, &p->rows) != 0) {
        json_parser_close(p);
        return TG_NOMEM;
    }
    *parser = p;
    return 0;
}

void json_parser_close(struct json_parser *parser)
{
    if (parser == NULL)
        return;
    json_doc_close(parser->doc);
    json_pool_close(parser->pool);
    json_rows_close(parser->rows);
    free(parser->data);
    free(parser);
}

/* How long one document may get. */
static size_t document_max(const struct json_parser *p)
{
    return p->mode == DOCUMENT ? JSON_DOCUMENT_BYTES_MAX : JSON_ROW_BYTES_MAX;
}

int json_parser_room(struct json_parser *parser, uint8_t **at, size_t *len)
{
    struct json_parser *p = parser;
    size_t left = p->len - p->from;

    if (left > p->capacity / 2 && left < document_max(p)) {
        uint8_t *data = malloc(p->capacity * 2 + PADDING);
        if (data == NULL)
            return TG_NOMEM;
        memcpy(data, p->data + p->from, left);
        free(p->data);
        p->data = data;
        p->capacity *= 2;
    } else if (p->from > 0) {
        memmove(p->data, p->data + p->from, left);
    }
    p->len = left;
    p->from = 0;
    *at = p->data + p->len;
    *len = p->capacity - p->len;
    return 0;
}

size_t json_parser_memory(const struct json_parser *parser)
{
    size_t text = parser->capacity + PADDING;
    /* A copy of the text and its values, about, where it is one document or a large row. */
    bool large = parser->mode == DOCUMENT || parser->capacity > 2 * JSON_CHUNK_BYTES;
    return text + json_pool_bytes(parser->pool) + (large ? 2 * text : 0);
}

void json_parser_filled(struct json_parser *parser, size_t n)
{
    TG_CHECK(n <= parser->capacity - parser->len);
    parser->len += n;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(struct json_parser *p)
{
    while (p->from < p->len && is_blank(p->data[p->from]))
        p->from++;
}

static struct slice shown(struct slice line)
{
    return slice_of(line.data, line.len < SHOWN_BYTES ? line.len : SHOWN_BYTES);
}

/* A row that says why nothing behind it can be read. */
static int break_off(struct json_parser *p, struct slice line, const char *why)
{
    p->broken = true;
    p->from = p->len;
    return json_rows_add_bad(p->rows, shown(line),
                             "Parse json data for JsonDoc failed. code: 3, error info: %s", why);
}

/* Gives out rows of the open array until it ends or the batch is full. */
static int continue_array(struct json_parser *p)
{
    const struct json_value *element;
    int err = 0;

    while (err == 0 && !json_rows_full(p->rows)) {
        if (!json_iter_element(&p->iter, &element)) {
            p->in_array = false;
            break;
        }
        err = json_rows_add(p->rows, element, p->array_line);
    }
    return err;
}

/* Rows of a whole document. line: its text, or empty for "print each row". */
static int take_document(struct json_parser *p, const struct json_value *root, struct slice line,
                         struct slice row_line)
{
    const struct json_value *value = root;

    if (p->options->has_json_root) {
        value = json_path_find(&p->options->json_root, root);
        if (value == NULL)
            return json_rows_add_bad(p->rows, shown(line), "JSON Root not found.");
    }
    enum json_kind kind = json_value_kind(value);
    if (p->options->strip_outer_array) {
        if (kind == JSON_OBJECT)
            return json_rows_add_bad(
                p->rows, shown(line),
                "JSON data is not an array-object, `strip_outer_array` must be FALSE.");
        if (kind == JSON_ARRAY) {
            p->in_array = true;
            p->array_line = row_line;
            json_iter_init(&p->iter, value);
            return continue_array(p);
        }
    } else if (kind == JSON_ARRAY) {
        return json_rows_add_bad(p->rows, shown(line),
                                 "JSON data is array-object, `strip_outer_array` must be TRUE.");
    }
    return json_rows_add(p->rows, value, row_line);
}

/* ---- by line ---- */

static int take_line(struct json_parser *p, struct slice line)
{
    struct tg_errmsg why;

    while (line.len > 0 && is_blank(line.data[line.len - 1]))
        line.len--;
    while (line.len > 0 && is_blank(line.data[0]))
        line = slice_of(line.data + 1, line.len - 1);
    if (line.len == 0 || (p->may_be_flat && json_rows_add_flat(p->rows, line)))
        return 0;
    int err = json_doc_parse(line.data, line.len, p->pool, &p->doc, &why);
    if (err == TG_NOMEM)
        return err;
    if (err != 0) {
        p->doc = NULL;
        return json_rows_add_bad(p->rows, shown(line),
                                 "Parse json data for JsonDoc failed. code: 3, error info: %s",
                                 why.text);
    }
    return take_document(p, json_doc_root(p->doc), line, line);
}

static const uint8_t *find_line_end(const struct json_parser *p)
{
    const struct load_separator *line = &p->options->line_delimiter;
    const uint8_t *from = p->data + p->from;
    size_t len = p->len - p->from;

    if (line->len == 1)
        return memchr(from, line->bytes[0], len);
    return memmem(from, len, line->bytes, line->len);
}

static int split_lines(struct json_parser *p, bool final)
{
    size_t delimiter = p->options->line_delimiter.len;
    int err = 0;

    while (err == 0 && p->from < p->len && !json_rows_full(p->rows) && !p->in_array) {
        const uint8_t *end = find_line_end(p);
        if (end == NULL && !final && p->len - p->from < JSON_ROW_BYTES_MAX)
            return 0;
        struct slice line = slice_of(
            p->data + p->from, end != NULL ? (size_t)(end - p->data) - p->from : p->len - p->from);
        p->from += line.len + (end != NULL ? delimiter : 0);
        if (p->skipping)
            p->skipping = end == NULL;
        else if (end == NULL && !final) {
            p->skipping = true;
            err = json_rows_add_bad(p->rows, shown(line), "the row is too long");
        } else {
            err = take_line(p, line);
        }
    }
    return err;
}

/* ---- element by element ---- */

/* The element at p->from. TG_INCOMPLETE: it goes on behind the text. */
static int take_element(struct json_parser *p, bool final)
{
    struct slice rest = slice_of(p->data + p->from, p->len - p->from);
    struct tg_errmsg why;
    size_t used;
    int err = json_doc_parse_first(rest.data, rest.len, p->pool, &p->doc, &used, &why);

    if (err != 0)
        p->doc = NULL;
    if (err == TG_NOMEM)
        return err;
    if (!final && (err == TG_INCOMPLETE || (err == 0 && used == rest.len))) {
        if (rest.len < JSON_ROW_BYTES_MAX)
            return TG_INCOMPLETE;
        return break_off(p, rest, "an element of the array is too long");
    }
    if (err != 0)
        return break_off(p, rest, why.text);
    p->from += used;
    p->place = BEHIND_ELEMENT;
    return json_rows_add(p->rows, json_doc_root(p->doc), slice_of(rest.data, used));
}

/* One step inside the array: a bracket, a comma, an element. */
static int step_array(struct json_parser *p, bool final)
{
    uint8_t c = p->data[p->from];
    struct slice rest = slice_of(p->data + p->from, p->len - p->from);

    switch (p->place) {
    case BEFORE_ARRAY:
        if (c == '{') {
            p->broken = true;
            p->from = p->len;
            return json_rows_add_bad(
                p->rows, shown(rest),
                "JSON data is not an array-object, `strip_outer_array` must be FALSE.");
        }
        if (c != '[')
            return break_off(p, rest, "an array is expected");
        p->from++;
        p->place = BEFORE_FIRST;
        return 0;
    case BEFORE_FIRST:
    case BEFORE_ELEMENT:
        if (c != ']' || p->place == BEFORE_ELEMENT)
            return take_element(p, final);
        p->from++;
        p->place = BEHIND_ARRAY;
        return 0;
    case BEHIND_ELEMENT:
        if (c != ',' && c != ']')
            return break_off(p, rest, "',' or ']' is expected behind an element");
        p->from++;
        p->place = c == ',' ? BEFORE_ELEMENT : BEHIND_ARRAY;
        return 0;
    case BEHIND_ARRAY:
        return break_off(p, rest, "unexpected text behind the array");
    }
    return 0;
}

static int split_array(struct json_parser *p, bool final)
{
    while (!json_rows_full(p->rows)) {
        skip_blanks(p);
        if (p->from == p->len)
            break;
        int err = step_array(p, final);
        if (err != 0)
            return err == TG_INCOMPLETE ? 0 : err;
    }
    if (final && p->from == p->len && !p->broken && p->place != BEFORE_ARRAY &&
        p->place != BEHIND_ARRAY && !json_rows_full(p->rows))
        return break_off(p, slice_of(p->data, 0), "the array is not closed");
    return 0;
}

/* ---- as a whole ---- */

static int split_document(struct json_parser *p, bool final)
{
    struct tg_errmsg why;
    struct slice all = slice_of(p->data + p->from, p->len - p->from);

    if (!final) {
        if (all.len < JSON_DOCUMENT_BYTES_MAX)
            return 0;
        return break_off(p, all, "the document is too long: read it by line, or as an array");
    }
    skip_blanks(p);
    if (p->from == p->len)
        return 0;
    p->from = p->len;
    int err = json_doc_parse(all.data, all.len, p->pool, &p->doc, &why);
    if (err == TG_NOMEM)
        return err;
    if (err == 0)
        return take_document(p, json_doc_root(p->doc), all, slice_of(NULL, 0));
    p->doc = NULL;
    if (p->options->strip_outer_array) /* never a part of an array */
        return break_off(p, all, why.text);
    return json_rows_add_bad(p->rows, shown(all),
                             "Parse json data for JsonDoc failed. code: 3, error info: %s",
                             why.text);
}

static void skip_bom(struct json_parser *p)
{
    static const uint8_t BOM[] = {0xEF, 0xBB, 0xBF};

    if (p->len - p->from >= sizeof BOM && memcmp(p->data + p->from, BOM, sizeof BOM) == 0)
        p->from += sizeof BOM;
    p->at_start = false;
}

int json_parser_split(struct json_parser *parser, bool final, struct field_rows *rows)
{
    struct json_parser *p = parser;
    int err = 0;

    json_rows_clear(p->rows);
    if (p->at_start)
        skip_bom(p);
    if (p->in_array)
        err = continue_array(p);
    if (err == 0 && !p->in_array && !p->broken) {
        if (p->mode == BY_LINE)
            err = split_lines(p, final);
        else if (p->mode == ARRAY)
            err = split_array(p, final);
        else
            err = split_document(p, final);
    }
    if (err != 0)
        return err;
    json_rows_give(p->rows, rows);
    rows->done = !p->in_array && !json_rows_full(p->rows);
    rows->broken = p->broken;
    return 0;
}
