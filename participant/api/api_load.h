/* SPDX-License-Identifier: Apache-2.0 */
/* PUT _stream_load and _stream_load_2pc on a participant, and GET _load_error_log: from an HTTP
 * exchange to a load on a thread of its own and back.
 *
 *   head ─▶ credentials, framing, headers are checked on the loop ─▶ refused: answered at once
 *        └▶ a thread begins the transaction ─▶ then the body is read (100 Continue) ─▶ answer
 *
 * Answers are always HTTP 200 with the load's own words, except where an outcome cannot be known:
 * then the connection closes without one. */
#ifndef TG_PARTICIPANT_API_API_LOAD_H
#define TG_PARTICIPANT_API_API_LOAD_H

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/net/http_router.h"
#include "common/net/loop.h"
#include "participant/link/coordinator_client.h"
#include "participant/link/live_requests.h"
#include "participant/link/node_identity.h"
#include "participant/link/peer_client.h"
#include "participant/store/store.h"

struct api_load;
struct load_memory;

/* All pointers must outlive the api_load. */
struct api_load_options {
    struct loop *loop;
    struct clock *clock;
    struct random_source *random;
    struct coordinator_client *coordinators;
    struct peer_clients *peers;
    struct store *store;
    struct live_requests *requests;
    const struct node_identity *identity;
    const char *root_password;
    const char *error_log_dir;   /* made if it is not there: DATA/error_log */
    uint64_t loads_max;          /* at once; further ones are refused */
    uint64_t load_memory_bytes;  /* of one load, for rows */
    uint64_t loads_memory_bytes; /* of all loads, for everything */
    uint64_t body_bytes_max;
    uint64_t json_body_bytes_max;    /* where the body is one document */
    uint64_t publish_timeout_ms;     /* a load waits so long to become visible */
    uint64_t commit_visible_wait_ms; /* a 2PC commit likewise, before it says Success anyway */
};

/* TG_NOMEM, TG_IO with a message. */
int api_load_open(const struct api_load_options *options, struct api_load **api,
                  struct tg_errmsg *msg);
/* Stops all loads, waits for their threads. Not on the loop, which must still run: loads tell the
 * coordinators that they failed. NULL is allowed. */
void api_load_close(struct api_load *api);
/* "host:port" of this node's HTTP server as clients reach it, for ErrorURL; before it is set the
 * request's Host header serves. On the loop. */
void api_load_set_address(struct api_load *api, const char *address);

/* What the loads hold, for metrics. */
struct load_memory *api_load_memory(struct api_load *api);

/* Route handlers; they check credentials themselves and answer in their own words. */
/* params: database, table. */
void api_load_stream_load(struct api_load *api, struct http_exchange *exchange,
                          const struct http_params *params);
/* params: database. */
void api_load_2pc(struct api_load *api, struct http_exchange *exchange,
                  const struct http_params *params);
/* No credentials, as with Doris. */
void api_load_error_log(struct api_load *api, struct http_exchange *exchange,
                        const struct http_params *params);

#endif
