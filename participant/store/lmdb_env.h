/* SPDX-License-Identifier: Apache-2.0 */
/* One LMDB environment with default durability (no NOSYNC, NOMETASYNC, WRITEMAP: every commit is
 * synced), and LMDB's codes as ours. */
#ifndef TG_PARTICIPANT_STORE_LMDB_ENV_H
#define TG_PARTICIPANT_STORE_LMDB_ENV_H

#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum {
    LMDB_READERS_MAX = 512, /* read transactions at once */
    LMDB_DATABASES_MAX = 8  /* named databases of an environment */
};

struct disk_reserve;

struct lmdb_env {
    MDB_env *env;
    struct disk_reserve *disk; /* the opener's, may be NULL: what the disk has for it */
    const char *name;          /* static: for logs */
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

struct lmdb_pages {
    uint64_t map;    /* of the whole map */
    uint64_t last;   /* up to the end of what was ever used, free ones included */
    uint64_t usable; /* free, for the next transaction */
    uint64_t fresh;  /* freed by the last transaction: usable once another one has followed */
    uint64_t pinned; /* free, but a reader may still look at them */
    uint64_t behind; /* that the file has on disk behind `last` */
};
/* With look false only map and last: the free list is not walked, and the others are 0. */
int lmdb_env_pages(struct lmdb_env *env, bool look, struct lmdb_pages *pages);

/* A transaction that writes next to nothing, after which what was fresh is usable. On the thread of
 * the environment's writer. */
int lmdb_env_advance(struct lmdb_env *env);

/* Frees the slots of readers whose process is gone. */
void lmdb_env_check_readers(struct lmdb_env *env);

/* LMDB's or errno's code to ours; 0 stays 0. MDB_PANIC does not come back: store_fatal. */
int lmdb_env_err(const struct lmdb_env *env, const char *what, int code);

/* The same for a commit's code. Only a full disk or map and a lack of memory come back: after any
 * other failure of a write or sync what the disk holds is not known any more, and a later success
 * would prove nothing. LMDB would go on; this ends the process (store_fatal). */
int lmdb_env_commit_err(const struct lmdb_env *env, int code);

/* Ends the process, because going on could lose what was acknowledged: the restart reads what is
 * really there. */
_Noreturn void store_fatal(const char *environment, const char *what, int code);

#endif
