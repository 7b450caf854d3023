/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's options: one table for the configuration file, the flags, and --help. */
#ifndef TG_COORDINATOR_OPTIONS_H
#define TG_COORDINATOR_OPTIONS_H

#include <stddef.h>

#include "common/base/config.h"
#include "common/model/ids.h"

enum { OPTION_PATH_BYTES = 1024, OPTION_TEXT_BYTES = 256, OPTION_LIST_BYTES = 1024 };

struct coordinator_options {
    uint64_t coordinator_id;
    char data_dir[OPTION_PATH_BYTES];
    char log_level[16];

    char host[OPTION_TEXT_BYTES];
    uint64_t http_port;
    uint64_t raft_port;
    uint64_t rpc_port;
    uint64_t http_connections_max;
    uint64_t rpc_connections_max;
    bool strict_expect;

    char coordinators[OPTION_LIST_BYTES];
    bool bootstrap;
    bool join;
    char cluster_secret[OPTION_TEXT_BYTES];
    char root_password[OPTION_TEXT_BYTES];
    bool allow_empty_password;

    uint64_t election_timeout_ms;
    uint64_t heartbeat_ms;
    uint64_t participant_lease_ms;
    uint64_t replace_dead_after_s;
    bool balance;

    uint64_t precommit_timeout_s;
    uint64_t label_keep_s;
    uint64_t commit_visible_wait_ms;
    uint64_t publish_wait_s;
    uint64_t max_running_txn_num_per_db;
    uint64_t max_unpublished_per_table;
    uint64_t label_memory_max;

    uint64_t snapshot_bytes;
    uint64_t disk_reserve_bytes;
};

extern const struct config_option coordinator_option_table[];
extern const size_t coordinator_option_count;

/* One coordinator of the cluster, out of the list. */
struct coordinator_address {
    uint64_t id;
    char raft[ADDRESS_BYTES]; /* host:port */
    char rpc[ADDRESS_BYTES];
    char http[ADDRESS_BYTES];
};

/* "1=10.0.0.1:9010:9020:8030,2=…" (id=host:raft:rpc:http), or, if that option is empty, this node
 * alone, from host and ports. The node's own entry must be in it. TG_INVALID with a sentence. */
int coordinator_options_addresses(const struct coordinator_options *options,
                                  struct coordinator_address out[COORDINATORS_MAX], uint32_t *count,
                                  struct tg_errmsg *msg);
/* What no table can say: addresses, a password for a node that others can reach. TG_INVALID with a
 * sentence. */
int coordinator_options_check(const struct coordinator_options *options, struct tg_errmsg *msg);

#endif
