/* SPDX-License-Identifier: Apache-2.0 */
/* What a read asks for, from the query string. */
#include "participant/read/read_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/time_text.h"

/* A plain number below this is a version, from here on microseconds since the epoch (the year
 * 1973). */
#define FIRST_TIME_US 100000000000000ull

struct parsing {
    read_request_lookup *lookup;
    void *ctx;
    struct tg_errmsg *msg;
    char text[READ_TEXT_BYTES];
};

/* The parameter's text is in p->text. 0, TG_NOT_FOUND (absent), or an error with its sentence. */
static int get(struct parsing *p, const char *name, unsigned nth)
{
    int err = p->lookup(p->ctx, name, nth, p->text, sizeof p->text);

    if (err == TG_INVALID)
        return tg_fail(p->msg, TG_INVALID, "parameter %s has a malformed percent escape", name);
    if (err == TG_TOO_LARGE)
        return tg_fail(p->msg, TG_INVALID, "parameter %s is longer than %d bytes", name,
                       READ_TEXT_BYTES - 1);
    return err;
}

static bool parse_number(const char *text, uint64_t *value)
{
    uint64_t v = 0;

    if (*text == 0)
        return false;
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
            return false;
    }
    *value = v;
    return true;
}

static int get_number(struct parsing *p, const char *name, uint64_t max, uint64_t *value)
{
    int err = get(p, name, 0);

    if (err == TG_NOT_FOUND)
        return 0;
    if (err != 0)
        return err;
    if (!parse_number(p->text, value) || *value > max)
        return tg_fail(p->msg, TG_INVALID, "parameter %s must be a number up to %" PRIu64, name,
                       max);
    return 0;
}

static int get_bool(struct parsing *p, const char *name, bool *value)
{
    int err = get(p, name, 0);

    if (err != 0)
        return err == TG_NOT_FOUND ? 0 : err;
    *value = strcmp(p->text, "true") == 0 || strcmp(p->text, "1") == 0;
    if (!*value && strcmp(p->text, "false") != 0 && strcmp(p->text, "0") != 0)
        return tg_fail(p->msg, TG_INVALID, "parameter %s must be true or false", name);
    return 0;
}

/* One of two words; the second sets the flag. */
static int get_choice(struct parsing *p, const char *name, const char *no, const char *yes,
                      bool *value)
{
    int err = get(p, name, 0);

    if (err != 0)
        return err == TG_NOT_FOUND ? 0 : err;
    *value = strcmp(p->text, yes) == 0;
    if (!*value && strcmp(p->text, no) != 0)
        return tg_fail(p->msg, TG_INVALID, "parameter %s must be %s or %s", name, no, yes);
    return 0;
}

/* In a query string '+' means a blank, and few people write %2B: "…T12:00:00 01:00" was an offset.
 */
static void mend_offset(char *text)
{
    size_t len = strlen(text);
    enum { DATE_BYTES = 10, OFFSET_BYTES = 6 };

    if (len > DATE_BYTES + OFFSET_BYTES && text[len - OFFSET_BYTES] == ' ')
        text[len - OFFSET_BYTES] = '+';
}

static int parse_time(struct parsing *p, const char *name, struct read_bound *bound)
{
    struct tg_errmsg why = {{0}};

    mend_offset(p->text);
    bound->at = READ_TIME;
    if (time_text_parse(p->text, &bound->value, &why) != 0)
        return tg_fail(p->msg, TG_INVALID, "parameter %s: %s", name, why.text);
    return 0;
}

static int get_time(struct parsing *p, const char *name, struct read_bound *bound)
{
    int err = get(p, name, 0);

    if (err != 0)
        return err == TG_NOT_FOUND ? 0 : err;
    if (bound->at != READ_LATEST)
        return tg_fail(p->msg, TG_INVALID, "version and as_of exclude each other");
    return parse_time(p, name, bound);
}

static int get_version(struct parsing *p, const char *name, struct read_bound *bound)
{
    int err = get(p, name, 0);

    if (err != 0)
        return err == TG_NOT_FOUND ? 0 : err;
    bound->at = READ_VERSION;
    if (!parse_number(p->text, &bound->value))
        return tg_fail(p->msg, TG_INVALID, "parameter %s must be a version number", name);
    return 0;
}

/* after= and until=: a version or a time. */
static int get_bound(struct parsing *p, const char *name, struct read_bound *bound, bool *given)
{
    int err = get(p, name, 0);

    *given = err == 0;
    if (err != 0)
        return err == TG_NOT_FOUND ? 0 : err;
    if (bound->at != READ_LATEST)
        return tg_fail(p->msg, TG_INVALID, "%s excludes version and as_of", name);
    if (parse_number(p->text, &bound->value)) {
        bound->at = bound->value < FIRST_TIME_US ? READ_VERSION : READ_TIME;
        return 0;
    }
    return parse_time(p, name, bound);
}

void read_token_print(table_id table, version_t version, uint64_t skip, char out[READ_TOKEN_BYTES])
{
    snprintf(out, READ_TOKEN_BYTES, "1.%" PRIu64 ".%" PRIu64 ".%" PRIu64, (uint64_t)table, version,
             skip);
}

/* The number up to the next dot or the end; the rest, NULL if this was the last one. */
static bool take_number(char **rest, uint64_t *value)
{
    char *text = *rest;
    char *dot = text != NULL ? strchr(text, '.') : NULL;

    *rest = dot != NULL ? dot + 1 : NULL;
    if (dot != NULL)
        *dot = 0;
    return text != NULL && parse_number(text, value);
}

static int get_token(struct parsing *p, struct read_request *request, bool *given)
{
    char *rest = p->text;
    uint64_t format = 0;
    uint64_t table = 0;
    int err = get(p, "token", 0);

    *given = err == 0;
    if (err != 0)
        return err == TG_NOT_FOUND ? 0 : err;
    request->after.at = READ_VERSION;
    if (!take_number(&rest, &format) || format != 1 || !take_number(&rest, &table) || table == 0 ||
        !take_number(&rest, &request->after.value) || !take_number(&rest, &request->skip) ||
        rest != NULL)
        return tg_fail(p->msg, TG_INVALID, "parameter token is not one that _changes gave");
    request->token_table = (table_id)table;
    return 0;
}

static int get_changes(struct parsing *p, struct read_request *request)
{
    bool has_token = false;
    bool has_after;
    bool has_until;
    int err = get_bound(p, "after", &request->after, &has_after);

    if (err == 0)
        err = get_bound(p, "until", &request->bound, &has_until);
    if (err == 0)
        err = get_token(p, request, &has_token);
    if (err == 0)
        err = get_number(p, "wait_ms", READ_WAIT_MS_MAX, &request->wait_ms);
    if (err == 0 && !has_token && !has_after)
        return tg_fail(p->msg, TG_INVALID,
                       "_changes needs after= (a version, 0 for all, or a time) or token=");
    if (err == 0 && has_token && has_after)
        return tg_fail(p->msg, TG_INVALID, "after and token exclude each other");
    if (err == 0 && request->limit > READ_CHANGES_LIMIT_MAX)
        return tg_fail(p->msg, TG_INVALID, "limit of _changes is at most %d",
                       READ_CHANGES_LIMIT_MAX);
    return err;
}

static int get_texts(struct parsing *p, const char *name, struct buf *texts, uint32_t *count)
{
    int err;

    while ((err = get(p, name, *count)) == 0) {
        if (*count == READ_KEYS_MAX)
            return tg_fail(p->msg, TG_INVALID, "more than %d values of %s", READ_KEYS_MAX, name);
        buf_append_str(&texts[*count], p->text);
        if (texts[(*count)++].err != 0)
            return TG_NOMEM;
    }
    return err == TG_NOT_FOUND ? 0 : err;
}

static int get_limit(struct parsing *p, struct read_request *request)
{
    int err = get(p, "limit", 0);

    if (err != 0)
        return err == TG_NOT_FOUND ? 0 : err;
    err = get_number(p, "limit", UINT32_MAX, &request->limit);
    if (err == 0 && request->limit == 0)
        err = tg_fail(p->msg, TG_INVALID, "parameter limit must be at least 1");
    return err;
}

static int get_all(struct parsing *p, struct read_request *request)
{
    bool csv = false;
    int err = get_version(p, "version", &request->bound);

    if (err == 0)
        err = get_time(p, "as_of", &request->bound);
    if (err == 0)
        err = get_choice(p, "consistency", "strong", "local", &request->local);
    if (err == 0)
        err = get_choice(p, "format", "json", "csv", &csv);
    request->format = csv ? RESULT_CSV : RESULT_JSON;
    if (err == 0)
        err = get_choice(p, "order", "none", "key", &request->in_key_order);
    if (err == 0)
        err = get_limit(p, request);
    if (err == 0)
        err = get_bool(p, "include_deleted", &request->include_deleted);
    if (err == 0 && get(p, "where", 0) == 0)
        err = tg_fail(p->msg, TG_UNSUPPORTED, "where= is not supported");
    if (err == 0 && (err = get(p, "columns", 0)) == 0)
        memcpy(request->columns, p->text, sizeof request->columns);
    err = err == TG_NOT_FOUND ? 0 : err;
    if (err == 0 && request->kind == READ_CHANGES)
        err = get_changes(p, request);
    if (err == 0 && request->kind == READ_GET) {
        err = get_texts(p, "key", request->from, &request->from_count);
        if (err == 0 && request->from_count == 0)
            err = tg_fail(p->msg, TG_INVALID, "_get needs key=, once for each key column");
    }
    if (err == 0 && request->kind == READ_RANGE) {
        request->in_key_order = true;
        err = get_texts(p, "from", request->from, &request->from_count);
        if (err == 0)
            err = get_texts(p, "to", request->to, &request->to_count);
    }
    return err;
}

#define PARAMETERS_OF_ALL \
    "version", "as_of", "columns", "limit", "format", "consistency", "include_deleted"

const char *const *read_request_parameters(enum read_kind kind, size_t *count)
{
    static const char *const scan[] = {PARAMETERS_OF_ALL, "order", "where"};
    static const char *const get[] = {PARAMETERS_OF_ALL, "order", "where", "key"};
    static const char *const range[] = {PARAMETERS_OF_ALL, "order", "where", "from", "to"};
    static const char *const changes[] = {PARAMETERS_OF_ALL, "after", "until", "token", "wait_ms"};

    switch (kind) {
    case READ_GET:
        *count = sizeof get / sizeof get[0];
        return get;
    case READ_RANGE:
        *count = sizeof range / sizeof range[0];
        return range;
    case READ_CHANGES:
        *count = sizeof changes / sizeof changes[0];
        return changes;
    default:
        *count = sizeof scan / sizeof scan[0];
        return scan;
    }
}

int read_request_parse(enum read_kind kind, const char *db, const char *table,
                       read_request_lookup *lookup, void *ctx, struct read_request *request,
                       struct tg_errmsg *msg)
{
    struct parsing p = {.lookup = lookup, .ctx = ctx, .msg = msg};

    memset(request, 0, sizeof *request);
    request->kind = kind;
    if (strlen(db) >= sizeof request->db || strlen(table) >= sizeof request->table)
        return tg_fail(msg, TG_NOT_FOUND, "the name is longer than %zu bytes",
                       sizeof request->db - 1);
    snprintf(request->db, sizeof request->db, "%s", db);
    snprintf(request->table, sizeof request->table, "%s", table);
    return get_all(&p, request);
}

void read_request_close(struct read_request *request)
{
    for (uint32_t i = 0; i < READ_KEYS_MAX; i++) {
        buf_close(&request->from[i]);
        buf_close(&request->to[i]);
    }
}

void read_request_point(const struct read_request *request, struct msg_read_point *message)
{
    memset(message, 0, sizeof *message);
    memcpy(message->db, request->db, sizeof message->db);
    memcpy(message->table, request->table, sizeof message->table);
    message->bound = request->bound;
    message->local = request->local;
    message->with_changes = request->kind == READ_CHANGES;
    message->after = request->after;
}
