/* SPDX-License-Identifier: Apache-2.0 */
/* What happens around the loads of a simulated cluster: participants register and send heartbeats,
 * somebody creates the tables. */
#ifndef TG_TESTS_SIM_SIM_SETUP_H
#define TG_TESTS_SIM_SIM_SETUP_H

#include <stdbool.h>

#include "tests/sim/sim_call.h"
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

/* From now on participants that open register and send heartbeats. */
void sim_setup_init(struct sim_setup *setup, struct sim_net *net,
                    struct sim_coordinator **coordinators, struct sim_participant *participants);
/* Starts the participants and runs the world until they are registered and the tables exist. */
bool sim_setup_prepare(struct sim_setup *setup);
/* The statement that makes table `number`. */
void sim_setup_create_text(const struct sim_net *net, unsigned number, struct buf *text);
/* Sends a statement to whoever leads. */
void sim_setup_statement(struct sim_net *net, struct sim_coordinator **coordinators,
                         struct buf *text, sim_call_done *done, void *data);

#endif
