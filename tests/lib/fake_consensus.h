/* SPDX-License-Identifier: Apache-2.0 */
/* Consensus for unit tests: a log of one node that applies when the test says so. It encodes,
 * batches, stamps and applies by the product's own code; only raft is missing. */
#ifndef TG_TESTS_LIB_FAKE_CONSENSUS_H
#define TG_TESTS_LIB_FAKE_CONSENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "coordinator/consensus/consensus.h"

struct fake_consensus;

/* Leads from the start, with an empty state. The clock must outlive it. */
struct fake_consensus *fake_consensus_open(struct clock *clock);
/* Ends what is under way with TG_UNKNOWN_OUTCOME or TG_NOT_LEADER, then frees. */
void fake_consensus_close(struct fake_consensus *fake);
struct consensus *fake_consensus_consensus(struct fake_consensus *fake);
void fake_consensus_set_observer(struct fake_consensus *fake,
                                 const struct consensus_observer *observer);
/* For preparing a scene without commands. */
struct state *fake_consensus_state(struct fake_consensus *fake);

/* Applies what is queued as one batch, calls the requests' done and then the observer. Returns how
 * many requests were told their end. What they propose meanwhile waits for the next step. */
unsigned fake_consensus_step(struct fake_consensus *fake);
/* Steps until nothing is left; returns how many were told. Fails the process after 10 000 steps. */
unsigned fake_consensus_run(struct fake_consensus *fake);
/* Applies one command at once and returns what it did: for setting a scene up. */
struct apply_result fake_consensus_do(struct fake_consensus *fake, const struct command *command);

/* Gains leadership (a new term), or loses it. Losing: as fake_consensus_lose with applied = false.
 */
void fake_consensus_set_leader(struct fake_consensus *fake, bool leads);
/* Leadership is lost with the queued batch in flight: its requests end with TG_UNKNOWN_OUTCOME, and
 * the log has it nevertheless (applied) or does not. */
void fake_consensus_lose(struct fake_consensus *fake, bool applied);
/* Who leads as far as this node knows while it does not. */
void fake_consensus_set_other_leader(struct fake_consensus *fake, uint64_t id);

enum { FAKE_CONSENSUS_ID = 1 }; /* this node's raft id */

#endif
