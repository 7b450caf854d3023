/* SPDX-License-Identifier: Apache-2.0 */
/* What of a transaction a participant still has to bind, and when its replicas suffice: pure looks
 * at the state. */
#ifndef TG_COORDINATOR_TXN_PUBLISH_MESSAGE_H
#define TG_COORDINATOR_TXN_PUBLISH_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/proto/msg_publish.h"
#include "coordinator/state/state.h"

/* Adds to message (for message->node) a bind for each tablet of txn that the node has a good
 * replica of (or any, where none is good) and has not bound. bound: per publish tablet the slots
 * that have. Dropped tables and what is lost are left out. */
void publish_message_add(const struct state *state, const struct txn *txn, const uint8_t *bound,
                         struct msg_publish *message);
/* By version, then tablet: each tablet's versions in order. */
void publish_message_sort(struct msg_publish *message);
/* Every replica that publishing awaits has bound it. */
bool publish_message_is_complete(const struct state *state, const struct txn *txn,
                                 const uint8_t *bound);

#endif
