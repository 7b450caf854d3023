/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and following simple JSON paths. */
#include "participant/ingest/json_path.h"

#include <stdlib.h>
#include <string.h>

enum { INDEX_MAX = 1000000000 };

void json_path_close(struct json_path *path)
{
    for (uint32_t i = 0; i < path->count; i++)
        free(path->steps[i].name);
    free(path->steps);
    *path = (struct json_path){0};
}

static int bad_path(const char *text, size_t len, const char *why, struct tg_errmsg *msg)
{
    return tg_fail(msg, TG_INVALID, "[INVALID_ARGUMENT]Invalid json path: %.*s (%s)",
                   (int)(len > 100 ? 100 : len), text, why);
}

static int add_name(struct json_path *path, const char *name, size_t len)
{
    char *copy = strndup(name, len);
    if (copy == NULL)
        return TG_NOMEM;
    path->steps[path->count++] = (struct json_path_step){.name = copy};
    return 0;
}

/* The step that begins at text[*at] ('.' or '['); moves *at behind it. */
static int parse_step(const char *text, size_t len, size_t *at, struct json_path *path,
                      const char **why)
{
    size_t i = *at;

    if (text[i] == '[') {
        uint32_t index = 0;
        size_t begin = ++i;
        for (; i < len && text[i] >= '0' && text[i] <= '9' && index < INDEX_MAX / 10; i++)
            index = index * 10 + (uint32_t)(text[i] - '0');
        *why = "an index in [] is expected";
        if (i == begin || i == len || text[i] != ']')
            return TG_INVALID;
        path->steps[path->count++] = (struct json_path_step){.index = index};
        *at = i + 1;
        return 0;
    }
    *why = "a name is expected behind '.'";
    if (text[i] != '.' || ++i == len)
        return TG_INVALID;
    size_t begin = i;
    if (text[i] == '"') {
        begin = ++i;
        while (i < len && text[i] != '"')
            i++;
        *why = "a quote is not closed";
        if (i == len)
            return TG_INVALID;
        *at = i + 1;
        return add_name(path, text + begin, i - begin);
    }
    while (i < len && text[i] != '.' && text[i] != '[')
        i++;
    if (i == begin)
        return TG_INVALID;
    *at = i;
    return add_name(path, text + begin, i - begin);
}

int json_path_parse(const char *text, size_t len, struct json_path *path, struct tg_errmsg *msg)
{
    size_t at = 1;

    *path = (struct json_path){0};
    if (len == 0 || text[0] != '$')
        return bad_path(text, len, "it must begin with $", msg);
    if (len == 1 || (len == 2 && text[1] == '.'))
        return 0;
    path->steps = calloc(JSON_PATH_STEPS_MAX, sizeof *path->steps);
    if (path->steps == NULL)
        return tg_fail(msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory");
    while (at < len) {
        const char *why = "too many steps";
        int err = TG_INVALID;
        if (path->count < JSON_PATH_STEPS_MAX)
            err = parse_step(text, len, &at, path, &why);
        if (err != 0) {
            json_path_close(path);
            return err == TG_NOMEM ? tg_fail(msg, err, "[INTERNAL_ERROR]out of memory")
                                   : bad_path(text, len, why, msg);
        }
    }
    return 0;
}

const struct json_value *json_path_find(const struct json_path *path, const struct json_value *root)
{
    const struct json_value *value = root;

    for (uint32_t i = 0; i < path->count && value != NULL; i++) {
        const struct json_path_step *step = &path->steps[i];
        if (step->name != NULL)
            value = json_value_get(value, step->name);
        else if (json_value_kind(value) == JSON_ARRAY && step->index < json_value_count(value))
            value = json_value_at(value, step->index);
        else
            value = NULL;
    }
    return value;
}

void json_paths_close(struct json_paths *paths)
{
    for (uint32_t i = 0; i < paths->count; i++)
        json_path_close(&paths->paths[i]);
    free(paths->paths);
    *paths = (struct json_paths){0};
}

static int fill_paths(const struct json_value *root, struct json_paths *paths,
                      struct tg_errmsg *msg)
{
    struct json_iter iter;
    const struct json_value *element;
    size_t count = json_value_count(root);

    if (json_value_kind(root) != JSON_ARRAY || count == 0)
        return tg_fail(msg, TG_INVALID,
                       "[INVALID_ARGUMENT]Invalid json path: jsonpaths must be "
                       "an array of texts such as [\"$.k1\", \"$.k2\"]");
    if (count > JSON_PATHS_MAX)
        return tg_fail(msg, TG_LIMIT, "[INVALID_ARGUMENT]more than %d jsonpaths", JSON_PATHS_MAX);
    paths->paths = calloc(count, sizeof *paths->paths);
    if (paths->paths == NULL)
        return tg_fail(msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory");
    json_iter_init(&iter, root);
    while (json_iter_element(&iter, &element)) {
        if (json_value_kind(element) != JSON_STRING)
            return tg_fail(msg, TG_INVALID,
                           "[INVALID_ARGUMENT]Invalid json path: element %u of "
                           "jsonpaths is not a text",
                           paths->count);
        struct slice text = json_value_text(element);
        int err =
            json_path_parse((const char *)text.data, text.len, &paths->paths[paths->count], msg);
        if (err != 0)
            return err;
        paths->count++;
    }
    return 0;
}

int json_paths_parse(const char *text, struct json_paths *paths, struct tg_errmsg *msg)
{
    struct json_doc *doc;
    int err = json_doc_parse(text, strlen(text), NULL, &doc, NULL);

    *paths = (struct json_paths){0};
    if (err == TG_NOMEM)
        return tg_fail(msg, err, "[INTERNAL_ERROR]out of memory");
    if (err != 0)
        return tg_fail(msg, TG_INVALID,
                       "[INVALID_ARGUMENT]Invalid json path: jsonpaths is not "
                       "JSON: %.100s",
                       text);
    err = fill_paths(json_doc_root(doc), paths, msg);
    json_doc_close(doc);
    if (err != 0)
        json_paths_close(paths);
    return err;
}
