/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/_rowsets and GET /api/_scrub. */
#include "participant/api/api_rowsets.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "participant/api/read_answer.h"
#include "participant/store/rowset_list.h"

#define JSON_TYPE "application/json;charset=utf-8"

struct api_rowsets {
    struct loop *loop;
    struct store *store;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint32_t running; /* lists that are being made */
    bool closing;
};

struct listing {
    struct loop_work work;
    struct api_rowsets *rowsets;
    struct http_exchange *exchange; /* NULL once the client is gone */
    bool all;
    int err;
    struct buf body;
};

static const char *const standings[] = {"",         "bound",   "sealed", "open",
                                        "dropping", "missing", "leaked"};
enum { STANDINGS = sizeof standings / sizeof standings[0] };

struct api_rowsets *api_rowsets_open(struct loop *loop, struct store *store)
{
    struct api_rowsets *rowsets = calloc(1, sizeof *rowsets);

    if (rowsets == NULL)
        return NULL;
    rowsets->loop = loop;
    rowsets->store = store;
    pthread_mutex_init(&rowsets->lock, NULL);
    pthread_cond_init(&rowsets->ended, NULL);
    return rowsets;
}

void api_rowsets_close(struct api_rowsets *rowsets)
{
    if (rowsets == NULL)
        return;
    pthread_mutex_lock(&rowsets->lock);
    rowsets->closing = true;
    while (rowsets->running > 0)
        pthread_cond_wait(&rowsets->ended, &rowsets->lock);
    pthread_mutex_unlock(&rowsets->lock);
}

static bool begin(struct api_rowsets *rowsets)
{
    pthread_mutex_lock(&rowsets->lock);
    bool begun = !rowsets->closing;
    rowsets->running += begun;
    pthread_mutex_unlock(&rowsets->lock);
    return begun;
}

static void end(struct api_rowsets *rowsets)
{
    pthread_mutex_lock(&rowsets->lock);
    rowsets->running--;
    pthread_cond_signal(&rowsets->ended);
    pthread_mutex_unlock(&rowsets->lock);
}

static void member(struct json_writer *json, const char *name, uint64_t value)
{
    json_writer_key(json, name);
    json_writer_uint(json, value);
}

static void print(const struct rowset_listed *list, uint32_t count, bool all, struct buf *out)
{
    uint64_t counts[STANDINGS] = {0};
    uint32_t named = 0;
    bool more = false;
    struct json_writer json;

    for (uint32_t i = 0; i < count; i++)
        counts[list[i].standing]++;
    json_writer_init(&json, out, 0);
    json_writer_object(&json);
    json_writer_key(&json, "msg");
    json_writer_str(&json, "success");
    member(&json, "code", 0);
    json_writer_key(&json, "data");
    json_writer_object(&json);
    for (unsigned i = 1; i < STANDINGS; i++)
        member(&json, standings[i], counts[i]);
    json_writer_key(&json, "rowsets");
    json_writer_array(&json);
    for (uint32_t i = 0; i < count; i++) {
        if (!all && list[i].standing == ROWSET_STANDING_BOUND)
            continue;
        if (named++ == API_ROWSETS_MAX) {
            more = true;
            break;
        }
        json_writer_object(&json);
        member(&json, "tablet", list[i].tablet);
        member(&json, "rowset", list[i].rowset);
        member(&json, "txn", list[i].txn);
        json_writer_key(&json, "standing");
        json_writer_str(&json, standings[list[i].standing]);
        json_writer_object_end(&json);
    }
    json_writer_array_end(&json);
    json_writer_key(&json, "more");
    json_writer_bool(&json, more);
    json_writer_object_end(&json);
    member(&json, "count", 0);
    json_writer_object_end(&json);
    buf_append_str(out, "\n");
}

static void make(struct loop_work *work)
{
    struct listing *listing = work->data;
    struct rowset_listed *list = NULL;
    uint32_t count = 0;

    listing->err = begin(listing->rowsets) ? 0 : TG_CLOSED;
    if (listing->err != 0)
        return;
    listing->err = rowset_list(listing->rowsets->store, &list, &count);
    end(listing->rowsets);
    if (listing->err == 0) {
        print(list, count, listing->all, &listing->body);
        listing->err = listing->body.err;
    }
    free(list);
}

static void respond(struct listing *listing)
{
    int err = listing->err;

    if (err != 0) {
        buf_close(&listing->body);
        read_answer_error(err, tg_err_sentence(err), &listing->body);
    }
    http_exchange_on_close(listing->exchange, NULL, NULL);
    http_exchange_respond(listing->exchange, err == 0 ? 200 : tg_err_http_status(err), JSON_TYPE,
                          NULL, listing->body.data, listing->body.len);
}

static void made(struct loop_work *work)
{
    struct listing *listing = work->data;

    if (listing->exchange != NULL)
        respond(listing);
    buf_close(&listing->body);
    free(listing);
}

static void client_gone(void *data)
{
    struct listing *listing = data;

    listing->exchange = NULL;
}

void api_rowsets_answer(struct api_rowsets *rowsets, struct http_exchange *exchange)
{
    struct listing *listing = calloc(1, sizeof *listing);
    char all[8] = "";

    if (listing == NULL) {
        http_exchange_respond(exchange, 503, JSON_TYPE, NULL, "{}", 2);
        return;
    }
    http_request_query(http_exchange_request(exchange), "all", 0, all, sizeof all);
    listing->rowsets = rowsets;
    listing->exchange = exchange;
    listing->all = strcmp(all, "true") == 0;
    listing->work = (struct loop_work){.work = make, .done = made, .data = listing};
    http_exchange_on_close(exchange, client_gone, listing);
    if (loop_work_start(rowsets->loop, &listing->work) != 0) {
        listing->err = TG_NOMEM;
        made(&listing->work);
    }
}

void api_scrub_print(struct scrubber *scrubber, struct buf *out)
{
    struct scrubber_state state;
    struct json_writer json;

    scrubber_look(scrubber, &state);
    json_writer_init(&json, out, 0);
    json_writer_object(&json);
    json_writer_key(&json, "msg");
    json_writer_str(&json, "success");
    member(&json, "code", 0);
    json_writer_key(&json, "data");
    json_writer_object(&json);
    json_writer_key(&json, "under_way");
    json_writer_bool(&json, state.under_way);
    member(&json, "tablet", state.tablet);
    member(&json, "passes", state.passes);
    member(&json, "bytes", state.bytes);
    member(&json, "rowsets", state.rowsets);
    member(&json, "damaged", state.damaged);
    member(&json, "last_pass_ms", state.pass_ms);
    member(&json, "last_pass_bytes", state.pass_bytes);
    json_writer_object_end(&json);
    member(&json, "count", 0);
    json_writer_object_end(&json);
    buf_append_str(out, "\n");
}
