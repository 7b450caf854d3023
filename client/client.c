/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking client. */
#include "client/client.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/base64.h"

struct client {
    char address[CLIENT_ADDRESS_BYTES];
    uint64_t timeout_ms;
    struct http_client *home;   /* the node that was named */
    struct http_client *target; /* the node it last redirected to, NULL if none */
    char target_address[CLIENT_ADDRESS_BYTES];
    struct buf credentials; /* a header line */
};

static int make_credentials(struct client *client, const struct client_options *options)
{
    struct buf plain = BUF_INIT;

    buf_printf(&plain, "%s:%s", options->user, options->password);
    buf_append_str(&client->credentials, "Authorization: Basic ");
    base64_encode(slice_of(plain.data, plain.len), &client->credentials);
    buf_append_str(&client->credentials, "\r\n");
    int err = plain.err;
    buf_close(&plain);
    return err != 0 ? err : client->credentials.err;
}

int client_open(const struct client_options *options, struct client **out, struct tg_errmsg *msg)
{
    const char *address = options->url;
    size_t len;

    if (strncmp(address, "http://", 7) == 0)
        address += 7;
    len = strcspn(address, "/");
    if (len >= CLIENT_ADDRESS_BYTES || (address[len] == '/' && address[len + 1] != '\0'))
        return tg_fail(msg, TG_INVALID, "'%s' is not host:port", options->url);
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for a client");
    memcpy(client->address, address, len);
    client->timeout_ms = options->timeout_ms;
    int err = make_credentials(client, options);
    if (err == 0)
        err = http_client_open(client->address, client->timeout_ms, &client->home, msg);
    if (err != 0) {
        client_close(client);
        return err;
    }
    *out = client;
    return 0;
}

void client_close(struct client *client)
{
    if (client == NULL)
        return;
    http_client_close(client->home);
    http_client_close(client->target);
    buf_close(&client->credentials);
    free(client);
}

/* ---- requests and redirects ---- */

struct call {
    const char *method;
    const char *headers; /* with credentials */
    const void *body;
    size_t len;
    long (*produce)(void *data, void *bytes, size_t cap);
    void *data;
    bool taken; /* a piece of the body was produced */
};

static long produce_noted(void *data, void *bytes, size_t cap)
{
    struct call *call = data;

    call->taken = true;
    return call->produce(call->data, bytes, cap);
}

static int attempt(struct http_client *client, struct call *call, const char *target,
                   struct http_reply *reply, struct tg_errmsg *msg)
{
    if (call->produce == NULL)
        return http_client_request(client, call->method, target, call->headers, call->body,
                                   call->len, reply, msg);
    return http_client_request_chunked(client, call->method, target, call->headers, produce_noted,
                                       call, reply, msg);
}

/* Splits http://[user:password@]host:port/path?query. */
static int split_location(const char *location, char address[CLIENT_ADDRESS_BYTES],
                          char target[CLIENT_TARGET_BYTES])
{
    if (strncmp(location, "http://", 7) != 0)
        return TG_UNSUPPORTED;
    const char *start = location + 7;
    size_t authority = strcspn(start, "/");
    const char *at = memrchr(start, '@', authority);
    const char *host = at != NULL ? at + 1 : start;
    size_t host_len = authority - (size_t)(host - start);
    if (host_len >= CLIENT_ADDRESS_BYTES || strlen(start + authority) >= CLIENT_TARGET_BYTES)
        return TG_TOO_LARGE;
    memcpy(address, host, host_len);
    address[host_len] = '\0';
    strcpy(target, start[authority] != '\0' ? start + authority : "/");
    return 0;
}

static int open_target(struct client *client, const char *address, struct tg_errmsg *msg)
{
    if (client->target != NULL && strcmp(client->target_address, address) == 0)
        return 0;
    http_client_close(client->target);
    client->target = NULL;
    int err = http_client_open(address, client->timeout_ms, &client->target, msg);
    if (err == 0)
        snprintf(client->target_address, sizeof client->target_address, "%s", address);
    return err;
}

static int follow(struct client *client, struct call *call, char *target, struct http_reply *reply,
                  struct tg_errmsg *msg)
{
    char location[CLIENT_TARGET_BYTES];
    char address[CLIENT_ADDRESS_BYTES];
    int err = http_reply_header(reply, "location", location, sizeof location);

    if (err == 0)
        err = split_location(location, address, target);
    if (err != 0)
        return tg_fail(msg, TG_CORRUPT, "a redirect without a usable Location");
    if (call->taken)
        return tg_fail(msg, TG_CANCELED, "redirected to %s after the upload had begun", address);
    http_reply_close(reply);
    memset(reply, 0, sizeof *reply);
    err = open_target(client, address, msg);
    return err != 0 ? err : attempt(client->target, call, target, reply, msg);
}

static int run(struct client *client, struct call *call, const char *target, const char *headers,
               struct http_reply *reply, struct tg_errmsg *msg)
{
    struct buf lines = BUF_INIT;
    char *moved = malloc(CLIENT_TARGET_BYTES);
    int err;

    memset(reply, 0, sizeof *reply);
    buf_append(&lines, client->credentials.data, client->credentials.len);
    if (headers != NULL)
        buf_append_str(&lines, headers);
    call->headers = buf_cstr(&lines);
    if (call->headers == NULL || moved == NULL) {
        err = tg_fail(msg, TG_NOMEM, "no memory for a request");
    } else {
        err = attempt(client->home, call, target, reply, msg);
        for (int i = 0; err == 0 && reply->status == 307 && i < CLIENT_REDIRECTS_MAX; i++)
            err = follow(client, call, moved, reply, msg);
    }
    free(moved);
    buf_close(&lines);
    return err;
}

int client_request(struct client *client, const char *method, const char *target,
                   const char *headers, const void *body, size_t len, struct http_reply *reply,
                   struct tg_errmsg *msg)
{
    struct call call = {.method = method, .body = body, .len = len};

    return run(client, &call, target, headers, reply, msg);
}

int client_upload(struct client *client, const char *target, const char *headers,
                  long (*produce)(void *data, void *bytes, size_t cap), void *data,
                  struct http_reply *reply, struct tg_errmsg *msg)
{
    struct call call = {.method = "PUT", .produce = produce, .data = data};

    return run(client, &call, target, headers, reply, msg);
}

/* ---- envelopes ---- */

static int refused(const struct json_value *root, const struct json_value *data,
                   struct tg_errmsg *msg)
{
    struct slice text = json_value_text(data);

    if (text.len == 0)
        text = json_value_text(json_value_get(root, "msg"));
    return tg_fail(msg, TG_REFUSED, "%.*s", (int)(text.len < 400 ? text.len : 400),
                   text.len > 0 ? (const char *)text.data : "");
}

int client_envelope(const struct http_reply *reply, struct json_doc **doc,
                    const struct json_value **data, struct tg_errmsg *msg)
{
    *doc = NULL;
    *data = NULL;
    if (json_doc_parse(reply->body.data, reply->body.len, NULL, doc, NULL) != 0)
        return tg_fail(msg, TG_CORRUPT, "HTTP status %d, and the answer is not JSON: %.*s",
                       reply->status, (int)(reply->body.len < 200 ? reply->body.len : 200),
                       reply->body.len > 0 ? (const char *)reply->body.data : "");
    const struct json_value *root = json_doc_root(*doc);
    const struct json_value *code = json_value_get(root, "code");
    *data = json_value_get(root, "data");
    if (code != NULL && slice_equal_str(json_value_text(code), "0"))
        return 0;
    int err = refused(root, *data, msg);
    json_doc_close(*doc);
    *doc = NULL;
    *data = NULL;
    return err;
}

int client_sql(struct client *client, const char *db, const char *statement, struct json_doc **doc,
               const struct json_value **data, struct tg_errmsg *msg)
{
    struct buf target = BUF_INIT;
    struct buf body = BUF_INIT;
    struct http_reply reply = {0};

    *doc = NULL;
    *data = NULL;
    buf_append_str(&target,
                   db[0] != '\0' ? "/api/query/default_cluster/" : "/api/query/default_cluster");
    client_url_encode(db, &target);
    buf_append_str(&body, "{\"stmt\":");
    json_append_cstr(&body, statement);
    buf_append_str(&body, "}");
    const char *path = buf_cstr(&target);
    int err = path == NULL || body.err != 0 ? TG_NOMEM : 0;
    if (err == 0)
        err = client_request(client, "POST", path, "Content-Type: application/json\r\n", body.data,
                             body.len, &reply, msg);
    if (err == 0)
        err = client_envelope(&reply, doc, data, msg);
    http_reply_close(&reply);
    buf_close(&target);
    buf_close(&body);
    return err;
}

void client_url_encode(const char *text, struct buf *out)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (isalnum(c) || strchr("-_.~", c) != NULL)
            buf_append_u8(out, c);
        else
            buf_printf(out, "%%%02X", c);
    }
}
