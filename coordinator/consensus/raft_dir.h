/* SPDX-License-Identifier: Apache-2.0 */
/* What is in raft's directory, and whether a server may start from it (rule 12): one
 * whose log is gone must not come back under its old id, because it may have acknowledged what it
 * no longer has. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_DIR_H
#define TG_COORDINATOR_CONSENSUS_RAFT_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum raft_dir_kind {
    RAFT_DIR_EMPTY = 0, /* nothing of raft's */
    RAFT_DIR_HALF = 1,  /* a first term, but no configuration: bootstrap was cut off */
    RAFT_DIR_LOST = 2, /* a term or vote of a server that took part, but neither log nor snapshot */
    RAFT_DIR_COMPLETE = 3 /* a log or a snapshot */
};

struct raft_dir {
    enum raft_dir_kind kind;
    uint64_t term; /* of the metadata, 0 if there is none */
};

/* Makes the directory if it is missing; what is in it is on the disk afterwards. TG_IO, TG_TOO_LARGE
 * (path). */
int raft_dir_prepare(const char *path, struct tg_errmsg *msg);
int raft_dir_look(const char *path, struct raft_dir *dir, struct tg_errmsg *msg);
/* 0 with *bootstrap = whether to write the first configuration; TG_REFUSED with a sentence for the
 * operator. A half made directory is emptied if wanted is set. */
int raft_dir_admit(const char *path, bool wanted, bool *bootstrap, struct tg_errmsg *msg);

/* Free bytes on the file system of path, for us; UINT64_MAX if it cannot be asked. */
uint64_t raft_dir_free_bytes(const char *path);

#endif
