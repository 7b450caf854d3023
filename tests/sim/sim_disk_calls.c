/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on files that LMDB and the store make. The functions here have libc's names, so the
 * program's own come first, also for shared libraries. */
#include "tests/sim/sim_disk_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/check.h"
#include "tests/sim/sim_disk.h"

enum { DISK_BYTES_SHIFT = 40, STATVFS_BLOCK_BYTES = 4096 };

void sim_disk_calls_use(void)
{
}

/* ---- names ---- */

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if ((flags & (O_CREAT | __O_TMPFILE)) != 0) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    struct sim_disk *disk = sim_disk_of(path);
    bool made = disk != NULL && (flags & O_CREAT) != 0 && syscall(SYS_access, path, F_OK) != 0 &&
                errno == ENOENT;
    if (made && sim_disk_is_full(disk)) {
        errno = ENOSPC;
        return -1;
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && disk != NULL)
        sim_disk_opened(disk, path, fd, made, (flags & O_DSYNC) != 0);
    return fd;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int mkdir(const char *path, mode_t mode)
{
    struct sim_disk *disk = sim_disk_of(path);
    int rc = (int)syscall(SYS_mkdir, path, mode);
    if (rc == 0 && disk != NULL)
        sim_disk_made_folder(disk, path);
    return rc;
}

int close(int fd)
{
    sim_disk_closed(fd);
    return (int)syscall(SYS_close, fd);
}

/* ---- bytes ---- */

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    struct sim_file *file = sim_disk_file(fd);
    if (file == NULL)
        return syscall(SYS_pwrite64, fd, bytes, len, offset);
    ssize_t allowed = sim_disk_before_write(file, len, offset);
    if (allowed < 0)
        return -1;
    ssize_t written = syscall(SYS_pwrite64, fd, bytes, allowed, offset);
    TG_CHECK(written == allowed);
    return sim_disk_after_write(file, fd, (size_t)written, offset) == 0 ? written : -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
    __attribute__((alias("pwrite")));

ssize_t write(int fd, const void *bytes, size_t len)
{
    if (sim_disk_file(fd) == NULL)
        return syscall(SYS_write, fd, bytes, len);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = pwrite(fd, bytes, len, offset);
    if (written > 0)
        lseek(fd, offset + written, SEEK_SET);
    return written;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    if (sim_disk_file(fd) == NULL)
        return syscall(SYS_pwritev, fd, parts, count, offset, 0);
    ssize_t sum = 0;
    for (int i = 0; i < count; i++) {
        ssize_t written = pwrite(fd, parts[i].iov_base, parts[i].iov_len, offset + sum);
        if (written < 0)
            return sum > 0 ? sum : -1;
        sum += written;
        if ((size_t)written < parts[i].iov_len)
            break;
    }
    return sum;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (sim_disk_file(fd) == NULL)
        return syscall(SYS_writev, fd, parts, count);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = pwritev(fd, parts, count, offset);
    if (written > 0)
        lseek(fd, offset + written, SEEK_SET);
    return written;
}

int ftruncate(int fd, off_t size)
{
    struct sim_file *file = sim_disk_file(fd);
    if (file != NULL)
        sim_disk_before_size(file, size);
    return (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));

/* ---- syncs ---- */

int fdatasync(int fd)
{
    struct sim_file *file = sim_disk_file(fd);
    return file == NULL ? (int)syscall(SYS_fdatasync, fd) : sim_disk_sync(file);
}

int fsync(int fd)
{
    struct sim_file *file = sim_disk_file(fd);
    return file == NULL ? (int)syscall(SYS_fsync, fd) : sim_disk_sync(file);
}

/* ---- maps ---- */

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *map = (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
    struct sim_file *file = sim_disk_file(fd);
    if (file != NULL && map != MAP_FAILED)
        sim_disk_mapped(file, map, bytes);
    return map;
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));

int munmap(void *address, size_t bytes)
{
    sim_disk_unmapped(address);
    return (int)syscall(SYS_munmap, address, bytes);
}

/* ---- room ---- */

int statvfs(const char *path, struct statvfs *stat)
{
    const struct sim_disk *disk = sim_disk_of(path);
    if (disk == NULL) {
        struct statfs plain;
        int rc = (int)syscall(SYS_statfs, path, &plain);
        if (rc == 0)
            *stat = (struct statvfs){.f_bsize = (unsigned long)plain.f_bsize,
                                     .f_frsize = (unsigned long)plain.f_bsize,
                                     .f_blocks = plain.f_blocks,
                                     .f_bfree = plain.f_bfree,
                                     .f_bavail = plain.f_bavail};
        return rc;
    }
    uint64_t blocks = (UINT64_C(1) << DISK_BYTES_SHIFT) / STATVFS_BLOCK_BYTES;
    *stat = (struct statvfs){.f_bsize = STATVFS_BLOCK_BYTES,
                             .f_frsize = STATVFS_BLOCK_BYTES,
                             .f_blocks = blocks,
                             .f_bfree = sim_disk_is_full(disk) ? 0 : blocks / 2,
                             .f_bavail = sim_disk_is_full(disk) ? 0 : blocks / 2};
    return 0;
}

int statvfs64(const char *path, struct statvfs64 *stat) __attribute__((alias("statvfs")));
