/* SPDX-License-Identifier: Apache-2.0 */
/* What stands against moving replicas and losing participants: looks at the state, for whoever
 * wants to propose it or to say why it waits. */
#ifndef TG_COORDINATOR_STATE_MOVE_H
#define TG_COORDINATOR_STATE_MOVE_H

#include "coordinator/state/state.h"

/* An open transaction begun under an older placement for which the replica in this slot cannot
 * leave yet (rule 17); NULL if there is none. */
const struct txn *move_blocker(const struct state *state, const struct tablet *tablet,
                               unsigned slot);
/* Whether `left` participants suffice for every table's replication_num, once the node is on its
 * way out: 0 or TG_REFUSED with a sentence. */
int move_check_drain(const struct state *state, node_id node, uint32_t left, struct tg_errmsg *msg);
/* Whether the node can be dropped with nothing lost: 0 or TG_REFUSED with a sentence. */
int move_check_drop(const struct state *state, node_id node, struct tg_errmsg *msg);
/* Replicas on the node, those of dropped tables not counted. */
uint32_t move_replicas(const struct state *state, node_id node);

#endif
