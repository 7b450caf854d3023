/* SPDX-License-Identifier: Apache-2.0 */
/* One RPC connection to each node of a kind, opened when first needed and again when the node has
 * moved. On the loop only. */
#ifndef TG_COMMON_NET_RPC_POOL_H
#define TG_COMMON_NET_RPC_POOL_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/net/loop.h"
#include "common/net/rpc.h"

enum { RPC_POOL_NODES_MAX = 64, RPC_POOL_SECRET_BYTES = 256 };

struct rpc_pool {
    struct loop *loop;
    char secret[RPC_POOL_SECRET_BYTES];
    uint64_t patience_ms; /* of all connections (rpc_client_set_patience) */
    uint64_t turns;
    unsigned count;
    struct rpc_pool_node {
        uint64_t node;
        struct rpc_client *client;
        uint64_t turn; /* when it was asked for last */
    } nodes[RPC_POOL_NODES_MAX];
};

/* TG_TOO_LARGE if the secret is. Whoever wants patience limited sets patience_ms afterwards. */
int rpc_pool_init(struct rpc_pool *pool, struct loop *loop, const char *secret,
                  struct tg_errmsg *msg);
/* Calls under way end with TG_CANCELED. */
void rpc_pool_close(struct rpc_pool *pool);
/* The node's connection at that address, NULL with a reason in msg. Beyond RPC_POOL_NODES_MAX the
 * one that was not asked for the longest goes: a node that left the cluster. */
struct rpc_client *rpc_pool_client(struct rpc_pool *pool, uint64_t node, const char *address,
                                   struct tg_errmsg *msg);

#endif
