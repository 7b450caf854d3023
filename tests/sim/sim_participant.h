/* SPDX-License-Identifier: Apache-2.0 */
/* A participant without sockets and disk: staged rowsets and bound versions that survive its
 * restarts, the product's decision about binds, registration and heartbeats. */
#ifndef TG_TESTS_SIM_SIM_PARTICIPANT_H
#define TG_TESTS_SIM_SIM_PARTICIPANT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/checksum.h"
#include "common/model/ids.h"
#include "common/proto/msg_clone.h"
#include "common/proto/msg_member.h"
#include "common/proto/msg_publish.h"
#include "participant/tablet/version_map.h"
#include "tests/sim/sim_net.h"

enum { SIM_TABLETS = SIM_TABLES * SIM_BUCKETS, SIM_STAGED_MAX = 16384, SIM_LIVE_MAX = 256 };

struct sim_staged {
    tablet_id tablet;
    rowset_id rowset;
    txn_id txn;
    struct digest digest;
    bool dropped; /* collected: its transaction was said to be dead */
};

struct sim_tablet {
    tablet_id id; /* 0: free slot */
    struct version_map map;
};

struct sim_participant {
    struct sim_net *net;
    node_id node;
    /* durable */
    uint64_t nonce;
    struct sim_staged *staged;
    uint32_t staged_count;
    struct sim_tablet tablets[SIM_TABLETS];
    char cluster_uuid[UUID_BYTES];
    /* of this life */
    bool up;
    uint64_t epoch; /* 0: not registered yet */
    uint64_t new_nonce;
    uint64_t next_request;
    uint64_t live[SIM_LIVE_MAX]; /* requests whose load is under way */
    uint32_t live_count;
};

void sim_participant_init(struct sim_participant *participant, struct sim_net *net, node_id node);
void sim_participant_close(struct sim_participant *participant);
/* A new life: the nonce is drawn, registration is up to the caller. */
void sim_participant_start(struct sim_participant *participant);
void sim_participant_stop(struct sim_participant *participant);
void sim_participant_registered(struct sim_participant *participant,
                                const struct msg_register_reply *reply);
void sim_participant_fill_register(const struct sim_participant *participant,
                                   struct msg_register *message);

/* A load begins or ends here; the request id of a new one. 0 if there is no room. */
uint64_t sim_participant_begin_load(struct sim_participant *participant);
void sim_participant_end_load(struct sim_participant *participant, uint64_t request);

/* Stores and seals; false if it is down or dropped that rowset for good. */
bool sim_participant_stage(struct sim_participant *participant, tablet_id tablet, rowset_id rowset,
                           txn_id txn);
/* The digest that every replica of that rowset has. */
struct digest sim_participant_digest(tablet_id tablet, rowset_id rowset);

/* 0 and a reply (closed by the caller), or TG_FENCED. */
int sim_participant_publish(struct sim_participant *participant, const struct msg_publish *message,
                            struct msg_publish_reply *reply);
/* Takes up to `most` versions of the tablet from the source; fewer than there are, or a source that
 * is down: CLONE_FAILED. */
void sim_participant_clone(struct sim_participant *participant,
                           const struct sim_participant *source, const struct msg_clone *order,
                           uint32_t most, struct msg_clone_reply *reply);
/* The message's lists are the caller's to close. */
void sim_participant_fill_heartbeat(const struct sim_participant *participant,
                                    struct msg_heartbeat *message);
void sim_participant_heartbeat_answer(struct sim_participant *participant,
                                      const struct msg_heartbeat_reply *reply);

/* NULL if it has nothing of that tablet. */
const struct version_map *sim_participant_map(const struct sim_participant *participant,
                                              tablet_id tablet);

#endif
