/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from participants and other coordinators to whoever handles them. */
#ifndef TG_COORDINATOR_RPC_RPC_HANDLERS_H
#define TG_COORDINATOR_RPC_RPC_HANDLERS_H

#include "common/net/rpc.h"
#include "common/proto/msg_status.h"
#include "coordinator/dispatch/dispatch.h"

/* What the RPC server is opened with: it listens before the coordinator has decided whether it may
 * form a cluster, so that others who start at the same time can learn that it knows of none. */
struct rpc_handlers {
    struct dispatch *dispatch;
    enum status_phase phase; /* before STATUS_SERVES only MSG_STATUS is answered */
    uint64_t nonce;          /* of the directory, while phase is STATUS_JOINS */
    bool silent; /* MSG_STATUS is not answered either before STATUS_SERVES: the directory is of a
                    cluster, and what is said must not be read as "no cluster" */
};

/* An rpc_handler; ctx is a struct rpc_handlers that outlives all requests. */
void rpc_handlers_call(void *ctx, struct rpc_request *request);

#endif
