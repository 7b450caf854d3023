/* SPDX-License-Identifier: Apache-2.0 */
/* The network between clients, coordinators and participants. */
#include "tests/sim/sim_net.h"

#include <stdarg.h>
#include <stdio.h>

enum { SIM_NET_DELAY_US_MIN = 100 };

void sim_net_fail(struct sim_net *net, const char *format, ...)
{
    char *failure = net->result->failure;
    va_list args;
    if (failure[0] != '\0')
        return;
    int n = snprintf(failure, sizeof net->result->failure,
                     "at %lu us: ", (unsigned long)net->world.now_us);
    va_start(args, format);
    vsnprintf(failure + n, sizeof net->result->failure - (size_t)n, format, args);
    va_end(args);
    sim_world_trace(&net->world, "FAILURE %s", failure);
}

void sim_net_send(struct sim_net *net, void (*run)(void *data), void *data,
                  void (*drop)(void *data))
{
    if (sim_world_chance(&net->world, net->loss_permille)) {
        drop(data);
        return;
    }
    uint64_t max = net->delay_us_max > SIM_NET_DELAY_US_MIN ? net->delay_us_max : 1000;
    sim_world_after(&net->world, sim_world_between(&net->world, SIM_NET_DELAY_US_MIN, max), run,
                    data, drop);
}
