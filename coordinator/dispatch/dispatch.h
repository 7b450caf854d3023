/* SPDX-License-Identifier: Apache-2.0 */
/* A message to the leader, from RPC or from this node's own HTTP, to whoever handles it. Only a
 * leader answers; every other coordinator says TG_NOT_LEADER, except to MSG_STATUS and to reads
 * that want no leader: with consistency=local, or of a past that can no longer change. */
#ifndef TG_COORDINATOR_DISPATCH_DISPATCH_H
#define TG_COORDINATOR_DISPATCH_DISPATCH_H

#include "coordinator/dispatch/dispatch_call.h"

void dispatch_call(struct dispatch *dispatch, uint16_t type, struct slice head, dispatch_done *done,
                   void *data);
/* NULL for an id that the options do not name. */
const struct dispatch_peer *dispatch_peer_find(const struct dispatch *dispatch, uint64_t id);

#endif
