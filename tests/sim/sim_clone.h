/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_CLONE in a simulated cluster: the order travels, the participant takes what its source has by
 * the product's decision about each bind, and the answer travels back. */
#ifndef TG_TESTS_SIM_SIM_CLONE_H
#define TG_TESTS_SIM_SIM_CLONE_H

#include "coordinator/cluster/participants.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

/* from: the coordinator that sends; participants: all. done is called once, also if everything is
 * lost. */
void sim_clone_start(struct sim_net *net, unsigned from, struct sim_participant *participants,
                     const struct msg_clone *message, participants_clone_done *done, void *data);

#endif
