/* SPDX-License-Identifier: Apache-2.0 */
/* struct participants on RPC. */
#ifndef TG_COORDINATOR_CLUSTER_RPC_PARTICIPANTS_H
#define TG_COORDINATOR_CLUSTER_RPC_PARTICIPANTS_H

#include "common/base/err.h"
#include "common/net/loop.h"
#include "coordinator/cluster/participants.h"

struct rpc_participants;

/* The loop must outlive it. TG_TOO_LARGE (the secret), TG_NOMEM. */
int rpc_participants_open(struct loop *loop, const char *secret,
                          struct rpc_participants **participants, struct tg_errmsg *msg);
/* Calls under way end with TG_CANCELED. */
void rpc_participants_close(struct rpc_participants *participants);
/* Nodes that a call does not reach become doubtful there. health must outlive the calls; NULL: no
 * longer. */
struct health;
void rpc_participants_watch(struct rpc_participants *participants, struct health *health);
struct participants *rpc_participants_calls(struct rpc_participants *participants);

#endif
