/* SPDX-License-Identifier: Apache-2.0 */
/* One LMDB environment with default durability (no NOSYNC, NOMETASYNC, WRITEMAP: every commit is
 * synced), and LMDB's codes as ours. */
#ifndef TG_PARTICIPANT_STORE_LMDB_ENV_H
#define TG_PARTICIPANT_STORE_LMDB_ENV_H

#include <lmdb.h>
#include <stdint.h>

#include "common/base/err.h"

enum {
    LMDB_READERS_MAX = 512, /* read transactions at once */
    LMDB_DATABASES_MAX = 8  /* named databases of an environment */
};

struct lmdb_env {
    MDB_env *env;
    const char *name; /* static: for logs */
    char *path;
    uint64_t map_bytes;
    uint32_t page_bytes;
};

/* Opens dir/name (made if missing, durably). map_bytes: address space, rounded down to pages. name
 * must be static. */
int lmdb_env_open(struct lmdb_env *env, const char *dir, const char *name, uint64_t map_bytes,
                  struct tg_errmsg *msg);
void lmdb_env_close(struct lmdb_env *env);

/* Opens a named database, made if missing. Only while the store is being opened. */
int lmdb_env_database(struct lmdb_env *env, const char *name, MDB_dbi *database);

/* Pages that are neither free nor beyond the end of what is used, and the map's pages. Walks the
 * free list only when fewer than look_below pages are left at the end of the map (UINT64_MAX:
 * always); *used is too high otherwise. */
int lmdb_env_pages(struct lmdb_env *env, uint64_t look_below, uint64_t *used, uint64_t *total);

/* LMDB's or errno's code to ours; 0 stays 0. MDB_PANIC does not come back: store_fatal. */
int lmdb_env_err(const struct lmdb_env *env, const char *what, int code);

/* The same for a commit's code: an I/O error other than a full disk means that what the disk holds
 * is not known any more. */
int lmdb_env_commit_err(const struct lmdb_env *env, int code);

/* Ends the process, because going on could lose what was acknowledged: the restart reads what is
 * really there. */
_Noreturn void store_fatal(const char *environment, const char *what, int code);

#endif
