/* SPDX-License-Identifier: Apache-2.0 */
/* Disks of simulated processes: real files below one folder each, whose writes are undone by a
 * crash as far as they were not synced. sim_disk_calls.c puts itself before libc's calls on files;
 * who calls is told by the fiber that runs.
 *
 * Kept for each file: the contents as last synced of every sector (512 bytes) written since, and the
 * size as last synced. A name is durable once its folder was synced. */
#ifndef TG_TESTS_SIM_SIM_DISK_H
#define TG_TESTS_SIM_SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/lib/sim_world.h"

enum { SIM_DISK_SECTOR_BYTES = 512, SIM_DISK_PAGE_BYTES = 4096 };

enum sim_disk_loss {
    SIM_LOSS_NONE,    /* the process was killed: the system keeps what it wrote */
    SIM_LOSS_ALL,     /* everything that was not synced */
    SIM_LOSS_PAGES,   /* some pages of it … */
    SIM_LOSS_SECTORS, /* … or some sectors: torn pages */
    SIM_LOSSES
};

enum sim_disk_fault {
    SIM_FAULT_NONE,
    SIM_FAULT_WRITE_EIO,
    SIM_FAULT_WRITE_SHORT, /* half of it */
    SIM_FAULT_SYNC_EIO,
    SIM_FAULTS
};

struct sim_disk_stats {
    uint64_t writes, syncs, bytes;
    uint64_t sectors_lost, sectors_torn; /* by crashes; torn: of pages that were kept in part */
    uint64_t names_lost;
    uint64_t faults, full; /* calls that were failed */
    uint64_t rotten;
};

struct sim_disk;

/* root: an existing, empty folder. number: of the fiber process whose files they are. */
struct sim_disk *sim_disk_open(struct sim_world *world, unsigned number, const char *root);
/* Everything below root is gone afterwards. */
void sim_disk_close(struct sim_disk *disk);
/* The process died: its files are closed, its maps are gone, and what was not synced is lost as
 * said. */
void sim_disk_crash(struct sim_disk *disk, enum sim_disk_loss loss);
/* Syncs take so long; writes take no time. */
void sim_disk_set_speed(struct sim_disk *disk, uint64_t us_min, uint64_t us_max);
/* The call `after` the next ones of the fault's kind fails, once. */
void sim_disk_set_fault(struct sim_disk *disk, enum sim_disk_fault fault, unsigned after);
/* Full: what would make a file longer fails with ENOSPC, and nothing is free. */
void sim_disk_set_full(struct sim_disk *disk, bool full);
/* A bit of the bytes behind every place that holds these ones goes wrong, if they are on the disk
 * already. How many places. */
unsigned sim_disk_rot(struct sim_disk *disk, const void *bytes, size_t len);
/* A planted fault: syncs say that they did it and do nothing. */
void sim_disk_set_lying(struct sim_disk *disk, bool lying);
const char *sim_disk_root(const struct sim_disk *disk);
const struct sim_disk_stats *sim_disk_stats(const struct sim_disk *disk);

/* ---- for sim_disk_calls.c ---- */
struct sim_file;
/* NULL: not of a simulated disk. */
struct sim_file *sim_disk_file(int fd);
struct sim_disk *sim_disk_of(const char *path);
/* A file of the disk was opened (or made). sync: each write is synced. */
void sim_disk_opened(struct sim_disk *disk, const char *path, int fd, bool made, bool sync);
void sim_disk_made_folder(struct sim_disk *disk, const char *path);
void sim_disk_closed(int fd);
void sim_disk_mapped(struct sim_file *file, void *address, size_t bytes);
void sim_disk_unmapped(void *address);
/* Before a write: -1 and errno if it is to fail, else how many of the bytes are to be written. */
ssize_t sim_disk_before_write(struct sim_file *file, size_t bytes, off_t offset);
/* Through a descriptor that syncs each write: waits for it. 0, or -1 and errno. */
int sim_disk_after_write(struct sim_file *file, int fd, size_t bytes, off_t offset);
/* Before a file gets another size. */
void sim_disk_before_size(struct sim_file *file, off_t size);
/* A sync: takes its time, then 0 or -1 and errno. */
int sim_disk_sync(struct sim_file *file);
bool sim_disk_is_full(const struct sim_disk *disk);

#endif
