/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a coordinator. */
#include "coordinator/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/metrics.h"
#include "coordinator/api/api_cluster.h"
#include "coordinator/api/api_coordinators.h"
#include "coordinator/api/api_redirect.h"
#include "coordinator/api/api_request.h"
#include "coordinator/api/api_txn.h"

int api_open(struct leader_link *link, const struct api_options *options,
             struct random_source *random, struct api **api)
{
    struct api *a = calloc(1, sizeof *a);

    if (a == NULL)
        return TG_NOMEM;
    a->link = link;
    a->options = *options;
    a->random = random;
    backend_list_init(&a->backends, link);
    *api = a;
    return 0;
}

void api_close(struct api *api)
{
    free(api);
}

/* ---- loads, transactions, reads ---- */

static void put_stream_load(void *ctx, struct http_exchange *exchange,
                            const struct http_params *params)
{
    (void)params;
    api_redirect_load(api_request_open(ctx, exchange));
}

static void put_2pc(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    api_txn_2pc(api_request_open(ctx, exchange), params->value[0]);
}

static void get_read(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    (void)params;
    api_redirect_read(api_request_open(ctx, exchange));
}

/* ---- questions ---- */

static void ask_table(void *ctx, struct http_exchange *exchange, enum query_kind kind,
                      const char *db, const char *table, const char *text)
{
    struct api_request *request = api_request_open(ctx, exchange);

    if (api_request_authorize(request))
        api_request_query(request, kind, db, table, "", slice_str(text));
}

static void get_schema(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    size_t first = params->count - 2; /* a catalog may stand before */

    ask_table(ctx, exchange, QUERY_SCHEMA, params->value[first], params->value[first + 1], "");
}

static void get_count(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    ask_table(ctx, exchange, QUERY_COUNT, params->value[0], params->value[1], "");
}

static void get_timeline(void *ctx, struct http_exchange *exchange,
                         const struct http_params *params)
{
    ask_table(ctx, exchange, QUERY_TIMELINE, params->value[0],
              params->count > 1 ? params->value[1] : "", http_exchange_request(exchange)->query);
}

static void ask_label(void *ctx, struct http_exchange *exchange, const struct http_params *params,
                      enum query_kind kind)
{
    struct api_request *request = api_request_open(ctx, exchange);
    char label[LABEL_BYTES * 2] = "";

    if (!api_request_authorize(request))
        return;
    http_request_query(http_exchange_request(exchange), "label", 0, label, sizeof label);
    if (label[0] == '\0')
        api_answer_error(request, 403, "No label selected");
    else
        api_request_query(request, kind, params->value[0], "", label, slice_of(NULL, 0));
}

static void get_load_state(void *ctx, struct http_exchange *exchange,
                           const struct http_params *params)
{
    ask_label(ctx, exchange, params, QUERY_LOAD_STATE);
}

static void post_cancel(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    ask_label(ctx, exchange, params, QUERY_CANCEL);
}

static void get_backends(void *ctx, struct http_exchange *exchange,
                         const struct http_params *params)
{
    struct api_request *request = api_request_open(ctx, exchange);
    char alive[8] = "";

    (void)params;
    if (!api_request_authorize(request))
        return;
    http_request_query(http_exchange_request(exchange), "is_alive", 0, alive, sizeof alive);
    api_request_query(request, QUERY_BACKENDS, "", "", "",
                      slice_str(strcmp(alive, "true") == 0 ? "alive" : ""));
}

static void get_health(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    (void)params;
    api_request_query(api_request_open(ctx, exchange), QUERY_HEALTH, "", "", "", slice_of(NULL, 0));
}

static void get_cluster(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    (void)params;
    api_cluster(api_request_open(ctx, exchange));
}

static void get_replicas(void *ctx, struct http_exchange *exchange,
                         const struct http_params *params)
{
    char db[NAME_BYTES] = "";
    char table[NAME_BYTES] = "";

    (void)params;
    http_request_query(http_exchange_request(exchange), "db", 0, db, sizeof db);
    http_request_query(http_exchange_request(exchange), "table", 0, table, sizeof table);
    ask_table(ctx, exchange, QUERY_REPLICAS, db, table, "");
}

static void post_declare_lost(void *ctx, struct http_exchange *exchange,
                              const struct http_params *params)
{
    ask_table(ctx, exchange, QUERY_DECLARE_LOST, params->value[0], params->value[1],
              http_exchange_request(exchange)->query);
}

static void get_coordinators(void *ctx, struct http_exchange *exchange,
                             const struct http_params *params)
{
    (void)params;
    api_coordinators(api_request_open(ctx, exchange), "list");
}

static void post_coordinators(void *ctx, struct http_exchange *exchange,
                              const struct http_params *params)
{
    api_coordinators(api_request_open(ctx, exchange), params->value[0]);
}

static void get_state(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    (void)params;
    api_state(api_request_open(ctx, exchange));
}

static void get_nodes(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api_request *request = api_request_open(ctx, exchange);

    (void)params;
    if (api_request_authorize(request))
        api_request_query(request, QUERY_NODES, "", "", "", slice_of(NULL, 0));
}

static void post_node(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api_request *request = api_request_open(ctx, exchange);
    char order[2 * HTTP_PARAM_BYTES + 2];

    if (!api_request_authorize(request))
        return;
    snprintf(order, sizeof order, "%s %s", params->value[1], params->value[0]);
    api_request_query(request, QUERY_NODE_ORDER, "", "", "", slice_str(order));
}

/* ---- statements ---- */

static void run_statement(struct api_request *request)
{
    struct json_doc *doc = NULL;
    struct tg_errmsg msg = {{0}};
    const struct json_value *stmt;

    if (json_doc_parse(request->body.data, request->body.len, NULL, &doc, &msg) != 0) {
        api_answer_error(request, 403, msg.text);
        return;
    }
    stmt = json_value_get(json_doc_root(doc), "stmt");
    if (stmt == NULL || json_value_kind(stmt) != JSON_STRING)
        api_answer_error(request, 403, "Invalid body: expected {\"stmt\": \"...\"}");
    else
        api_request_query(request, QUERY_STATEMENT, request->db, "", "", json_value_text(stmt));
    json_doc_close(doc);
}

static void post_query(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api_request *request = api_request_open(ctx, exchange);

    if (!api_request_authorize(request))
        return;
    /* "information_schema" is what connectors name when they mean none. */
    if (params->count > 1 && strcmp(params->value[1], "information_schema") != 0)
        memcpy(request->db, params->value[1], sizeof request->db);
    api_request_read(request, QUERY_TEXT_MAX, run_statement);
}

/* ---- this node ---- */

static void get_root(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    static const char text[] = "tidegate-coordinator\n";

    (void)ctx;
    (void)params;
    http_exchange_respond(exchange, 200, "text/plain;charset=utf-8", NULL, text, sizeof text - 1);
}

/* Ready once a formed cluster has a leader. */
static void get_bootstrap(void *ctx, struct http_exchange *exchange,
                          const struct http_params *params)
{
    static const char data[] = "{\"replayedJournalId\":0,\"queryPort\":0,\"rpcPort\":0,"
                               "\"arrowFlightSqlPort\":0,\"version\":\"\"}";
    struct api_request *request = api_request_open(ctx, exchange);
    const struct consensus *consensus = request->api->link->dispatch->consensus;

    (void)params;
    if (consensus->ops->leader(consensus) == 0 ||
        consensus_state(consensus)->cluster_uuid[0] == '\0')
        api_answer_error(request, 1, "not ready");
    else
        api_answer_data(request, slice_of(data, sizeof data - 1));
}

static void get_metrics(void *ctx, struct http_exchange *exchange, const struct http_params *params)
{
    struct api *api = ctx;
    struct buf out = BUF_INIT;

    (void)params;
    if (api->options.refresh_metrics != NULL)
        api->options.refresh_metrics(api->options.refresh_data);
    metrics_print(&out);
    http_exchange_respond(exchange, 200, "text/plain;version=0.0.4;charset=utf-8", NULL, out.data,
                          out.len);
    buf_close(&out);
}

/* Literal paths stand before patterns that would take them too. */
static const struct http_route routes[] = {
    {"GET", "/", get_root},
    {"GET", "/metrics", get_metrics},
    {"GET", "/api/bootstrap", get_bootstrap},
    {"GET", "/api/health", get_health},
    {"GET", "/api/backends", get_backends},
    {"GET", "/api/cluster", get_cluster},
    {"GET", "/api/_replicas", get_replicas},
    {"POST", "/api/{db}/{table}/_declare_lost", post_declare_lost},
    {"GET", "/api/coordinators", get_coordinators},
    {"GET", "/api/state", get_state},
    {"POST", "/api/coordinators/{verb}", post_coordinators},
    {"GET", "/api/nodes", get_nodes},
    {"POST", "/api/nodes/{id}/{order}", post_node},
    {"POST", "/api/query/{cluster}/{db}", post_query},
    {"POST", "/api/query/{cluster}", post_query},
    {"PUT", "/api/{db}/_stream_load_2pc", put_2pc},
    {"PUT", "/api/{db}/{table}/_stream_load_2pc", put_2pc},
    {"PUT", "/api/{db}/{table}/_stream_load", put_stream_load},
    {"GET", "/api/{db}/get_load_state", get_load_state},
    {"POST", "/api/{db}/_cancel", post_cancel},
    {"GET", "/api/{db}/_timeline", get_timeline},
    {"GET", "/api/{db}/{table}/_timeline", get_timeline},
    {"GET", "/api/{db}/{table}/_schema", get_schema},
    {"GET", "/api/{catalog}/{db}/{table}/_schema", get_schema},
    {"GET", "/api/{db}/{table}/_count", get_count},
    {"GET", "/api/{db}/{table}/_scan", get_read},
    {"GET", "/api/{db}/{table}/_get", get_read},
    {"GET", "/api/{db}/{table}/_range", get_read},
    {"GET", "/api/{db}/{table}/_changes", get_read},
};

void api_handle(void *ctx, struct http_exchange *exchange)
{
    http_router_dispatch(routes, sizeof routes / sizeof routes[0], ctx, exchange);
}
