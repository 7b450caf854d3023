/* SPDX-License-Identifier: Apache-2.0 */
/* The network between clients, coordinators and participants. */
#include "tests/sim/sim_net.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"

enum { SIM_NET_DELAY_US_MIN = 100 };

struct letter {
    struct sim_net *net;
    int from, to;
    void (*run)(void *data);
    void (*drop)(void *data);
    void *data;
};

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

static void letter_drop(void *data)
{
    struct letter letter = *(struct letter *)data;
    free(data);
    letter.drop(letter.data);
}

static void letter_arrive(void *data)
{
    struct letter letter = *(struct letter *)data;
    free(data);
    if (sim_net_is_cut(letter.net, letter.from, letter.to))
        letter.drop(letter.data);
    else
        letter.run(letter.data);
}

void sim_net_send(struct sim_net *net, int from, int to, void (*run)(void *data), void *data,
                  void (*drop)(void *data))
{
    bool at_home = from == to && from != SIM_CLIENT;
    uint64_t max = net->delay_us_max > SIM_NET_DELAY_US_MIN ? net->delay_us_max : 1000;
    if (sim_net_is_cut(net, from, to) ||
        (!at_home && sim_world_chance(&net->world, net->loss_permille))) {
        drop(data);
        return;
    }
    struct letter *letter = malloc(sizeof *letter);
    TG_CHECK(letter != NULL);
    *letter = (struct letter){net, from, to, run, drop, data};
    sim_world_after(&net->world,
                    sim_world_between(&net->world, at_home ? 1 : SIM_NET_DELAY_US_MIN,
                                      at_home ? SIM_NET_DELAY_US_MIN : max),
                    letter_arrive, letter, letter_drop);
}

void sim_net_cut(struct sim_net *net, int from, int to, bool cut)
{
    if (from == to)
        return;
    net->cuts[from][to] = cut;
    if (from < SIM_COORDINATORS && to < SIM_COORDINATORS)
        mem_raft_cut(net->mem, (unsigned)from, (unsigned)to, cut);
}

void sim_net_heal(struct sim_net *net)
{
    memset(net->cuts, 0, sizeof net->cuts);
    mem_raft_heal(net->mem);
}

bool sim_net_is_cut(const struct sim_net *net, int from, int to)
{
    return from != SIM_CLIENT && to != SIM_CLIENT && net->cuts[from][to];
}

unsigned sim_net_next_coordinator(const struct sim_net *net, unsigned i)
{
    for (unsigned k = 1; k <= SIM_COORDINATORS; k++)
        if (net->present[(i + k) % SIM_COORDINATORS])
            return (i + k) % SIM_COORDINATORS;
    TG_UNREACHABLE();
}

unsigned sim_net_any_coordinator(struct sim_net *net)
{
    return sim_net_next_coordinator(net, (unsigned)sim_world_below(&net->world, SIM_COORDINATORS));
}
