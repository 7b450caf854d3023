/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of clones to real peers. */
#include "participant/link/peer_client.h"
#include "participant/maintain/cloner.h"

enum { CLONE_CALL_MS = 30000 };

static int call_peer(void *ctx, node_id node, const char *address, uint16_t type, struct buf *head,
                     const atomic_bool *stop, struct buf *reply_head, struct buf *reply_payload,
                     struct tg_errmsg *msg)
{
    struct peer_clients *peers = ctx;

    return peer_call_wait(peers, node, address, type, head, NULL, CLONE_CALL_MS, stop, reply_head,
                          reply_payload, msg);
}

void clone_calls_init(struct clone_calls *calls, struct peer_clients *peers)
{
    *calls = (struct clone_calls){.ctx = peers, .call = call_peer};
}
