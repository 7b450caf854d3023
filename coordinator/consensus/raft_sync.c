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

static int checked(int result, int fd)
{
    char link[64];
    char path[256];

    if (result == 0 || errno != EIO)
        return result;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    log_error("raft", "the process ends: a sync failed file=%s", path);
    _exit(RAFT_SYNC_EXIT_STATUS);
}

int __wrap_fsync(int fd)
{
    return checked(__real_fsync(fd), fd);
}

int __wrap_fdatasync(int fd)
{
    return checked(__real_fdatasync(fd), fd);
}

int raft_sync_is_watched(void)
{
    return __real_fsync != NULL && __real_fdatasync != NULL;
}
