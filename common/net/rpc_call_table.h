/* SPDX-License-Identifier: Apache-2.0 */
/* Outstanding calls of one RPC client: found by id in one step, kept in order in lists. */
#ifndef TG_COMMON_NET_RPC_CALL_TABLE_H
#define TG_COMMON_NET_RPC_CALL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/net/rpc.h"

enum rpc_call_state { RPC_CALL_WAITING, RPC_CALL_SENT, RPC_CALL_FAILED };

struct rpc_call {
    struct rpc_call *previous, *next;
    enum rpc_call_state state;
    uint64_t id;
    uint64_t deadline_ms;
    uint16_t type;
    int err;         /* RPC_CALL_FAILED */
    const char *why; /* RPC_CALL_FAILED */
    struct buf head;
    struct buf payload;
    rpc_done *done;
    void *data;
};

struct rpc_call_list {
    struct rpc_call *first, *last;
};

void rpc_call_list_append(struct rpc_call_list *list, struct rpc_call *call);
void rpc_call_list_remove(struct rpc_call_list *list, struct rpc_call *call);

/* The low bits of an id are a slot, the rest counts up, so that an id does not come again in the
 * life of a connection. */
struct rpc_call_table {
    struct rpc_call *slots[RPC_CALLS_MAX];
    uint16_t free_slots[RPC_CALLS_MAX];
    size_t free_count;
    uint64_t generation;
};

void rpc_call_table_init(struct rpc_call_table *table);
/* Gives the call its id; false if RPC_CALLS_MAX are in. */
bool rpc_call_table_add(struct rpc_call_table *table, struct rpc_call *call);
struct rpc_call *rpc_call_table_find(struct rpc_call_table *table, uint64_t id);
void rpc_call_table_remove(struct rpc_call_table *table, struct rpc_call *call);

#endif
