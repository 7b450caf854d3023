/* SPDX-License-Identifier: Apache-2.0 */
/* The world around a load, for tests: a coordinator that begins, hears reports and aborts, and
 * stores that keep what they get, check its seals, and print its rows. */
#ifndef TG_TESTS_LIB_FAKE_LOAD_WORLD_H
#define TG_TESTS_LIB_FAKE_LOAD_WORLD_H

#include <pthread.h>

#include "common/proto/msg_txn.h"
#include "participant/ingest/load_calls.h"

enum { FAKE_BUCKETS_MAX = 64, FAKE_NODES_MAX = 3, FAKE_TXN = 1001, FAKE_ROWSET = 501 };

struct fake_replica {
    struct buf content;
    bool sealed;
    struct rowset_meta meta;
};

struct fake_load_world {
    struct load_calls calls; /* hand out &world.calls */
    struct schema schema;
    uint32_t buckets;
    uint32_t replicas; /* nodes 1 … replicas; the load runs on node 1 */
    bool write_all;
    /* What goes wrong. */
    int begin_err;
    int done_err;                          /* the first answer to LOAD_DONE … */
    bool done_applies;                     /* … though the log has it */
    int fail_err;                          /* of LOAD_FAILED, always */
    int replicate_err[FAKE_NODES_MAX + 1]; /* by node */
    bool silent[FAKE_NODES_MAX + 1];       /* a node that never answers */
    enum txn_state existing;               /* of the label, for TG_LABEL_EXISTS */
    enum txn_state committed;              /* what a commit becomes: TXN_VISIBLE unless set */
    /* What happened. */
    pthread_mutex_t lock;
    enum txn_state state;
    struct msg_txn_begin begin;
    struct msg_load_done done; /* the last report */
    struct msg_load_failed failed;
    unsigned begins;
    unsigned dones;
    unsigned fails;
    unsigned messages[FAKE_NODES_MAX + 1]; /* MSG_REPLICATE by node */
    struct fake_replica tablets[FAKE_NODES_MAX + 1][FAKE_BUCKETS_MAX];
    struct held {
        void (*done)(void *data, int err);
        rpc_done *peer_done;
        void *data;
    } held[256]; /* calls that a silent node owes */
    unsigned held_count;
};

/* columns: "k INT, v VARCHAR(20) DEFAULT 'x', n INT NOT NULL"; the first `keys` are key columns. */
void fake_load_world_init(struct fake_load_world *world, uint8_t key_model, uint32_t keys,
                          const char *columns, uint32_t buckets);
void fake_load_world_close(struct fake_load_world *world);
/* Forgets what earlier loads left; what goes wrong stays as it is set. */
void fake_load_world_reset(struct fake_load_world *world);
/* All rows of a node's sealed rowsets, one a line, "1|abc|\N", lines sorted; the delete sign of
 * UNIQUE tables is the last field. The caller frees. */
char *fake_load_world_rows(struct fake_load_world *world, node_id node);
/* Rows of one bucket in stored order. */
char *fake_load_world_bucket(struct fake_load_world *world, node_id node, uint32_t bucket);

#endif
