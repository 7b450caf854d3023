/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator's consensus on the raft library and its libuv backend: directory, links, timeouts,
 * watchdogs. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_NODE_H
#define TG_COORDINATOR_CONSENSUS_RAFT_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/net/loop.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/consensus/proposer.h"

enum { RAFT_NODE_SERVERS_MAX = 9 };

struct raft_node_server {
    uint64_t id;                 /* 1… */
    char address[ADDRESS_BYTES]; /* host:port of its raft port */
};

struct raft_node_options {
    uint64_t id;
    const char *dir;            /* made if missing; nothing else may live there */
    const char *listen_address; /* host:port; NULL: this server's address in the list. Port 0 is for
                                   tests */
    uint32_t server_count;
    struct raft_node_server servers[RAFT_NODE_SERVERS_MAX]; /* known so far, this one included */
    bool bootstrap;             /* form a new cluster if the directory is empty */
    bool join;                  /* start from an empty directory: the log has admitted it */
    const char *cluster_secret; /* must outlive the node */
    unsigned election_timeout_ms;
    unsigned heartbeat_ms;
    uint32_t window;             /* entries in flight */
    uint64_t snapshot_bytes;     /* of log between snapshots */
    uint32_t snapshot_entries;   /* the same in entries; 0: 32 768 */
    uint64_t segment_bytes;      /* of a log file */
    uint64_t disk_reserve_bytes; /* below this much free space new work is refused, below a quarter
                                    everything */
    /* Called once when the process must end: raft broke, or the log holds what this program does
     * not know. NULL: logs and ends the process with status 70. */
    void (*fatal)(void *data, const char *why);
    void *fatal_data;
    /* What is known of the other coordinators; all may be NULL. */
    enum consensus_clock (*clock_state)(void *data, uint64_t wall_us, uint64_t monotonic_us);
    bool (*fit)(void *data, uint64_t id); /* alive, with room on its disk and a good clock */
    bool (*others_have_room)(void *data); /* no voter that was heard lately lacks it (rule 19) */
    bool (*someone_has_room)(void *data); /* one that could lead instead has it */
    void *peers_data;
};

/* Defaults for everything but id, dir, servers and secret. */
void raft_node_options_init(struct raft_node_options *options);

struct raft_node;

/* Checks the directory, listens, prepares raft. The observer is copied (NULL: none); the clock must
 * outlive the node. TG_REFUSED (an empty directory without bootstrap, a lost log: the message is
 * for the operator), TG_CORRUPT, TG_INVALID, TG_IO, TG_NOMEM. */
int raft_node_open(struct loop *loop, const struct raft_node_options *options, struct clock *clock,
                   const struct consensus_observer *observer, struct raft_node **out,
                   struct tg_errmsg *msg);
/* Loads log and snapshot (blocking) and takes part. On failure the node must still be closed. */
int raft_node_start(struct raft_node *node, struct tg_errmsg *msg);
/* Who is known from now on, this server included; ids below next_id that are not among them were
 * members once and are refused. At most RAFT_TRANSPORT_SERVERS_MAX. */
void raft_node_set_servers(struct raft_node *node, const struct raft_node_server *servers,
                           uint32_t count, uint64_t next_id);
struct consensus *raft_node_consensus(struct raft_node *node);

/* Hands leadership to another voter: for a graceful stop. done comes later on the loop: 0 if
 * another leads then, TG_NOT_LEADER if this server did not lead, TG_UNREACHABLE if nobody took over
 * within an election timeout. */
void raft_node_transfer(struct raft_node *node, void (*done)(void *data, int err), void *data);
/* Ends all requests, closes raft and frees; closed comes on the loop, never from inside. May be
 * called anywhere on the loop's thread, also from a request's done. */
void raft_node_close(struct raft_node *node, void (*closed)(void *data), void *data);

/* For metrics and tests. */
struct raft_node_stats {
    uint64_t term, leader, applied_index, last_index;
    bool is_leader;
    uint64_t times_led;
    uint64_t batches_proposed, commands_proposed, bytes_proposed;
    uint64_t entries_applied, bytes_applied;
    uint64_t snapshots_taken, snapshots_restored;
    uint64_t links_accepted, links_connected, links_refused;
    uint64_t append_ms; /* how long the oldest write to the own log has been under way, 0: none */
    enum proposer_room room; /* of the own disk */
    uint64_t stalls;         /* turns of the loop that came later than a heartbeat */
    uint64_t disk_free_bytes;
};
void raft_node_stats(const struct raft_node *node, struct raft_node_stats *stats);

#endif
