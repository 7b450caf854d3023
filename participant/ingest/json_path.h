/* SPDX-License-Identifier: Apache-2.0 */
/* Simple JSON paths: $.k, $.a.b, $.c[2], $.t."a.b", and "$" or "$." for the whole. */
#ifndef TG_PARTICIPANT_INGEST_JSON_PATH_H
#define TG_PARTICIPANT_INGEST_JSON_PATH_H

#include <stdint.h>

#include "common/base/json.h"

enum { JSON_PATH_STEPS_MAX = 32, JSON_PATHS_MAX = 1024 + 64 };

struct json_path_step {
    char *name; /* NULL: an index */
    uint32_t index;
};
struct json_path {
    uint32_t count;               /* 0 = the whole value */
    struct json_path_step *steps; /* owned */
};

/* TG_INVALID with a reason, TG_NOMEM; *path is empty then. */
int json_path_parse(const char *text, size_t len, struct json_path *path, struct tg_errmsg *msg);
void json_path_close(struct json_path *path);
/* The value at the path below root; NULL if there is none. */
const struct json_value *json_path_find(const struct json_path *path,
                                        const struct json_value *root);

struct json_paths {
    uint32_t count;
    struct json_path *paths; /* owned */
};
/* A JSON array of path texts: the jsonpaths header. */
int json_paths_parse(const char *text, struct json_paths *paths, struct tg_errmsg *msg);
void json_paths_close(struct json_paths *paths);

#endif
