/* SPDX-License-Identifier: Apache-2.0 */
/* What a local cluster says of itself over HTTP, and waiting until it serves. */
#ifndef TG_CLIENT_CLI_CLUSTER_WATCH_H
#define TG_CLIENT_CLI_CLUSTER_WATCH_H

#include "client/cli/cluster_dir.h"

enum { CLUSTER_ASK_MS = 1500, CLUSTER_WAIT_MS = 20000, CLUSTER_STEP_MS = 10 };

struct cluster_view {
    unsigned leader;                          /* 0 = nobody answered */
    bool alive[CLUSTER_PARTICIPANTS_MAX + 1]; /* participants by number */
    bool answers[CLUSTER_NODES_MAX];          /* nodes by place in the cluster: HTTP works */
    uint64_t open, publishing, finished;      /* transactions */
    uint64_t replicas_behind;
};

/* Asks every running node whether it answers, and the cluster who leads. */
void cluster_watch_look(const struct cluster *cluster, struct cluster_view *view);
/* The number of the leading coordinator; 0 if nobody knows. */
unsigned cluster_watch_leader(const struct cluster *cluster);
/* Until all nodes (only == NULL) or one node serve, for at most CLUSTER_WAIT_MS. TG_CLOSED names a
 * node that ended, TG_TIMEOUT one that does not serve; *culprit is its place, -1 if it is none's.
 */
int cluster_watch_wait(const struct cluster *cluster, const struct cluster_node *only, int *culprit,
                       struct tg_errmsg *msg);

#endif
