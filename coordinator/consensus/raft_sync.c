/* SPDX-License-Identifier: Apache-2.0 */
/* Syncs that fail. */
#include "coordinator/consensus/raft_sync.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/log.h"

/* The linker's names of the real ones; there are none in a program that is not linked with --wrap. */
int __real_fsync(int fd) __attribute__((weak));
int __real_fdatasync(int fd) __attribute__((weak));
int __real_uv_fs_fsync(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb cb)
    __attribute__((weak));
int __real_uv_fs_fdatasync(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb cb)
    __attribute__((weak));

static void end_process(int fd)
{
    char link[64];
    char path[256];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    log_error("raft", "the process ends: a sync failed file=%s", path);
    _exit(RAFT_SYNC_EXIT_STATUS);
}

int __wrap_fsync(int fd)
{
    int result = __real_fsync(fd);
    if (result != 0 && errno == EIO)
        end_process(fd);
    return result;
}

int __wrap_fdatasync(int fd)
{
    int result = __real_fdatasync(fd);
    if (result != 0 && errno == EIO)
        end_process(fd);
    return result;
}

int __wrap_uv_fs_fsync(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb cb)
{
    int result = __real_uv_fs_fsync(loop, request, file, cb);
    if (result == UV_EIO)
        end_process(file);
    return result;
}

int __wrap_uv_fs_fdatasync(uv_loop_t *loop, uv_fs_t *request, uv_file file, uv_fs_cb cb)
{
    int result = __real_uv_fs_fdatasync(loop, request, file, cb);
    if (result == UV_EIO)
        end_process(file);
    return result;
}

int raft_sync_is_watched(void)
{
    return __real_fsync != NULL && __real_fdatasync != NULL && __real_uv_fs_fsync != NULL &&
           __real_uv_fs_fdatasync != NULL;
}
