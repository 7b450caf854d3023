/* SPDX-License-Identifier: Apache-2.0 */
/* Databases, tables, tablets and their replicas, and each table's versions. */
#ifndef TG_COORDINATOR_STATE_CATALOG_H
#define TG_COORDINATOR_STATE_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/checksum.h"
#include "common/base/hash.h"
#include "common/model/ids.h"
#include "common/model/schema.h"
#include "common/proto/msg_read.h"

enum { DATABASES_MAX = 4096, TABLES_MAX = 65536, TABLETS_MAX = 1 << 20 };

/* A replica is good, or behind: it missed a write or a publish, or its data is damaged; then it
 * counts for no quorum and is not read at versions it lacks. One that is behind is written to again
 * while its repair comes to an end: then it is also catching (DESIGN.md 2.4, rule 3). One that was
 * added to a tablet that has its number is joining, until it is good for the first time. */
struct replica {
    node_id node; /* 0: nobody holds this slot, and nothing below is set */
    bool behind;
    bool catching;            /* only with behind */
    bool joining;             /* only with behind: never was good, so nothing is lost without it */
    version_t behind_version; /* the first version that it lacks, 0 if it is good */
    version_t missed_version; /* catching: the last version that it lacks; what touched the tablet
                                 later it has written itself. Else 0 */
    /* The tablet's chain up to missed_version, if it was known then: what it has to prove. */
    bool missed_known;
    struct digest missed_chain;
    rowset_id written_from; /* the plans of loads from this rowset id on had it (again) */
};
enum { REPLICA_CATCHING_VERSIONS_MAX = 4096 /* written and not bound; more: just behind again */ };

struct tablet {
    tablet_id id;
    struct table *table;
    uint32_t bucket;
    uint8_t replica_count;                 /* slots in use, those that nobody holds included */
    struct replica replicas[REPLICAS_MAX]; /* who is where does not change; who leaves frees his */
    version_t *touched; /* every version that touched this tablet, COMMITTED ones included,
                           ascending (rule 1): owned */
    uint32_t touched_count, touched_capacity;
    /* Digest over all of those with their rowsets (common/model/version_chain.h). Not known after a
     * snapshot of an older format, or when a part was lost: until a replica is healed. */
    bool chain_known;
    struct digest chain;
    struct tablet *behind_prev, *behind_next; /* catalog.behind, if a replica is behind */
    UT_hash_handle hh;                        /* catalog.tablets by id */
};

enum version_action { VERSION_LOAD = 1, VERSION_TRUNCATE = 2 };

struct version_record {
    uint64_t time_us; /* completion; 0 while COMMITTED only */
    uint64_t commit_us;
    txn_id txn;     /* TRUNCATE has one of its own too */
    uint64_t rows;  /* loaded by it */
    uint8_t action; /* enum version_action */
    bool lost;      /* an operator declared that no copy of a part of it is left: it is without */
};

struct table {
    table_id id;
    db_id db;
    char name[NAME_BYTES];
    struct schema schema;
    char *comment;
    uint32_t distribution_count;
    uint32_t *distribution;
    uint32_t bucket_count;
    uint8_t replication;
    bool write_all;
    bool occ;
    bool dropped; /* no longer in its database; kept while unfinished transactions name it */
    partition_id partition; /* the one implicit partition */
    uint64_t created_us;
    uint64_t placement_epoch;
    struct tablet **tablets;         /* bucket order, owned */
    version_t committed;             /* newest version given out */
    version_t visible;               /* newest visible one; all up to it are */
    struct version_record *versions; /* versions[v - 1]: owned */
    uint64_t version_capacity;
    /* Unfinished transactions that name it: a dropped table goes with the last. */
    uint32_t txn_refs;
    uint64_t row_estimate;  /* rows loaded and visible since the last TRUNCATE */
    UT_hash_handle hh;      /* catalog.tables by id */
    UT_hash_handle hh_name; /* database.tables by name */
};

struct database {
    db_id id;
    char name[NAME_BYTES];
    uint64_t created_us;
    uint32_t running_txns;
    struct table *tables; /* by name (hh_name), not dropped ones only */
    UT_hash_handle hh;    /* catalog.databases by name */
    UT_hash_handle hh_id; /* catalog.databases_by_id */
};

struct catalog {
    struct database *databases;
    struct database *databases_by_id;
    struct table *tables; /* all, dropped ones in wait included */
    struct tablet *tablets;
    uint32_t behind_count; /* replicas that are behind, of all tablets here … */
    struct tablet *behind; /* … and those tablets */
    uint64_t moves;        /* changes of placement applied by this process: what was remembered by
                              slots is void after one. Not in snapshots */
};

struct database *catalog_database(const struct catalog *catalog, const char *name);
struct database *catalog_database_by_id(const struct catalog *catalog, db_id id);
struct table *catalog_table(const struct database *database, const char *name);
struct table *catalog_table_by_id(const struct catalog *catalog, table_id id);
struct tablet *catalog_tablet(const struct catalog *catalog, tablet_id id);

/* A replica of some tablet on that node is behind. */
bool catalog_has_behind(const struct catalog *catalog, node_id node);

/* Bit i: replica slot i is behind. */
uint8_t tablet_behind(const struct tablet *tablet);
/* Bit i: replica slot i is catching. */
uint8_t tablet_catching(const struct tablet *tablet);
/* Bit i: replica slot i is still to bind this version of the tablet by publishing: the good ones,
 * and those that are catching and have written it. */
uint8_t tablet_awaited(const struct tablet *tablet, version_t version);
/* Bits of all slots that somebody holds. */
uint8_t tablet_all(const struct tablet *tablet);
/* Bit i: replica slot i is good. */
uint8_t tablet_good(const struct tablet *tablet);
/* Bit i: replica slot i is joining. */
uint8_t tablet_joining(const struct tablet *tablet);
/* How many sealed replicas a load needs: the majority of the table's replication_num, also while
 * there is one more or fewer; with write_quorum = all that number itself, or what is left of it. */
uint32_t tablet_write_quorum(const struct tablet *tablet);
/* Enough to become visible: a majority of replication_num, counting those that are not behind; or
 * just one of those. */
bool tablet_published(const struct tablet *tablet, uint8_t confirmed, bool one_is_enough);
/* Slot of the node, -1 if it has no replica of this tablet. */
int tablet_slot(const struct tablet *tablet, node_id node);

/* Bits of the slots that publishing sends to: the good ones. If there is none, all: each may have
 * what the others lack, and nobody can be cloned from before somebody has bound it. */
uint8_t tablet_published_to(const struct tablet *tablet);
/* max{v ≤ at that touched the tablet}, 0 if none. */
version_t tablet_need(const struct tablet *tablet, version_t at);
/* max{v visible : completion ≤ us}; 0 = before the first. */
version_t table_version_at(const struct table *table, uint64_t us);
/* Fills an initialised read point (schema, tablets, needs, versions of (after, bound]) but not its
 * nodes; the caller closes it in any case. Verdicts as in msg_read.h. now_us: the larger of wall
 * clock and last stamp, for FUTURE. A time above the state's closed timestamp is TG_NOT_YET: the
 * caller closes it through the log first. */
struct state;
int catalog_read_point(const struct state *state, const struct msg_read_point *message,
                       uint64_t now_us, struct msg_read_point_reply *reply, struct tg_errmsg *msg);

#endif
