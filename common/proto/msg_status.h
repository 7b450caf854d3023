/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_STATUS: a coordinator tells who it is, who leads as far as it knows, and how far it has
 * applied. */
#ifndef TG_COMMON_PROTO_MSG_STATUS_H
#define TG_COMMON_PROTO_MSG_STATUS_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/model/ids.h"

/* How far a coordinator is with its start. The numbers travel. */
enum status_phase {
    STATUS_SERVES = 0, /* takes part in the log */
    STATUS_LOOKS = 1,  /* its directory is empty; it asks the others whether there is a cluster */
    STATUS_READY = 2,  /* it has heard from all of them that there is none */
    STATUS_JOINS = 3   /* its directory is empty; it waits to be added to the cluster there is */
};

/* How much room the disk of a coordinator's log has. The numbers travel. */
enum status_room {
    STATUS_ROOM_FREE = 0,
    STATUS_ROOM_RESERVE = 1, /* no new work is begun (rule 19) */
    STATUS_ROOM_NONE = 2
};

/* One of the cluster's coordinators. */
struct coordinator_info {
    uint64_t id;
    uint32_t standing; /* enum coordinator_standing of the replicated state */
    char raft[ADDRESS_BYTES];
    char rpc[ADDRESS_BYTES];
    char http[ADDRESS_BYTES];
};
struct coordinator_infos {
    uint64_t next_id; /* ids below were given; those that are not in the list are gone */
    uint32_t count;
    struct coordinator_info list[COORDINATORS_MAX];
};

struct msg_status_reply {
    uint64_t coordinator;           /* its raft id */
    uint64_t leader;                /* raft id of the leader it knows, 0 if none */
    char leader_rpc[ADDRESS_BYTES]; /* "" if none */
    char leader_http[ADDRESS_BYTES];
    char cluster_uuid[37]; /* "" before the cluster was formed */
    uint64_t term;
    uint64_t applied_index;
    uint64_t last_stamp_us;
    enum status_phase phase;
    bool of_cluster; /* it is of a cluster whose uuid it has not applied yet: "" is no word on it */
    uint64_t nonce;  /* of its directory, while it waits to be added; else 0 */
    uint64_t wall_us; /* its clock as it answers */
    enum status_room room;
    uint64_t disk_free_bytes;
    struct coordinator_infos coordinators; /* as it has applied them */
};

/* The list as a part of a message. */
void coordinator_infos_encode(const struct coordinator_infos *infos, struct buf *out);
void coordinator_infos_decode(struct cursor *cursor, struct coordinator_infos *infos);

void msg_status_reply_encode(const struct msg_status_reply *reply, struct buf *out);
int msg_status_reply_decode(struct slice head, struct msg_status_reply *reply);

#endif
