/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the numbers that travel everywhere. All are given out by the replicated log, grow, and
 * are never used twice; 0 means none. Commands, rowsets and keys carry ids, never names, so that a
 * name that is given again is not taken for what had it before. */
#ifndef TG_COMMON_MODEL_IDS_H
#define TG_COMMON_MODEL_IDS_H

#include <stdint.h>

typedef uint64_t db_id;
typedef uint64_t table_id;
typedef uint64_t partition_id;
typedef uint64_t tablet_id;
/* Given at LOAD_START. All tablets' rowsets of one load share it: (tablet, rowset) is unique, and a
 * larger id inside one version is the newer load. */
typedef uint64_t rowset_id;
typedef uint64_t txn_id;
typedef uint32_t node_id;   /* a participant; coordinators have their raft id */
typedef uint64_t version_t; /* of a table: 1, 2, 3 …; 0 = the empty table at its creation */

/* Hard limits of the catalog; beyond them DDL is refused. */
enum {
    NAME_BYTES = 65,   /* database, table and column names, with the zero: 64 bytes as in Doris */
    LABEL_BYTES = 129, /* 128 and the zero */
    COLUMNS_MAX = 1024,
    BUCKETS_MAX = 1024,
    REPLICATION_MAX = 3, /* replication_num of a table … */
    REPLICAS_MAX = 4,    /* … and one more replica of a tablet while it moves */
    NODES_MAX = 64,      /* participants: a replica set fits a 64-bit set of node indexes */
    TABLES_PER_TXN_MAX = 64,
    LOADS_PER_TXN_MAX = 1024,
    COORDINATORS_MAX = 9, /* of a cluster, those that join or leave included */
    ADDRESS_BYTES = 64    /* "255.255.255.255:65535" and host names a little longer */
};

#endif
