/* SPDX-License-Identifier: Apache-2.0 */
/* What has become too old. */
#include "coordinator/txn/txn_sweeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REASON_TIMEOUT "timeout by txn manager"
#define REASON_LOST    "coordinate BE is down or was restarted: its load did not finish"

/* Why the transaction has to go now, NULL if it may stay. */
static const char *reason_to_abort(const struct state *state, const struct health *health,
                                   const struct txn *txn, uint64_t precommit_timeout_ms,
                                   uint64_t elapsed_ms, uint64_t now_ms)
{
    if (txn->state == TXN_PRECOMMITTED)
        return elapsed_ms - txn->precommit_elapsed_ms >= precommit_timeout_ms ? REASON_TIMEOUT
                                                                              : NULL;
    if (elapsed_ms - txn->begin_elapsed_ms >= txn->timeout_ms)
        return REASON_TIMEOUT;
    for (uint32_t i = 0; i < txn->load_count; i++)
        if (txn->loads[i].state == LOAD_RUNNING &&
            health_load_is_lost(health, &state->members, &txn->loads[i].key, now_ms))
            return REASON_LOST;
    return NULL;
}

int txn_sweeper_plan(const struct state *state, const struct health *health,
                     const struct txn_sweeper_options *options, uint64_t elapsed_ms,
                     uint64_t now_ms, struct txn_sweep *sweep)
{
    uint64_t keep_ms = options->label_keep_ms > state->limits.label_keep_ms
                           ? options->label_keep_ms
                           : state->limits.label_keep_ms;

    memset(sweep, 0, sizeof *sweep);
    sweep->aborts = calloc(SWEEP_ABORTS_MAX, sizeof *sweep->aborts);
    sweep->forget.txns = calloc(SWEEP_FORGETS_MAX, sizeof *sweep->forget.txns);
    if (sweep->aborts == NULL || sweep->forget.txns == NULL) {
        txn_sweep_close(sweep);
        return TG_NOMEM;
    }
    for (const struct txn *txn = state->txns.open.first;
         txn != NULL && sweep->abort_count < SWEEP_ABORTS_MAX; txn = txn->next) {
        const char *reason =
            reason_to_abort(state, health, txn, options->precommit_timeout_ms, elapsed_ms, now_ms);

        if (reason == NULL)
            continue;
        struct command_finish *abort = &sweep->aborts[sweep->abort_count++];
        abort->txn = txn->id;
        abort->expect_state = txn->state;
        abort->expect_seq = txn->state_seq;
        snprintf(abort->reason, sizeof abort->reason, "%s", reason);
    }
    /* In the order in which they finished: behind the first young one none is looked at, for there
     * may be a million. One that became visible earlier but was confirmed later stays with its
     * neighbours: labels are kept at least so long. */
    for (const struct txn *txn = state->txns.finished.first;
         txn != NULL && sweep->forget.count < SWEEP_FORGETS_MAX &&
         elapsed_ms - txn->final_elapsed_ms >= keep_ms;
         txn = txn->next)
        sweep->forget.txns[sweep->forget.count++] = txn->id;
    return 0;
}

void txn_sweep_close(struct txn_sweep *sweep)
{
    free(sweep->aborts);
    free(sweep->forget.txns);
    memset(sweep, 0, sizeof *sweep);
}
