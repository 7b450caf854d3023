/* SPDX-License-Identifier: Apache-2.0 */
/* Transaction states and their allowed moves: docs/transactions.md. */
#ifndef TG_COMMON_MODEL_TXN_H
#define TG_COMMON_MODEL_TXN_H

#include <stdbool.h>

/* The numbers are part of the snapshot and command formats. */
enum txn_state {
    TXN_UNKNOWN = 0,
    TXN_PREPARE = 1,
    TXN_COMMITTED = 2,
    TXN_VISIBLE = 3,
    TXN_ABORTED = 4,
    TXN_PRECOMMITTED = 5
};

/*            begin            precommit               commit            publish quorum
 *  (label) ────────▶ PREPARE ───────────▶ PRECOMMITTED ───────▶ COMMITTED ───────────▶ VISIBLE
 *                       │  └───────────── commit ─────────────────▲
 *                       └──── abort, failure, timeout ──▶ ABORTED ◀─ abort, timeout ─ PRECOMMITTED
 */
bool txn_state_may_move(enum txn_state from, enum txn_state to);
bool txn_state_is_final(enum txn_state state);    /* VISIBLE, ABORTED */
const char *txn_state_name(enum txn_state state); /* "PRECOMMITTED" */
/* Doris's ExistingJobStatus: RUNNING, PRECOMMITTED, FINISHED. */
const char *txn_state_job_status(enum txn_state state);

#endif
