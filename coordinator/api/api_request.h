/* SPDX-License-Identifier: Apache-2.0 */
/* One request on its way through the api: it lives until both its exchange and what it asked of the
 * leader have ended, in whichever order. */
#ifndef TG_COORDINATOR_API_API_REQUEST_H
#define TG_COORDINATOR_API_API_REQUEST_H

#include "common/net/auth.h"
#include "common/net/http_router.h"
#include "common/proto/msg_query.h"
#include "common/proto/msg_txn.h"
#include "coordinator/api/api.h"
#include "coordinator/api/backend_list.h"

struct api {
    struct leader_link *link;
    struct api_options options;
    struct random_source *random;
    struct backend_list backends;
};

#define API_JSON "application/json;charset=utf-8"

struct api_request {
    struct api *api;
    struct http_exchange *exchange; /* NULL once it is closed */
    unsigned holds;
    struct auth_basic user;
    char db[HTTP_PARAM_BYTES];
    struct buf body;
    size_t body_max;
    void (*body_done)(struct api_request *request);
    void (*called)(struct api_request *request, int err, const char *sentence, struct slice head);
    struct msg_txn_2pc two_phase; /* of _stream_load_2pc */
};

/* Takes the exchange over. */
struct api_request *api_request_open(struct api *api, struct http_exchange *exchange);
void api_request_hold(struct api_request *request);
void api_request_release(struct api_request *request);

/* Asks the leader; called is told the end, unless the exchange was closed meanwhile. Takes over
 * head's memory. */
void api_request_call(struct api_request *request, uint16_t type, struct buf *head,
                      uint64_t timeout_ms,
                      void (*called)(struct api_request *request, int err, const char *sentence,
                                     struct slice head));
/* 128 random bits that mark what a client asked for once, however often it is sent on. */
void api_request_key(struct api_request *request, uint64_t *hi, uint64_t *lo);
/* MSG_QUERY, answered in the envelope. Names longer than any can be are refused. text may be
 * empty. */
void api_request_query(struct api_request *request, enum query_kind kind, const char *db,
                       const char *table, const char *label, struct slice text);
/* Reads the body (at most max bytes), then calls done. */
void api_request_read(struct api_request *request, size_t max,
                      void (*done)(struct api_request *request));

/* Checks the Authorization header into request->user. 0, or TG_DENIED with a sentence in msg. */
int api_request_check_user(struct api_request *request, struct tg_errmsg *msg);
/* The same; on failure the envelope says so and false is returned. */
bool api_request_authorize(struct api_request *request);

/* Answers, in the envelope {"msg":…,"code":…,"data":…,"count":0}. data is JSON. */
void api_answer_data(struct api_request *request, struct slice data);
/* code 1: "Error", 401: "Unauthorized", 403: "Bad Request", 404: "Not Found", 500: "Internal
 * Error"; the HTTP status is 200, but 503 if the leader could not be reached. */
void api_answer_error(struct api_request *request, int code, const char *text);
/* The same with an HTTP status that fits, as participants answer reads: who asked for rows must not
 * take a 200 for some. */
void api_answer_refused(struct api_request *request, int status, const char *text);
/* A verdict of the leader as envelope. */
void api_answer_verdict(struct api_request *request, int err, const char *sentence);
/* {"status":"FAILED","msg":…}: what load endpoints answer themselves. */
void api_answer_failed(struct api_request *request, const char *text);

#endif
