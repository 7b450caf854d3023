/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold at every moment of a simulated cluster's life, and at its end. */
#ifndef TG_TESTS_SIM_SIM_CHECK_H
#define TG_TESTS_SIM_SIM_CHECK_H

#include "tests/sim/sim_client.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

struct sim_check;

struct sim_check *sim_check_open(struct sim_net *net, struct sim_coordinator **coordinators,
                                 struct sim_participant *participants);
void sim_check_close(struct sim_check *check);
/* A coordinator applied: its state equals that of every other at the same index. */
void sim_check_applied(struct sim_check *check, unsigned coordinator);
/* Reads a table as somebody would: the versions a random coordinator knows, tablets from random
 * participants. */
void sim_check_read(struct sim_check *check);
/* After quiet: coordinators agree, nothing is unfinished, and what clients were told is true. */
void sim_check_end(struct sim_check *check, const struct sim_clients *clients);
/* True once nothing is on its way any more: all applied the same, no open transaction, nothing to
 * publish. */
bool sim_check_is_at_rest(const struct sim_check *check);

#endif
