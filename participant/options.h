/* SPDX-License-Identifier: Apache-2.0 */
/* The participant's options: one table for the configuration file, the flags, and --help. */
#ifndef TG_PARTICIPANT_OPTIONS_H
#define TG_PARTICIPANT_OPTIONS_H

#include <stddef.h>

#include "common/base/config.h"

enum { OPTION_PATH_BYTES = 1024, OPTION_TEXT_BYTES = 256, OPTION_LIST_BYTES = 1024 };

struct participant_options {
    uint64_t participant_id;
    char data_dir[OPTION_PATH_BYTES];
    bool rejoin;
    char log_level[16];

    char host[OPTION_TEXT_BYTES];
    char advertise_host[OPTION_TEXT_BYTES];
    uint64_t http_port;
    uint64_t rpc_port;
    uint64_t http_connections_max;

    char coordinators[OPTION_LIST_BYTES];
    char cluster_secret[OPTION_TEXT_BYTES];
    char root_password[OPTION_TEXT_BYTES];
    bool allow_empty_password;
    uint64_t heartbeat_ms;

    uint64_t loads_max;
    uint64_t load_memory_bytes;
    uint64_t loads_memory_bytes;
    uint64_t streaming_load_max_mb;
    uint64_t streaming_load_json_max_mb;
    uint64_t publish_timeout_ms;
    uint64_t commit_visible_wait_ms;

    uint64_t scans_max;

    uint64_t meta_map_bytes;
    uint64_t blocks_map_bytes;
    uint64_t disk_reserve_bytes;
    uint64_t cache_bytes;
    uint64_t clone_bytes_per_s;
    uint64_t scrub_bytes_per_s;
    uint64_t scrub_interval_s;
};

extern const struct config_option participant_option_table[];
extern const size_t participant_option_count;

/* What no table can say: addresses, a password for a node that others can reach. TG_INVALID with a
 * sentence. */
int participant_options_check(const struct participant_options *options, struct tg_errmsg *msg);

#endif
