/* SPDX-License-Identifier: Apache-2.0 */
/* Method and path pattern to handler: a table. Patterns: "/api/{db}/{table}/_scan"; {x} matches one
 * non-empty segment, percent-decoded into params. */
#ifndef TG_COMMON_NET_HTTP_ROUTER_H
#define TG_COMMON_NET_HTTP_ROUTER_H

#include "common/net/http_server.h"

enum { HTTP_PARAMS_MAX = 4, HTTP_PARAM_BYTES = 512 };

struct http_params {
    size_t count;
    char value[HTTP_PARAMS_MAX][HTTP_PARAM_BYTES]; /* in the order of the pattern */
};

struct http_route {
    const char *method; /* "GET"; "*" for any */
    const char *pattern;
    void (*handle)(void *ctx, struct http_exchange *exchange, const struct http_params *params);
};

/* Calls the first matching route. Answers 404 if no pattern fits, 405 if only the method differs,
 * 400 on a bad percent escape. */
void http_router_dispatch(const struct http_route *routes, size_t count, void *ctx,
                          struct http_exchange *exchange);

#endif
