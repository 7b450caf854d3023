/* SPDX-License-Identifier: Apache-2.0 */
/* Space that is kept for what has to go on when the disk is full. */
#include "participant/store/disk_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log.h"

enum {
    FILE_SHARE = 4, /* the file has this part of the reserve */
    FILE_MODE = 0644,
    FULL_DISK_FREE_BYTES = 1024 * 1024 /* with less free a write may well be cut short */
};

struct disk_reserve {
    char *dir;
    char *path;
    uint64_t floor_bytes;
    uint64_t file_bytes;
    pthread_mutex_t lock;
    atomic_bool held;
    atomic_uint_fast64_t try_at_ms;
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t disk_reserve_free(const struct disk_reserve *reserve)
{
    struct statvfs disk;
    if (statvfs(reserve->dir, &disk) != 0)
        return UINT64_MAX;
    return (uint64_t)disk.f_bavail * disk.f_frsize;
}

static bool has_file(const struct disk_reserve *reserve)
{
    struct stat file;
    return stat(reserve->path, &file) == 0 && (uint64_t)file.st_blocks * 512 >= reserve->file_bytes;
}

/* With the lock held. */
static bool make_file(struct disk_reserve *reserve)
{
    int fd = open(reserve->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return false;
    int code = posix_fallocate(fd, 0, (off_t)reserve->file_bytes);
    close(fd);
    if (code != 0)
        (void)unlink(reserve->path);
    return code == 0;
}

/* Makes the file if what is free then is still above the floor. */
static void refill(struct disk_reserve *reserve, uint64_t free_bytes)
{
    if (atomic_load(&reserve->held) || reserve->file_bytes == 0 ||
        free_bytes < reserve->floor_bytes + 2 * reserve->file_bytes ||
        now_ms() < atomic_load(&reserve->try_at_ms))
        return;
    pthread_mutex_lock(&reserve->lock);
    atomic_store(&reserve->try_at_ms, now_ms() + DISK_RESERVE_TRY_MS);
    if (!atomic_load(&reserve->held) && make_file(reserve)) {
        atomic_store(&reserve->held, true);
        log_info("store", "reserve kept path=%s bytes=%lu", reserve->path, reserve->file_bytes);
    }
    pthread_mutex_unlock(&reserve->lock);
}

int disk_reserve_open(const char *dir, uint64_t reserve_bytes, struct disk_reserve **reserve,
                      struct tg_errmsg *msg)
{
    struct disk_reserve *made = calloc(1, sizeof *made);
    size_t size = strlen(dir) + sizeof "/reserve";
    if (made != NULL) {
        made->dir = strdup(dir);
        made->path = malloc(size);
    }
    if (made == NULL || made->dir == NULL || made->path == NULL) {
        disk_reserve_close(made);
        return tg_fail(msg, TG_NOMEM, "disk reserve");
    }
    (void)snprintf(made->path, size, "%s/reserve", dir);
    made->floor_bytes = reserve_bytes / 2;
    made->file_bytes = reserve_bytes / FILE_SHARE;
    if (made->file_bytes > DISK_RESERVE_FILE_BYTES_MAX)
        made->file_bytes = DISK_RESERVE_FILE_BYTES_MAX;
    pthread_mutex_init(&made->lock, NULL);
    if (made->file_bytes > 0 && has_file(made))
        atomic_store(&made->held, true);
    else
        refill(made, disk_reserve_free(made));
    *reserve = made;
    return 0;
}

void disk_reserve_close(struct disk_reserve *reserve)
{
    if (reserve == NULL)
        return;
    if (reserve->path != NULL)
        pthread_mutex_destroy(&reserve->lock);
    free(reserve->dir);
    free(reserve->path);
    free(reserve);
}

uint64_t disk_reserve_growth(struct disk_reserve *reserve)
{
    uint64_t free_bytes = disk_reserve_free(reserve);
    refill(reserve, free_bytes);
    return free_bytes > reserve->floor_bytes ? free_bytes - reserve->floor_bytes : 0;
}

bool disk_reserve_give_up(struct disk_reserve *reserve)
{
    bool given = false;
    pthread_mutex_lock(&reserve->lock);
    if (atomic_exchange(&reserve->held, false)) {
        given = unlink(reserve->path) == 0;
        atomic_store(&reserve->try_at_ms, now_ms() + DISK_RESERVE_TRY_MS);
        log_warn("store", "reserve given_up path=%s bytes=%lu: the disk is full", reserve->path,
                 reserve->file_bytes);
    }
    pthread_mutex_unlock(&reserve->lock);
    return given;
}

bool disk_reserve_is_full(const struct disk_reserve *reserve)
{
    uint64_t given = atomic_load(&reserve->held) ? 0 : reserve->file_bytes;
    return disk_reserve_free(reserve) < FULL_DISK_FREE_BYTES + given;
}
