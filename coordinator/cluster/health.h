/* SPDX-License-Identifier: Apache-2.0 */
/* Participants as this leader has heard them: leases and live loads. Soft: begins anew with each
 * leadership. */
#ifndef TG_COORDINATOR_CLUSTER_HEALTH_H
#define TG_COORDINATOR_CLUSTER_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/proto/msg_member.h"
#include "coordinator/state/state.h"

struct health_node {
    node_id node;
    uint64_t epoch;        /* of the last heartbeat; 0 = none yet under this leader */
    uint64_t heard_ms;     /* monotonic; when it was heard last, or when this leadership began */
    uint64_t request_high; /* from that heartbeat */
    uint64_t *live;        /* ascending; owned */
    uint32_t live_count;
    bool doubtful; /* a call could not reach it since */
    uint64_t disk_free_bytes;
    uint64_t disk_total_bytes;
    struct damaged_version *damaged; /* from that heartbeat, until somebody took them; owned */
    uint32_t damaged_count;
};

struct health {
    uint64_t since_ms; /* when this leadership began */
    uint64_t lease_ms;
    uint32_t count;
    struct health_node nodes[NODES_MAX];
};

void health_init(struct health *health, uint64_t lease_ms, uint64_t now_ms);
void health_close(struct health *health);
/* A leadership begins: every lease starts with its full time, because nobody listened before. */
void health_reset(struct health *health, uint64_t now_ms);
/* Takes over the message's live list. TG_LIMIT with too many nodes. */
int health_heard(struct health *health, struct msg_heartbeat *message, uint64_t now_ms);
/* Forgets who is no member (any more), so that there is room for others. */
void health_keep_members(struct health *health, const struct members *members);
/* What a node reported as damaged and nobody took yet; the caller frees it. NULL if none. */
struct damaged_version *health_take_damaged(struct health *health, node_id node, uint32_t *count);
const struct health_node *health_find(const struct health *health, node_id node);
/* Heard within the lease. A node never heard has the full lease from the leadership's begin. */
bool health_is_alive(const struct health *health, node_id node, uint64_t now_ms);
/* A call did not reach the node: until it is heard again it should not be sent clients. */
void health_doubt(struct health *health, node_id node);
/* Alive, and not doubtful. */
bool health_is_reachable(const struct health *health, node_id node, uint64_t now_ms);
/* How long it has not been heard; since the leadership's begin, if never. */
uint64_t health_silent_ms(const struct health *health, node_id node, uint64_t now_ms);
/* The load with that key cannot be running any more: its node's lease has run out, its epoch is
 * over, or its node's last heartbeat was made after the request was given out and does not list it
 * (rule 7). */
bool health_load_is_lost(const struct health *health, const struct members *members,
                         const struct request_key *key, uint64_t now_ms);
/* Whether the node names tablets that have no replica on it, by this state. */
bool health_has_retired(const struct state *state, const struct msg_heartbeat *message);
/* What a heartbeat is answered: pure. proven: the state is that of a moment after the heartbeat came
 * (a barrier was passed). Only then the node is told to drop tablets that moved away: unlike all
 * else that it is told, this may have been otherwise before and may be again. The reply's lists are
 * the caller's to close. 0 or TG_NOMEM. */
int health_answer(const struct state *state, const struct msg_heartbeat *message, bool proven,
                  struct msg_heartbeat_reply *reply);

#endif
