/* SPDX-License-Identifier: Apache-2.0 */
/* What of a file is synced, and what a crash leaves of the rest. */
#include "tests/sim/sim_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/check.h"
#include "tests/sim/fiber.h"

enum { FILES_MAX = 32, MAPS_MAX = 32, FDS_MAX = 4096, PATH_BYTES = 256, DISKS_MAX = 16 };

/* A sector that was written since the last sync. */
struct sector {
    uint64_t number;
    unsigned char before[SIM_DISK_SECTOR_BYTES];
};

struct sim_file {
    struct sim_disk *disk;
    char path[PATH_BYTES];
    bool is_folder;
    bool named; /* its name is durable */
    off_t synced_bytes;
    struct sector *sectors;
    uint32_t count, capacity;
    uint32_t *places; /* by sector number: place in sectors + 1, 0 if clean */
    uint64_t places_capacity;
};

struct sim_disk {
    struct sim_world *world;
    unsigned number;
    char root[PATH_BYTES];
    struct sim_file *files[FILES_MAX];
    unsigned file_count;
    struct {
        void *address;
        size_t bytes;
    } maps[MAPS_MAX];
    uint64_t sync_us_min, sync_us_max;
    enum sim_disk_fault fault;
    unsigned fault_after;
    bool full;
    bool lying;
    struct sim_disk_stats stats;
};

static struct sim_disk *disks[DISKS_MAX];
static struct {
    struct sim_file *file;
    bool sync;
} descriptors[FDS_MAX];

/* ---- life ---- */

struct sim_disk *sim_disk_open(struct sim_world *world, unsigned number, const char *root)
{
    struct sim_disk *disk = calloc(1, sizeof *disk);
    TG_CHECK(disk != NULL && number < DISKS_MAX && disks[number] == NULL);
    disk->world = world;
    disk->number = number;
    TG_CHECK((size_t)snprintf(disk->root, sizeof disk->root, "%s", root) < sizeof disk->root);
    disks[number] = disk;
    return disk;
}

static void file_free(struct sim_file *file)
{
    free(file->sectors);
    free(file->places);
    free(file);
}

void sim_disk_close(struct sim_disk *disk)
{
    sim_disk_crash(disk, SIM_LOSS_NONE);
    disks[disk->number] = NULL;
    /* The newest first: a folder is empty when its turn comes. */
    for (unsigned i = disk->file_count; i-- > 0;) {
        struct sim_file *file = disk->files[i];
        if (file->is_folder)
            rmdir(file->path);
        else
            unlink(file->path);
        file_free(file);
    }
    rmdir(disk->root);
    free(disk);
}

const char *sim_disk_root(const struct sim_disk *disk)
{
    return disk->root;
}

const struct sim_disk_stats *sim_disk_stats(const struct sim_disk *disk)
{
    return &disk->stats;
}

void sim_disk_set_speed(struct sim_disk *disk, uint64_t us_min, uint64_t us_max)
{
    disk->sync_us_min = us_min;
    disk->sync_us_max = us_max;
}

void sim_disk_set_fault(struct sim_disk *disk, enum sim_disk_fault fault, unsigned after)
{
    disk->fault = fault;
    disk->fault_after = after;
}

void sim_disk_set_full(struct sim_disk *disk, bool full)
{
    disk->full = full;
}

void sim_disk_set_lying(struct sim_disk *disk, bool lying)
{
    disk->lying = lying;
}

static int raw_open(const struct sim_file *file)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, file->path, O_RDWR | O_CLOEXEC);
    TG_CHECK(fd >= 0);
    return fd;
}

static unsigned file_rot(struct sim_file *file, const void *bytes, size_t len)
{
    unsigned places = 0;
    struct stat stat_;
    int fd = raw_open(file);
    TG_CHECK(fstat(fd, &stat_) == 0);
    unsigned char *map = (unsigned char *)syscall(SYS_mmap, NULL, stat_.st_size + 1,
                                                  PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TG_CHECK(map != MAP_FAILED);
    unsigned char *end = map + stat_.st_size;
    for (unsigned char *at = map; (at = memmem(at, (size_t)(end - at), bytes, len)) != NULL;
         at += len) {
        uint64_t sector = (uint64_t)(at + len - map) / SIM_DISK_SECTOR_BYTES;
        if (at + len >= end || (sector < file->places_capacity && file->places[sector] != 0))
            continue;
        at[len] ^= 0x10;
        places++;
    }
    syscall(SYS_munmap, map, stat_.st_size + 1);
    syscall(SYS_close, fd);
    return places;
}

unsigned sim_disk_rot(struct sim_disk *disk, const void *bytes, size_t len)
{
    unsigned places = 0;
    for (unsigned i = 0; i < disk->file_count; i++) {
        struct stat stat_;
        if (!disk->files[i]->is_folder && stat(disk->files[i]->path, &stat_) == 0 &&
            stat_.st_size > 0)
            places += file_rot(disk->files[i], bytes, len);
    }
    disk->stats.rotten += places;
    return places;
}

bool sim_disk_is_full(const struct sim_disk *disk)
{
    return disk->full;
}

/* ---- files ---- */

struct sim_disk *sim_disk_of(const char *path)
{
    for (unsigned i = 0; i < DISKS_MAX; i++) {
        size_t len = disks[i] == NULL ? 0 : strlen(disks[i]->root);
        if (len > 0 && strncmp(path, disks[i]->root, len) == 0 &&
            (path[len] == '/' || path[len] == '\0'))
            return disks[i];
    }
    return NULL;
}

struct sim_file *sim_disk_file(int fd)
{
    return fd >= 0 && fd < FDS_MAX ? descriptors[fd].file : NULL;
}

static struct sim_file *find_file(struct sim_disk *disk, const char *path)
{
    for (unsigned i = 0; i < disk->file_count; i++)
        if (strcmp(disk->files[i]->path, path) == 0)
            return disk->files[i];
    return NULL;
}

static struct sim_file *add_file(struct sim_disk *disk, const char *path)
{
    struct sim_file *file = calloc(1, sizeof *file);
    TG_CHECK(file != NULL && disk->file_count < FILES_MAX);
    TG_CHECK((size_t)snprintf(file->path, sizeof file->path, "%s", path) < sizeof file->path);
    file->disk = disk;
    disk->files[disk->file_count++] = file;
    return file;
}

void sim_disk_opened(struct sim_disk *disk, const char *path, int fd, bool made, bool sync)
{
    struct sim_file *file = find_file(disk, path);
    if (file == NULL) {
        struct stat stat;
        file = add_file(disk, path);
        TG_CHECK(fstat(fd, &stat) == 0);
        file->is_folder = S_ISDIR(stat.st_mode);
        file->named = !made;
        file->synced_bytes = file->is_folder ? 0 : stat.st_size;
    }
    TG_CHECK(fd >= 0 && fd < FDS_MAX);
    descriptors[fd].file = file;
    descriptors[fd].sync = sync;
}

void sim_disk_made_folder(struct sim_disk *disk, const char *path)
{
    if (find_file(disk, path) == NULL)
        add_file(disk, path)->is_folder = true;
}

void sim_disk_closed(int fd)
{
    if (fd >= 0 && fd < FDS_MAX)
        descriptors[fd].file = NULL;
}

void sim_disk_mapped(struct sim_file *file, void *address, size_t bytes)
{
    struct sim_disk *disk = file->disk;
    for (unsigned i = 0; i < MAPS_MAX; i++)
        if (disk->maps[i].address == NULL) {
            disk->maps[i].address = address;
            disk->maps[i].bytes = bytes;
            return;
        }
    TG_UNREACHABLE();
}

void sim_disk_unmapped(void *address)
{
    for (unsigned k = 0; k < DISKS_MAX; k++)
        for (unsigned i = 0; i < MAPS_MAX && disks[k] != NULL; i++)
            if (disks[k]->maps[i].address == address)
                disks[k]->maps[i].address = NULL;
}

/* ---- what was written and not synced ---- */

static struct sector *note_sector(struct sim_file *file, uint64_t number)
{
    if (number >= file->places_capacity) {
        uint64_t capacity = 2 * number + 256;
        file->places = realloc(file->places, capacity * sizeof *file->places);
        TG_CHECK(file->places != NULL);
        memset(file->places + file->places_capacity, 0,
               (capacity - file->places_capacity) * sizeof *file->places);
        file->places_capacity = capacity;
    }
    if (file->places[number] != 0)
        return NULL;
    if (file->count == file->capacity) {
        file->capacity = file->capacity == 0 ? 64 : 2 * file->capacity;
        file->sectors = realloc(file->sectors, file->capacity * sizeof *file->sectors);
        TG_CHECK(file->sectors != NULL);
    }
    struct sector *sector = &file->sectors[file->count++];
    file->places[number] = file->count;
    memset(sector, 0, sizeof *sector);
    sector->number = number;
    return sector;
}

static void note_range(struct sim_file *file, off_t from, off_t to)
{
    int fd = -1;
    for (uint64_t number = (uint64_t)from / SIM_DISK_SECTOR_BYTES;
         (off_t)(number * SIM_DISK_SECTOR_BYTES) < to; number++) {
        struct sector *sector = note_sector(file, number);
        if (sector == NULL)
            continue;
        if (fd < 0)
            fd = raw_open(file);
        TG_CHECK(pread(fd, sector->before, sizeof sector->before,
                       (off_t)(number * SIM_DISK_SECTOR_BYTES)) >= 0);
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
}

/* All of the file is as on the disk. */
static void file_clean(struct sim_file *file)
{
    struct stat stat_;
    for (uint32_t i = 0; i < file->count; i++)
        file->places[file->sectors[i].number] = 0;
    file->count = 0;
    if (!file->is_folder && stat(file->path, &stat_) == 0)
        file->synced_bytes = stat_.st_size;
}

/* ---- calls ---- */

static bool fault_comes(struct sim_disk *disk, enum sim_disk_fault fault)
{
    if (disk->fault != fault || disk->fault_after-- > 0)
        return false;
    disk->fault = SIM_FAULT_NONE;
    disk->stats.faults++;
    return true;
}

ssize_t sim_disk_before_write(struct sim_file *file, size_t bytes, off_t offset)
{
    struct sim_disk *disk = file->disk;
    struct stat stat_;
    if (fault_comes(disk, SIM_FAULT_WRITE_EIO)) {
        errno = EIO;
        return -1;
    }
    if (bytes > 1 && fault_comes(disk, SIM_FAULT_WRITE_SHORT))
        bytes /= 2;
    TG_CHECK(stat(file->path, &stat_) == 0);
    if (disk->full && offset + (off_t)bytes > stat_.st_size) {
        disk->stats.full++;
        if (offset >= stat_.st_size) {
            errno = ENOSPC;
            return -1;
        }
        bytes = (size_t)(stat_.st_size - offset);
    }
    note_range(file, offset, offset + (off_t)bytes);
    return (ssize_t)bytes;
}

static int wait_for_sync(struct sim_disk *disk)
{
    disk->stats.syncs++;
    if (fiber_current() != NULL && disk->sync_us_max > 0)
        fiber_sleep(sim_world_between(disk->world, disk->sync_us_min, disk->sync_us_max));
    if (!fault_comes(disk, SIM_FAULT_SYNC_EIO))
        return 0;
    errno = EIO;
    return -1;
}

/* Of a range only: the file's other sectors stay as they are. */
static void range_clean(struct sim_file *file, off_t from, off_t to)
{
    for (uint32_t i = file->count; i-- > 0;) {
        off_t at = (off_t)(file->sectors[i].number * SIM_DISK_SECTOR_BYTES);
        if (at + SIM_DISK_SECTOR_BYTES <= from || at >= to)
            continue;
        file->places[file->sectors[i].number] = 0;
        file->sectors[i] = file->sectors[--file->count];
        if (i < file->count)
            file->places[file->sectors[i].number] = i + 1;
    }
    if (to > file->synced_bytes)
        file->synced_bytes = to;
}

int sim_disk_after_write(struct sim_file *file, int fd, size_t bytes, off_t offset)
{
    struct sim_disk *disk = file->disk;
    disk->stats.writes++;
    disk->stats.bytes += bytes;
    if (!descriptors[fd].sync)
        return 0;
    if (wait_for_sync(disk) != 0)
        return -1;
    if (!disk->lying)
        range_clean(file, offset, offset + (off_t)bytes);
    return 0;
}

void sim_disk_before_size(struct sim_file *file, off_t size)
{
    struct stat stat_;
    TG_CHECK(stat(file->path, &stat_) == 0);
    if (size < stat_.st_size)
        note_range(file, size, stat_.st_size);
}

static void sync_folder(struct sim_file *folder)
{
    size_t len = strlen(folder->path);
    for (unsigned i = 0; i < folder->disk->file_count; i++) {
        struct sim_file *file = folder->disk->files[i];
        if (strncmp(file->path, folder->path, len) == 0 && file->path[len] == '/' &&
            strchr(file->path + len + 1, '/') == NULL)
            file->named = true;
    }
}

int sim_disk_sync(struct sim_file *file)
{
    struct sim_disk *disk = file->disk;
    if (wait_for_sync(disk) != 0)
        return -1;
    if (disk->lying)
        return 0;
    if (file->is_folder)
        sync_folder(file);
    else
        file_clean(file);
    return 0;
}

/* ---- the crash ---- */

static void end_life(struct sim_disk *disk)
{
    for (int fd = 0; fd < FDS_MAX; fd++)
        if (descriptors[fd].file != NULL && descriptors[fd].file->disk == disk) {
            descriptors[fd].file = NULL;
            syscall(SYS_close, fd);
        }
    for (unsigned i = 0; i < MAPS_MAX; i++)
        if (disk->maps[i].address != NULL) {
            syscall(SYS_munmap, disk->maps[i].address, disk->maps[i].bytes);
            disk->maps[i].address = NULL;
        }
    disk->fault = SIM_FAULT_NONE;
}

static bool page_is_kept(enum sim_disk_loss loss, uint64_t page, uint64_t salt)
{
    if (loss == SIM_LOSS_ALL)
        return false;
    uint64_t mix = (page + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ salt;
    mix ^= mix >> 29;
    mix *= UINT64_C(0xBF58476D1CE4E5B9);
    return (mix >> 40 & 1) != 0;
}

static void lose(struct sim_file *file, enum sim_disk_loss loss)
{
    struct sim_disk *disk = file->disk;
    uint64_t salt = sim_world_below(disk->world, UINT64_MAX);
    uint64_t unit = loss == SIM_LOSS_SECTORS ? 1 : SIM_DISK_PAGE_BYTES / SIM_DISK_SECTOR_BYTES;
    off_t size = file->synced_bytes;
    int fd = raw_open(file);
    for (uint32_t i = 0; i < file->count; i++) {
        const struct sector *sector = &file->sectors[i];
        off_t at = (off_t)(sector->number * SIM_DISK_SECTOR_BYTES);
        if (page_is_kept(loss, sector->number / unit, salt)) {
            if (at + SIM_DISK_SECTOR_BYTES > size)
                size = at + SIM_DISK_SECTOR_BYTES;
            disk->stats.sectors_torn += loss == SIM_LOSS_SECTORS;
            continue;
        }
        disk->stats.sectors_lost++;
        TG_CHECK(syscall(SYS_pwrite64, fd, sector->before, sizeof sector->before, at) ==
                 (long)sizeof sector->before);
    }
    struct stat stat_;
    TG_CHECK(fstat(fd, &stat_) == 0);
    if (size < stat_.st_size)
        TG_CHECK(syscall(SYS_ftruncate, fd, size) == 0);
    syscall(SYS_close, fd);
}

static void lose_name(struct sim_disk *disk, unsigned i)
{
    struct sim_file *file = disk->files[i];
    size_t len = strlen(file->path);
    /* A folder goes with all that is in it: those are younger. */
    for (unsigned k = disk->file_count; k-- > i + 1;)
        if (strncmp(disk->files[k]->path, file->path, len) == 0 && disk->files[k]->path[len] == '/')
            lose_name(disk, k);
    if (file->is_folder)
        syscall(SYS_rmdir, file->path);
    else
        syscall(SYS_unlink, file->path);
    file_free(file);
    memmove(&disk->files[i], &disk->files[i + 1],
            (disk->file_count - i - 1) * sizeof(struct sim_file *));
    disk->file_count--;
    disk->stats.names_lost++;
}

void sim_disk_crash(struct sim_disk *disk, enum sim_disk_loss loss)
{
    end_life(disk);
    for (unsigned i = disk->file_count; i-- > 0;) {
        struct sim_file *file = disk->files[i];
        if (loss != SIM_LOSS_NONE && !file->named &&
            (loss == SIM_LOSS_ALL || sim_world_chance(disk->world, 500))) {
            lose_name(disk, i);
            continue;
        }
        /* What the system keeps is still not on the disk. */
        if (loss == SIM_LOSS_NONE)
            continue;
        if (!file->is_folder && (file->count > 0))
            lose(file, loss);
        file->named = true;
        file_clean(file);
    }
}
