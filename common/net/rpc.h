/* SPDX-License-Identifier: Apache-2.0 */
/* RPC between nodes: frames on TCP, a msgpack head, a raw payload, a checksum. Both sides
 * authenticate with the cluster secret before anything else is read. Pure frame codec: rpc_frame.h.
 */
#ifndef TG_COMMON_NET_RPC_H
#define TG_COMMON_NET_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/net/loop.h"

enum {
    RPC_HEAD_BYTES_MAX = 8 * 1024 * 1024,
    RPC_PAYLOAD_BYTES_MAX = 32 * 1024 * 1024,
    RPC_CALLS_MAX = 4096, /* outstanding per connection; more are refused with TG_BUSY */
    /* Waiting to be written per connection; more: TG_BUSY. */
    RPC_QUEUED_BYTES_MAX = 128 * 1024 * 1024
};

/* ---- server ---- */

struct rpc_server;
struct rpc_request;

/* Called on the loop for each request. head and payload live until rpc_request_reply (or _drop). */
typedef void rpc_handler(void *ctx, struct rpc_request *request);

uint16_t rpc_request_type(const struct rpc_request *request);
struct slice rpc_request_head(const struct rpc_request *request);
struct slice rpc_request_payload(const struct rpc_request *request);
/* Answers: err (0 or an enum tg_err), a head (msgpack or empty) and a payload, both copied (payload
 * may be moved in with rpc_request_reply_take). On the loop only. Frees the request. A dead
 * connection swallows it. */
void rpc_request_reply(struct rpc_request *request, int err, struct slice head,
                       struct slice payload);
/* The same; takes over the memory of both bufs (emptied). */
void rpc_request_reply_take(struct rpc_request *request, int err, struct buf *head,
                            struct buf *payload);
/* Answers an error with a sentence, which the caller finds in its reply's message. */
void rpc_request_fail(struct rpc_request *request, int err, const char *text);
/* Both: a verdict (0 or an enum tg_err) with its sentence ("" for none) and a head, copied, which
 * says more about it. */
void rpc_request_verdict(struct rpc_request *request, int err, const char *text, struct slice head);
/* Gives up on it: the caller gets TG_CANCELED. */
void rpc_request_drop(struct rpc_request *request);

struct rpc_server_options {
    const char *host;
    uint16_t port; /* 0 = any */
    const char *secret;
    unsigned connections_max; /* 0 = 1 024 */
};
int rpc_server_open(struct loop *loop, const struct rpc_server_options *options,
                    rpc_handler *handler, void *ctx, struct rpc_server **server,
                    struct tg_errmsg *msg);
uint16_t rpc_server_port(const struct rpc_server *server);
/* Frames that were refused so far (bad magic, version, length, checksum, proof): each closed its
 * connection. */
uint64_t rpc_server_bad_frames(const struct rpc_server *server);
void rpc_server_close(struct rpc_server *server, void (*closed)(void *data), void *data);

/* ---- client ---- */

/* A pipelined connection to one address, opened on first use, reopened with back-off (50 ms
 * doubling to 1 s). Calls made while it is down wait until it is up or their deadline passes. */
struct rpc_client;

struct rpc_reply {
    int err;           /* the server's verdict, or TG_TIMEOUT, TG_UNREACHABLE (not sent for sure),
                          TG_CLOSED (sent, connection lost: the outcome is unknown) */
    struct slice head; /* valid during the callback */
    struct slice payload;
    const char *message; /* sentence beside err, "" if none */
};
typedef void rpc_done(void *data, const struct rpc_reply *reply);

/* Before the loop runs, or on it. Copies address and secret; does not connect yet. TG_INVALID;
 * TG_NOMEM. */
int rpc_client_open(struct loop *loop, const char *address /* "127.0.0.1:9020" */,
                    const char *secret, struct rpc_client **client, struct tg_errmsg *msg);
/* On the loop. head and payload are copied; done is called exactly once, never from inside this
 * call. */
void rpc_client_call(struct rpc_client *client, uint16_t type, struct slice head,
                     struct slice payload, uint64_t timeout_ms, rpc_done *done, void *data);
/* The same, taking over both bufs' memory: for big payloads. */
void rpc_client_call_take(struct rpc_client *client, uint16_t type, struct buf *head,
                          struct buf *payload, uint64_t timeout_ms, rpc_done *done, void *data);
/* Without patience calls wait for a connection until their deadline. With it, a node that could not
 * be reached for so long is given up: calls end with TG_UNREACHABLE when the next attempt fails,
 * which a call hastens (the shortest back-off is kept), and at once when that attempt has itself
 * lasted so long without an answer. 0: no patience limit, the default. */
void rpc_client_set_patience(struct rpc_client *client, uint64_t patience_ms);
const char *rpc_client_address(const struct rpc_client *client);
size_t rpc_client_queued_bytes(const struct rpc_client *client);
bool rpc_client_connected(const struct rpc_client *client);
/* Outstanding calls end with TG_CANCELED. */
void rpc_client_close(struct rpc_client *client);

#endif
