/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a local cluster. */
#include "client/cli/cluster_dir.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/cluster_json.h"
#include "common/base/buf.h"
#include "common/base/random.h"

enum { LOCK_WAIT_MS = 30000, LOCK_STEP_MS = 20, SECRET_BYTES = 24 };

/* ---- the directory and its lock ---- */

static int take_lock(struct cluster *cluster, struct tg_errmsg *msg)
{
    char path[CLUSTER_PATH_BYTES];
    const struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000L};

    snprintf(path, sizeof path, "%s/lock", cluster->dir);
    cluster->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (cluster->lock_fd < 0)
        return tg_fail(msg, TG_IO, "%s: %s", path, strerror(errno));
    for (int waited = 0; flock(cluster->lock_fd, LOCK_EX | LOCK_NB) != 0; waited += LOCK_STEP_MS) {
        if (waited >= LOCK_WAIT_MS)
            return tg_fail(msg, TG_BUSY, "another tidegate works on %s", cluster->dir);
        nanosleep(&step, NULL);
    }
    return 0;
}

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool empty = true;

    if (dir == NULL)
        return true;
    while ((entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, "lock") != 0)
            empty = false;
    closedir(dir);
    return empty;
}

int cluster_dir_open(const char *path, bool make, struct cluster *cluster, struct tg_errmsg *msg)
{
    char full[PATH_MAX];
    char json[CLUSTER_PATH_BYTES];

    memset(cluster, 0, sizeof *cluster);
    cluster->lock_fd = -1;
    if (make && mkdir(path, 0755) != 0 && errno != EEXIST)
        return tg_fail(msg, TG_IO, "cannot make %s: %s", path, strerror(errno));
    if (realpath(path, full) == NULL)
        return tg_fail(msg, errno == ENOENT ? TG_NOT_FOUND : TG_IO, "%s: %s", path,
                       strerror(errno));
    if (strlen(full) >= sizeof cluster->dir)
        return tg_fail(msg, TG_TOO_LARGE, "the path of %s is too long", path);
    snprintf(cluster->dir, sizeof cluster->dir, "%s", full);
    /* No lock file in a directory that is none of ours. */
    snprintf(json, sizeof json, "%s/" CLUSTER_JSON_NAME, cluster->dir);
    if (access(json, F_OK) != 0 && !make)
        return tg_fail(msg, TG_NOT_FOUND, "there is no cluster in %s (no cluster.json)",
                       cluster->dir);
    if (access(json, F_OK) != 0 && !is_empty(cluster->dir))
        return tg_fail(msg, TG_INVALID, "%s is not empty and holds no cluster", cluster->dir);
    return take_lock(cluster, msg);
}

void cluster_dir_close(struct cluster *cluster)
{
    if (cluster->lock_fd >= 0)
        close(cluster->lock_fd);
    cluster->lock_fd = -1;
}

void cluster_dir_path(const struct cluster *cluster, const struct cluster_node *node,
                      const char *file, char out[CLUSTER_PATH_BYTES])
{
    snprintf(out, CLUSTER_PATH_BYTES, "%s/%s%s%s", cluster->dir, node->name,
             file[0] != '\0' ? "/" : "", file);
}

struct cluster_node *cluster_dir_find(struct cluster *cluster, const char *name)
{
    for (unsigned i = 0; i < cluster->count; i++)
        if (strcmp(cluster->nodes[i].name, name) == 0)
            return &cluster->nodes[i];
    return NULL;
}

bool cluster_dir_is_new(const struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++) {
        char path[CLUSTER_PATH_BYTES];

        cluster_dir_path(cluster, &cluster->nodes[i], "data", path);
        if (cluster->nodes[i].is_coordinator && !is_empty(path))
            return false;
    }
    return true;
}

static void forming_path(const struct cluster *cluster, char out[CLUSTER_PATH_BYTES])
{
    snprintf(out, CLUSTER_PATH_BYTES, "%s/forming", cluster->dir);
}

bool cluster_dir_is_forming(const struct cluster *cluster)
{
    char path[CLUSTER_PATH_BYTES];

    forming_path(cluster, path);
    return access(path, F_OK) == 0;
}

void cluster_dir_formed(const struct cluster *cluster)
{
    char path[CLUSTER_PATH_BYTES];

    forming_path(cluster, path);
    unlink(path);
}

void cluster_dir_conf_path(const struct cluster *cluster, const struct cluster_node *node,
                           char out[CLUSTER_PATH_BYTES])
{
    cluster_dir_path(cluster, node, node->is_coordinator ? "coordinator.conf" : "participant.conf",
                     out);
}

void cluster_dir_option(const struct cluster *cluster, const struct cluster_node *node,
                        const char *key, char out[CLUSTER_OPTION_BYTES])
{
    char path[CLUSTER_PATH_BYTES];
    struct buf text = BUF_INIT;
    size_t key_len = strlen(key);

    out[0] = '\0';
    cluster_dir_conf_path(cluster, node, path);
    const char *line = NULL;
    if (cluster_file_read(path, CLUSTER_CONF_BYTES_MAX, &text) == 0)
        line = buf_cstr(&text);
    for (; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, key_len) != 0)
            continue;
        const char *value = line + key_len + strspn(line + key_len, " \t");
        if (*value != '=')
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, CLUSTER_OPTION_BYTES, "%.*s", (int)strcspn(value, "\r\n"), value);
    }
    buf_close(&text);
}

int cluster_dir_read(struct cluster *cluster, struct tg_errmsg *msg)
{
    return cluster_json_read(cluster, msg);
}

int cluster_dir_write(const struct cluster *cluster, struct tg_errmsg *msg)
{
    return cluster_json_write(cluster, msg);
}

/* ---- ports ---- */

static void set_node(struct cluster_node *node, bool is_coordinator, unsigned id, uint64_t offset)
{
    unsigned more = (unsigned)offset + id - 1;

    *node = (struct cluster_node){.is_coordinator = is_coordinator, .id = id};
    snprintf(node->name, sizeof node->name, "%s-%u", is_coordinator ? "coordinator" : "participant",
             id);
    node->http_port =
        (uint16_t)((is_coordinator ? CLUSTER_HTTP_PORT : CLUSTER_PARTICIPANT_HTTP_PORT) + more);
    node->rpc_port =
        (uint16_t)((is_coordinator ? CLUSTER_RPC_PORT : CLUSTER_PARTICIPANT_RPC_PORT) + more);
    if (is_coordinator)
        node->raft_port = (uint16_t)(CLUSTER_RAFT_PORT + more);
}

static void set_nodes(struct cluster *cluster, const struct cluster_plan *plan, uint64_t offset)
{
    cluster->count = 0;
    for (unsigned i = 1; i <= plan->coordinators; i++)
        set_node(&cluster->nodes[cluster->count++], true, i, offset);
    for (unsigned i = 1; i <= plan->participants; i++)
        set_node(&cluster->nodes[cluster->count++], false, i, offset);
}

static bool port_is_free(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0)
        return true;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool is_free =
        bind(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno != EADDRINUSE;
    close(fd);
    return is_free;
}

int cluster_dir_check_ports(const struct cluster_node *node, struct tg_errmsg *msg)
{
    static const char *const names[] = {"HTTP", "RPC", "raft"};
    const uint16_t ports[] = {node->http_port, node->rpc_port, node->raft_port};

    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
        if (ports[i] != 0 && !port_is_free(ports[i]))
            return tg_fail(msg, TG_EXISTS,
                           "port %u, wanted for %s of %s, is in use by another program (another "
                           "--port-offset avoids it)",
                           ports[i], names[i], node->name);
    return 0;
}

int cluster_dir_find_offset(const struct cluster_plan *plan, uint64_t start, uint64_t *offset)
{
    const uint64_t steps = CLUSTER_OFFSET_MAX / CLUSTER_OFFSET_STEP + 1;
    struct cluster cluster;

    for (uint64_t i = 0; i < steps; i++) {
        bool is_free = true;

        *offset = (start + i) % steps * CLUSTER_OFFSET_STEP;
        set_nodes(&cluster, plan, *offset);
        for (unsigned n = 0; n < cluster.count && is_free; n++)
            is_free = cluster_dir_check_ports(&cluster.nodes[n], NULL) == 0;
        if (is_free)
            return 0;
    }
    return TG_NOT_FOUND;
}

/* ---- a new cluster ---- */

static void print_coordinators(const struct cluster *cluster, bool all_ports, struct buf *out)
{
    buf_append_str(out, "coordinators = ");
    for (unsigned i = 0; i < cluster->count && cluster->nodes[i].is_coordinator; i++) {
        const struct cluster_node *node = &cluster->nodes[i];

        if (i > 0)
            buf_append_str(out, ",");
        if (all_ports)
            buf_printf(out, "%u=127.0.0.1:%u:%u:%u", node->id, node->raft_port, node->rpc_port,
                       node->http_port);
        else
            buf_printf(out, "127.0.0.1:%u", node->rpc_port);
    }
    buf_append_str(out, "\n");
}

static void print_extra(const struct cli_list *options, struct buf *out)
{
    for (size_t i = 0; options != NULL && i < options->count; i++) {
        const char *equals = strchr(options->items[i], '=');
        int name = (int)strcspn(options->items[i], "=");

        buf_printf(out, "%.*s = %s\n", name, options->items[i], equals != NULL ? equals + 1 : "");
    }
}

static void print_conf(const struct cluster *cluster, const struct cluster_node *node,
                       const struct cluster_plan *plan, const char *secret, struct buf *out)
{
    char path[CLUSTER_PATH_BYTES];

    cluster_dir_path(cluster, node, "data", path);
    buf_append_str(out, "# Written by `tidegate cluster start`; read again at every start.\n");
    buf_printf(out, "%s_id = %u\ndata_dir = %s\nhost = 127.0.0.1\nhttp_port = %u\nrpc_port = %u\n",
               node->is_coordinator ? "coordinator" : "participant", node->id, path,
               node->http_port, node->rpc_port);
    if (node->is_coordinator)
        buf_printf(out, "raft_port = %u\n", node->raft_port);
    print_coordinators(cluster, node->is_coordinator, out);
    buf_printf(out, "cluster_secret = %s\n", secret);
    print_extra(node->is_coordinator ? plan->coordinator_options : plan->participant_options, out);
}

static int make_folder(const char *path, struct tg_errmsg *msg)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return tg_fail(msg, TG_IO, "cannot make %s: %s", path, strerror(errno));
    return 0;
}

static int make_node(const struct cluster *cluster, const struct cluster_node *node,
                     const struct cluster_plan *plan, const char *secret, struct tg_errmsg *msg)
{
    char path[CLUSTER_PATH_BYTES];
    struct buf conf = BUF_INIT;

    cluster_dir_path(cluster, node, "", path);
    int err = make_folder(path, msg);
    cluster_dir_path(cluster, node, "data", path);
    if (err == 0)
        err = make_folder(path, msg);
    print_conf(cluster, node, plan, secret, &conf);
    cluster_dir_conf_path(cluster, node, path);
    if (err == 0 && conf.err == 0)
        err = cluster_file_write(path, slice_of(conf.data, conf.len), 0600, msg);
    if (err == 0)
        err = conf.err;
    buf_close(&conf);
    return err;
}

int cluster_dir_make(struct cluster *cluster, const struct cluster_plan *plan,
                     struct tg_errmsg *msg)
{
    uint8_t random[SECRET_BYTES];
    char secret[SECRET_BYTES * 2 + 1];
    char mark[CLUSTER_PATH_BYTES];

    set_nodes(cluster, plan, plan->port_offset);
    random_fill(random_system(), random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(secret + 2 * i, 3, "%02x", random[i]);
    for (unsigned i = 0; i < cluster->count; i++) {
        int err = make_node(cluster, &cluster->nodes[i], plan, secret, msg);

        if (err != 0)
            return err;
    }
    forming_path(cluster, mark);
    int err = cluster_file_write(mark, slice_of("", 0), 0644, msg);
    return err != 0 ? err : cluster_dir_write(cluster, msg);
}
