/* SPDX-License-Identifier: Apache-2.0 */
/* Registered participants and their epochs (rule 13). */
#ifndef TG_COORDINATOR_STATE_MEMBERS_H
#define TG_COORDINATOR_STATE_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ids.h"
#include "common/proto/msg_member.h"

struct member {
    node_id node;
    uint64_t epoch; /* of the registration that is valid now */
    uint64_t nonce;
    char uuid[UUID_BYTES];
    char http[ADDRESS_BYTES];
    char rpc[ADDRESS_BYTES];
    uint64_t registered_us;
    rowset_id lost_below; /* what it sealed of earlier rowsets is gone, or not proven to be there */
    bool draining;        /* on its way out: gets no new replicas, those that it has move away */
};

struct members {
    uint32_t count;
    struct member list[NODES_MAX]; /* ascending node id */
    uint64_t next_epoch;
    uint64_t placement_turn; /* where the next table's replicas begin: spreads them evenly */
    node_id dropped_high;    /* the largest id of those that were dropped: up to it only who asks
                                for an id gets it */
};

const struct member *members_find(const struct members *members, node_id node);
/* Members that may be given replicas, without `except` (0: none). */
uint32_t members_active(const struct members *members, node_id except);
/* True if that epoch is the node's valid one. */
bool members_is_current(const struct members *members, node_id node, uint64_t epoch);

#endif
