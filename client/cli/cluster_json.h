/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.json: the nodes of a local cluster, their process ids and addresses.
 *
 *   {"coordinators":[{"id":1,"pid":4711,"http":"127.0.0.1:8030","raft":"127.0.0.1:9010",
 *     "rpc":"127.0.0.1:9020"}],"participants":[{"id":1,"pid":4712,"http":"127.0.0.1:8040",
 *     "rpc":"127.0.0.1:8060"}]}
 *
 * A pid of 0 is a node that the tool stopped. */
#ifndef TG_CLIENT_CLI_CLUSTER_JSON_H
#define TG_CLIENT_CLI_CLUSTER_JSON_H

#include <sys/types.h>

#include "client/cli/cluster_dir.h"
#include "common/base/buf.h"

#define CLUSTER_JSON_NAME "cluster.json"
enum { CLUSTER_JSON_BYTES_MAX = 64 * 1024 };

/* Fills the nodes. TG_NOT_FOUND, TG_IO, TG_CORRUPT. */
int cluster_json_read(struct cluster *cluster, struct tg_errmsg *msg);
int cluster_json_write(const struct cluster *cluster, struct tg_errmsg *msg);

/* Writes a file under another name first and renames it. TG_IO, TG_NOSPACE. */
int cluster_file_write(const char *path, struct slice bytes, mode_t mode, struct tg_errmsg *msg);
/* Appends at most max bytes from the end of a file. TG_NOT_FOUND, TG_IO. */
int cluster_file_read(const char *path, size_t max, struct buf *out);

#endif
