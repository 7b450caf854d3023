/* SPDX-License-Identifier: Apache-2.0 */
/* Slots and lists of outstanding RPC calls. */
#include "common/net/rpc_call_table.h"

#include <string.h>

void rpc_call_list_append(struct rpc_call_list *list, struct rpc_call *call)
{
    call->next = NULL;
    call->previous = list->last;
    if (list->last != NULL)
        list->last->next = call;
    else
        list->first = call;
    list->last = call;
}

void rpc_call_list_remove(struct rpc_call_list *list, struct rpc_call *call)
{
    if (call->next != NULL)
        call->next->previous = call->previous;
    else
        list->last = call->previous;
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        list->first = call->next;
    call->previous = NULL;
    call->next = NULL;
}

void rpc_call_table_init(struct rpc_call_table *table)
{
    memset(table->slots, 0, sizeof table->slots);
    table->free_count = RPC_CALLS_MAX;
    table->generation = 0;
    for (size_t i = 0; i < RPC_CALLS_MAX; i++)
        table->free_slots[i] = (uint16_t)(RPC_CALLS_MAX - 1 - i);
}

bool rpc_call_table_add(struct rpc_call_table *table, struct rpc_call *call)
{
    if (table->free_count == 0)
        return false;
    size_t slot = table->free_slots[--table->free_count];
    call->id = ++table->generation * RPC_CALLS_MAX + slot;
    table->slots[slot] = call;
    return true;
}

struct rpc_call *rpc_call_table_find(struct rpc_call_table *table, uint64_t id)
{
    struct rpc_call *call = table->slots[id % RPC_CALLS_MAX];
    return call != NULL && call->id == id ? call : NULL;
}

void rpc_call_table_remove(struct rpc_call_table *table, struct rpc_call *call)
{
    size_t slot = call->id % RPC_CALLS_MAX;
    table->slots[slot] = NULL;
    table->free_slots[table->free_count++] = (uint16_t)slot;
}
