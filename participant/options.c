/* SPDX-License-Identifier: Apache-2.0 */
/* The participant's options. */
#include "participant/options.h"

#include <arpa/inet.h>
#include <string.h>

#define FIELD(name) offsetof(struct participant_options, name)
#define TEXT(name, initial, help, section)                                                        \
    {                                                                                             \
#name, CONFIG_STRING, FIELD(name), sizeof(((struct participant_options *)0)->name), 0, 0, \
            initial, help, section                                                                \
    }
#define NUMBER(name, min, max, initial, help, section)                       \
    {                                                                        \
#name, CONFIG_UINT, FIELD(name), 0, min, max, initial, help, section \
    }
#define BYTES(name, min, max, initial, help, section)                         \
    {                                                                         \
#name, CONFIG_BYTES, FIELD(name), 0, min, max, initial, help, section \
    }
#define FLAG(name, initial, help, section)                               \
    {                                                                    \
#name, CONFIG_BOOL, FIELD(name), 0, 0, 0, initial, help, section \
    }

#define GIB (1024ull * 1024 * 1024)

const struct config_option participant_option_table[] = {
    NUMBER(
        participant_id, 0, UINT32_MAX, "0",
        "Number of this participant in the cluster; 0 takes the next free one at the first start.",
        "Node"),
    TEXT(data_dir, "", "Directory for this node's data; must exist. Required.", NULL),
    FLAG(
        rejoin, "false",
        "For one start, with participant_id: the directory was lost (it is empty now) or is an old "
        "copy; what it lacks is fetched from the other participants.",
        NULL),
    TEXT(log_level, "info", "What is logged at least: debug, info, warn or error.", NULL),

    TEXT(host, "127.0.0.1", "IPv4 address to listen on.", "Network"),
    TEXT(advertise_host, "",
         "Address that others are told to reach this node at; empty means host.", NULL),
    NUMBER(http_port, 0, 65535, "8040", "Port for loads and reads over HTTP; 0 takes a free one.",
           NULL),
    NUMBER(rpc_port, 0, 65535, "8060", "Port for calls from other nodes; 0 takes a free one.",
           NULL),
    NUMBER(http_connections_max, 16, 65536, "4096",
           "Open HTTP connections; further ones are answered 503.", NULL),

    TEXT(coordinators, "127.0.0.1:9020", "RPC addresses of the coordinators, separated by commas.",
         "Cluster"),
    TEXT(cluster_secret, "tidegate",
         "Secret that all nodes of the cluster share; change it on a real network.", NULL),
    TEXT(root_password, "", "Password of the user root, the same on all nodes.", NULL),
    FLAG(allow_empty_password, "false",
         "Start with an empty root password although others can reach this node.", NULL),
    NUMBER(heartbeat_ms, 50, 60000, "500", "Milliseconds between heartbeats to the coordinator.",
           NULL),

    NUMBER(loads_max, 1, 8000, "1024", "Loads that may run at once; further ones are refused.",
           "Loads"),
    BYTES(load_memory_bytes, 16ull << 20, 64 * GIB, "128m",
          "Memory of one load for rows that are not yet encoded.", NULL),
    BYTES(loads_memory_bytes, 16ull << 20, 1024 * GIB, "512m",
          "Memory of all loads together; a load that wants more than is left is refused.", NULL),
    NUMBER(streaming_load_max_mb, 1, 1024 * 1024, "102400", "Largest body of a load in mebibytes.",
           NULL),
    NUMBER(streaming_load_json_max_mb, 1, 100, "100",
           "The same where the body is one JSON document, neither lines nor an outer array.", NULL),
    NUMBER(publish_timeout_ms, 0, 600000, "60000",
           "How long a load waits to become visible before it answers Publish Timeout.", NULL),
    NUMBER(commit_visible_wait_ms, 0, 600000, "2000",
           "How long a two-phase commit waits to become visible before it answers.", NULL),

    NUMBER(scans_max, 1, 4096, "64", "Reads that may run at once; further ones wait.", "Reads"),

    BYTES(meta_map_bytes, 1ull << 20, 1024 * GIB, "64g",
          "Address space of the metadata environment: it cannot grow beyond.", "Storage"),
    BYTES(blocks_map_bytes, 1ull << 20, 16384 * GIB, "256g",
          "Address space of each block environment: it cannot grow beyond.", NULL),
    BYTES(disk_reserve_bytes, 0, 1024 * GIB, "256m",
          "Free space on the disk below which no new data is accepted.", NULL),
    BYTES(cache_bytes, 0, 64 * GIB, "32m", "Memory for descriptions of rowsets.", NULL),
    BYTES(clone_bytes_per_s, 0, 1024 * GIB, "64m",
          "Bytes a second that repairs of replicas fetch or check; 0 for no limit.", NULL),
    BYTES(scrub_bytes_per_s, 0, 1024 * GIB, "16m",
          "Bytes a second that are read to find damage before anybody meets it; 0 for no limit.",
          NULL),
    NUMBER(scrub_interval_s, 0, 366ull * 86400, "86400",
           "Seconds from the begin of one such pass over all data to that of the next; 0 for none.",
           NULL),
};
const size_t participant_option_count =
    sizeof participant_option_table / sizeof participant_option_table[0];

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0;
}

int participant_options_check(const struct participant_options *options, struct tg_errmsg *msg)
{
    struct in_addr address;

    if (options->data_dir[0] == 0)
        return tg_fail(msg, TG_INVALID, "data_dir is required");
    if (inet_pton(AF_INET, options->host, &address) != 1)
        return tg_fail(msg, TG_INVALID, "host '%s' is not an IPv4 address", options->host);
    if (options->cluster_secret[0] == 0)
        return tg_fail(msg, TG_INVALID, "cluster_secret must not be empty");
    if (!is_loopback(options->host) && options->root_password[0] == 0 &&
        !options->allow_empty_password)
        return tg_fail(msg, TG_INVALID,
                       "host %s can be reached by others and root_password is empty: set it, or "
                       "set allow_empty_password",
                       options->host);
    return 0;
}
