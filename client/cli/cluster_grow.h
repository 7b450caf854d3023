/* SPDX-License-Identifier: Apache-2.0 */
/* One participant more for a local cluster. */
#ifndef TG_CLIENT_CLI_CLUSTER_GROW_H
#define TG_CLIENT_CLI_CLUSTER_GROW_H

#include "client/cli/cluster_dir.h"

/* Lays out the next participant, with the configuration of the one before it and the "key=value"
 * lines of options, starts it and waits until it serves; *node says what came of it. TG_NOT_FOUND
 * (no cluster in dir), TG_LIMIT, TG_EXISTS (a port is in use), and what starting fails with: then
 * it was stopped again and is laid out still. */
int cluster_grow(const char *dir, const struct cli_list *options, struct cluster_node *node,
                 struct tg_errmsg *msg);

#endif
