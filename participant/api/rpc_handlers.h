/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from other nodes: publish and clone (from the leading coordinator), replicate, read and the
 * questions of clones (from other participants). */
#ifndef TG_PARTICIPANT_API_RPC_HANDLERS_H
#define TG_PARTICIPANT_API_RPC_HANDLERS_H

#include "common/base/clock.h"
#include "common/net/loop.h"
#include "common/net/rpc.h"
#include "participant/link/node_identity.h"
#include "participant/maintain/clone_source.h"
#include "participant/maintain/cloner.h"
#include "participant/maintain/gc.h"
#include "participant/read/tablet_reader.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"

struct rpc_handlers {
    struct loop *loop;
    struct clock *clock;
    struct store *store;
    struct tablet_set *tablets;
    struct tablet_reader_pool *readers; /* NULL: reads are refused with TG_CLOSED, at shutdown */
    struct cloner *cloner;              /* the same */
    struct clone_source *source;        /* the same */
    struct gc *gc;
    const struct node_identity *identity;
};

/* An rpc_handler: ctx is a struct rpc_handlers. */
void rpc_handlers_dispatch(void *ctx, struct rpc_request *request);

#endif
