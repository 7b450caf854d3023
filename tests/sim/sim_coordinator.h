/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator without sockets and disk: raft, state, dispatch, publisher, sweeper, repairer,
 * transaction manager, health. */
#ifndef TG_TESTS_SIM_SIM_COORDINATOR_H
#define TG_TESTS_SIM_SIM_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/proto/msg_status.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/state/state.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

struct sim_coordinator;

/* err and head as the RPC server would answer. head is valid during the call only. */
typedef void sim_coordinator_done(void *data, int err, struct slice head);

struct sim_coordinator *sim_coordinator_open(struct sim_net *net, unsigned i,
                                             struct sim_participant *participants);
void sim_coordinator_close(struct sim_coordinator *coordinator); /* it must be down */
/* Starts from its disk; only if it is down for good (sim_coordinator_is_down). */
void sim_coordinator_boot(struct sim_coordinator *coordinator);
/* Callers get no answer any more. */
void sim_coordinator_crash(struct sim_coordinator *coordinator);
bool sim_coordinator_is_up(const struct sim_coordinator *coordinator);
bool sim_coordinator_is_down(const struct sim_coordinator *coordinator);
/* Called by the world after each of its raft events. */
void sim_coordinator_turn(struct sim_coordinator *coordinator);

bool sim_coordinator_leads(const struct sim_coordinator *coordinator);
uint64_t sim_coordinator_applied(const struct sim_coordinator *coordinator);
/* NULL while it is down. */
const struct state *sim_coordinator_state(const struct sim_coordinator *coordinator);
/* Where coordinator i is reached. */
void sim_coordinator_info(unsigned i, struct coordinator_info *info);
/* Proposes a command of an operator's; whether it comes about is seen in the state. */
void sim_coordinator_order(struct sim_coordinator *coordinator, const struct command *command);
/* Hands the leadership over. */
void sim_coordinator_transfer(struct sim_coordinator *coordinator);
/* Raft's configuration, if it leads. */
void sim_coordinator_servers(const struct sim_coordinator *coordinator,
                             struct consensus_servers *servers);
/* Of those that are up, the one that has applied most; NULL if none is. */
struct sim_coordinator *sim_coordinator_newest(struct sim_coordinator **coordinators);
/* Microseconds added to its wall clock. */
void sim_coordinator_jump_clock(struct sim_coordinator *coordinator, int64_t us);
/* Called with each batch that was applied. */
void sim_coordinator_on_applied(struct sim_coordinator *coordinator,
                                void (*applied)(void *data, unsigned i), void *data);

/* What an RPC server would dispatch. */
void sim_coordinator_call(struct sim_coordinator *coordinator, uint16_t type, struct slice head,
                          sim_coordinator_done *done, void *data);

#endif
