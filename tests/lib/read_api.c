/* SPDX-License-Identifier: Apache-2.0 */
/* Reads over HTTP without a cluster. */
#include "tests/lib/read_api.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/net/http_router.h"
#include "common/proto/message.h"

enum { CLOSE_WAIT_MS = 20000 };

/* ---- the coordinator ---- */

static int resolve(const struct read_table *table, struct read_bound bound, version_t *version)
{
    if (bound.at == READ_VERSION && bound.value > table->version)
        return TG_NOT_YET;
    *version = bound.at == READ_VERSION ? bound.value : 0;
    if (bound.at != READ_VERSION)
        while (*version < table->version &&
               (bound.at == READ_LATEST || read_table_time(*version + 1) <= bound.value))
            ++*version;
    return 0;
}

static int answer_point(struct read_api *api, const struct msg_read_point *message,
                        struct buf *head)
{
    struct msg_read_point_reply reply;
    version_t version;
    version_t after = 0;
    int err = resolve(&api->table, message->bound, &version);

    if (strcmp(message->db, "db") != 0 || strcmp(message->table, "t") != 0)
        return TG_NOT_FOUND;
    if (err == 0 && message->with_changes)
        err = resolve(&api->table, message->after, &after);
    if (err != 0)
        return err;
    read_table_point(&api->table, version, message->with_changes ? after : version, &reply);
    reply.after = after;
    msg_read_point_reply_encode(&reply, head);
    msg_read_point_reply_close(&reply);
    return 0;
}

static void on_call(void *data, struct rpc_request *request)
{
    struct read_api *api = data;
    struct msg_read_point message;
    struct buf head = BUF_INIT;

    TG_CHECK(rpc_request_type(request) == MSG_READ_POINT);
    TG_CHECK(msg_read_point_decode(rpc_request_head(request), &message) == 0);
    pthread_mutex_lock(&api->lock);
    api->points++;
    if (api->hold && api->held_count < READ_API_HELD_MAX) {
        api->held[api->held_count++] = request;
        pthread_mutex_unlock(&api->lock);
        return;
    }
    int err = api->point_err != 0 ? api->point_err : answer_point(api, &message, &head);
    pthread_mutex_unlock(&api->lock);
    if (err != 0)
        rpc_request_fail(request, err, "so says the coordinator");
    else
        rpc_request_reply(request, 0, slice_of(head.data, head.len), slice_of(NULL, 0));
    buf_close(&head);
}

/* ---- HTTP ---- */

static void scan(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    api_read_scan(((struct read_api *)ctx)->api, exchange, params);
}

static void get(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    api_read_get(((struct read_api *)ctx)->api, exchange, params);
}

static void range(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    api_read_range(((struct read_api *)ctx)->api, exchange, params);
}

static void changes(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    api_read_changes(((struct read_api *)ctx)->api, exchange, params);
}

static void on_request(void *ctx, struct http_exchange *exchange)
{
    static const struct http_route routes[] = {
        {"GET", "/api/{db}/{table}/_scan", scan},
        {"GET", "/api/{db}/{table}/_get", get},
        {"GET", "/api/{db}/{table}/_range", range},
        {"GET", "/api/{db}/{table}/_changes", changes},
    };

    http_router_dispatch(routes, sizeof routes / sizeof routes[0], ctx, exchange);
}

static void open_on_loop(void *data)
{
    struct read_api *api = data;
    struct http_server_options options = {.host = "127.0.0.1"};
    struct http_server_handlers handlers = {.on_request = on_request, .ctx = api};

    TG_CHECK(coordinator_client_open(api->thread.loop, api->coordinator.address,
                                     FAKE_COORDINATOR_SECRET, &api->client, NULL) == 0);
    TG_CHECK(http_server_open(api->thread.loop, &options, &handlers, &api->server, NULL) == 0);
    api->port = http_server_port(api->server);
}

void read_api_open(struct read_api *api, bool unique, uint32_t tablets, unsigned threads)
{
    struct read_node *nodes[] = {&api->nodes[0], &api->nodes[1]};

    memset(api, 0, sizeof *api);
    pthread_mutex_init(&api->lock, NULL);
    loop_thread_open(&api->thread);
    for (node_id i = 0; i < 2; i++)
        read_node_open(&api->nodes[i], &api->thread, i + 1);
    read_table_open(&api->table, unique, tablets, nodes, 2);
    fake_coordinator_open(&api->coordinator, &api->thread, 1);
    fake_coordinator_handle(&api->coordinator, on_call, api);
    fake_coordinator_follow(&api->coordinator, &api->coordinator);
    loop_thread_do(&api->thread, open_on_loop, api);
    TG_CHECK(api_read_open(api->thread.loop, api->client, &api->nodes[0].context, threads,
                           &api->api) == 0);
}

struct closing {
    struct read_api *api;
    uint64_t grace_ms;
};

static void server_closed(void *data)
{
    atomic_store(&((struct read_api *)data)->server_closed, true);
}

static void close_http(void *data)
{
    struct closing *closing = data;

    http_server_close(closing->api->server, closing->grace_ms, server_closed, closing->api);
    closing->api->server = NULL;
}

void read_api_close_http(struct read_api *api, uint64_t grace_ms)
{
    struct closing closing = {api, grace_ms};

    if (api->server == NULL)
        return;
    loop_thread_do(&api->thread, close_http, &closing);
    for (unsigned ms = 0; !atomic_load(&api->server_closed); ms++) {
        TG_CHECK(ms < CLOSE_WAIT_MS);
        usleep(1000);
    }
}

void read_api_close_api(struct read_api *api)
{
    api_read_close(api->api);
    api->api = NULL;
}

static void close_client(void *data)
{
    struct read_api *api = data;

    coordinator_client_close(api->client);
    api->client = NULL;
}

void read_api_close_client(struct read_api *api)
{
    loop_thread_do(&api->thread, close_client, api);
}

static void drop_held(void *data)
{
    struct read_api *api = data;

    while (api->held_count > 0)
        rpc_request_drop(api->held[--api->held_count]);
}

void read_api_close(struct read_api *api)
{
    read_api_close_http(api, 1000);
    read_api_close_api(api);
    read_api_close_client(api);
    loop_thread_do(&api->thread, drop_held, api);
    fake_coordinator_close(&api->coordinator);
    read_table_close(&api->table);
    for (unsigned i = 0; i < 2; i++)
        read_node_close(&api->nodes[i]);
    loop_thread_close(&api->thread);
    pthread_mutex_destroy(&api->lock);
}

void read_api_load(struct read_api *api, const struct made_row *rows, uint32_t count,
                   uint32_t block_rows)
{
    pthread_mutex_lock(&api->lock);
    read_table_load(&api->table, rows, count, block_rows, 3);
    pthread_mutex_unlock(&api->lock);
}

void read_api_truncate(struct read_api *api)
{
    pthread_mutex_lock(&api->lock);
    read_table_truncate(&api->table);
    pthread_mutex_unlock(&api->lock);
}
