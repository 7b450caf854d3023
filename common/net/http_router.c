/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: method and path pattern to handler. */
#include "common/net/http_router.h"

#include <string.h>

enum http_match { HTTP_MATCH_NO, HTTP_MATCH_YES, HTTP_MATCH_BAD_ESCAPE, HTTP_MATCH_TOO_LONG };

static enum http_match http_router_match(const char *pattern, const char *path,
                                         struct http_params *params)
{
    enum http_match found = HTTP_MATCH_YES;
    params->count = 0;
    for (;;) {
        size_t pattern_len = strcspn(pattern, "/");
        size_t path_len = strcspn(path, "/");
        if (pattern[0] == '{') {
            if (path_len == 0 || params->count == HTTP_PARAMS_MAX)
                return HTTP_MATCH_NO;
            int err = http_decode_segment(slice_of(path, path_len), params->value[params->count++],
                                          HTTP_PARAM_BYTES);
            if (err != 0)
                found = err == TG_INVALID ? HTTP_MATCH_BAD_ESCAPE : HTTP_MATCH_TOO_LONG;
        } else if (pattern_len != path_len || memcmp(pattern, path, path_len) != 0) {
            return HTTP_MATCH_NO;
        }
        pattern += pattern_len;
        path += path_len;
        if (*pattern == '\0' || *path == '\0')
            return *pattern == *path ? found : HTTP_MATCH_NO;
        pattern++;
        path++;
    }
}

/* A HEAD is a GET whose body the server leaves out. */
static bool http_router_method(const char *route, const char *method)
{
    return strcmp(route, "*") == 0 || strcmp(route, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route, "GET") == 0);
}

static void http_router_refuse(struct http_exchange *exchange, int status, const char *headers,
                               const char *text)
{
    http_exchange_respond(exchange, status, "text/plain;charset=utf-8", headers, text,
                          strlen(text));
}

void http_router_dispatch(const struct http_route *routes, size_t count, void *ctx,
                          struct http_exchange *exchange)
{
    const struct http_request *request = http_exchange_request(exchange);
    struct http_params params;
    struct buf allow = BUF_INIT;
    for (size_t i = 0; i < count; i++) {
        const struct http_route *route = &routes[i];
        enum http_match match = http_router_match(route->pattern, request->path, &params);
        if (match == HTTP_MATCH_NO)
            continue;
        if (!http_router_method(route->method, request->method)) {
            buf_append_str(&allow, allow.len == 0 ? "Allow: " : ", ");
            buf_append_str(&allow, route->method);
            continue;
        }
        if (match == HTTP_MATCH_YES)
            route->handle(ctx, exchange, &params);
        else if (match == HTTP_MATCH_BAD_ESCAPE)
            http_router_refuse(exchange, 400, NULL, "Bad percent escape in the path\n");
        else
            http_router_refuse(exchange, 414, NULL, "A part of the path is too long\n");
        buf_close(&allow);
        return;
    }
    if (allow.len > 0) {
        buf_append_str(&allow, "\r\n");
        http_router_refuse(exchange, 405, buf_cstr(&allow), "Method Not Allowed\n");
    } else {
        http_router_refuse(exchange, 404, NULL, "Not Found\n");
    }
    buf_close(&allow);
}
