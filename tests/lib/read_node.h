/* SPDX-License-Identifier: Apache-2.0 */
/* Participants as far as reading goes (store, versions, RPC server), and a small table on them:
 * t(k INT key, v VARCHAR(16)), hashed by k, whose versions a test makes one by one. */
#ifndef TG_TESTS_LIB_READ_NODE_H
#define TG_TESTS_LIB_READ_NODE_H

#include "common/proto/msg_read.h"
#include "participant/api/rpc_handlers.h"
#include "participant/read/table_reader.h"
#include "tests/lib/loop_thread.h"
#include "tests/lib/rowset_maker.h"
#include "tests/lib/test_dir.h"

enum { READ_TABLETS_MAX = 8, READ_VERSIONS = 256, READ_NODES_MAX = 3 };

struct read_node {
    struct loop_thread *thread;
    struct test_dir dir;
    struct store *store;
    struct tablet_set *tablets;
    struct peer_clients *peers;
    struct node_identity identity;
    struct rpc_handlers handlers;
    struct rpc_server *server; /* NULL while it is down */
    uint16_t port;
    char address[32];
    struct table_reader_context context; /* for reads that this node runs */
};

/* All end the test program on an error. */
void read_node_open(struct read_node *node, struct loop_thread *thread, node_id id);
void read_node_close(struct read_node *node);
void read_node_down(struct read_node *node);
void read_node_up(struct read_node *node);
/* Flips a bit wherever these bytes lie in the store's files; returns in how many places. Only what
 * was not read before is sure to be seen damaged. */
unsigned read_node_damage(struct read_node *node, const char *bytes);

struct read_table {
    struct schema schema;
    uint32_t tablet_count;
    uint32_t node_count;
    struct read_node *nodes[READ_NODES_MAX]; /* each holds every tablet; node ids from 1 */
    version_t version;                       /* the newest */
    struct {
        bool replace;
        bool touched[READ_TABLETS_MAX];
    } versions[READ_VERSIONS]; /* of version - 1 */
};

void read_table_open(struct read_table *table, bool unique, uint32_t tablet_count,
                     struct read_node *const *nodes, uint32_t node_count);
void read_table_close(struct read_table *table);
uint32_t read_table_bucket(const struct read_table *table, int32_t k);
/* The completion time of a version in read points: 1000 × version. */
uint64_t read_table_time(version_t version);
/* A load of rows that ascend by k, in blocks of block_rows: the next version, on the nodes whose
 * bit is set in `on`. */
void read_table_load(struct read_table *table, const struct made_row *rows, uint32_t count,
                     uint32_t block_rows, uint32_t on);
/* The next version empties the table. */
void read_table_truncate(struct read_table *table);
/* What the leader would say about a read of `version`, of changes behind `after`. All nodes are
 * ready, in the order of their ids. Close it. */
void read_table_point(const struct read_table *table, version_t version, version_t after,
                      struct msg_read_point_reply *reply);

#endif
