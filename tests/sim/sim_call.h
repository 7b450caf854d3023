/* SPDX-License-Identifier: Apache-2.0 */
/* One question to whoever leads, repeated until it is answered or its time is over, as participants
 * and coordinators do it for their clients. */
#ifndef TG_TESTS_SIM_SIM_CALL_H
#define TG_TESTS_SIM_SIM_CALL_H

#include <stdint.h>

#include "common/base/buf.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"

enum { SIM_CALL_US_MAX = 6 * 1000 * 1000 }; /* then the outcome stays unknown */

/* err TG_TIMEOUT: the outcome is unknown. head is valid during the call. Called once. */
typedef void sim_call_done(void *data, int err, struct slice head);

/* type and head: the message, taken over. from: the node that asks, or SIM_CLIENT. */
void sim_call_start(struct sim_net *net, struct sim_coordinator **coordinators, int from,
                    uint16_t type, struct buf *head, sim_call_done *done, void *data);

#endif
