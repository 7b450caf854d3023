/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.json. */
#include "client/cli/cluster_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json.h"

/* ---- files ---- */

int cluster_file_write(const char *path, struct slice bytes, mode_t mode, struct tg_errmsg *msg)
{
    char other[CLUSTER_PATH_BYTES + 8];
    int fd;

    snprintf(other, sizeof other, "%s.new", path);
    fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0)
        return tg_fail(msg, TG_IO, "cannot make %s: %s", other, strerror(errno));
    ssize_t n = write(fd, bytes.data, bytes.len);
    int problem = n < 0 ? errno : (size_t)n != bytes.len ? ENOSPC : 0;
    if (close(fd) != 0 && problem == 0)
        problem = errno;
    if (problem == 0 && rename(other, path) != 0)
        problem = errno;
    if (problem != 0)
        return tg_fail(msg, problem == ENOSPC ? TG_NOSPACE : TG_IO, "cannot write %s: %s", path,
                       strerror(problem));
    return 0;
}

int cluster_file_read(const char *path, size_t max, struct buf *out)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? TG_NOT_FOUND : TG_IO;
    if (fstat(fd, &info) == 0 && info.st_size > (off_t)max)
        lseek(fd, -(off_t)max, SEEK_END);
    uint8_t *at = buf_extend(out, max);
    ssize_t n = at == NULL ? -1 : read(fd, at, max);
    close(fd);
    if (n < 0)
        return TG_IO;
    out->len -= max - (size_t)n;
    return 0;
}

/* ---- writing ---- */

static void print_address(struct json_writer *json, const char *key, unsigned port)
{
    char text[32];

    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    json_writer_key(json, key);
    json_writer_str(json, text);
}

static void print_nodes(const struct cluster *cluster, bool coordinators, struct json_writer *json)
{
    json_writer_array(json);
    for (unsigned i = 0; i < cluster->count; i++) {
        const struct cluster_node *node = &cluster->nodes[i];

        if (node->is_coordinator != coordinators)
            continue;
        json_writer_object(json);
        json_writer_key(json, "id");
        json_writer_uint(json, node->id);
        json_writer_key(json, "pid");
        json_writer_int(json, node->pid);
        print_address(json, "http", node->http_port);
        if (coordinators)
            print_address(json, "raft", node->raft_port);
        print_address(json, "rpc", node->rpc_port);
        json_writer_object_end(json);
    }
    json_writer_array_end(json);
}

int cluster_json_write(const struct cluster *cluster, struct tg_errmsg *msg)
{
    char path[CLUSTER_PATH_BYTES];
    struct buf text = BUF_INIT;
    struct json_writer json;

    json_writer_init(&json, &text, 0);
    json_writer_object(&json);
    json_writer_key(&json, "coordinators");
    print_nodes(cluster, true, &json);
    json_writer_key(&json, "participants");
    print_nodes(cluster, false, &json);
    json_writer_object_end(&json);
    buf_append_str(&text, "\n");
    snprintf(path, sizeof path, "%s/" CLUSTER_JSON_NAME, cluster->dir);
    int err = text.err;
    if (err == 0)
        err = cluster_file_write(path, slice_of(text.data, text.len), 0644, msg);
    buf_close(&text);
    return err;
}

/* ---- reading ---- */

static long take_number(const struct json_value *object, const char *key)
{
    struct slice text = json_value_text(json_value_get(object, key));
    char number[24];

    if (text.len == 0 || text.len >= sizeof number)
        return 0;
    memcpy(number, text.data, text.len);
    number[text.len] = '\0';
    return strtol(number, NULL, 10);
}

static uint16_t take_port(const struct json_value *object, const char *key)
{
    struct slice text = json_value_text(json_value_get(object, key));
    char address[64];
    const char *colon;

    if (text.len == 0 || text.len >= sizeof address)
        return 0;
    memcpy(address, text.data, text.len);
    address[text.len] = '\0';
    colon = strrchr(address, ':');
    long port = colon != NULL ? strtol(colon + 1, NULL, 10) : 0;
    return port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

static int take_nodes(const struct json_value *root, const char *key, bool coordinators,
                      struct cluster *cluster)
{
    const struct json_value *value;
    struct json_iter iter;

    json_iter_init(&iter, json_value_get(root, key));
    while (json_iter_element(&iter, &value)) {
        struct cluster_node *node = &cluster->nodes[cluster->count];
        long id = take_number(value, "id");

        if (cluster->count == CLUSTER_NODES_MAX || id < 1 || id > CLUSTER_NODES_MAX)
            return TG_CORRUPT;
        *node = (struct cluster_node){
            .is_coordinator = coordinators,
            .id = (unsigned)id,
            .pid = take_number(value, "pid"),
            .http_port = take_port(value, "http"),
            .rpc_port = take_port(value, "rpc"),
            .raft_port = coordinators ? take_port(value, "raft") : 0,
        };
        snprintf(node->name, sizeof node->name, "%s-%u",
                 coordinators ? "coordinator" : "participant", node->id);
        if (node->http_port == 0 || node->rpc_port == 0 || (coordinators && node->raft_port == 0))
            return TG_CORRUPT;
        cluster->count++;
    }
    return 0;
}

int cluster_json_read(struct cluster *cluster, struct tg_errmsg *msg)
{
    char path[CLUSTER_PATH_BYTES];
    struct buf text = BUF_INIT;
    struct json_doc *doc = NULL;

    snprintf(path, sizeof path, "%s/" CLUSTER_JSON_NAME, cluster->dir);
    int err = cluster_file_read(path, CLUSTER_JSON_BYTES_MAX, &text);
    if (err == 0)
        err = json_doc_parse(text.data, text.len, NULL, &doc, NULL);
    cluster->count = 0;
    if (err == 0)
        err = take_nodes(json_doc_root(doc), "coordinators", true, cluster);
    if (err == 0)
        err = take_nodes(json_doc_root(doc), "participants", false, cluster);
    if (err == 0 && cluster->count == 0)
        err = TG_CORRUPT;
    json_doc_close(doc);
    buf_close(&text);
    if (err == 0)
        return 0;
    if (err == TG_NOT_FOUND || err == TG_IO)
        return tg_fail(msg, err, "%s: %s", path, tg_err_sentence(err));
    return tg_fail(msg, TG_CORRUPT, "%s does not describe a cluster", path);
}
