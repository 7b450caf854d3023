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
    SIM_FOUNDERS = 3,     /* coordinators that form the cluster: ids 1.. */
    SIM_COORDINATORS = 7, /* with those that may join later */
    SIM_PARTICIPANTS = 4, /* node ids 1.. */
    SIM_NODES = SIM_COORDINATORS + SIM_PARTICIPANTS,
    SIM_CLIENT = -1, /* in place of a node's number: is never cut off */
    SIM_TABLES = 3,  /* t0 … of database "db"; the last one is dropped and made again */
    SIM_BUCKETS = 3,
    SIM_LOADS_MAX = 4096
};

/* Participant i among the nodes; coordinators are 0.. themselves. */
static inline int sim_node(unsigned participant)
{
    return SIM_COORDINATORS + (int)participant;
}

struct sim_net {
    const struct cluster_sim_options *options;
    struct cluster_sim_result *result;
    struct sim_world world;
    struct mem_raft *mem;
    bool quiet; /* trouble is over: clients begin nothing new */
    uint64_t delay_us_max;
    unsigned loss_permille;
    unsigned repeat_permille;        /* of questions to participants: they come twice */
    bool cuts[SIM_NODES][SIM_NODES]; /* one way */
    bool present[SIM_COORDINATORS];  /* formed the cluster or joined it, and is not gone for good */
};

/* The first failure of a run stays. */
void sim_net_fail(struct sim_net *net, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* run(data) after a network delay, or drop(data), if the message is lost or the way is cut when it
 * is sent or when it arrives. */
void sim_net_send(struct sim_net *net, int from, int to, void (*run)(void *data), void *data,
                  void (*drop)(void *data));
/* One way; between coordinators for raft too. */
void sim_net_cut(struct sim_net *net, int from, int to, bool cut);
void sim_net_heal(struct sim_net *net);
/* A coordinator that is present, drawn, or the next one behind i. */
unsigned sim_net_any_coordinator(struct sim_net *net);
unsigned sim_net_next_coordinator(const struct sim_net *net, unsigned i);
bool sim_net_is_cut(const struct sim_net *net, int from, int to);

#endif
