/* SPDX-License-Identifier: Apache-2.0 */
/* A whole cluster in one process on fake time: three coordinators (the raft library, the replicated
 * state, the publisher, the sweeper, the transaction manager), three participants (the product's
 * decision about a bind over a store in memory), clients that load, and trouble from a seed. */
#ifndef TG_TESTS_SIM_CLUSTER_SIM_H
#define TG_TESTS_SIM_CLUSTER_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct cluster_sim_options {
    uint64_t seed;
    uint64_t span_us; /* of trouble; then everything heals and must come to rest */
    bool trouble;     /* false: a quiet run */
    unsigned mutant;  /* 0, or a planted fault that the checks must find: enum cluster_sim_mutant */
};

enum cluster_sim_mutant {
    MUTANT_NONE = 0,
    MUTANT_FORGETS_A_TABLET = 1, /* a participant says BOUND for a bind that it did not do */
    MUTANT_TELLS_TOO_EARLY = 2,  /* a commit is acknowledged before the log has it */
    MUTANT_LOSES_AN_ABORT = 3,   /* an abort is acknowledged without being proposed */
    MUTANT_CLONES_A_PART = 4,    /* a participant says that a clone is done and left its end out */
    MUTANTS = 5
};

struct cluster_sim_result {
    uint64_t trace;
    uint64_t loads, committed, aborted, unknown; /* as clients were told */
    uint64_t visible, versions;                  /* in the end */
    uint64_t leaders, crashes, restarts;         /* leaderships, of coordinators, of participants */
    uint64_t snapshots, installs;
    uint64_t reads, refused_reads;
    uint64_t clones;   /* that took all their source had */
    char failure[512]; /* "" if all was well */
};

void cluster_sim_run(const struct cluster_sim_options *options, struct cluster_sim_result *result);

#endif
