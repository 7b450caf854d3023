/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator's data directory: its lock, and where raft's part is. */
#ifndef TG_COORDINATOR_DATA_DIR_H
#define TG_COORDINATOR_DATA_DIR_H

#include "coordinator/options.h"

enum { DATA_DIR_RAFT_BYTES = OPTION_PATH_BYTES + 16 };

/* Makes it if its parent exists, and locks it: two processes on one directory would write one log.
 * *lock is a file descriptor, to be closed at the end, -1 on failure. TG_BUSY, TG_IO,
 * TG_TOO_LARGE. */
int data_dir_open(const char *path, int *lock, char raft_dir[DATA_DIR_RAFT_BYTES],
                  struct tg_errmsg *msg);

#endif
