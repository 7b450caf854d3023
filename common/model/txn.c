/* SPDX-License-Identifier: Apache-2.0 */
/* Transaction states and their allowed moves. */
#include "common/model/txn.h"

bool txn_state_may_move(enum txn_state from, enum txn_state to)
{
    switch (from) {
    case TXN_UNKNOWN:
        return to == TXN_PREPARE;
    case TXN_PREPARE:
        return to == TXN_PRECOMMITTED || to == TXN_COMMITTED || to == TXN_ABORTED;
    case TXN_PRECOMMITTED:
        return to == TXN_COMMITTED || to == TXN_ABORTED;
    case TXN_COMMITTED:
        return to == TXN_VISIBLE;
    case TXN_VISIBLE:
    case TXN_ABORTED:
        return false;
    }
    return false;
}

bool txn_state_is_final(enum txn_state state)
{
    return state == TXN_VISIBLE || state == TXN_ABORTED;
}

const char *txn_state_name(enum txn_state state)
{
    switch (state) {
    case TXN_UNKNOWN:
        return "UNKNOWN";
    case TXN_PREPARE:
        return "PREPARE";
    case TXN_COMMITTED:
        return "COMMITTED";
    case TXN_VISIBLE:
        return "VISIBLE";
    case TXN_ABORTED:
        return "ABORTED";
    case TXN_PRECOMMITTED:
        return "PRECOMMITTED";
    }
    return "UNKNOWN";
}

const char *txn_state_job_status(enum txn_state state)
{
    switch (state) {
    case TXN_PRECOMMITTED:
        return "PRECOMMITTED";
    case TXN_COMMITTED:
    case TXN_VISIBLE:
        return "FINISHED";
    case TXN_UNKNOWN:
    case TXN_PREPARE:
    case TXN_ABORTED:
        break;
    }
    return "RUNNING";
}
