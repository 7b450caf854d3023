/* SPDX-License-Identifier: Apache-2.0 */
/* One participant more for a local cluster. */
#include "client/cli/cluster_grow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/cluster_json.h"
#include "client/cli/cluster_node.h"
#include "client/cli/cluster_watch.h"

/* The participant with the largest number: its configuration is the pattern. */
static const struct cluster_node *find_last(const struct cluster *cluster)
{
    const struct cluster_node *last = NULL;

    for (unsigned i = 0; i < cluster->count; i++)
        if (!cluster->nodes[i].is_coordinator && (last == NULL || cluster->nodes[i].id > last->id))
            last = &cluster->nodes[i];
    return last;
}

/* Whether the line sets one of what each node has of its own, or what the options set anew. */
static bool is_replaced(struct slice line, const struct cli_list *options)
{
    static const char *const own[] = {"participant_id", "data_dir", "http_port", "rpc_port"};
    size_t name = 0;

    while (name < line.len && line.data[name] != ' ' && line.data[name] != '=')
        name++;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (slice_equal_str(slice_of(line.data, name), own[i]))
            return true;
    for (size_t i = 0; i < options->count; i++)
        if (strcspn(options->items[i], "=") == name &&
            memcmp(options->items[i], line.data, name) == 0)
            return true;
    return false;
}

static void print_conf(const struct cluster *cluster, const struct cluster_node *node,
                       struct slice pattern, const struct cli_list *options, struct buf *out)
{
    char path[CLUSTER_PATH_BYTES];

    cluster_dir_path(cluster, node, "data", path);
    while (pattern.len > 0) {
        const uint8_t *end = memchr(pattern.data, '\n', pattern.len);
        size_t len = end != NULL ? (size_t)(end - pattern.data) : pattern.len;
        size_t step = len < pattern.len ? len + 1 : len;

        if (len > 0 && !is_replaced(slice_of(pattern.data, len), options))
            buf_printf(out, "%.*s\n", (int)len, (const char *)pattern.data);
        pattern = slice_of(pattern.data + step, pattern.len - step);
    }
    buf_printf(out, "participant_id = %u\ndata_dir = %s\nhttp_port = %u\nrpc_port = %u\n", node->id,
               path, node->http_port, node->rpc_port);
    for (size_t i = 0; i < options->count; i++) {
        int name = (int)strcspn(options->items[i], "=");

        buf_printf(out, "%.*s = %s\n", name, options->items[i], options->items[i] + name + 1);
    }
}

static int make_folder(const char *path, struct tg_errmsg *msg)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return tg_fail(msg, TG_IO, "cannot make %s: %s", path, strerror(errno));
    return 0;
}

static int lay_out(const struct cluster *cluster, const struct cluster_node *last,
                   const struct cluster_node *node, const struct cli_list *options,
                   struct tg_errmsg *msg)
{
    char path[CLUSTER_PATH_BYTES];
    struct buf pattern = BUF_INIT;
    struct buf conf = BUF_INIT;

    cluster_dir_conf_path(cluster, last, path);
    int err = cluster_file_read(path, CLUSTER_CONF_BYTES_MAX, &pattern);
    if (err != 0)
        err = tg_fail(msg, err, "%s cannot be read", path);
    print_conf(cluster, node, slice_of(pattern.data, pattern.len), options, &conf);
    cluster_dir_path(cluster, node, "", path);
    if (err == 0)
        err = make_folder(path, msg);
    cluster_dir_path(cluster, node, "data", path);
    if (err == 0)
        err = make_folder(path, msg);
    cluster_dir_conf_path(cluster, node, path);
    if (err == 0)
        err = conf.err != 0 ? conf.err
                            : cluster_file_write(path, slice_of(conf.data, conf.len), 0600, msg);
    buf_close(&pattern);
    buf_close(&conf);
    return err;
}

static int grow(struct cluster *cluster, const struct cli_list *options, struct cluster_node **node,
                struct tg_errmsg *msg)
{
    const struct cluster_node *last = find_last(cluster);
    bool killed;
    int culprit;

    if (last == NULL || last->id >= CLUSTER_PARTICIPANTS_MAX || cluster->count == CLUSTER_NODES_MAX)
        return tg_fail(msg, TG_LIMIT, "a local cluster may have %d participants",
                       CLUSTER_PARTICIPANTS_MAX);
    *node = &cluster->nodes[cluster->count];
    **node = (struct cluster_node){.id = last->id + 1,
                                   .http_port = (uint16_t)(last->http_port + 1),
                                   .rpc_port = (uint16_t)(last->rpc_port + 1)};
    snprintf((*node)->name, sizeof(*node)->name, "participant-%u", (*node)->id);
    int err = cluster_dir_check_ports(*node, msg);
    if (err == 0)
        err = lay_out(cluster, last, *node, options, msg);
    if (err != 0)
        return err;
    cluster->count++;
    err = cluster_node_start(cluster, *node, false, msg);
    if (err == 0)
        err = cluster_dir_write(cluster, msg);
    if (err == 0)
        err = cluster_watch_wait(cluster, *node, &culprit, msg);
    if (err != 0) {
        cluster_node_stop(cluster, *node, &killed, NULL);
        cluster_dir_write(cluster, NULL);
    }
    return err;
}

int cluster_grow(const char *dir, const struct cli_list *options, struct cluster_node *node,
                 struct tg_errmsg *msg)
{
    struct cluster cluster = {.lock_fd = -1};
    struct cluster_node *added = NULL;
    int err = 0;

    for (size_t i = 0; i < options->count && err == 0; i++)
        if (strchr(options->items[i], '=') == NULL || strpbrk(options->items[i], "\r\n") != NULL)
            err = tg_fail(msg, TG_INVALID, "'%s' is not key=value", options->items[i]);
    if (err == 0)
        err = cluster_dir_open(dir, false, &cluster, msg);
    if (err == 0)
        err = cluster_dir_read(&cluster, msg);
    if (err == 0)
        err = grow(&cluster, options, &added, msg);
    if (err == 0)
        *node = *added;
    cluster_dir_close(&cluster);
    return err;
}
