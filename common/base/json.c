/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON through yyjson. Its reader and writer keep their own stacks, so deep input costs
 * memory in proportion to its length and no call stack. */
#include "common/base/json.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

/* Numbers stay text; everything else is strict RFC 8259, which is what no flag means. */
static const yyjson_read_flag read_flags = YYJSON_READ_NUMBER_AS_RAW;

/* Documents up to this length live in the pool's buffer; longer ones are allocated by themselves,
 * so that one large document does not keep its memory for good (the buffer is about 13 times that).
 */
enum { POOLED_LENGTH_MAX = 256 * 1024 };

struct json_doc {
    yyjson_doc *doc;
    bool in_pool; /* this struct is a part of a pool */
};

struct json_pool {
    struct json_doc doc;
    void *buffer;
    size_t size;
};

struct json_pool *json_pool_open(void)
{
    return calloc(1, sizeof(struct json_pool));
}

void json_pool_close(struct json_pool *pool)
{
    if (pool == NULL)
        return;
    yyjson_doc_free(pool->doc.doc);
    free(pool->buffer);
    free(pool);
}

size_t json_pool_bytes(const struct json_pool *pool)
{
    return pool->size;
}

/* Room for the worst document of this length. 0 or TG_NOMEM. */
static int pool_grow(struct json_pool *pool, size_t len)
{
    size_t need = yyjson_read_max_memory_usage(len, read_flags);
    if (need <= pool->size)
        return 0;
    size_t size = pool->size < 4096 ? 4096 : pool->size;
    while (size < need)
        size *= 2;
    free(pool->buffer);
    pool->buffer = malloc(size);
    pool->size = pool->buffer == NULL ? 0 : size;
    return pool->buffer == NULL ? TG_NOMEM : 0;
}

static int pool_parse(struct json_pool *pool, char *text, size_t len, yyjson_read_err *failure)
{
    yyjson_doc_free(pool->doc.doc);
    pool->doc = (struct json_doc){.in_pool = true};
    if (len > POOLED_LENGTH_MAX) {
        pool->doc.doc = yyjson_read_opts(text, len, read_flags, NULL, failure);
        return 0;
    }
    int err = pool_grow(pool, len);
    if (err != 0)
        return err;
    yyjson_alc alc;
    if (!yyjson_alc_pool_init(&alc, pool->buffer, pool->size))
        return TG_NOMEM;
    pool->doc.doc = yyjson_read_opts(text, len, read_flags, &alc, failure);
    return 0;
}

int json_doc_parse(const void *text, size_t len, struct json_pool *pool, struct json_doc **doc,
                   struct tg_errmsg *msg)
{
    *doc = NULL;
    if (len == 0)
        return tg_fail(msg, TG_SYNTAX, "JSON at byte 0: empty");
    yyjson_read_err failure = {0};
    struct json_doc *into = pool == NULL ? calloc(1, sizeof *into) : &pool->doc;
    if (into == NULL)
        return tg_fail(msg, TG_NOMEM, "JSON: out of memory");
    /* The reader copies the text first: it only writes to it when told to parse in place. */
    char *input = (char *)(uintptr_t)text;
    int err = 0;
    if (pool == NULL)
        into->doc = yyjson_read_opts(input, len, read_flags, NULL, &failure);
    else
        err = pool_parse(pool, input, len, &failure);
    if (into->doc != NULL) {
        *doc = into;
        return 0;
    }
    if (pool == NULL)
        free(into);
    if (err != 0 || failure.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return tg_fail(msg, TG_NOMEM, "JSON: out of memory");
    return tg_fail(msg, TG_SYNTAX, "JSON at byte %zu: %s", failure.pos,
                   failure.msg == NULL ? "malformed" : failure.msg);
}

int json_doc_parse_first(const void *text, size_t len, struct json_pool *pool,
                         struct json_doc **doc, size_t *used, struct tg_errmsg *msg)
{
    *doc = NULL;
    *used = 0;
    struct json_scan scan;
    json_scan_init(&scan);
    size_t end;
    int err = json_scan_feed(&scan, text, len, &end);
    if (err == TG_INCOMPLETE && scan.started && scan.scalar)
        end = len;
    else if (err == TG_INCOMPLETE)
        return tg_fail(msg, err, "JSON at byte %zu: the text ends %s", len,
                       scan.started ? "inside the document" : "before a document starts");
    else if (err != 0)
        return tg_fail(msg, TG_SYNTAX, "JSON: nested too deeply");
    err = json_doc_parse(text, end, pool, doc, msg);
    if (err == 0)
        *used = end;
    return err;
}

void json_doc_close(struct json_doc *doc)
{
    if (doc == NULL)
        return;
    yyjson_doc_free(doc->doc);
    doc->doc = NULL;
    if (!doc->in_pool)
        free(doc);
}

/* struct json_value is yyjson's value under a name of ours: nothing else may look inside. */
static const struct json_value *wrap(const yyjson_val *value)
{
    return (const struct json_value *)value;
}

static yyjson_val *unwrap(const struct json_value *value)
{
    return (yyjson_val *)(uintptr_t)value;
}

const struct json_value *json_doc_root(const struct json_doc *doc)
{
    return wrap(yyjson_doc_get_root(doc->doc));
}

/* By yyjson's type; its "none" does not occur in a document. */
static const enum json_kind kinds[YYJSON_TYPE_MASK + 1] = {
    [YYJSON_TYPE_NONE] = JSON_NULL,  [YYJSON_TYPE_RAW] = JSON_NUMBER,
    [YYJSON_TYPE_NULL] = JSON_NULL,  [YYJSON_TYPE_BOOL] = JSON_BOOL,
    [YYJSON_TYPE_NUM] = JSON_NUMBER, [YYJSON_TYPE_STR] = JSON_STRING,
    [YYJSON_TYPE_ARR] = JSON_ARRAY,  [YYJSON_TYPE_OBJ] = JSON_OBJECT,
};

enum json_kind json_value_kind(const struct json_value *value)
{
    return kinds[yyjson_get_type(unwrap(value))];
}

bool json_value_bool(const struct json_value *value)
{
    return yyjson_get_bool(unwrap(value));
}

static struct slice text_of(yyjson_val *val)
{
    yyjson_type type = unsafe_yyjson_get_type(val);
    if (type == YYJSON_TYPE_STR || type == YYJSON_TYPE_RAW)
        return slice_of(unsafe_yyjson_get_str(val), unsafe_yyjson_get_len(val));
    return slice_of(NULL, 0);
}

struct slice json_value_text(const struct json_value *value)
{
    return value == NULL ? slice_of(NULL, 0) : text_of(unwrap(value));
}

const struct json_value *json_value_get(const struct json_value *value, const char *name)
{
    return wrap(yyjson_obj_get(unwrap(value), name));
}

size_t json_value_count(const struct json_value *value)
{
    yyjson_val *val = unwrap(value);
    return yyjson_is_ctn(val) ? unsafe_yyjson_get_len(val) : 0;
}

const struct json_value *json_value_at(const struct json_value *array, size_t index)
{
    return wrap(yyjson_arr_get(unwrap(array), index));
}

void json_iter_init(struct json_iter *iter, const struct json_value *container)
{
    *iter = (struct json_iter){.kind = json_value_kind(container)};
    iter->left = json_value_count(container);
    if (iter->left > 0)
        iter->at = wrap(unsafe_yyjson_get_first(unwrap(container)));
}

bool json_iter_member(struct json_iter *iter, struct slice *name, const struct json_value **value)
{
    if (iter->left == 0 || iter->kind != JSON_OBJECT)
        return false;
    yyjson_val *key = unwrap(iter->at);
    *name = slice_of(unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key));
    *value = wrap(key + 1);
    iter->at = wrap(unsafe_yyjson_get_next(key + 1));
    iter->left--;
    return true;
}

bool json_iter_element(struct json_iter *iter, const struct json_value **value)
{
    if (iter->left == 0 || iter->kind != JSON_ARRAY)
        return false;
    *value = iter->at;
    iter->at = wrap(unsafe_yyjson_get_next(unwrap(iter->at)));
    iter->left--;
    return true;
}

size_t json_object_fields(const struct json_value *object, struct json_field *out, size_t cap)
{
    yyjson_val *val = unwrap(object);
    if (!yyjson_is_obj(val))
        return 0;
    size_t count = unsafe_yyjson_get_len(val);
    yyjson_val *key = count == 0 ? NULL : unsafe_yyjson_get_first(val);
    for (size_t i = 0; i < count && i < cap; i++) {
        yyjson_val *member = key + 1;
        out[i].name = slice_of(unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key));
        out[i].text = text_of(member);
        out[i].value = wrap(member);
        out[i].kind = kinds[unsafe_yyjson_get_type(member)];
        key = unsafe_yyjson_get_next(member);
    }
    return count;
}

void json_value_print(const struct json_value *value, struct buf *out)
{
    size_t len;
    char *text = yyjson_val_write_opts(unwrap(value), YYJSON_WRITE_NOFLAG, NULL, &len, NULL);
    if (text == NULL) {
        out->err = TG_NOMEM; /* the one reason: whatever was parsed can be written */
        return;
    }
    buf_append(out, text, len);
    free(text);
}
