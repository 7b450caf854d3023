/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a load in a real participant. */
#include "participant/ingest/load_calls.h"

#include "participant/link/coordinator_client.h"
#include "participant/store/rowset_store.h"

static int call_coordinator(void *ctx, uint16_t type, struct buf *head, uint64_t timeout_ms,
                            uint64_t attempt_ms, struct buf *reply_head, struct tg_errmsg *msg)
{
    struct load_world *world = ctx;
    return coordinator_client_call_wait(world->coordinators, type, head, timeout_ms, attempt_ms,
                                        reply_head, msg);
}

static void call_store(void *ctx, const struct msg_replicate *message, struct slice payload,
                       void (*done)(void *data, int err), void *data)
{
    struct load_world *world = ctx;
    rowset_store_replicate(world->store, message, payload, done, data);
}

static void call_peer(void *ctx, struct peer_call *call)
{
    struct load_world *world = ctx;
    peer_call_start(world->peers, call);
}

void load_calls_init(struct load_calls *calls, struct load_world *world)
{
    *calls = (struct load_calls){
        .ctx = world, .coordinator = call_coordinator, .store = call_store, .peer = call_peer};
}
