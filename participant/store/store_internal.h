/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an open store, for the files of this folder only. */
#ifndef TG_PARTICIPANT_STORE_STORE_INTERNAL_H
#define TG_PARTICIPANT_STORE_STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "participant/store/store.h"
#include "participant/store/store_writer.h"

struct open_table;
struct rowset_cache;
struct disk_reserve;

enum block_class { BLOCKS_64K = 0, BLOCKS_256K = 1, BLOCK_CLASSES = 2 };

struct store {
    char *dir;
    int lock_fd; /* holds the lock on DATA/lock */
    struct store_options options;
    struct disk_reserve *disk;
    struct lmdb_env meta;
    struct lmdb_env blocks[BLOCK_CLASSES];
    MDB_dbi db_meta;
    MDB_dbi db_tablet;
    MDB_dbi db_staged;
    MDB_dbi db_rowset;
    MDB_dbi db_version;
    MDB_dbi db_block[BLOCK_CLASSES];
    struct store_writer *meta_writer;
    struct store_writer *block_writer[BLOCK_CLASSES];
    struct open_table *open;          /* rowsets being written: rowset_open.h */
    struct rowset_cache *cache;       /* rowset_cache.h */
    pthread_mutex_t drop_lock;        /* one drop of rowsets at a time; before holding one, too */
    atomic_ullong disk_good_until_ms; /* the disk was seen with room; on the coarse clock */
};

#endif
