/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's options. */
#include "coordinator/options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct coordinator_options, name)
#define TEXT(name, initial, help, section)                                                        \
    {                                                                                             \
#name, CONFIG_STRING, FIELD(name), sizeof(((struct coordinator_options *)0)->name), 0, 0, \
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

#define MIB (1024ull * 1024)
#define GIB (1024ull * MIB)

const struct config_option coordinator_option_table[] = {
    NUMBER(coordinator_id, 1, UINT32_MAX, "1",
           "Number of this coordinator in the list of coordinators; never used again for an empty "
           "data directory.",
           "Node"),
    TEXT(data_dir, "", "Directory for this node's data; made if its parent exists. Required.",
         NULL),
    TEXT(log_level, "info", "What is logged at least: debug, info, warn or error.", NULL),

    TEXT(host, "127.0.0.1", "IPv4 address to listen on.", "Network"),
    NUMBER(http_port, 1, 65535, "8030",
           "Port for clients; used if the option coordinators is empty, which names it otherwise.",
           NULL),
    NUMBER(raft_port, 1, 65535, "9010", "The same for the other coordinators' log.", NULL),
    NUMBER(rpc_port, 1, 65535, "9020", "The same for calls from participants and coordinators.",
           NULL),
    NUMBER(http_connections_max, 16, 65536, "8192",
           "Open HTTP connections; further ones are answered 503.", NULL),
    NUMBER(rpc_connections_max, 16, 4096, "256", "Open connections of other nodes.", NULL),
    FLAG(strict_expect, "false",
         "Refuse a _stream_load without an Expect header, as Apache Doris does.", NULL),

    TEXT(coordinators, "",
         "Coordinators as id=host:raft_port:rpc_port:http_port, separated by commas, this one "
         "included: all of a new cluster; later those that shall be found at the start, since the "
         "cluster keeps the list itself. Empty: this one alone.",
         "Cluster"),
    FLAG(bootstrap, "false",
         "Form a new cluster if the data directory is empty; without effect otherwise.", NULL),
    FLAG(join, "false",
         "With an empty data directory: wait to be added to the cluster of the other coordinators "
         "(tidegate coordinator add); without effect otherwise. coordinator_id must never have "
         "been used before.",
         NULL),
    TEXT(cluster_secret, "tidegate",
         "Secret that all nodes of the cluster share; change it on a real network.", NULL),
    TEXT(root_password, "", "Password of the user root, the same on all nodes.", NULL),
    FLAG(allow_empty_password, "false",
         "Start with an empty root password although others can reach this node.", NULL),

    NUMBER(election_timeout_ms, 50, 60000, "600",
           "Milliseconds without a word of the leader after which a new one is elected.",
           "Failure detection"),
    NUMBER(heartbeat_ms, 5, 10000, "60",
           "Milliseconds between two words of the leader; at most a third of the election timeout.",
           NULL),
    NUMBER(participant_lease_ms, 200, 600000, "5000",
           "Milliseconds without a heartbeat after which a participant counts as dead and its "
           "unfinished loads are aborted.",
           NULL),

    NUMBER(replace_dead_after_s, 0, 31536000, "600",
           "Seconds of silence after which the copies on a participant are made anew on others; 0: "
           "never.",
           NULL),
    FLAG(balance, "true", "Move tablets so that all participants hold as many.", NULL),

    NUMBER(precommit_timeout_s, 1, 31536000, "3600",
           "Seconds after which a precommitted transaction that nobody commits is aborted.",
           "Transactions"),
    NUMBER(label_keep_s, 43200, 31536000, "43200",
           "Seconds for which labels and outcomes of finished transactions are kept.", NULL),
    NUMBER(commit_visible_wait_ms, 0, 600000, "2000",
           "Milliseconds for which the answer to a two-phase commit waits until it is visible.",
           NULL),
    NUMBER(publish_wait_s, 1, 86400, "300",
           "Seconds after which one good replica of each tablet suffices to make a committed "
           "transaction visible.",
           NULL),
    NUMBER(max_running_txn_num_per_db, 1, UINT32_MAX, "10000",
           "Transactions of a database that may be unfinished at once; the leader's value holds.",
           NULL),
    NUMBER(max_unpublished_per_table, 1, UINT32_MAX, "1000",
           "Committed transactions of a table that may wait to become visible; the leader's value "
           "holds.",
           NULL),
    BYTES(
        label_memory_max, 64 * 1024, 64 * GIB, "256m",
        "Memory for labels of finished transactions, beyond which none begins; the leader's value "
        "holds.",
        NULL),

    BYTES(snapshot_bytes, 64 * 1024, 16 * GIB, "32m", "Bytes of log between two snapshots.",
          "Storage"),
    BYTES(disk_reserve_bytes, 0, 1024 * GIB, "256m",
          "Free space on the disk below which no new work is begun.", NULL),
};
const size_t coordinator_option_count =
    sizeof coordinator_option_table / sizeof coordinator_option_table[0];

/* ---- the list of coordinators ---- */

static int take_port(char **at, const char *entry, char end, unsigned *port, struct tg_errmsg *msg)
{
    char *stop;
    unsigned long value = strtoul(*at, &stop, 10);

    if (stop == *at || *stop != end || value == 0 || value > 65535)
        return tg_fail(msg, TG_INVALID,
                       "coordinators: '%s' is not id=host:raft_port:rpc_port:http_port", entry);
    *port = (unsigned)value;
    *at = stop + (end != '\0');
    return 0;
}

static int fill_address(uint64_t id, const char *host, unsigned raft, unsigned rpc, unsigned http,
                        struct coordinator_address *out, struct tg_errmsg *msg)
{
    out->id = id;
    snprintf(out->raft, sizeof out->raft, "%s:%u", host, raft);
    snprintf(out->rpc, sizeof out->rpc, "%s:%u", host, rpc);
    if (snprintf(out->http, sizeof out->http, "%s:%u", host, http) >= ADDRESS_BYTES - 1)
        return tg_fail(msg, TG_INVALID, "coordinators: the host name '%s' is too long", host);
    return 0;
}

/* entry: "1=127.0.0.1:9010:9020:8030" */
static int parse_address(const char *entry, struct coordinator_address *out, struct tg_errmsg *msg)
{
    char copy[OPTION_LIST_BYTES];
    unsigned ports[3] = {0};
    char *at;

    snprintf(copy, sizeof copy, "%s", entry);
    unsigned long long id = strtoull(copy, &at, 10);
    char *colon = strchr(copy, ':');
    if (at == copy || *at != '=' || id == 0 || colon == NULL || colon == at + 1)
        return tg_fail(msg, TG_INVALID,
                       "coordinators: '%s' is not id=host:raft_port:rpc_port:http_port", entry);
    const char *host = at + 1;
    *colon = '\0';
    at = colon + 1;
    int err = take_port(&at, entry, ':', &ports[0], msg);
    if (err == 0)
        err = take_port(&at, entry, ':', &ports[1], msg);
    if (err == 0)
        err = take_port(&at, entry, '\0', &ports[2], msg);
    return err != 0 ? err : fill_address(id, host, ports[0], ports[1], ports[2], out, msg);
}

static int check_known(const struct coordinator_options *options,
                       const struct coordinator_address *list, uint32_t count,
                       struct tg_errmsg *msg)
{
    bool found = false;

    for (uint32_t i = 0; i < count; i++) {
        found = found || list[i].id == options->coordinator_id;
        for (uint32_t j = 0; j < i; j++)
            if (list[i].id == list[j].id)
                return tg_fail(msg, TG_INVALID, "coordinators: the id %lu is given twice",
                               (unsigned long)list[i].id);
    }
    if (!found)
        return tg_fail(msg, TG_INVALID, "coordinators: this coordinator's id %lu is not among them",
                       (unsigned long)options->coordinator_id);
    return 0;
}

int coordinator_options_addresses(const struct coordinator_options *options,
                                  struct coordinator_address out[COORDINATORS_MAX], uint32_t *count,
                                  struct tg_errmsg *msg)
{
    char copy[OPTION_LIST_BYTES];
    char *save = NULL;
    int err = 0;

    *count = 0;
    if (options->coordinators[0] == '\0') {
        *count = 1;
        return fill_address(options->coordinator_id, options->host, (unsigned)options->raft_port,
                            (unsigned)options->rpc_port, (unsigned)options->http_port, &out[0],
                            msg);
    }
    snprintf(copy, sizeof copy, "%s", options->coordinators);
    for (char *one = strtok_r(copy, ", ", &save); one != NULL && err == 0;
         one = strtok_r(NULL, ", ", &save)) {
        if (*count == COORDINATORS_MAX)
            return tg_fail(msg, TG_INVALID, "coordinators: there may be at most %d",
                           COORDINATORS_MAX);
        err = parse_address(one, &out[*count], msg);
        ++*count;
    }
    return err != 0 ? err : check_known(options, out, *count, msg);
}

/* ---- the rest ---- */

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0;
}

int coordinator_options_check(const struct coordinator_options *options, struct tg_errmsg *msg)
{
    struct coordinator_address list[COORDINATORS_MAX];
    struct in_addr address;
    uint32_t count;

    if (options->data_dir[0] == '\0')
        return tg_fail(msg, TG_INVALID, "data_dir is required");
    if (inet_pton(AF_INET, options->host, &address) != 1)
        return tg_fail(msg, TG_INVALID, "host '%s' is not an IPv4 address", options->host);
    if (options->cluster_secret[0] == '\0')
        return tg_fail(msg, TG_INVALID, "cluster_secret must not be empty");
    if (options->heartbeat_ms * 3 > options->election_timeout_ms)
        return tg_fail(
            msg, TG_INVALID, "heartbeat_ms %lu is more than a third of election_timeout_ms %lu",
            (unsigned long)options->heartbeat_ms, (unsigned long)options->election_timeout_ms);
    if (!is_loopback(options->host) && options->root_password[0] == '\0' &&
        !options->allow_empty_password)
        return tg_fail(msg, TG_INVALID,
                       "host %s can be reached by others and root_password is empty: set it, or "
                       "set allow_empty_password",
                       options->host);
    return coordinator_options_addresses(options, list, &count, msg);
}
