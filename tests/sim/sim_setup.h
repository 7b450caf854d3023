/* SPDX-License-Identifier: Apache-2.0 */
/* What happens around the loads of a simulated cluster: participants register and send heartbeats,
 * somebody creates the tables. */
#ifndef TG_TESTS_SIM_SIM_SETUP_H
#define TG_TESTS_SIM_SIM_SETUP_H

#include <stdbool.h>

#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

struct sim_setup {
    struct sim_net *net;
    struct sim_coordinator **coordinators;
    struct sim_participant *participants;
    bool done; /* the call under way has ended */
    int err;
};

void sim_setup_init(struct sim_setup *setup, struct sim_net *net,
                    struct sim_coordinator **coordinators, struct sim_participant *participants);
/* Runs the world until participants are registered and the tables exist. */
bool sim_setup_prepare(struct sim_setup *setup);
/* Registers participant i, which has just started, and keeps its heartbeat. */
void sim_setup_register(struct sim_setup *setup, unsigned i);

#endif
