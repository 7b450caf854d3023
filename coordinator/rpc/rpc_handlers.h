/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from participants and other coordinators to whoever handles them. */
#ifndef TG_COORDINATOR_RPC_RPC_HANDLERS_H
#define TG_COORDINATOR_RPC_RPC_HANDLERS_H

#include "common/net/rpc.h"
#include "coordinator/dispatch/dispatch.h"

/* What the RPC server is opened with: it listens before the coordinator has decided whether it may
 * form a cluster, so that others who start at the same time learn that it knows of none. */
struct rpc_handlers {
    struct dispatch *dispatch;
    bool serves; /* false: MSG_STATUS says that nothing is known, all else TG_NOT_LEADER */
};

/* An rpc_handler; ctx is a struct rpc_handlers that outlives all requests. */
void rpc_handlers_call(void *ctx, struct rpc_request *request);

#endif
