/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions on the leader: a message in, commands proposed, an answer out once the log has
 * decided. */
#ifndef TG_COORDINATOR_TXN_TXN_MANAGER_H
#define TG_COORDINATOR_TXN_TXN_MANAGER_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/proto/msg_txn.h"
#include "coordinator/consensus/consensus.h"

enum {
    TXN_WAIT_VISIBLE_MS_MAX = 600000 /* longest wait for VISIBLE that a caller may ask for */
};

struct txn_manager;

/* The end of a call: once, never from inside it. head is the encoded reply message; it stays the
 * manager's and may be empty for errors. */
typedef void txn_manager_done(void *data, int err, const char *sentence, struct slice head);

/* Consensus and clock must outlive the manager. TG_NOMEM. */
int txn_manager_open(struct consensus *consensus, struct clock *clock,
                     struct txn_manager **manager);
/* Calls under way are answered TG_NOT_LEADER. */
void txn_manager_close(struct txn_manager *manager);

/* Verdicts: those of msg_txn.h, and TG_NOT_LEADER, TG_UNKNOWN_OUTCOME, TG_BUSY, TG_NOSPACE: then
 * the caller asks the leader again. The message stays the caller's. */
void txn_manager_begin(struct txn_manager *manager, const struct msg_txn_begin *message,
                       txn_manager_done *done, void *data);
void txn_manager_load_done(struct txn_manager *manager, const struct msg_load_done *message,
                           txn_manager_done *done, void *data);
void txn_manager_load_failed(struct txn_manager *manager, const struct msg_load_failed *message,
                             txn_manager_done *done, void *data);
void txn_manager_2pc(struct txn_manager *manager, const struct msg_txn_2pc *message,
                     txn_manager_done *done, void *data);

/* After every applied batch and on a timer: answers those whose transaction became visible or whose
 * wait is over. */
void txn_manager_run(struct txn_manager *manager);
/* Leadership was lost: who waits for VISIBLE is answered TG_NOT_LEADER and asks the next leader. */
void txn_manager_lost(struct txn_manager *manager);

#endif
