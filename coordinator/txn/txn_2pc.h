/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asked of _stream_load_2pc, checked, and the words it is answered with, which
 * clients match by regular expressions. Pure. */
#ifndef TG_COORDINATOR_TXN_TXN_2PC_H
#define TG_COORDINATOR_TXN_TXN_2PC_H

#include <stdbool.h>

#include "common/proto/msg_txn.h"
#include "coordinator/state/state.h"

enum txn_2pc_operation { TXN_2PC_BEGIN, TXN_2PC_PRECOMMIT, TXN_2PC_COMMIT, TXN_2PC_ABORT };

struct txn_2pc_target {
    enum txn_2pc_operation operation;
    db_id db;
    bool by_id;
    txn_id txn; /* 0 for begin, or when the label names none */
};

/* Finds the operation and the transaction. True if a command can be proposed; else reply holds the
 * refusal. */
bool txn_2pc_resolve(const struct state *state, const struct msg_txn_2pc *message,
                     struct txn_2pc_target *target, struct msg_txn_2pc_reply *reply);
/* The answer to a command that was applied with err and sentence (0 and "" for success). */
void txn_2pc_answer(const struct msg_txn_2pc *message, const struct txn_2pc_target *target, int err,
                    const char *sentence, txn_id txn, struct msg_txn_2pc_reply *reply);

#endif
