/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a begin: everything the ingest node needs to load, read off the state. Pure. */
#ifndef TG_COORDINATOR_TXN_TXN_PLAN_H
#define TG_COORDINATOR_TXN_TXN_PLAN_H

#include "common/proto/msg_txn.h"
#include "coordinator/state/state.h"

/* Fills an initialised reply for the load `rowset` of `txn`, which must exist; the caller closes
 * it. 0, TG_NOT_FOUND (its table was dropped since), TG_NOMEM. */
int txn_plan_fill(const struct state *state, const struct txn *txn, rowset_id rowset,
                  struct msg_txn_begin_reply *reply);

#endif
