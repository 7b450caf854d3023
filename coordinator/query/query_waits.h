/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that are decided and wait until their transaction is visible. */
#ifndef TG_COORDINATOR_QUERY_QUERY_WAITS_H
#define TG_COORDINATOR_QUERY_QUERY_WAITS_H

#include <stdint.h>

#include "coordinator/state/state.h"

enum { QUERY_VISIBLE_WAIT_MS = 10000 }; /* after it they are answered all the same */

struct query_call;

struct query_waits {
    struct query_call *first;
};

/* After every applied batch and on a timer: answers whose transaction became visible, or whose wait
 * is over. */
void query_waits_run(struct query_waits *waits, const struct state *state, uint64_t now_ms);
/* Leadership was lost, or the coordinator stops: all are answered. What they asked for is
 * COMMITTED and will become visible under any leader. */
void query_waits_end(struct query_waits *waits);

#endif
