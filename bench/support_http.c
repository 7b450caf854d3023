/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP with credentials, statements and tables for the benchmarks. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/support.h"
#include "common/base/json.h"

struct http_client *bench_connect(const char *address)
{
    struct http_client *client;
    struct tg_errmsg msg = {{0}};

    if (http_client_open(address, 600000, &client, &msg) != 0)
        bench_die("cannot connect to %s: %s", address, msg.text);
    return client;
}

static void with_credentials(const char *headers, char *all, size_t cap)
{
    snprintf(all, cap, "Authorization: Basic cm9vdDo=\r\n%s", headers != NULL ? headers : "");
}

static void expect_ok(const char *method, const char *target, const struct http_reply *reply)
{
    if (reply->status != 200)
        bench_die("%s %s: status %d: %.*s", method, target, reply->status, (int)reply->body.len,
                  (const char *)reply->body.data);
}

void bench_request(struct http_client *client, const char *method, const char *target,
                   const char *headers, const void *body, size_t len, struct http_reply *reply)
{
    char all[2048];
    struct tg_errmsg msg = {{0}};

    with_credentials(headers, all, sizeof all);
    if (http_client_request(client, method, target, all, body, len, reply, &msg) != 0)
        bench_die("%s %s: %s", method, target, msg.text);
    expect_ok(method, target, reply);
}

void bench_request_chunked(struct http_client *client, const char *method, const char *target,
                           const char *headers, long (*produce)(void *, void *, size_t), void *data,
                           struct http_reply *reply)
{
    char all[2048];
    struct tg_errmsg msg = {{0}};

    with_credentials(headers, all, sizeof all);
    if (http_client_request_chunked(client, method, target, all, produce, data, reply, &msg) != 0)
        bench_die("%s %s: %s", method, target, msg.text);
    expect_ok(method, target, reply);
}

void bench_field(const struct http_reply *reply, const char *name, char *out, size_t cap)
{
    struct json_doc *doc;
    struct tg_errmsg msg = {{0}};

    if (json_doc_parse(reply->body.data, reply->body.len, NULL, &doc, &msg) != 0)
        bench_die("not JSON: %.*s", (int)reply->body.len, (const char *)reply->body.data);
    const struct json_value *value = json_value_get(json_doc_root(doc), name);
    if (value == NULL)
        bench_die("no field %s in %.*s", name, (int)reply->body.len,
                  (const char *)reply->body.data);
    struct slice text = json_value_text(value);
    snprintf(out, cap, "%.*s", (int)text.len, (const char *)text.data);
    json_doc_close(doc);
}

void bench_sql(struct http_client *coordinator, const char *db, const char *statement)
{
    struct http_reply reply;
    struct buf body = BUF_INIT;
    char target[256];
    char code[32];

    snprintf(target, sizeof target, "/api/query/default_cluster/%s", db);
    buf_append_str(&body, "{\"stmt\":");
    json_append_cstr(&body, statement);
    buf_append_u8(&body, '}');
    bench_request(coordinator, "POST", target, "Content-Type: application/json\r\n", body.data,
                  body.len, &reply);
    bench_field(&reply, "code", code, sizeof code);
    if (strcmp(code, "0") != 0)
        bench_die("%s: %s", statement, buf_cstr(&reply.body));
    http_reply_close(&reply);
    buf_close(&body);
}

void bench_create_table(struct http_client *coordinator, const char *name, unsigned buckets,
                        unsigned replicas)
{
    char statement[2048];

    bench_sql(coordinator, "bench", "CREATE DATABASE IF NOT EXISTS bench");
    snprintf(statement, sizeof statement, "DROP TABLE IF EXISTS bench.%s", name);
    bench_sql(coordinator, "bench", statement);
    snprintf(statement, sizeof statement,
             "CREATE TABLE bench.%s (orderkey BIGINT NOT NULL, linenumber TINYINT NOT NULL, "
             "custkey INT, partkey INT, suppkey INT, orderdate DATE, orderpriority VARCHAR(15), "
             "shippriority TINYINT, quantity TINYINT, extendedprice DECIMAL(15,2), "
             "ordtotalprice DECIMAL(15,2), discount DECIMAL(4,2), revenue DECIMAL(15,2), "
             "supplycost DECIMAL(15,2), tax DECIMAL(4,2), commitdate DATE, shipmode VARCHAR(10)) "
             "DUPLICATE KEY(orderkey, linenumber) DISTRIBUTED BY HASH(orderkey) BUCKETS %u "
             "PROPERTIES (\"replication_num\" = \"%u\")",
             name, buckets, replicas);
    bench_sql(coordinator, "bench", statement);
}
