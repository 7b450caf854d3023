/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of raft's transport from its first byte until raft takes it: hello, identity,
 * verdict, each within one time limit. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_LINK_H
#define TG_COORDINATOR_CONSENSUS_RAFT_LINK_H

#include <raft/uv.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/model/ids.h"
#include "common/net/loop.h"
#include "common/net/rpc_hello.h"

enum {
    RAFT_LINK_IDENTITY_BYTES = 120,
    RAFT_LINK_VERDICT_BYTES = 8,
    RAFT_LINK_WHY_BYTES = 160,
    RAFT_LINK_IN_BYTES = 256 /* read at once; nothing on a link is longer before it is raft's */
};

struct raft_link {
    /* The owner's. */
    void *owner;
    struct raft_link *next;
    /* stream is the caller's now (allocated with raft_malloc), or NULL after a failure. Called
     * once; the link frees itself afterwards. On failure never from inside a call of the owner. */
    void (*on_end)(struct raft_link *link, struct uv_stream_s *stream);
    int (*check_identity)(struct raft_link *link, uint64_t from, uint64_t to); /* 0 or TG_REFUSED */
    struct raft_uv_connect *request;
    uint64_t from, to;           /* set by the owner when connecting, by the peer when accepting */
    char address[ADDRESS_BYTES]; /* the same: where from is reached */

    /* After a failure. */
    int err;
    char why[RAFT_LINK_WHY_BYTES];

    char peer[ADDRESS_BYTES]; /* for the log */
    struct loop *loop;
    const char *secret;
    bool accepting;
    bool ending;
    bool resolving;
    uv_tcp_t *tcp;
    uv_timer_t timer;
    uv_connect_t connecting;
    uv_getaddrinfo_t resolve;
    struct rpc_hello hello;
    uint8_t message[RAFT_LINK_IDENTITY_BYTES]; /* identity or verdict, as far as it came */
    size_t message_len;
    uint8_t in[RAFT_LINK_IN_BYTES];
};

/* NULL on TG_NOMEM. secret must outlive the link. */
struct raft_link *raft_link_open(struct loop *loop, const char *secret, bool accepting);
/* To accept into. */
uv_stream_t *raft_link_stream(struct raft_link *link);
/* The stream is accepted: begin. */
void raft_link_accepted(struct raft_link *link, uint64_t limit_ms);
/* Connects to host:port and introduces itself as link->from to link->to. */
void raft_link_connect(struct raft_link *link, const char *address, uint64_t limit_ms);
/* Ends it with this error unless it is ending already. */
void raft_link_abort(struct raft_link *link, int err, const char *why);

#endif
