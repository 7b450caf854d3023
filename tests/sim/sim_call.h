/* SPDX-License-Identifier: Apache-2.0 */
/* One question to whoever leads, repeated until it is answered or its time is over, as participants
 * and coordinators do it for their clients. */
#ifndef TG_TESTS_SIM_SIM_CALL_H
#define TG_TESTS_SIM_SIM_CALL_H

#include <stdint.h>

#include "common/base/buf.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"

enum sim_call_kind {
    SIM_CALL_BEGIN,
    SIM_CALL_LOAD_DONE,
    SIM_CALL_LOAD_FAILED,
    SIM_CALL_2PC,
    SIM_CALL_COMMAND
};

enum { SIM_CALL_US_MAX = 6 * 1000 * 1000 }; /* then the outcome stays unknown */

/* err TG_TIMEOUT: the outcome is unknown. head is valid during the call. Called once. */
typedef void sim_call_done(void *data, int err, struct slice head);

/* message: the msg_ or command of that kind, copied with what it owns. from: the participant that
 * asks (cuts apply), or -1. */
void sim_call_start(struct sim_net *net, struct sim_coordinator **coordinators, int from,
                    enum sim_call_kind kind, const void *message, sim_call_done *done, void *data);

#endif
