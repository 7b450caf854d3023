/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents: a reader on yyjson and a small writer. This file alone knows the JSON library.
 * The row reader of JSON loads (participant/ingest/json_parser) uses json_doc with json_value's raw
 * numbers, so that no literal passes through a double. */
#ifndef TG_COMMON_BASE_JSON_H
#define TG_COMMON_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER, /* always its literal text */
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json_doc;   /* a parsed document and its memory */
struct json_value; /* a place in a document: valid while the document is open */

/* A pool that json_doc_parse re-uses from document to document; NULL pool = malloc. */
struct json_pool;
struct json_pool *json_pool_open(void);
void json_pool_close(struct json_pool *pool);
/* Bytes that it holds; a document too large for a pool has more of its own. */
size_t json_pool_bytes(const struct json_pool *pool);

/* Parses one whole document (strict JSON, UTF-8 checked, numbers kept raw). The text may go away
 * afterwards. Returns 0, TG_SYNTAX with byte position and reason in msg, TG_NOMEM. A document taken
 * from a pool is invalid after the next parse with that pool. */
int json_doc_parse(const void *text, size_t len, struct json_pool *pool, struct json_doc **doc,
                   struct tg_errmsg *msg);
/* Parses the document at the start of text and says how many bytes it used, leading blanks included
 * (for concatenated documents). TG_INCOMPLETE if text ends inside an array, object or string, or
 * holds only blanks; a number or word that reaches the end of text is taken as whole. Costs what
 * the document costs, however long the text behind it is. */
int json_doc_parse_first(const void *text, size_t len, struct json_pool *pool,
                         struct json_doc **doc, size_t *used, struct tg_errmsg *msg);
/* NULL is fine. Also for documents of a pool, where it is optional. */
void json_doc_close(struct json_doc *doc);
const struct json_value *json_doc_root(const struct json_doc *doc);

enum json_kind json_value_kind(const struct json_value *value);
bool json_value_bool(const struct json_value *value);
/* Text of a string (unescaped) or of a number (literal). Empty for other kinds. */
struct slice json_value_text(const struct json_value *value);
/* Object member by name: the first with that name, NULL if none or not an object. */
const struct json_value *json_value_get(const struct json_value *value, const char *name);
size_t json_value_count(const struct json_value *value); /* elements or members */
const struct json_value *json_value_at(const struct json_value *array, size_t index);
/* Walks members or elements in order, at the cost of a pointer step each. False at the end, and at
 * once if the container is not an object (array). */
struct json_iter {
    const struct json_value *at; /* the next name or element */
    size_t left;
    enum json_kind kind;
};
void json_iter_init(struct json_iter *iter, const struct json_value *container);
bool json_iter_member(struct json_iter *iter, struct slice *name, const struct json_value **value);
bool json_iter_element(struct json_iter *iter, const struct json_value **value);

/* A member with everything a row reader wants to know of it. */
struct json_field {
    struct slice name;
    struct slice text; /* as json_value_text */
    const struct json_value *value;
    enum json_kind kind;
};
/* The first `cap` members of an object in one call, for rows by the million. Returns the object's
 * member count, which may be over cap; 0 if it is not an object. */
size_t json_object_fields(const struct json_value *object, struct json_field *out, size_t cap);

/* Appends the value's compact JSON text: numbers as they were written. */
void json_value_print(const struct json_value *value, struct buf *out);

/* Finds where a document ends in text that comes in pieces, without parsing it: brackets and quotes
 * are counted, the rest is the parser's to judge. */
struct json_scan {
    uint32_t depth;
    bool started;
    bool in_string;
    bool escaped;
    bool scalar; /* a number or word: ends before the first byte that cannot belong to it */
};
void json_scan_init(struct json_scan *scan);
/* Feeds the next piece. Returns 0 with *used = the bytes of this piece up to the document's end, or
 * TG_INCOMPLETE if all of it was used and the document goes on; TG_LIMIT beyond
 * JSON_SCAN_DEPTH_MAX. */
enum { JSON_SCAN_DEPTH_MAX = 100000 };
int json_scan_feed(struct json_scan *scan, const void *piece, size_t len, size_t *used);

/* Writer: json_append_string appends a quoted, escaped string; the rest is buf_printf. Bytes that
 * are not UTF-8 become U+FFFD. */
void json_append_string(struct buf *out, struct slice text);
void json_append_cstr(struct buf *out, const char *text);

/* A structured writer for answers: keeps commas and indentation right. indent = 0 for compact, 4
 * for Doris's answers. */
struct json_writer {
    struct buf *out;
    int indent;
    int depth;
    bool first;
    bool after_key;
};
void json_writer_init(struct json_writer *writer, struct buf *out, int indent);
void json_writer_object(struct json_writer *writer);
void json_writer_object_end(struct json_writer *writer);
void json_writer_array(struct json_writer *writer);
void json_writer_array_end(struct json_writer *writer);
void json_writer_key(struct json_writer *writer, const char *key);
void json_writer_str(struct json_writer *writer, const char *text);
void json_writer_slice(struct json_writer *writer, struct slice text);
void json_writer_int(struct json_writer *writer, int64_t value);
void json_writer_uint(struct json_writer *writer, uint64_t value);
void json_writer_bool(struct json_writer *writer, bool value);
void json_writer_null(struct json_writer *writer);
void json_writer_raw(struct json_writer *writer, struct slice json); /* already JSON */

#endif
