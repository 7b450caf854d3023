/* SPDX-License-Identifier: Apache-2.0 */
/* A whole cluster in one process on fake time: three coordinators (the raft library on disks in
 * memory, the replicated state and everything around it), four participants (the real store, binds,
 * collection and clones on disks that lose what was not synced), clients that load, read, follow
 * changes and alter tables, and trouble from a seed. What of a participant is not the product's
 * code: its sockets, the parsing of rows, and how a read merges them. */
#ifndef TG_TESTS_SIM_CLUSTER_SIM_H
#define TG_TESTS_SIM_CLUSTER_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct cluster_sim_options {
    uint64_t seed;
    uint64_t span_us;    /* of work at most; then everything heals and must come to rest */
    unsigned operations; /* of clients: so many are begun, then the same */
    bool trouble;        /* false: a quiet run */
    unsigned mutant;     /* 0, or a planted fault that the checks must find */
};

enum cluster_sim_mutant {
    MUTANT_NONE = 0,
    MUTANT_FORGETS_A_TABLET, /* a participant says BOUND for a bind that it did not do */
    MUTANT_TELLS_TOO_EARLY,  /* a commit is acknowledged before the log has it */
    MUTANT_LOSES_AN_ABORT,   /* an abort is acknowledged without being proposed */
    MUTANT_CLONES_A_PART,    /* a participant says that a clone is done and left its end out */
    MUTANT_LIES_ABOUT_SYNC,  /* disks say that they synced and did not */
    MUTANT_ACKS_BEFORE_SYNC, /* a participant says of a piece that it took it, and did not */
    MUTANT_LEAKS,            /* a participant does not collect what it is told to */
    MUTANT_READS_OLD,        /* a replica that lacks a version answers with what it has */
    MUTANT_ROTS,             /* now and then a bit of what is read is wrong */
    MUTANT_READS_EARLY,      /* the newest version is asked of a coordinator that may not know it */
    MUTANT_PULL_SKIPS,       /* a follower's cursor goes too far */
    MUTANT_PULL_REPEATS,     /* a follower's cursor goes not far enough */
    MUTANT_AS_OF_NOW,        /* a read as of a time is answered with the newest version */
    MUTANT_LABELS_TWICE,     /* two transactions of one label become visible: each has its own */
    MUTANTS
};

struct cluster_sim_result {
    uint64_t trace;
    uint64_t events;
    uint64_t operations;
    uint64_t loads, committed, aborted, refused, unknown; /* as clients were told */
    uint64_t left;                                        /* by clients that never came back */
    uint64_t visible, versions;                           /* in the end */
    uint64_t leaders, crashes, restarts; /* leaderships, of coordinators, of participants */
    uint64_t exits;                      /* of restarts: it ended itself */
    uint64_t partitions, clock_jumps, disk_faults, fulls, rotten;
    uint64_t snapshots, installs, transfers, joins, leaves;
    uint64_t reads, refused_reads, as_of, pulls, statements;
    uint64_t clones; /* that took all their source had */
    uint64_t lost_sectors, syncs;
    char failure[512]; /* "" if all was well */
};

void cluster_sim_run(const struct cluster_sim_options *options, struct cluster_sim_result *result);
const char *cluster_sim_mutant_name(unsigned mutant);

#endif
