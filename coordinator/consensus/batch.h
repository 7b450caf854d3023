/* SPDX-License-Identifier: Apache-2.0 */
/* Applies one batch of the log to the state: the same bytes do the same on every coordinator. */
#ifndef TG_COORDINATOR_CONSENSUS_BATCH_H
#define TG_COORDINATOR_CONSENSUS_BATCH_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "coordinator/state/state.h"

/* Fills results[0..results_max) with what the first commands did (results may be NULL with
 * results_max 0). *count is the number of commands in the batch. A batch whose stamp does not grow
 * is void: every result has TG_STALE and nothing changed. TG_CORRUPT or TG_UNSUPPORTED (a format or
 * command this program does not know): the process must stop, since skipping would make it differ
 * from others. */
int batch_apply(struct state *state, struct slice bytes, struct apply_result *results,
                uint32_t results_max, uint32_t *count, struct tg_errmsg *msg);

#endif
