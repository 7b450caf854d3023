/* SPDX-License-Identifier: Apache-2.0 */
/* What the dispatcher's parts share: the dispatcher's fields and the shape of a call's end. */
#ifndef TG_COORDINATOR_DISPATCH_DISPATCH_CALL_H
#define TG_COORDINATOR_DISPATCH_DISPATCH_CALL_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "coordinator/cluster/health.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/members/members_call.h"
#include "coordinator/query/query_waits.h"
#include "coordinator/txn/repair_daemon.h"
#include "coordinator/txn/txn_manager.h"

/* Where the coordinators are: from the options and the replicated list. */
struct dispatch_peer {
    uint64_t id;
    char rpc[ADDRESS_BYTES];
    char http[ADDRESS_BYTES];
};
enum { DISPATCH_PEERS_MAX = 2 * COORDINATORS_MAX };

struct dispatch {
    struct consensus *consensus;
    struct txn_manager *txns;
    struct health *health;
    struct clock *clock;
    struct query_waits *waits;
    struct repair_daemon *repairs; /* NULL: nothing can be declared lost */
    struct members_calls *members; /* NULL: MSG_COORDINATOR is not supported */
    bool of_cluster;               /* the directory is of a cluster, known by its uuid or not yet */
    enum status_room room;         /* of this node's disk, kept up to date */
    uint64_t disk_free_bytes;
    uint64_t self;
    uint32_t peer_count;
    struct dispatch_peer peers[DISPATCH_PEERS_MAX];
};

/* The end of a call, once. head stays the dispatcher's. May be called from inside dispatch_call. */
typedef void dispatch_done(void *data, int err, const char *sentence, struct slice head);

#endif
