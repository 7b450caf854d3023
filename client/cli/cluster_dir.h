/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a local cluster: which nodes it has, their ports and configuration files, and
 * cluster.json, which says so to others.
 *
 *   DIR/cluster.json                 nodes, process ids, addresses
 *   DIR/lock                         held by the tool while it works here
 *   DIR/forming                      until the cluster served for the first time
 *   DIR/coordinator-1/coordinator.conf   data/   log   pid
 *   DIR/participant-1/participant.conf   data/   log   pid
 */
#ifndef TG_CLIENT_CLI_CLUSTER_DIR_H
#define TG_CLIENT_CLI_CLUSTER_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "client/cli/cli_flags.h"
#include "common/base/err.h"

enum {
    CLUSTER_COORDINATORS_MAX = 9,
    CLUSTER_PARTICIPANTS_MAX = 20, /* HTTP ports from 8040 on, below the first RPC port 8060 */
    CLUSTER_NODES_MAX = CLUSTER_COORDINATORS_MAX + CLUSTER_PARTICIPANTS_MAX,
    CLUSTER_DIR_BYTES = 900, /* the options' paths are limited to 1024 */
    CLUSTER_PATH_BYTES = CLUSTER_DIR_BYTES + 100,
    CLUSTER_NAME_BYTES = 24,
    CLUSTER_OPTION_BYTES = 256,
    CLUSTER_CONF_BYTES_MAX = 1024 * 1024,
    CLUSTER_OFFSET_STEP = 100,
    CLUSTER_OFFSET_MAX = 23600, /* all ports stay below the range of outgoing connections */
    CLUSTER_HTTP_PORT = 8030,   /* of coordinator 1; the others add their number less one */
    CLUSTER_RAFT_PORT = 9010,
    CLUSTER_RPC_PORT = 9020,
    CLUSTER_PARTICIPANT_HTTP_PORT = 8040,
    CLUSTER_PARTICIPANT_RPC_PORT = 8060
};

struct cluster_node {
    bool is_coordinator;
    unsigned id;
    char name[CLUSTER_NAME_BYTES]; /* "coordinator-1" */
    long pid;                      /* as last started; 0 = stopped by the tool */
    uint16_t http_port;
    uint16_t rpc_port;
    uint16_t raft_port; /* 0 for participants */
};

struct cluster {
    char dir[CLUSTER_DIR_BYTES]; /* absolute */
    int lock_fd;
    unsigned count; /* coordinators first */
    struct cluster_node nodes[CLUSTER_NODES_MAX];
};

/* What a new cluster shall look like. */
struct cluster_plan {
    uint64_t coordinators;
    uint64_t participants;
    uint64_t port_offset;
    const struct cli_list *coordinator_options; /* "key=value" lines for every coordinator.conf */
    const struct cli_list *participant_options;
};

/* Makes the directory if `make`, and takes its lock (waits up to 30 s for another tool).
 * TG_NOT_FOUND (no cluster here, unless `make`), TG_INVALID (something else is here), TG_IO,
 * TG_BUSY, TG_TOO_LARGE. Close it either way. */
int cluster_dir_open(const char *path, bool make, struct cluster *cluster, struct tg_errmsg *msg);
void cluster_dir_close(struct cluster *cluster);

/* Reads cluster.json. TG_NOT_FOUND, TG_IO, TG_CORRUPT. */
int cluster_dir_read(struct cluster *cluster, struct tg_errmsg *msg);
/* Lays out a new cluster: folders, configuration files with a secret of its own, cluster.json. */
int cluster_dir_make(struct cluster *cluster, const struct cluster_plan *plan,
                     struct tg_errmsg *msg);
/* The first offset from `start` on at which all ports are free; TG_NOT_FOUND. */
int cluster_dir_find_offset(const struct cluster_plan *plan, uint64_t start, uint64_t *offset);
/* TG_EXISTS names the first port of the node that is in use. */
int cluster_dir_check_ports(const struct cluster_node *node, struct tg_errmsg *msg);
/* Writes cluster.json anew, whole or not at all. */
int cluster_dir_write(const struct cluster *cluster, struct tg_errmsg *msg);

/* DIR/NODE/FILE; file "" for the folder. */
void cluster_dir_path(const struct cluster *cluster, const struct cluster_node *node,
                      const char *file, char out[CLUSTER_PATH_BYTES]);
void cluster_dir_conf_path(const struct cluster *cluster, const struct cluster_node *node,
                           char out[CLUSTER_PATH_BYTES]);
/* NULL if there is none of that name. */
struct cluster_node *cluster_dir_find(struct cluster *cluster, const char *name);
/* Whether no coordinator has data yet. */
bool cluster_dir_is_new(const struct cluster *cluster);
/* Whether the cluster has never served: its coordinators may still form it. A mark in the directory
 * says so from cluster_dir_make to cluster_dir_formed. */
bool cluster_dir_is_forming(const struct cluster *cluster);
void cluster_dir_formed(const struct cluster *cluster);
/* The value of a line "key = value" of a node's configuration file; "" if it is not there. */
void cluster_dir_option(const struct cluster *cluster, const struct cluster_node *node,
                        const char *key, char out[CLUSTER_OPTION_BYTES]);

#endif
