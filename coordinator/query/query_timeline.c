/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of a table, or of all tables of a database: what was done, when it was asked for and
 * when it became visible.
 *
 * A table's completed instants are its versions, so they reach back to its creation; label and
 * request time of a version are known as long as its transaction is. A database's instants are its
 * transactions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/time_text.h"
#include "common/net/http_server.h"
#include "coordinator/query/query_call.h"
#include "coordinator/query/query_time.h"

enum { TIMELINE_LIMIT_DEFAULT = 100, TIMELINE_WORD_BYTES = 24 };

struct filter {
    uint64_t from_us;
    uint64_t to_us;
    char action[TIMELINE_WORD_BYTES]; /* "" = all */
    char state[TIMELINE_WORD_BYTES];
    char label[DDL_PATTERN_BYTES]; /* LIKE pattern, "" = all */
    uint64_t limit;
};

struct instant {
    txn_id txn;
    const char *action;
    const char *state;
    uint64_t requested_us; /* 0 = no longer known */
    uint64_t completed_us; /* 0 = not completed */
    version_t version;     /* 0 = none, or several tables */
    uint64_t rows;
    bool lost;                /* a part of it was declared lost */
    const struct txn *record; /* NULL once it is forgotten */
};

struct instants {
    struct instant *list;
    size_t count;
    size_t capacity;
};

/* ---- what was asked ---- */

/* A named part of the query string; absent ones leave out as it is. */
static int take_text(const struct http_request *query, const char *name, char *out, size_t cap,
                     struct tg_errmsg *msg)
{
    int err = http_request_query(query, name, 0, out, cap);

    if (err == TG_NOT_FOUND)
        return 0;
    return err == 0 ? 0 : tg_fail(msg, TG_INVALID, "the value of %s is not usable", name);
}

static int take_time(const struct http_request *query, const char *name, uint64_t *us,
                     struct tg_errmsg *msg)
{
    char text[QUERY_TIME_BYTES * 2] = "";
    int err = take_text(query, name, text, sizeof text, msg);

    if (err != 0 || text[0] == '\0')
        return err;
    if (query_time_parse(text, us) != 0)
        return tg_fail(msg, TG_INVALID,
                       "%s=%s is neither microseconds since the epoch nor a time like "
                       "2026-01-31T12:00:00.123456Z",
                       name, text);
    return 0;
}

static int take_limit(const struct http_request *query, uint64_t *limit, struct tg_errmsg *msg)
{
    char text[TIMELINE_WORD_BYTES] = "";
    char *end;
    int err = take_text(query, "limit", text, sizeof text, msg);

    if (err != 0 || text[0] == '\0')
        return err;
    *limit = strtoull(text, &end, 10);
    if (*end != '\0' || text[0] == '-' || *limit == 0 || *limit > QUERY_ROWS_MAX)
        return tg_fail(msg, TG_INVALID, "limit must be in 1..%d", QUERY_ROWS_MAX);
    return 0;
}

/* One of the words, or nothing. */
static int check_word(const char *name, const char *value, const char *const *words, size_t count,
                      struct tg_errmsg *msg)
{
    struct buf list = BUF_INIT;

    for (size_t i = 0; i < count; i++) {
        if (value[0] == '\0' || strcasecmp(value, words[i]) == 0) {
            buf_close(&list);
            return 0;
        }
        buf_printf(&list, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    tg_fail(msg, TG_INVALID, "%s=%s is none of %s", name, value, buf_cstr(&list));
    buf_close(&list);
    return TG_INVALID;
}

/* What is misspelt must not look like a timeline on which nothing was found. */
static int check_filter(const struct http_request *query, const struct filter *filter,
                        struct tg_errmsg *msg)
{
    static const char *const names[] = {"from", "to", "action", "state", "label", "limit"};
    static const char *const actions[] = {
        "commit",     "deltacommit",   "rollback",   "clean",         "savepoint", "restore",
        "compaction", "logcompaction", "clustering", "replacecommit", "indexing"};
    static const char *const states[] = {"REQUESTED", "INFLIGHT", "COMPLETED"};
    char stranger[TIMELINE_WORD_BYTES];

    if (http_request_stranger(query, names, sizeof names / sizeof names[0], stranger,
                              sizeof stranger) == 0)
        return tg_fail(msg, TG_INVALID,
                       "unknown parameter '%s'; known are from, to, action, state, label, limit",
                       stranger);
    int err =
        check_word("action", filter->action, actions, sizeof actions / sizeof actions[0], msg);
    return err != 0
               ? err
               : check_word("state", filter->state, states, sizeof states / sizeof states[0], msg);
}

static int parse_filter(const struct query_call *call, struct filter *filter, struct tg_errmsg *msg)
{
    struct buf text = BUF_INIT;
    struct http_request query = {0};
    int err;

    *filter = (struct filter){.to_us = UINT64_MAX, .limit = TIMELINE_LIMIT_DEFAULT};
    buf_append(&text, call->text.data, call->text.len);
    query.query = buf_cstr(&text);
    err = query.query == NULL ? TG_NOMEM : take_time(&query, "from", &filter->from_us, msg);
    if (err == 0)
        err = take_time(&query, "to", &filter->to_us, msg);
    if (err == 0)
        err = take_text(&query, "action", filter->action, sizeof filter->action, msg);
    if (err == 0)
        err = take_text(&query, "state", filter->state, sizeof filter->state, msg);
    if (err == 0)
        err = take_text(&query, "label", filter->label, sizeof filter->label, msg);
    if (err == 0)
        err = take_limit(&query, &filter->limit, msg);
    if (err == 0)
        err = check_filter(&query, filter, msg);
    buf_close(&text);
    return err;
}

/* An instant lies where it was completed; one that is not yet, where it was requested. */
static uint64_t instant_time(const struct instant *instant)
{
    return instant->completed_us != 0 ? instant->completed_us : instant->requested_us;
}

static bool filter_takes(const struct filter *filter, const struct instant *instant)
{
    uint64_t at = instant_time(instant);

    if (at < filter->from_us || at > filter->to_us)
        return false;
    if (filter->action[0] != '\0' && strcasecmp(filter->action, instant->action) != 0)
        return false;
    if (filter->state[0] != '\0' && strcasecmp(filter->state, instant->state) != 0)
        return false;
    return filter->label[0] == '\0' ||
           (instant->record != NULL && ddl_like(filter->label, instant->record->label));
}

/* ---- gathering ---- */

static int add(struct instants *instants, const struct filter *filter,
               const struct instant *instant)
{
    if (!filter_takes(filter, instant))
        return 0;
    if (instants->count == instants->capacity) {
        size_t capacity = instants->capacity > 0 ? instants->capacity * 2 : 128;
        struct instant *list = realloc(instants->list, capacity * sizeof *list);

        if (list == NULL)
            return TG_NOMEM;
        instants->list = list;
        instants->capacity = capacity;
    }
    instants->list[instants->count++] = *instant;
    return 0;
}

static bool has_table(const struct txn *txn, table_id table)
{
    for (uint32_t i = 0; i < txn->table_count; i++)
        if (txn->tables[i].table == table)
            return true;
    return false;
}

/* table 0: of all tables. */
static uint64_t loaded_rows(const struct txn *txn, table_id table)
{
    uint64_t rows = 0;

    for (uint32_t i = 0; i < txn->load_count; i++)
        if (table == 0 || txn->loads[i].table == table)
            rows += txn->loads[i].rows;
    return rows;
}

/* A transaction as one instant. */
static struct instant of_txn(const struct txn *txn, table_id table)
{
    struct instant instant = {.txn = txn->id,
                              .action = "deltacommit",
                              .state = "INFLIGHT",
                              .requested_us = txn->begin_us,
                              .rows = loaded_rows(txn, table),
                              .record = txn};

    if (txn->table_count == 1)
        instant.version = txn->tables[0].version;
    if (txn->table_count == 1 && txn->tables[0].truncate)
        instant.action = "replacecommit";
    if (txn->state == TXN_VISIBLE || txn->state == TXN_ABORTED) {
        instant.state = "COMPLETED";
        instant.completed_us = txn->visible_us;
    }
    if (txn->state == TXN_ABORTED)
        instant.action = "rollback";
    else if (txn->state == TXN_PREPARE && txn->load_count == 0)
        instant.state = "REQUESTED";
    return instant;
}

static struct instant of_version(const struct state *state, const struct table *table,
                                 version_t version)
{
    const struct version_record *record = &table->versions[version - 1];
    const struct txn *txn = txn_table_find(&state->txns, record->txn);

    return (struct instant){
        .txn = record->txn,
        .action = record->action == VERSION_TRUNCATE ? "replacecommit" : "deltacommit",
        .state = version <= table->visible ? "COMPLETED" : "INFLIGHT",
        .requested_us = txn != NULL ? txn->begin_us : 0,
        .completed_us = version <= table->visible ? record->time_us : 0,
        .version = version,
        .lost = record->lost,
        .rows = record->rows,
        .record = txn,
    };
}

static int gather_table(const struct state *state, const struct table *table,
                        const struct filter *filter, struct instants *out)
{
    struct instant instant;
    int err = 0;

    for (const struct txn *txn = state->txns.open.first; txn != NULL && err == 0; txn = txn->next)
        if (has_table(txn, table->id)) {
            instant = of_txn(txn, table->id);
            err = add(out, filter, &instant);
        }
    size_t open = out->count;
    for (version_t v = table->committed; v > 0 && err == 0 && out->count - open <= filter->limit;
         v--) {
        instant = of_version(state, table, v);
        err = add(out, filter, &instant);
        if (instant.completed_us != 0 && instant.completed_us < filter->from_us)
            break; /* older ones are completed earlier still */
    }
    size_t before = out->count;
    for (const struct txn *txn = state->txns.finished.last;
         txn != NULL && err == 0 && out->count - before <= filter->limit; txn = txn->prev)
        if (txn->state == TXN_ABORTED && has_table(txn, table->id)) {
            instant = of_txn(txn, table->id);
            err = add(out, filter, &instant);
        }
    return err;
}

static int gather_db(const struct state *state, const struct database *db,
                     const struct filter *filter, struct instants *out)
{
    const struct txn_ids *ids = &state->txns.by_id;
    int err = 0;

    for (uint32_t p = ids->page_count; p-- > 0 && err == 0 && out->count <= QUERY_ROWS_MAX;)
        for (uint32_t i = TXN_PAGE; ids->pages[p] != NULL && i-- > 0 && err == 0;) {
            const struct txn *txn = ids->pages[p]->txns[i];

            if (txn == NULL || txn->db != db->id)
                continue;
            struct instant instant = of_txn(txn, 0);
            err = add(out, filter, &instant);
        }
    return err;
}

/* Newest first: what is not completed, then by completion. */
static int newest_first(const void *a, const void *b)
{
    const struct instant *x = a;
    const struct instant *y = b;
    uint64_t x_us = x->completed_us != 0 ? x->completed_us : UINT64_MAX;
    uint64_t y_us = y->completed_us != 0 ? y->completed_us : UINT64_MAX;

    if (x_us != y_us)
        return x_us > y_us ? -1 : 1;
    if (x->version != y->version)
        return x->version > y->version ? -1 : 1;
    return x->txn > y->txn ? -1 : x->txn < y->txn;
}

/* ---- printing ---- */

static void print_time(struct json_writer *out, const char *name, uint64_t us)
{
    char text[TIME_TEXT_SIZE];
    char key[TIMELINE_WORD_BYTES];

    snprintf(key, sizeof key, "%s_us", name);
    json_writer_key(out, key);
    if (us != 0)
        json_writer_uint(out, us);
    else
        json_writer_null(out);
    json_writer_key(out, name);
    if (us != 0) {
        time_text_print(us, text);
        json_writer_str(out, text);
    } else {
        json_writer_null(out);
    }
}

/* None before the commit, nor of what was aborted. */
static void print_version(struct json_writer *out, version_t version)
{
    json_writer_key(out, "version");
    if (version != 0)
        json_writer_uint(out, version);
    else
        json_writer_null(out);
}

static void print_txn_tables(const struct state *state, const struct txn *txn,
                             struct json_writer *out)
{
    json_writer_key(out, "tables");
    json_writer_array(out);
    for (uint32_t i = 0; i < txn->table_count; i++) {
        const struct table *table = catalog_table_by_id(&state->catalog, txn->tables[i].table);

        json_writer_object(out);
        json_writer_key(out, "table");
        json_writer_str(out, table != NULL ? table->name : "");
        print_version(out, txn->tables[i].version);
        json_writer_key(out, "rows");
        json_writer_uint(out, loaded_rows(txn, txn->tables[i].table));
        json_writer_object_end(out);
    }
    json_writer_array_end(out);
}

static void print_instant(const struct state *state, const struct instant *instant, bool of_db,
                          struct json_writer *out)
{
    const struct txn *txn = instant->record;

    json_writer_object(out);
    json_writer_key(out, "txn");
    json_writer_uint(out, instant->txn);
    json_writer_key(out, "action");
    json_writer_str(out, instant->action);
    json_writer_key(out, "state");
    json_writer_str(out, instant->state);
    print_time(out, "requested", instant->requested_us);
    print_time(out, "completed", instant->completed_us);
    if (of_db) {
        print_txn_tables(state, txn, out);
    } else {
        print_version(out, instant->version);
        if (instant->lost) {
            json_writer_key(out, "lost");
            json_writer_bool(out, true);
        }
    }
    json_writer_key(out, "rows");
    json_writer_uint(out, instant->rows);
    json_writer_key(out, "label");
    if (txn != NULL)
        json_writer_str(out, txn->label);
    else
        json_writer_null(out);
    if (txn != NULL) {
        json_writer_key(out, "transaction_state");
        json_writer_str(out, txn_state_name((enum txn_state)txn->state));
    }
    if (txn != NULL && txn->reason != NULL) {
        json_writer_key(out, "reason");
        json_writer_str(out, txn->reason);
    }
    json_writer_object_end(out);
}

static void print_head(const struct state *state, const struct table *table,
                       struct json_writer *out)
{
    if (table != NULL) {
        json_writer_key(out, "version");
        json_writer_uint(out, table->visible);
        json_writer_key(out, "committed");
        json_writer_uint(out, table->committed);
        print_time(out, "created", table->created_us);
    }
    print_time(out, "closed", state->stamp_us);
}

int query_print_timeline(const struct query_call *call, struct json_writer *out,
                         struct tg_errmsg *msg)
{
    const struct state *state = query_state(call);
    const struct database *db = NULL;
    const struct table *table = NULL;
    struct instants instants = {0};
    struct filter filter;
    int err = parse_filter(call, &filter, msg);

    if (err == 0)
        err = call->table[0] != '\0' ? query_find_table(call, &table, msg)
                                     : query_find_db(call, &db, msg);
    if (err == 0)
        err = table != NULL ? gather_table(state, table, &filter, &instants)
                            : gather_db(state, db, &filter, &instants);
    if (err != 0) {
        free(instants.list);
        return err;
    }
    if (instants.count > 0)
        qsort(instants.list, instants.count, sizeof *instants.list, newest_first);
    json_writer_object(out);
    print_head(state, table, out);
    json_writer_key(out, "instants");
    json_writer_array(out);
    for (size_t i = 0; i < instants.count && i < filter.limit && err == 0; i++) {
        print_instant(state, &instants.list[i], table == NULL, out);
        err = query_check_size(out, msg);
    }
    json_writer_array_end(out);
    json_writer_key(out, "left_off");
    json_writer_bool(out, instants.count > filter.limit);
    json_writer_object_end(out);
    free(instants.list);
    return err;
}
