/* SPDX-License-Identifier: Apache-2.0 */
/* One LMDB environment, and LMDB's codes as ours. */
#include "participant/store/lmdb_env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/log.h"

enum {
    FILE_MODE = 0644,
    DIRECTORY_MODE = 0755,
    FATAL_EXIT_CODE = 70, /* EX_SOFTWARE */
    /* LMDB reports a short write as EIO: with less free it is a full disk. */
    FULL_DISK_FREE_BYTES = 1024 * 1024
};

_Noreturn void store_fatal(const char *environment, const char *what, int code)
{
    log_error("store", "fatal environment=%s during=%s code=%d reason=%s", environment, what, code,
              log_quote(mdb_strerror(code)));
    _exit(FATAL_EXIT_CODE);
}

int lmdb_env_err(const struct lmdb_env *env, const char *what, int code)
{
    switch (code) {
    case 0:
        return 0;
    case MDB_NOTFOUND:
        return TG_NOT_FOUND;
    case MDB_MAP_FULL:
    case ENOSPC:
    case EDQUOT:
        return TG_NOSPACE;
    case ENOMEM:
        return TG_NOMEM;
    case MDB_READERS_FULL:
        return TG_BUSY;
    case MDB_TXN_FULL:
        return TG_LIMIT;
    case MDB_VERSION_MISMATCH:
        return TG_UNSUPPORTED;
    case MDB_PANIC:
        store_fatal(env->name, what, code);
    default:
        break;
    }
    log_error("store", "lmdb environment=%s during=%s code=%d reason=%s", env->name, what, code,
              log_quote(mdb_strerror(code)));
    if (code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND || code == MDB_INVALID)
        return TG_CORRUPT;
    return TG_IO;
}

int lmdb_env_commit_err(const struct lmdb_env *env, int code)
{
    struct statvfs disk;
    if (code == EIO) {
        if (statvfs(env->path, &disk) == 0 &&
            (uint64_t)disk.f_bavail * disk.f_frsize < FULL_DISK_FREE_BYTES)
            return TG_NOSPACE;
        store_fatal(env->name, "commit", code);
    }
    return lmdb_env_err(env, "commit", code);
}

/* LMDB does not make the names of its new files durable. */
static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int code = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return code;
}

static int open_environment(struct lmdb_env *env, const char *dir)
{
    if (mkdir(env->path, DIRECTORY_MODE) != 0 && errno != EEXIST)
        return errno;
    int code = mdb_env_create(&env->env);
    if (code == 0)
        code = mdb_env_set_mapsize(env->env, (size_t)env->map_bytes);
    if (code == 0)
        code = mdb_env_set_maxreaders(env->env, LMDB_READERS_MAX);
    if (code == 0)
        code = mdb_env_set_maxdbs(env->env, LMDB_DATABASES_MAX);
    /* NOTLS: a read transaction belongs to its caller, not to a thread. NORDAHEAD: data may be
     * larger than memory, and extents are read one at a time. */
    if (code == 0)
        code = mdb_env_open(env->env, env->path, MDB_NOTLS | MDB_NORDAHEAD, FILE_MODE);
    int dead = 0;
    if (code == 0)
        code = mdb_reader_check(env->env, &dead);
    if (code == 0)
        code = sync_directory(env->path);
    if (code == 0)
        code = sync_directory(dir);
    return code;
}

int lmdb_env_open(struct lmdb_env *env, const char *dir, const char *name, uint64_t map_bytes,
                  struct tg_errmsg *msg)
{
    memset(env, 0, sizeof *env);
    env->name = name;
    env->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    env->map_bytes = map_bytes - map_bytes % env->page_bytes;
    size_t size = strlen(dir) + strlen(name) + 2;
    env->path = malloc(size);
    if (env->path == NULL)
        return tg_fail(msg, TG_NOMEM, "environment %s", name);
    (void)snprintf(env->path, size, "%s/%s", dir, name);
    int code = open_environment(env, dir);
    if (code == 0) {
        MDB_stat stat;
        code = mdb_env_stat(env->env, &stat);
        if (code == 0)
            env->page_bytes = stat.ms_psize;
    }
    if (code == 0)
        return 0;
    int err = tg_fail(msg, lmdb_env_err(env, "open", code), "environment %s: %s", env->path,
                      mdb_strerror(code));
    lmdb_env_close(env);
    return err;
}

void lmdb_env_close(struct lmdb_env *env)
{
    if (env->env != NULL)
        mdb_env_close(env->env);
    free(env->path);
    env->env = NULL;
    env->path = NULL;
}

int lmdb_env_database(struct lmdb_env *env, const char *name, MDB_dbi *database)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(env->env, NULL, 0, &txn);
    if (code != 0)
        return lmdb_env_err(env, "begin", code);
    code = mdb_dbi_open(txn, name, MDB_CREATE, database);
    if (code != 0) {
        mdb_txn_abort(txn);
        return lmdb_env_err(env, "open database", code);
    }
    return lmdb_env_commit_err(env, mdb_txn_commit(txn));
}

/* LMDB's free list is its database 0: transaction → number of pages and their numbers. */
static int count_free(struct lmdb_env *env, uint64_t *free_pages)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val value;
    *free_pages = 0;
    int code = mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return code;
    code = mdb_cursor_open(txn, 0, &cursor);
    if (code == 0) {
        while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
            size_t pages = 0;
            if (value.mv_size >= sizeof pages)
                memcpy(&pages, value.mv_data, sizeof pages);
            *free_pages += pages;
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return code == MDB_NOTFOUND ? 0 : code;
}

int lmdb_env_pages(struct lmdb_env *env, uint64_t look_below, uint64_t *used, uint64_t *total)
{
    MDB_envinfo info;
    int code = mdb_env_info(env->env, &info);
    if (code != 0)
        return lmdb_env_err(env, "info", code);
    *total = info.me_mapsize / env->page_bytes;
    *used = info.me_last_pgno + 1;
    uint64_t left = *total > *used ? *total - *used : 0;
    if (left >= look_below)
        return 0;
    uint64_t free_pages;
    code = count_free(env, &free_pages);
    if (code != 0)
        return lmdb_env_err(env, "free list", code);
    *used -= free_pages < *used ? free_pages : *used;
    return 0;
}
