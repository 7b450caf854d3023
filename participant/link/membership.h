/* SPDX-License-Identifier: Apache-2.0 */
/* This node's place in the cluster: registers at start (rule 13), then sends
 * heartbeats. What they carry, what is done with their answers, and what is kept on disk are the
 * caller's, through hooks.
 *
 *   START ─ a nonce is pending, from a start whose answer was lost ─▶ register (accepted, pending)
 *     │ none                                                                 │ saved as accepted
 *     ▼                                                                      │
 *   new nonce made, saved as pending ◀───────────────────────────────────────┘
 *     │
 *     ▼
 *   register (accepted, new) ──▶ saved as accepted ──▶ heartbeats, every heartbeat_ms
 *
 * Wherever the answer is that this node is fenced or refused, it must end. */
#ifndef TG_PARTICIPANT_LINK_MEMBERSHIP_H
#define TG_PARTICIPANT_LINK_MEMBERSHIP_H

#include "common/base/random.h"
#include "common/net/loop.h"
#include "common/proto/msg_member.h"
#include "participant/link/coordinator_client.h"
#include "participant/link/node_identity.h"

/* As it is kept on disk. */
struct membership_record {
    char node_uuid[UUID_BYTES];
    char cluster_uuid[UUID_BYTES];
    node_id node;
    uint64_t epoch;
    uint64_t nonce;         /* accepted */
    uint64_t pending_nonce; /* sent, answer unknown */
};

struct membership_hooks {
    /* Makes the record durable. In a thread of the loop's pool: may block. 0 or an error, which
     * ends the node. */
    int (*save)(void *data, const struct membership_record *record);
    /* The first registration of this start was accepted: the node may serve. On the loop. */
    void (*joined)(void *data);
    /* Fills live, staged, tablets and disk of a heartbeat (node and epoch are set). In the pool:
     * may read the disk. */
    int (*fill)(void *data, struct msg_heartbeat *message);
    /* Acts on an answer; takes it over. On the loop. */
    void (*answered)(void *data, struct msg_heartbeat_reply *reply);
    /* This node is fenced or refused: it must stop serving and end. On the loop, once. */
    void (*fenced)(void *data, int err, const char *sentence);
    void *data;
};

struct membership_options {
    node_id wanted; /* 0 = any */
    char http[ADDRESS_BYTES];
    char rpc[ADDRESS_BYTES];
    uint64_t heartbeat_ms;
    bool rejoin; /* take the old place with whatever is in the directory; it has to be proven */
};

struct membership;

/* record: from disk; an empty node_uuid is made up from random. identity is set on acceptance. */
int membership_open(struct loop *loop, struct coordinator_client *coordinators,
                    const struct membership_options *options,
                    const struct membership_record *record, const struct membership_hooks *hooks,
                    struct random_source *random, struct node_identity *identity,
                    struct membership **membership);
/* On the loop: begins. */
void membership_start(struct membership *membership);
/* On the loop: no hook runs any more once closed was called. */
void membership_close(struct membership *membership, void (*closed)(void *data), void *data);
/* Heartbeat now rather than at the next turn: after something worth telling. */
void membership_hurry(struct membership *membership);

#endif
