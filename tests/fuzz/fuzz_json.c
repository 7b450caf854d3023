/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the body of a JSON load, in every form of documents: no crash, fields inside their
 * text, and the same number of rows however the body is cut. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "participant/ingest/json_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *lookup(void *ctx, const char *name)
{
    uint8_t form = *(uint8_t *)ctx;

    if (strcmp(name, "format") == 0)
        return "json";
    if (strcmp(name, "read_json_by_line") == 0)
        return form & 1 ? "true" : "false";
    if (strcmp(name, "strip_outer_array") == 0)
        return form & 2 ? "true" : "false";
    if (strcmp(name, "json_root") == 0)
        return form & 4 ? "$.r" : NULL;
    if (strcmp(name, "jsonpaths") == 0)
        return form & 8 ? "[\"$.a\",\"$.b[0].c\"]" : NULL;
    return NULL;
}

/* Good and bad rows; *broken as it comes out. */
static uint64_t parse(const struct row_mapping *mapping, const struct load_options *options,
                      const uint8_t *body, size_t len, size_t chunk, bool *broken)
{
    struct json_parser *parser;
    size_t at = 0;
    bool final = false;
    uint64_t count = 0;

    *broken = false;
    TG_CHECK(json_parser_open(mapping, options, chunk, &parser) == 0);
    while (!final && !*broken) {
        uint8_t *to;
        size_t room;
        TG_CHECK(json_parser_room(parser, &to, &room) == 0);
        size_t n = len - at < room ? len - at : room;
        if (n > 0)
            memcpy(to, body + at, n);
        json_parser_filled(parser, n);
        at += n;
        final = at == len;
        struct field_rows rows;
        do {
            TG_CHECK(json_parser_split(parser, final, &rows) == 0);
            count += rows.rows + rows.bad_count;
            for (uint32_t i = 0; i < rows.rows * rows.columns; i++)
                TG_CHECK(rows.begins[i] <= rows.ends[i]);
            *broken = rows.broken;
        } while (!rows.done && !*broken);
    }
    json_parser_close(parser);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const NAMES[] = {"a", "b", "key with blanks"};
    struct schema schema;
    struct load_options options;
    struct row_mapping mapping;
    bool broken[2];

    if (size < 1)
        return 0;
    schema_init(&schema);
    schema.key_model = KEY_DUPLICATE;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        struct schema_column column = {.type = {.kind = TYPE_STRING}, .nullable = i > 0};
        snprintf(column.name, sizeof column.name, "%s", NAMES[i]);
        TG_CHECK(schema_add_column(&schema, &column, NULL) == 0);
    }
    uint8_t form = data[0];
    TG_CHECK(load_options_parse(lookup, &form, "L", &options, NULL) == 0);
    TG_CHECK(row_mapping_build(&schema, &options, 0, &mapping, NULL) == 0);
    uint64_t whole = parse(&mapping, &options, data + 1, size - 1, JSON_CHUNK_BYTES, &broken[0]);
    uint64_t pieces = parse(&mapping, &options, data + 1, size - 1, 16 + size % 50, &broken[1]);
    TG_CHECK(broken[0] == broken[1] && (broken[0] || whole == pieces));
    row_mapping_close(&mapping);
    load_options_close(&options);
    schema_close(&schema);
    return 0;
}
