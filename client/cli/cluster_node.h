/* SPDX-License-Identifier: Apache-2.0 */
/* One node of a local cluster as a process. Only a process whose program and configuration file are
 * this node's is ever signalled: a recorded id may belong to a stranger by now. */
#ifndef TG_CLIENT_CLI_CLUSTER_NODE_H
#define TG_CLIENT_CLI_CLUSTER_NODE_H

#include "client/cli/cluster_dir.h"
#include "common/base/buf.h"

enum {
    CLUSTER_STOP_MS = 10000, /* after SIGTERM, before SIGKILL */
    CLUSTER_KILL_MS = 5000,  /* after SIGKILL */
    CLUSTER_LOG_TAIL_BYTES = 3000
};

/* Starts the program that stands beside this tool, detached (own session, no input, output into
 * the node's log), and records its id in node->pid and in DIR/NODE/pid. flag: "--bootstrap"
 * for coordinators of a new cluster, "--rejoin" for a participant without its data, or NULL.
 * TG_NOT_FOUND (no program), TG_IO. */
int cluster_node_start(const struct cluster *cluster, struct cluster_node *node, const char *flag,
                       struct tg_errmsg *msg);
/* Whether node->pid is a living process of this node. */
bool cluster_node_runs(const struct cluster *cluster, const struct cluster_node *node);
/* Asks it to stop; kills it if it has not after CLUSTER_STOP_MS. Sets pid to 0. *killed says which
 * it was. 0 also if it did not run; TG_IO if it survives even that. */
int cluster_node_stop(const struct cluster *cluster, struct cluster_node *node, bool *killed,
                      struct tg_errmsg *msg);
/* SIGKILL, and waits for its end. TG_NOT_FOUND if it does not run. */
int cluster_node_kill(const struct cluster *cluster, struct cluster_node *node,
                      struct tg_errmsg *msg);
/* Appends the last lines of its log. */
void cluster_node_log_tail(const struct cluster *cluster, const struct cluster_node *node,
                           struct buf *out);

#endif
