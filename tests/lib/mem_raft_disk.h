/* SPDX-License-Identifier: Apache-2.0 */
/* The durable part of an in-memory raft server: term, vote, log, snapshot. */
#ifndef TG_TESTS_LIB_MEM_RAFT_DISK_H
#define TG_TESTS_LIB_MEM_RAFT_DISK_H

#include <raft.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"

struct mem_raft_entry {
    raft_term term;
    enum raft_entry_type type;
    uint8_t *bytes; /* owned */
    size_t len;
};

struct mem_raft_snapshot {
    raft_index index; /* 0: none */
    raft_term term;
    raft_index configuration_index;
    struct buf configuration; /* encoded */
    struct buf data;
};

struct mem_raft_disk {
    raft_term term;
    raft_id vote;
    raft_index first; /* index of entries[0] */
    struct mem_raft_entry *entries;
    size_t count, capacity;
    struct mem_raft_snapshot snapshot;
};

void mem_raft_disk_init(struct mem_raft_disk *disk);
void mem_raft_disk_close(struct mem_raft_disk *disk);
void mem_raft_disk_append(struct mem_raft_disk *disk, const struct raft_entry *entry);
/* Entries from index on go. */
void mem_raft_disk_truncate(struct mem_raft_disk *disk, raft_index index);
/* Copies the snapshot; trailing 0 empties the log, else entries more than that behind the snapshot
 * go. */
void mem_raft_disk_put_snapshot(struct mem_raft_disk *disk, const struct raft_snapshot *snapshot,
                                unsigned trailing);
/* What raft_io->load returns; memory of raft's heap. A log that ends before the snapshot is
 * emptied. */
void mem_raft_disk_load(struct mem_raft_disk *disk, struct raft_snapshot **snapshot,
                        raft_index *start_index, struct raft_entry **entries, size_t *count);
/* A copy of the snapshot in raft's heap, as raft_io->snapshot_get gives it. NULL if there is none.
 */
struct raft_snapshot *mem_raft_disk_get_snapshot(const struct mem_raft_disk *disk);

#endif
