/* SPDX-License-Identifier: Apache-2.0 */
/* One RPC connection to each node of a kind. */
#include "common/net/rpc_pool.h"

#include <stdio.h>
#include <string.h>

int rpc_pool_init(struct rpc_pool *pool, struct loop *loop, const char *secret,
                  struct tg_errmsg *msg)
{
    memset(pool, 0, sizeof *pool);
    pool->loop = loop;
    if (strlen(secret) >= sizeof pool->secret)
        return tg_fail(msg, TG_TOO_LARGE, "the cluster secret is longer than %zu bytes",
                       sizeof pool->secret - 1);
    snprintf(pool->secret, sizeof pool->secret, "%s", secret);
    return 0;
}

void rpc_pool_close(struct rpc_pool *pool)
{
    while (pool->count > 0)
        rpc_client_close(pool->nodes[--pool->count].client);
}

static struct rpc_pool_node *oldest(struct rpc_pool *pool)
{
    struct rpc_pool_node *found = &pool->nodes[0];

    for (unsigned i = 1; i < pool->count; i++)
        if (pool->nodes[i].turn < found->turn)
            found = &pool->nodes[i];
    return found;
}

struct rpc_client *rpc_pool_client(struct rpc_pool *pool, uint64_t node, const char *address,
                                   struct tg_errmsg *msg)
{
    struct rpc_pool_node *found = NULL;
    struct rpc_client *client;
    struct rpc_client *moved = NULL;

    for (unsigned i = 0; i < pool->count && found == NULL; i++)
        if (pool->nodes[i].node == node)
            found = &pool->nodes[i];
    if (found != NULL)
        found->turn = ++pool->turns;
    if (found != NULL && strcmp(rpc_client_address(found->client), address) == 0)
        return found->client;
    if (rpc_client_open(pool->loop, address, pool->secret, &client, msg) != 0)
        return NULL;
    rpc_client_set_patience(client, pool->patience_ms);
    if (found == NULL && pool->count == RPC_POOL_NODES_MAX)
        found = oldest(pool);
    if (found != NULL)
        moved = found->client;
    else
        found = &pool->nodes[pool->count++];
    found->node = node;
    found->client = client;
    found->turn = ++pool->turns;
    rpc_client_close(moved); /* last: its calls' callbacks may come here again */
    return found->client;
}
