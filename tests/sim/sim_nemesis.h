/* SPDX-License-Identifier: Apache-2.0 */
/* Trouble for a simulated cluster: partitions of many shapes, weather, crashes of one or all, disks
 * that fail or are full, clocks that jump. */
#ifndef TG_TESTS_SIM_SIM_NEMESIS_H
#define TG_TESTS_SIM_SIM_NEMESIS_H

#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

struct sim_nemesis {
    struct sim_net *net;
    struct sim_coordinator **coordinators;
    struct sim_participant *participants;
    /* Swizzle: nodes whose links stop one by one and come back in another order. */
    int swizzled[SIM_NODES];
    unsigned swizzle_count, swizzle_at;
    bool swizzling;
    unsigned leaving; /* id of the coordinator that is being dropped, 0 if none */
    bool dead;        /* … and is not there any more */
};

void sim_nemesis_init(struct sim_nemesis *nemesis, struct sim_net *net,
                      struct sim_coordinator **coordinators, struct sim_participant *participants);
/* Something happens now, and again and again until all is quiet. */
void sim_nemesis_start(struct sim_nemesis *nemesis);
/* All is well again: everything runs, every link works, every disk has room. */
void sim_nemesis_end(struct sim_nemesis *nemesis);
/* Now and then after that: who joins is started, who is gone is stopped. */
void sim_nemesis_settle(struct sim_nemesis *nemesis);

#endif
