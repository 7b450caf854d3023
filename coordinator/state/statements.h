/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that were done lately, by the key of the request that asked for them: one whose answer
 * was lost with a leader is asked again, and gets the first answer instead of "already exists". */
#ifndef TG_COORDINATOR_STATE_STATEMENTS_H
#define TG_COORDINATOR_STATE_STATEMENTS_H

#include <stdint.h>

#include "common/model/ids.h"
#include "common/model/txn.h"
#include "coordinator/state/command.h"

/* The oldest goes first. A repetition comes within the deadline of a call, so this many statements
 * would have to be done in between for it to be taken for a new one. */
enum { STATEMENTS_KEPT = 1024 };

struct done_statement {
    struct request_key key;
    table_id table; /* what its result said */
    txn_id txn;
    uint64_t time_us;
};

struct statements {
    uint32_t count;
    uint32_t oldest; /* where list begins, once it is full */
    struct done_statement list[STATEMENTS_KEPT];
};

/* NULL: not done, or too long ago, or the key is zero. */
const struct done_statement *statements_find(const struct statements *statements,
                                             const struct request_key *key);

#endif
