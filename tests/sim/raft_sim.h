/* SPDX-License-Identifier: Apache-2.0 */
/* The raft library alone on an in-memory raft_io, with a state machine that only remembers what it
 * applied: cuts, loss, crashes and snapshots from a seed. */
#ifndef TG_TESTS_SIM_RAFT_SIM_H
#define TG_TESTS_SIM_RAFT_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct raft_sim_options {
    uint64_t seed;
    unsigned servers;
    uint64_t span_us; /* of trouble; quiet time follows until all agree */
    bool snapshots;
    bool crashes;
    bool faults;    /* of disks: the process ends, and starts again later */
    bool unguarded; /* the library without raft_guard: for showing that it is needed */
};

struct raft_sim_result {
    uint64_t trace;
    uint64_t acknowledged, unknown, refused;
    uint64_t applied; /* entries of the agreed sequence */
    uint64_t snapshots, installs, crashes, elections, faults;
    char failure[256]; /* "" if all was well */
};

void raft_sim_run(const struct raft_sim_options *options, struct raft_sim_result *result);

#endif
