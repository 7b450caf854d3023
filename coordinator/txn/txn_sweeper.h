/* SPDX-License-Identifier: Apache-2.0 */
/* What has become too old: which transactions to abort, which finished ones to forget. A pure plan;
 * the decision is data in the log, as compare-and-set (rules 8 and 9). Run by the
 * leader every SWEEP_MS. */
#ifndef TG_COORDINATOR_TXN_TXN_SWEEPER_H
#define TG_COORDINATOR_TXN_TXN_SWEEPER_H

#include <stdint.h>

#include "coordinator/cluster/health.h"
#include "coordinator/state/state.h"

enum { SWEEP_MS = 250, SWEEP_ABORTS_MAX = 1024, SWEEP_FORGETS_MAX = 4096 };

struct txn_sweep {
    uint32_t abort_count;
    struct command_finish *aborts; /* SWEEP_ABORTS_MAX of them, owned */
    struct command_forget forget;  /* owned */
};

/* The leader's own settings: the decisions they lead to are data in the log. */
struct txn_sweeper_options {
    uint64_t precommit_timeout_ms; /* of PRECOMMITTED, from its precommit */
    uint64_t label_keep_ms; /* finished transactions are forgotten after it, but never before the
                               state's own limit */
};

/* elapsed_ms: the leader's age clock (consensus elapsed_ms); now_ms: its monotonic clock, for
 * leases. 0 or TG_NOMEM. */
int txn_sweeper_plan(const struct state *state, const struct health *health,
                     const struct txn_sweeper_options *options, uint64_t elapsed_ms,
                     uint64_t now_ms, struct txn_sweep *sweep);
void txn_sweep_close(struct txn_sweep *sweep);

#endif
