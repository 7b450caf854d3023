/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator's data directory. */
#include "coordinator/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/consensus/raft_dir.h"

int data_dir_open(const char *data_dir, int *lock, char raft_dir[DATA_DIR_RAFT_BYTES],
                  struct tg_errmsg *msg)
{
    char path[OPTION_PATH_BYTES + 16];

    *lock = -1;
    if (mkdir(data_dir, 0755) != 0 && errno != EEXIST)
        return tg_fail(msg, TG_IO, "cannot make data_dir %s: %s", data_dir, strerror(errno));
    snprintf(path, sizeof path, "%s/lock", data_dir);
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*lock < 0)
        return tg_fail(msg, TG_IO, "cannot open %s: %s", path, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) != 0) {
        close(*lock);
        *lock = -1;
        return tg_fail(msg, TG_BUSY, "another coordinator runs on %s", data_dir);
    }
    snprintf(raft_dir, DATA_DIR_RAFT_BYTES, "%s/raft", data_dir);
    return raft_dir_prepare(raft_dir, msg);
}
