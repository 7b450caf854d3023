/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from participants and other coordinators to whoever handles them. */
#include "coordinator/rpc/rpc_handlers.h"

#include "common/proto/message.h"

static void answer(void *data, int err, const char *sentence, struct slice head)
{
    rpc_request_verdict(data, err, sentence, head);
}

static void answer_early(const struct rpc_handlers *handlers, struct rpc_request *request)
{
    struct msg_status_reply reply = {.coordinator = handlers->dispatch->self,
                                     .phase = handlers->phase,
                                     .nonce = handlers->nonce};
    struct buf head = BUF_INIT;

    msg_status_reply_encode(&reply, &head);
    rpc_request_reply_take(request, 0, &head, NULL);
}

void rpc_handlers_call(void *ctx, struct rpc_request *request)
{
    struct rpc_handlers *handlers = ctx;
    bool status = rpc_request_type(request) == MSG_STATUS;

    if (handlers->phase != STATUS_SERVES && (!status || handlers->silent))
        rpc_request_fail(request, TG_NOT_LEADER, "this coordinator is starting");
    else if (handlers->phase != STATUS_SERVES)
        answer_early(handlers, request);
    else
        dispatch_call(handlers->dispatch, rpc_request_type(request), rpc_request_head(request),
                      answer, request);
}
