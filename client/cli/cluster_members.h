/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinators that come to a local cluster and leave it. */
#ifndef TG_CLIENT_CLI_CLUSTER_MEMBERS_H
#define TG_CLIENT_CLI_CLUSTER_MEMBERS_H

#include "client/cli/cluster_dir.h"

enum { CLUSTER_MEMBER_MS = 120000 /* for one to vote, or to be gone */ };

/* Lays out a coordinator under the next free id, with the options of those that are there, starts it
 * and adds it; returns when it votes. *node is it, in the cluster's list. What failed half way is
 * named in msg; the folder stays. */
int cluster_members_add(struct cluster *cluster, struct cluster_node **node, struct tg_errmsg *msg);
/* Drops it from the cluster, dead or alive, stops it if it runs, and takes it off the list. Its
 * folder stays. */
int cluster_members_drop(struct cluster *cluster, struct cluster_node *node, struct tg_errmsg *msg);

#endif
