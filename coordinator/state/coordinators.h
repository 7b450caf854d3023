/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinators as the log knows them: who is one, where it is reached, and what it shall become
 * in raft's configuration, which the leader then changes step by step (coordinator/members).
 *
 *   ADD ──▶ JOINS ──PROMOTE──▶ VOTES ──DROP──▶ LEAVES ──GONE──▶ not in the list
 *             └───────────────────DROP────────────▲
 *
 * An id is given once in the life of the cluster (rule 12). */
#ifndef TG_COORDINATOR_STATE_COORDINATORS_H
#define TG_COORDINATOR_STATE_COORDINATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ids.h"

/* The numbers are kept in snapshots. */
enum coordinator_standing {
    COORDINATOR_JOINS = 1, /* gets the log, does not vote: its directory may still be empty */
    COORDINATOR_VOTES = 2,
    COORDINATOR_LEAVES = 3 /* to be taken out of raft's configuration */
};

struct coordinator_record {
    uint64_t id;
    enum coordinator_standing standing;
    uint64_t nonce; /* of the directory that joined; 0: one that formed the cluster */
    char raft[ADDRESS_BYTES];
    char rpc[ADDRESS_BYTES];
    char http[ADDRESS_BYTES];
};

struct coordinators {
    uint64_t next_id; /* every id below was given; 0 before the first */
    uint64_t changes; /* how often the list changed */
    uint32_t count;
    struct coordinator_record list[COORDINATORS_MAX]; /* ascending id */
};

const struct coordinator_record *coordinators_find(const struct coordinators *coordinators,
                                                   uint64_t id);
/* The one that joins or leaves, NULL if the list is at rest. */
const struct coordinator_record *coordinators_changing(const struct coordinators *coordinators);
/* Had this id once and is in the list no longer. */
bool coordinators_is_gone(const struct coordinators *coordinators, uint64_t id);

#endif
