/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinators that come to a local cluster and leave it. */
#include "client/cli/cluster_members.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "client/cli/cluster_json.h"
#include "client/cli/cluster_node.h"
#include "client/cli/coordinator_order.h"

enum { MEMBER_SLOTS = 10 /* ports of coordinators, from each first port on */ };

/* ---- whom to ask ---- */

static int open_client(const struct cluster *cluster, const struct cluster_node *but,
                       struct client **client, struct tg_errmsg *msg)
{
    char password[CLUSTER_OPTION_BYTES];
    char url[64];

    for (unsigned i = 0; i < cluster->count; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        struct client_options options = {
            .url = url, .user = "root", .password = password, .timeout_ms = CLUSTER_MEMBER_MS};

        if (&cluster->nodes[i] == but || !node->is_coordinator || !cluster_node_runs(cluster, node))
            continue;
        cluster_dir_option(cluster, node, "root_password", password);
        snprintf(url, sizeof url, "127.0.0.1:%u", node->http_port);
        return client_open(&options, client, msg);
    }
    return tg_fail(msg, TG_UNREACHABLE, "no other coordinator runs");
}

/* ---- a new one ---- */

static bool slot_is_used(const struct cluster *cluster, unsigned http_port)
{
    for (unsigned i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].is_coordinator && cluster->nodes[i].http_port == http_port)
            return true;
    return false;
}

/* The ports of the first place that no coordinator has, beside those of the first one. */
static int choose_ports(const struct cluster *cluster, struct cluster_node *node,
                        struct tg_errmsg *msg)
{
    const struct cluster_node *first = &cluster->nodes[0];
    unsigned base = first->http_port;

    for (unsigned i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].is_coordinator && cluster->nodes[i].http_port < base) {
            first = &cluster->nodes[i];
            base = first->http_port;
        }
    base -= (base - CLUSTER_HTTP_PORT) % CLUSTER_OFFSET_STEP;
    for (unsigned slot = 0; slot < MEMBER_SLOTS; slot++) {
        if (slot_is_used(cluster, base + slot))
            continue;
        node->http_port = (uint16_t)(base + slot);
        node->raft_port = (uint16_t)(node->http_port + CLUSTER_RAFT_PORT - CLUSTER_HTTP_PORT);
        node->rpc_port = (uint16_t)(node->http_port + CLUSTER_RPC_PORT - CLUSTER_HTTP_PORT);
        return cluster_dir_check_ports(node, msg);
    }
    return tg_fail(msg, TG_LIMIT, "a local cluster has ports for %d coordinators", MEMBER_SLOTS);
}

static bool is_own_line(const char *line)
{
    static const char *const keys[] = {"coordinator_id", "data_dir", "http_port", "rpc_port",
                                       "raft_port",      "join",     "bootstrap", "coordinators"};
    size_t len = strcspn(line, " \t=\n");

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strlen(keys[i]) == len && strncmp(line, keys[i], len) == 0)
            return true;
    return false;
}

static void print_conf(const struct cluster *cluster, const struct cluster_node *node,
                       const char *like, struct buf *out)
{
    char path[CLUSTER_PATH_BYTES];

    cluster_dir_path(cluster, node, "data", path);
    for (const char *line = like; *line != '\0';) {
        size_t len = strcspn(line, "\n");

        if (!is_own_line(line))
            buf_printf(out, "%.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
    buf_printf(out, "coordinator_id = %u\ndata_dir = %s\nhttp_port = %u\nrpc_port = %u\n", node->id,
               path, node->http_port, node->rpc_port);
    buf_printf(out, "raft_port = %u\njoin = true\ncoordinators = ", node->raft_port);
    for (unsigned i = 0; i < cluster->count; i++) {
        const struct cluster_node *other = &cluster->nodes[i];

        if (other->is_coordinator)
            buf_printf(out, "%u=127.0.0.1:%u:%u:%u,", other->id, other->raft_port, other->rpc_port,
                       other->http_port);
    }
    buf_printf(out, "%u=127.0.0.1:%u:%u:%u\n", node->id, node->raft_port, node->rpc_port,
               node->http_port);
}

static int lay_out(const struct cluster *cluster, const struct cluster_node *node,
                   struct tg_errmsg *msg)
{
    static const char *const folders[] = {"", "data"};
    char path[CLUSTER_PATH_BYTES];
    struct buf like = BUF_INIT;
    struct buf conf = BUF_INIT;
    int err = 0;

    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && err == 0; i++) {
        cluster_dir_path(cluster, node, folders[i], path);
        if (mkdir(path, 0755) != 0)
            err = tg_fail(msg, errno == EEXIST ? TG_EXISTS : TG_IO, "cannot make %s: %s", path,
                          strerror(errno));
    }
    cluster_dir_conf_path(cluster, &cluster->nodes[0], path);
    if (err == 0 && cluster_file_read(path, CLUSTER_CONF_BYTES_MAX, &like) != 0)
        err = tg_fail(msg, TG_IO, "cannot read %s", path);
    if (err == 0) {
        print_conf(cluster, node, buf_cstr(&like), &conf);
        cluster_dir_conf_path(cluster, node, path);
        err = conf.err != 0 ? conf.err
                            : cluster_file_write(path, slice_of(conf.data, conf.len), 0600, msg);
    }
    buf_close(&like);
    buf_close(&conf);
    return err;
}

/* Coordinators stand before participants in the list. */
static struct cluster_node *insert(struct cluster *cluster, const struct cluster_node *node)
{
    unsigned at = 0;

    while (at < cluster->count && cluster->nodes[at].is_coordinator)
        at++;
    memmove(&cluster->nodes[at + 1], &cluster->nodes[at],
            (cluster->count - at) * sizeof cluster->nodes[0]);
    cluster->nodes[at] = *node;
    cluster->count++;
    return &cluster->nodes[at];
}

static int next_id(struct client *client, unsigned *id, struct tg_errmsg *msg)
{
    struct json_doc *doc = NULL;
    const struct json_value *data = NULL;
    int err = coordinator_order(client, "list", NULL, &doc, &data, msg);

    if (err == 0)
        *id = (unsigned)coordinator_order_number(data, "next_id");
    json_doc_close(doc);
    return err;
}

/* The order, again and again until the one that was just started listens. */
static int order_add(struct client *client, const struct cluster_node *node, struct tg_errmsg *msg)
{
    char text[96];
    int err = TG_UNREACHABLE;

    snprintf(text, sizeof text, "%u=127.0.0.1:%u:%u:%u", node->id, node->raft_port, node->rpc_port,
             node->http_port);
    for (int i = 0; i < COORDINATOR_ORDER_TRIES_MS / COORDINATOR_ORDER_STEP_MS && err != 0; i++) {
        struct timespec pause = {.tv_nsec = COORDINATOR_ORDER_STEP_MS * 1000000L};
        struct json_doc *doc = NULL;
        const struct json_value *data = NULL;

        err = coordinator_order(client, "add", text, &doc, &data, msg);
        json_doc_close(doc);
        if (err != 0)
            nanosleep(&pause, NULL);
    }
    return err != 0 ? err : coordinator_order_wait(client, "add", text, 0, CLUSTER_MEMBER_MS, msg);
}

int cluster_members_add(struct cluster *cluster, struct cluster_node **node, struct tg_errmsg *msg)
{
    struct cluster_node fresh = {.is_coordinator = true};
    struct client *client = NULL;
    unsigned coordinators = 0;

    for (unsigned i = 0; i < cluster->count; i++)
        coordinators += cluster->nodes[i].is_coordinator;
    if (coordinators >= CLUSTER_COORDINATORS_MAX || cluster->count == CLUSTER_NODES_MAX)
        return tg_fail(msg, TG_LIMIT, "a local cluster has at most %d coordinators",
                       CLUSTER_COORDINATORS_MAX);
    int err = open_client(cluster, NULL, &client, msg);
    if (err == 0)
        err = next_id(client, &fresh.id, msg);
    if (err == 0) {
        snprintf(fresh.name, sizeof fresh.name, "coordinator-%u", fresh.id);
        err = choose_ports(cluster, &fresh, msg);
    }
    if (err == 0)
        err = lay_out(cluster, &fresh, msg);
    if (err == 0)
        err = cluster_node_start(cluster, &fresh, false, msg);
    if (err == 0) {
        *node = insert(cluster, &fresh);
        err = cluster_dir_write(cluster, msg);
    }
    if (err == 0)
        err = order_add(client, &fresh, msg);
    client_close(client);
    return err;
}

/* ---- one that leaves ---- */

int cluster_members_drop(struct cluster *cluster, struct cluster_node *node, struct tg_errmsg *msg)
{
    struct client *client = NULL;
    struct json_doc *doc = NULL;
    const struct json_value *data = NULL;
    char id[16];
    bool killed;
    int err = open_client(cluster, node, &client, msg);

    snprintf(id, sizeof id, "%u", node->id);
    if (err == 0)
        err = coordinator_order(client, "drop", id, &doc, &data, msg);
    json_doc_close(doc);
    if (err == 0)
        err = coordinator_order_wait(client, "drop", id, 0, CLUSTER_MEMBER_MS, msg);
    client_close(client);
    if (err == 0)
        err = cluster_node_stop(cluster, node, &killed, msg);
    if (err != 0)
        return err;
    size_t behind = (size_t)(cluster->nodes + cluster->count - (node + 1));
    memmove(node, node + 1, behind * sizeof *node);
    cluster->count--;
    return cluster_dir_write(cluster, msg);
}
