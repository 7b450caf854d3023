/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a coordinator, as its root's files share them. */
#ifndef TG_COORDINATOR_COORDINATOR_PARTS_H
#define TG_COORDINATOR_COORDINATOR_PARTS_H

#include "common/base/clock_watch.h"
#include "coordinator/api/api.h"
#include "coordinator/cluster/peer_watch.h"
#include "coordinator/cluster/rpc_participants.h"
#include "coordinator/consensus/raft_node.h"
#include "coordinator/data_dir.h"
#include "coordinator/join.h"
#include "coordinator/members/members_daemon.h"
#include "coordinator/options.h"
#include "coordinator/preflight.h"
#include "coordinator/rpc/rpc_handlers.h"
#include "coordinator/txn/move_daemon.h"
#include "coordinator/txn/publish_daemon.h"
#include "coordinator/txn/repair_daemon.h"
#include "coordinator/txn/sweep_daemon.h"

enum {
    COORDINATOR_TICK_MS = 50,         /* publisher's retries, ends of waits */
    COORDINATOR_HTTP_GRACE_MS = 3000, /* for requests under way at a stop */
    COORDINATOR_HAND_OVER_MS = 1000,  /* for the hand-over of the leadership at a stop */
    COORDINATOR_PUBLISH_RPC_MS = 10000
};

struct coordinator {
    const struct coordinator_options *options;
    struct coordinator_address addresses[COORDINATORS_MAX];
    uint32_t address_count;
    const struct coordinator_address *own;
    struct loop *loop;
    int lock; /* file descriptor of the data directory's lock, -1 if none */
    char raft_dir[DATA_DIR_RAFT_BYTES];

    struct dispatch dispatch;
    struct rpc_handlers handlers;
    struct rpc_server *rpc;
    struct preflight *preflight;
    struct join *join;
    bool joins;                     /* raft starts from an empty directory that was admitted */
    struct coordinator_infos known; /* what a joining one was told; else empty */
    uint64_t peers_seen;            /* coordinators.changes when the peers were set last */
    struct peer_watch *peer_watch;
    struct members_daemon *members;
    struct raft_node *raft;
    struct health health;
    struct query_waits waits;
    struct txn_manager *txns;
    struct rpc_participants *participants;
    struct publish_daemon *publisher;
    struct sweep_daemon *sweeper;
    struct repair_daemon *repairer;
    struct move_daemon *mover;
    struct leader_link link;
    struct api *api;
    struct http_server *http;
    struct loop_timer *tick;
    struct loop_timer *sweep;
    struct consensus_request init; /* CLUSTER_INIT under way */
    bool init_under_way;
    struct consensus_request limits; /* SET_LIMITS under way */
    bool limits_under_way;
    uint64_t leader_seen; /* what was logged last */
    uint64_t alive_seen;  /* bit per index of members */
    struct clock_watch clock_watch;

    bool stopping;
    unsigned stop_waits; /* for the HTTP server and the hand-over */
    bool handing_over;
    struct loop_timer *hand_over;
    int status;
};

/* coordinator_peers.c: who the other coordinators are. Takes them from the options … */
int coordinator_peers_init(struct coordinator *coordinator, struct tg_errmsg *msg);
/* … and later from what is applied, if that has changed. */
void coordinator_peers_refresh(struct coordinator *coordinator);
/* Opens what watches and changes them, once raft is open. */
int coordinator_peers_open(struct coordinator *coordinator, struct tg_errmsg *msg);
/* What raft asks about them. */
struct raft_node_options;
void coordinator_peers_tell(struct coordinator *coordinator, struct raft_node_options *options);
/* coordinator_watch.c: what follows from leadership, from applied batches and from time. */
void coordinator_watch_leadership(void *coordinator, bool leads);
void coordinator_watch_applied(void *coordinator);
void coordinator_watch_tick(void *coordinator);
void coordinator_watch_sweep(void *coordinator);
void coordinator_watch_metrics(void *coordinator);
/* coordinator_stop.c: ends the process with that status, in order. */
void coordinator_stop(struct coordinator *coordinator, int status);
void coordinator_stop_on_signal(void *coordinator);

#endif
