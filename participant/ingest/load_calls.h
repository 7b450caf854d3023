/* SPDX-License-Identifier: Apache-2.0 */
/* All that a load asks of the world outside it, so that a test can be that world. */
#ifndef TG_PARTICIPANT_INGEST_LOAD_CALLS_H
#define TG_PARTICIPANT_INGEST_LOAD_CALLS_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/proto/msg_replicate.h"
#include "participant/link/peer_client.h"

struct load_calls {
    void *ctx;
    /* As coordinator_client_call_wait. */
    int (*coordinator)(void *ctx, uint16_t type, struct buf *head, uint64_t timeout_ms,
                       uint64_t attempt_ms, struct buf *reply_head, struct tg_errmsg *msg);
    /* As rowset_store_replicate: the own replica. */
    void (*store)(void *ctx, const struct msg_replicate *message, struct slice payload,
                  void (*done)(void *data, int err), void *data);
    /* As peer_call_start. */
    void (*peer)(void *ctx, struct peer_call *call);
};

struct coordinator_client;
struct store;

/* What the calls of a real participant go to. */
struct load_world {
    struct coordinator_client *coordinators;
    struct peer_clients *peers;
    struct store *store;
};
/* world must outlive the calls. */
void load_calls_init(struct load_calls *calls, struct load_world *world);

#endif
