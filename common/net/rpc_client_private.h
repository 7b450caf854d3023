/* SPDX-License-Identifier: Apache-2.0 */
/* Insides of the RPC client, for its two files: calls on the loop and calls of waiting threads. */
#ifndef TG_COMMON_NET_RPC_CLIENT_PRIVATE_H
#define TG_COMMON_NET_RPC_CLIENT_PRIVATE_H

#include <stdatomic.h>
#include <sys/socket.h>

#include "common/net/loop.h"
#include "common/net/rpc.h"
#include "common/net/rpc_call_table.h"

struct rpc_client_link;

struct rpc_client {
    struct loop *loop;
    char *address;
    char *secret;
    struct sockaddr_storage socket_address;
    struct rpc_client_link *link; /* NULL while idle or resting */
    struct loop_timer *rest;      /* runs while resting */
    struct loop_timer *deadline;
    struct loop_turn_hook hook; /* tells the calls that failed at once */
    uint64_t deadline_at_ms;    /* what `deadline` is set to; 0 = not set */
    uint64_t rest_ms;
    uint64_t patience_ms;   /* 0: calls wait until their deadline */
    uint64_t down_since_ms; /* when the link was lost or could not be opened; 0: not known down */
    bool resting;
    bool closed;
    atomic_uint references; /* the owner, each link, each waiting thread's posted call */
    struct rpc_call_table table;
    struct rpc_call_list waiting; /* no link yet */
    struct rpc_call_list sent;
    struct rpc_call_list failed; /* to be told at the end of the turn */
    size_t waiting_bytes;
};

/* Gives a reference back; the last one frees the client. Any thread. */
void rpc_client_release(struct rpc_client *client);

#endif
