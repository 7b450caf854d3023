/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions, their loads and labels. Nothing here knows time but as elapsed milliseconds that
 * came in batches. */
#ifndef TG_COORDINATOR_STATE_TXN_TABLE_H
#define TG_COORDINATOR_STATE_TXN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/checksum.h"
#include "common/model/ids.h"
#include "common/model/txn.h"
#include "coordinator/state/command.h"
#include "coordinator/state/txn_index.h"

enum load_state { LOAD_RUNNING = 1, LOAD_DONE = 2, LOAD_FAILED = 3 };

/* One tablet's share of one load, as reported and checked at apply. */
struct txn_load_tablet {
    tablet_id tablet;
    uint64_t rows;
    uint64_t bytes;
    struct digest digest;
    uint8_t sealed; /* bit i: the tablet's replica slot i holds it, and was good or catching */
};

struct txn_load {
    rowset_id rowset;
    uint32_t load_no; /* from 1 */
    uint8_t state;    /* enum load_state */
    table_id table;
    struct request_key key;
    version_t seen_version; /* of the table when the load started: for occ */
    uint64_t placement_epoch;
    uint64_t rows;
    uint64_t bytes;
    uint32_t tablet_count;
    /* By tablet id; owned; freed once every replica has confirmed. */
    struct txn_load_tablet *tablets;
};

struct txn_table_ref {
    table_id table;
    version_t version; /* from COMMITTED on */
    bool gone;         /* dropped after COMMITTED: counts as published (rule 15) */
    bool truncate;     /* a version that replaces everything before it */
};

/* What publishing has to bind, fixed at COMMITTED: per tablet, in table and bucket order. */
struct txn_publish_tablet {
    tablet_id tablet;
    uint32_t table_index; /* in tables */
    version_t prev;       /* last version that touched the tablet before this one */
    uint8_t confirmed;    /* bit i: replica slot i has bound it, durably, as the log knows */
    bool lost;            /* no copy of it is left, an operator declared: nothing to bind */
};

struct txn {
    txn_id id;
    db_id db;
    char *label;      /* owned */
    const char *user; /* kept in the table of users */
    uint8_t state;    /* enum txn_state */
    bool two_phase;
    bool explicit_begin; /* begun by _stream_load_2pc begin */
    bool failed;         /* a load of it failed: abort-only; reason says why */
    struct request_key begin_key;
    struct request_key finish_key; /* of the client's request that committed or aborted it */
    uint64_t state_seq;            /* seq of the command that made the state (rule 8) */
    uint64_t timeout_ms;           /* of PREPARE, from begin */
    uint64_t begin_elapsed_ms, precommit_elapsed_ms, commit_elapsed_ms, final_elapsed_ms;
    uint64_t begin_us, precommit_us, commit_us,
        visible_us; /* stamps; visible_us = completion time (abort's time for ABORTED) */
    char *reason;   /* of an abort, or of the failed load: owned; NULL if none */
    uint32_t load_count;
    struct txn_load *loads; /* in order of load_no; owned */
    uint32_t table_count;
    struct txn_table_ref *tables; /* in the order of their first loads; owned */
    uint32_t publish_count;
    struct txn_publish_tablet *publish; /* owned; freed once complete */
    bool confirmed; /* VISIBLE, and every replica that is not behind has bound it: nothing left to
                       publish */
    struct txn *same_label;       /* older transaction with the same (database, label) */
    struct txn *newer_label;      /* the next newer one, NULL for the newest */
    struct txn *prev, *next;      /* the list it is on */
    struct txn_shelf *shelf;      /* of a finished one: with which it is kept encoded */
    struct index_link label_link; /* of the newest transaction of a label */
};

/* A refused key: a begin that comes later under it must not start anything. Lives as long as its
 * node's epoch. */
struct txn_fence {
    struct index_link link;
    struct request_key key;
    struct txn_fence *prev, *next;
};
enum { TXN_FENCES_MAX = 65536 };

struct txn_list {
    struct txn *first, *last;
    uint32_t count;
};

struct txn_user {
    struct txn_user *next;
    char name[NAME_BYTES];
};

struct txn_table {
    struct txn_ids by_id;
    struct txn_index by_label;   /* (database, label) → newest transaction */
    struct txn_index by_request; /* request key → transaction and load */
    struct txn_index by_fence;   /* request key → fence */
    struct txn_fence *first_fence, *last_fence;
    uint32_t fence_count;
    struct txn_user *users; /* names that transactions point to */
    struct txn_list open;   /* PREPARE, PRECOMMITTED: by id */
    /* COMMITTED, and VISIBLE ones not yet confirmed everywhere: in the order of their commits, so
     * also in that of the versions of every table. */
    struct txn_list publishing;
    /* ABORTED, and VISIBLE ones that are confirmed: in the order in which they came here. */
    struct txn_list finished;
    struct txn_shelf *first_shelf, *last_shelf; /* the finished ones in groups, encoded */
    /* Memory of the finished records, by fixed sizes that are equal on every coordinator. */
    uint64_t finished_bytes;
};

struct txn *txn_table_find(const struct txn_table *txns, txn_id id);
/* The newest transaction with that label, NULL if none. Older ones through same_label. */
struct txn *txn_table_find_label(const struct txn_table *txns, db_id db, const char *label);
struct txn *txn_table_find_request(const struct txn_table *txns, const struct request_key *key);
/* The load that this request started, NULL if none. */
struct txn_load *txn_table_find_request_load(const struct txn_table *txns,
                                             const struct request_key *key);
bool txn_table_is_fenced(const struct txn_table *txns, const struct request_key *key);

struct txn_load *txn_find_load(const struct txn *txn, rowset_id rowset);
/* Version that the transaction made of the table, 0 before COMMITTED or if it has no part in it. */
version_t txn_table_version(const struct txn *txn, table_id table);

/* What apply asks of TXN_VISIBLE: the transaction is COMMITTED, its versions are the next of its
 * tables, and every publish tablet has enough of `confirmed` (bits per publish tablet; NULL = none
 * yet). Tables that are gone count as published. 0; TG_TXN_STATE (not COMMITTED); TG_STALE (an
 * older version of one of its tables is not visible yet); TG_QUORUM. */
struct state;
int txn_may_become_visible(const struct state *state, const struct txn *txn,
                           const uint8_t *confirmed, bool one_is_enough);

#endif
