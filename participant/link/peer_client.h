/* SPDX-License-Identifier: Apache-2.0 */
/* One RPC connection to each other participant, made when first needed. */
#ifndef TG_PARTICIPANT_LINK_PEER_CLIENT_H
#define TG_PARTICIPANT_LINK_PEER_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/net/loop.h"
#include "common/net/rpc.h"

struct peer_clients;

/* The loop must outlive the peers; secret is copied. TG_TOO_LARGE (the secret), TG_NOMEM. */
int peer_clients_open(struct loop *loop, const char *secret, struct peer_clients **peers,
                      struct tg_errmsg *msg);
void peer_clients_close(struct peer_clients *peers); /* on the loop; calls end with TG_CANCELED */

/* A call in the air, owned by the caller until done ran. */
struct peer_call {
    struct loop_call post; /* the peers' */
    struct peer_clients *peers;
    node_id node;
    char address[ADDRESS_BYTES];
    uint16_t type;
    struct buf head; /* taken over */
    struct buf payload;
    uint64_t timeout_ms;
    rpc_done *done; /* on the loop */
    void *data;
};
/* Any thread. Sends once, in order of calls to the same node. */
void peer_call_start(struct peer_clients *peers, struct peer_call *call);

enum {
    /* A node out of reach for longer is not waited for: others have a copy. */
    PEER_PATIENCE_MS = 500
};

/* Any thread but the loop's: sends and waits. Takes over head and payload (may be NULL); replies
 * (may be NULL) get the answer in place of what they held, which the caller closes. Returns the
 * reply's err; TG_CANCELED when *stop is set meanwhile (stop may be NULL: the answer, if it comes,
 * is dropped), when the peers close or the loop ends. */
int peer_call_wait(struct peer_clients *peers, node_id node, const char *address, uint16_t type,
                   struct buf *head, struct buf *payload, uint64_t timeout_ms,
                   const atomic_bool *stop, struct buf *reply_head, struct buf *reply_payload,
                   struct tg_errmsg *msg);

#endif
