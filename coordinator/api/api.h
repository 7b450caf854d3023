/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP side of a coordinator: routes, who may call them, and the shapes of their answers. Every
 * coordinator answers; what only the leader knows is asked of it. */
#ifndef TG_COORDINATOR_API_API_H
#define TG_COORDINATOR_API_API_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/random.h"
#include "common/net/http_server.h"
#include "coordinator/api/leader_call.h"

struct api_options {
    const char *root_password;
    bool strict_expect;              /* _stream_load without an Expect header is refused */
    uint64_t call_timeout_ms;        /* how long the leader is looked for: 10 000 */
    uint64_t txn_timeout_ms;         /* the same for _stream_load_2pc: 30 000 */
    uint64_t commit_visible_wait_ms; /* how long a commit's answer waits for VISIBLE: 2 000 */
    /* Called before /metrics is printed, to bring gauges up to date; may be NULL. */
    void (*refresh_metrics)(void *data);
    void *refresh_data;
};

struct api;

/* The link must outlive the api; the strings of options too. */
int api_open(struct leader_link *link, const struct api_options *options,
             struct random_source *random, struct api **api);
/* After the HTTP server is closed. Answers still under way find nobody. */
void api_close(struct api *api);
/* A http_server handler; ctx is the api. */
void api_handle(void *ctx, struct http_exchange *exchange);

#endif
