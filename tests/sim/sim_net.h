/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a simulated cluster share: world, network, limits, and how a check fails. */
#ifndef TG_TESTS_SIM_SIM_NET_H
#define TG_TESTS_SIM_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/mem_raft_io.h"
#include "tests/lib/sim_world.h"
#include "tests/sim/cluster_sim.h"

enum {
    SIM_COORDINATORS = 3,
    SIM_PARTICIPANTS = 3, /* node ids 1.. */
    SIM_TABLES = 2,       /* t0, t1 of database "db" */
    SIM_BUCKETS = 3,
    SIM_LOADS_MAX = 4096
};

struct sim_net {
    const struct cluster_sim_options *options;
    struct cluster_sim_result *result;
    struct sim_world world;
    struct mem_raft *mem;
    bool quiet; /* trouble is over: clients begin nothing new */
    uint64_t delay_us_max;
    unsigned loss_permille;
    bool cut[SIM_COORDINATORS][SIM_PARTICIPANTS]; /* both ways */
};

/* The first failure of a run stays. */
void sim_net_fail(struct sim_net *net, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* run(data) after a network delay, or drop(data) at once if the message is lost. */
void sim_net_send(struct sim_net *net, void (*run)(void *data), void *data,
                  void (*drop)(void *data));

#endif
