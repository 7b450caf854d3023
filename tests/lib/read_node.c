/* SPDX-License-Identifier: Apache-2.0 */
/* Participants as far as reading goes, and a small table on them. */
#include "tests/lib/read_node.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/model/row_key.h"
#include "participant/tablet/publish.h"

#define SECRET "the nodes' secret"

enum { TABLET_FIRST = 11 };

/* ---- nodes ---- */

static void listen_on_loop(void *data)
{
    struct read_node *node = data;
    struct rpc_server_options options = {.host = "127.0.0.1", .port = node->port, .secret = SECRET};

    TG_CHECK(rpc_server_open(node->thread->loop, &options, rpc_handlers_dispatch, &node->handlers,
                             &node->server, NULL) == 0);
    node->port = rpc_server_port(node->server);
    snprintf(node->address, sizeof node->address, "127.0.0.1:%u", node->port);
}

static void close_on_loop(void *data)
{
    struct read_node *node = data;

    if (node->server != NULL)
        rpc_server_close(node->server, NULL, NULL);
    node->server = NULL;
}

static void close_peers(void *data)
{
    struct read_node *node = data;

    peer_clients_close(node->peers);
}

void read_node_open(struct read_node *node, struct loop_thread *thread, node_id id)
{
    struct store_options options;
    struct tg_errmsg msg;

    memset(node, 0, sizeof *node);
    node->thread = thread;
    test_dir_make(&node->dir);
    store_options_init(&options);
    options.meta_map_bytes = 64 << 20;
    options.blocks_map_bytes = 64 << 20;
    options.disk_reserve_bytes = 0;
    TG_CHECK(store_open(node->dir.path, &options, &node->store, &msg) == 0);
    TG_CHECK(tablet_set_open(node->store, &node->tablets) == 0);
    TG_CHECK(peer_clients_open(thread->loop, SECRET, &node->peers, &msg) == 0);
    atomic_store(&node->identity.node, id);
    atomic_store(&node->identity.epoch, id * 10u);
    node->handlers = (struct rpc_handlers){.loop = thread->loop,
                                           .clock = clock_system(),
                                           .store = node->store,
                                           .tablets = node->tablets,
                                           .identity = &node->identity};
    TG_CHECK(tablet_reader_pool_open(node->store, node->tablets, &node->handlers.readers) == 0);
    node->context = (struct table_reader_context){.store = node->store,
                                                  .tablets = node->tablets,
                                                  .peers = node->peers,
                                                  .identity = &node->identity};
    read_node_up(node);
}

void read_node_close(struct read_node *node)
{
    read_node_down(node);
    tablet_reader_pool_close(node->handlers.readers);
    loop_thread_do(node->thread, close_peers, node);
    tablet_set_close(node->tablets);
    store_close(node->store);
    test_dir_remove(&node->dir);
}

void read_node_down(struct read_node *node)
{
    loop_thread_do(node->thread, close_on_loop, node);
}

void read_node_up(struct read_node *node)
{
    loop_thread_do(node->thread, listen_on_loop, node);
}

/* ---- damage ---- */

static unsigned damage_file(const char *path, const char *bytes)
{
    FILE *file = fopen(path, "r+b");
    size_t len = strlen(bytes);
    unsigned places = 0;
    char *content;
    long size;

    if (file == NULL)
        return 0;
    TG_CHECK(fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0);
    rewind(file);
    content = malloc((size_t)size + 1);
    TG_CHECK(content != NULL && fread(content, 1, (size_t)size, file) == (size_t)size);
    for (char *at = content; (at = memmem(at, (size_t)(content + size - at), bytes, len)) != NULL;
         at++) {
        TG_CHECK(fseek(file, at - content, SEEK_SET) == 0 && fputc(*at ^ 1, file) != EOF);
        places++;
    }
    TG_CHECK(fclose(file) == 0);
    free(content);
    return places;
}

unsigned read_node_damage(struct read_node *node, const char *bytes)
{
    static const char *const parts[] = {"meta", "blocks-64k", "blocks-256k"};
    unsigned places = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char path[TEST_PATH_SIZE + 300];
        char folder[TEST_PATH_SIZE + 20];

        snprintf(folder, sizeof folder, "%s/%s", node->dir.path, parts[i]);
        DIR *dir = opendir(folder);
        TG_CHECK(dir != NULL);
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            if (entry->d_name[0] != '.' && strstr(entry->d_name, "lock") == NULL)
                places += damage_file(path, bytes);
        }
        closedir(dir);
    }
    return places;
}

/* ---- the table ---- */

void read_table_open(struct read_table *table, bool unique, uint32_t tablet_count,
                     struct read_node *const *nodes, uint32_t node_count)
{
    memset(table, 0, sizeof *table);
    TG_CHECK(tablet_count <= READ_TABLETS_MAX && node_count <= READ_NODES_MAX);
    rowset_maker_schema(&table->schema, unique);
    table->tablet_count = tablet_count;
    table->node_count = node_count;
    for (uint32_t i = 0; i < node_count; i++)
        table->nodes[i] = nodes[i];
}

void read_table_close(struct read_table *table)
{
    schema_close(&table->schema);
}

uint32_t read_table_bucket(const struct read_table *table, int32_t k)
{
    struct vector vector;
    const struct vector *column = &vector;
    uint64_t hash;

    vector_init(&vector, table->schema.columns[0].type);
    TG_CHECK(vector_append_fixed(&vector, &k) == 0);
    row_key_hash(&column, 1, 0, 1, &hash);
    vector_close(&vector);
    return row_key_bucket(hash, table->tablet_count);
}

uint64_t read_table_time(version_t version)
{
    return 1000 * version;
}

struct bound {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    int err;
    uint8_t status;
};

static void on_bound(void *data, int err, struct msg_publish_reply *reply)
{
    struct bound *bound = data;

    pthread_mutex_lock(&bound->lock);
    bound->err = err;
    bound->status = err == 0 && reply->count == 1 ? reply->status[0] : PUBLISH_FAILED;
    bound->is_done = true;
    pthread_cond_signal(&bound->done);
    pthread_mutex_unlock(&bound->lock);
    msg_publish_reply_close(reply);
}

static void bind(struct read_node *node, struct publish_bind bind_one)
{
    struct msg_publish message = {.bind_count = 1, .binds = malloc(sizeof bind_one)};
    struct bound bound = {.is_done = false};

    TG_CHECK(message.binds != NULL);
    message.binds[0] = bind_one;
    pthread_mutex_init(&bound.lock, NULL);
    pthread_cond_init(&bound.done, NULL);
    publish_apply(node->store, node->tablets, clock_system(), &message, on_bound, &bound);
    pthread_mutex_lock(&bound.lock);
    while (!bound.is_done)
        pthread_cond_wait(&bound.done, &bound.lock);
    pthread_mutex_unlock(&bound.lock);
    pthread_cond_destroy(&bound.done);
    pthread_mutex_destroy(&bound.lock);
    TG_CHECK(bound.err == 0);
    /* A node that missed a version before says that it is behind: as it should. */
    TG_CHECK(bound.status == PUBLISH_BOUND || bound.status == PUBLISH_BEHIND);
}

static version_t last_touch(const struct read_table *table, uint32_t tablet, version_t at)
{
    while (at > 0 && !table->versions[at - 1].touched[tablet])
        at--;
    return at;
}

static struct publish_bind bind_of(const struct read_table *table, uint32_t tablet, version_t prev)
{
    return (struct publish_bind){.tablet = TABLET_FIRST + tablet,
                                 .table = 1,
                                 .version = table->version,
                                 .prev = prev,
                                 .txn = table->version};
}

static void load_tablet(struct read_table *table, uint32_t tablet, const struct made_row *rows,
                        uint32_t count, uint32_t block_rows, uint32_t on)
{
    version_t prev = last_touch(table, tablet, table->version - 1);

    for (uint32_t n = 0; n < table->node_count; n++) {
        struct read_node *node = table->nodes[n];

        if ((on >> n & 1) == 0)
            continue;
        struct digest digest =
            rowset_maker_write(node->store, &table->schema, TABLET_FIRST + tablet, table->version,
                               rows, &count, 1, block_rows);
        struct publish_bind one = bind_of(table, tablet, prev);
        one.rowset_count = 1;
        one.rowsets = malloc(sizeof *one.rowsets);
        TG_CHECK(one.rowsets != NULL);
        one.rowsets[0] = (struct publish_rowset){.rowset = table->version, .digest = digest};
        bind(node, one);
    }
}

void read_table_load(struct read_table *table, const struct made_row *rows, uint32_t count,
                     uint32_t block_rows, uint32_t on)
{
    struct made_row *part = calloc(count + 1, sizeof *part);

    TG_CHECK(part != NULL && table->version < READ_VERSIONS);
    table->version++;
    for (uint32_t tablet = 0; tablet < table->tablet_count; tablet++) {
        uint32_t part_count = 0;

        for (uint32_t i = 0; i < count; i++)
            if (read_table_bucket(table, rows[i].k) == tablet)
                part[part_count++] = rows[i];
        table->versions[table->version - 1].touched[tablet] = part_count > 0;
        if (part_count > 0)
            load_tablet(table, tablet, part, part_count, block_rows, on);
    }
    free(part);
}

void read_table_truncate(struct read_table *table)
{
    TG_CHECK(table->version < READ_VERSIONS);
    table->version++;
    table->versions[table->version - 1].replace = true;
    for (uint32_t tablet = 0; tablet < table->tablet_count; tablet++) {
        struct publish_bind one =
            bind_of(table, tablet, last_touch(table, tablet, table->version - 1));

        one.replace = true;
        table->versions[table->version - 1].touched[tablet] = true;
        for (uint32_t n = 0; n < table->node_count; n++)
            bind(table->nodes[n], one);
    }
}

static void fill_tablets(const struct read_table *table, struct msg_read_point_reply *reply)
{
    reply->tablet_count = table->tablet_count;
    reply->tablets = calloc(table->tablet_count, sizeof *reply->tablets);
    TG_CHECK(reply->tablets != NULL);
    for (uint32_t i = 0; i < table->tablet_count; i++) {
        struct read_point_tablet *tablet = &reply->tablets[i];

        tablet->tablet = TABLET_FIRST + i;
        tablet->need = last_touch(table, i, reply->version);
        tablet->ready = tablet->replica_count = (uint8_t)table->node_count;
        for (uint32_t n = 0; n < table->node_count; n++)
            tablet->replicas[n] = atomic_load(&table->nodes[n]->identity.node);
    }
}

void read_table_point(const struct read_table *table, version_t version, version_t after,
                      struct msg_read_point_reply *reply)
{
    msg_read_point_reply_init(reply);
    reply->table = 1;
    reply->version = version;
    reply->time_us = read_table_time(version);
    reply->after = after;
    TG_CHECK(schema_copy(&table->schema, &reply->schema) == 0);
    reply->distribution = calloc(1, sizeof *reply->distribution);
    reply->distribution_count = 1;
    reply->nodes = calloc(table->node_count, sizeof *reply->nodes);
    reply->versions = calloc(version + 1, sizeof *reply->versions);
    TG_CHECK(reply->distribution != NULL && reply->nodes != NULL && reply->versions != NULL);
    fill_tablets(table, reply);
    for (uint32_t n = 0; n < table->node_count; n++) {
        struct read_point_node *node = &reply->nodes[reply->node_count++];

        node->node = atomic_load(&table->nodes[n]->identity.node);
        snprintf(node->rpc, sizeof node->rpc, "%s", table->nodes[n]->address);
    }
    for (version_t v = after + 1; v <= version; v++)
        reply->versions[reply->version_count++] =
            (struct read_point_version){.version = v,
                                        .time_us = read_table_time(v),
                                        .txn = v,
                                        .replace = table->versions[v - 1].replace};
}
