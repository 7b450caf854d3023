/* SPDX-License-Identifier: Apache-2.0 */
/* One LMDB environment, and LMDB's codes as ours. */
#include "participant/store/lmdb_env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mutant.h"
#include "participant/store/disk_reserve.h"
#include "participant/store/lmdb_guard.h"

enum {
    FILE_MODE = 0644,
    DIRECTORY_MODE = 0755,
    FATAL_EXIT_CODE = 70,  /* EX_SOFTWARE */
    BLOCK_UNIT_BYTES = 512 /* of st_blocks */
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
    /* LMDB reports a write that was cut short as EIO, which is what a full disk does to it. */
    if (code == EIO && env->disk != NULL && disk_reserve_is_full(env->disk))
        return TG_NOSPACE;
    int err = lmdb_env_err(env, "commit", code);
    if (err != 0 && err != TG_NOSPACE && err != TG_NOMEM && err != TG_LIMIT)
        store_fatal(env->name, "commit", code);
    return err;
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

/* LMDB checks nothing of a page that it reads: what can be seen beforehand is looked at here. */
static int check_length(struct lmdb_env *env)
{
    MDB_envinfo info;
    MDB_stat stat;
    struct stat file;
    mdb_filehandle_t fd;
    int code = mdb_env_info(env->env, &info);
    if (code == 0)
        code = mdb_env_stat(env->env, &stat);
    if (code == 0)
        code = mdb_env_get_fd(env->env, &fd);
    if (code == 0 && fstat(fd, &file) != 0)
        code = errno;
    if (code == 0 && (uint64_t)file.st_size < (info.me_last_pgno + 1) * stat.ms_psize)
        code = MDB_CORRUPTED;
    if (code == 0)
        lmdb_guard_add(env->path, info.me_mapaddr, info.me_mapsize);
    return code;
}

static void on_assert(MDB_env *env, const char *text)
{
    (void)env;
    log_error("store", "lmdb assertion=%s reason=%s", log_quote(text),
              log_quote(lmdb_guard_advice));
    _exit(FATAL_EXIT_CODE);
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
        code = mdb_env_open(env->env, env->path,
                            MDB_NOTLS | MDB_NORDAHEAD | (MUTANT(25) ? MDB_NOSYNC : 0), FILE_MODE);
    if (code == 0)
        code = mdb_env_set_assert(env->env, on_assert);
    if (code == 0)
        code = check_length(env);
    /* A process that was killed between a commit's last write and its sync left it with the system
     * only. It is found here, and others are told of it: so it must be on the disk. */
    if (code == 0 && !MUTANT(25))
        code = mdb_env_sync(env->env, 1);
    int dead = 0;
    if (code == 0)
        code = mdb_reader_check(env->env, &dead);
    if (code == 0)
        code = sync_directory(env->path);
    if (code == 0)
        code = sync_directory(dir);
    return code;
}

/* LMDB maps its lock file, which is as sparse as ftruncate made it: a reader's first use of a slot on
 * a full disk would be a SIGBUS. */
static void fill_lock_file(const struct lmdb_env *env)
{
    char path[PATH_MAX];
    struct stat file;
    (void)snprintf(path, sizeof path, "%s/lock.mdb", env->path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) != 0 || posix_fallocate(fd, 0, file.st_size) != 0)
        log_warn("store", "lock file not filled path=%s", path);
    if (fd >= 0)
        close(fd);
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
        fill_lock_file(env);
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
    if (env->path != NULL)
        lmdb_guard_remove(env->path);
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

/* One line of mdb_reader_list: process, thread, and the transaction it reads, or "-". */
static int take_reader(const char *line, void *ctx)
{
    size_t *oldest = ctx;
    const char *last = strrchr(line, ' ');
    char *end;
    if (last == NULL || last[1] < '0' || last[1] > '9')
        return 0;
    unsigned long long txn = strtoull(last + 1, &end, 10);
    if (txn < *oldest)
        *oldest = (size_t)txn;
    return 0;
}

static void sort_free(const MDB_val *key, const MDB_val *value, size_t oldest, size_t last,
                      struct lmdb_pages *pages)
{
    size_t freed_by = 0;
    size_t count = 0;
    if (key->mv_size < sizeof freed_by || value->mv_size < sizeof count)
        return;
    memcpy(&freed_by, key->mv_data, sizeof freed_by);
    memcpy(&count, value->mv_data, sizeof count);
    if (freed_by < oldest)
        pages->usable += count;
    else if (freed_by == last)
        pages->fresh += count;
    else
        pages->pinned += count;
}

/* LMDB's free list is its database 0: transaction → number of pages and their numbers. What was
 * freed by a transaction that a reader may not know yet cannot be used. */
static int count_free(struct lmdb_env *env, size_t last, struct lmdb_pages *pages)
{
    size_t oldest = SIZE_MAX;
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val value;
    int code = mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return code;
    (void)mdb_reader_list(env->env, take_reader, &oldest);
    code = mdb_cursor_open(txn, 0, &cursor);
    if (code == 0) {
        while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
            sort_free(&key, &value, oldest, last, pages);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return code == MDB_NOTFOUND ? 0 : code;
}

int lmdb_env_pages(struct lmdb_env *env, bool look, struct lmdb_pages *pages)
{
    MDB_envinfo info;
    struct stat file;
    int fd;
    *pages = (struct lmdb_pages){0};
    int code = mdb_env_info(env->env, &info);
    if (code != 0)
        return lmdb_env_err(env, "info", code);
    pages->map = info.me_mapsize / env->page_bytes;
    pages->last = info.me_last_pgno + 1;
    if (!look)
        return 0;
    code = count_free(env, info.me_last_txnid, pages);
    if (code != 0)
        return lmdb_env_err(env, "free list", code);
    if (mdb_env_get_fd(env->env, &fd) == 0 && fstat(fd, &file) == 0) {
        uint64_t on_disk = (uint64_t)file.st_blocks * BLOCK_UNIT_BYTES / env->page_bytes;
        pages->behind = on_disk > pages->last ? on_disk - pages->last : 0;
    }
    return 0;
}

int lmdb_env_advance(struct lmdb_env *env)
{
    /* A zero byte in it: LMDB's tools take other names of the main database for databases. */
    static char name[] = "tick\0";
    MDB_val key = {.mv_size = sizeof name, .mv_data = name};
    MDB_val value = {.mv_size = sizeof name, .mv_data = name};
    MDB_txn *txn;
    MDB_dbi database;
    int code = mdb_txn_begin(env->env, NULL, 0, &txn);
    if (code != 0)
        return lmdb_env_err(env, "begin", code);
    code = mdb_dbi_open(txn, NULL, 0, &database);
    if (code == 0)
        code = mdb_put(txn, database, &key, &value, 0);
    if (code == 0)
        return lmdb_env_commit_err(env, mdb_txn_commit(txn));
    mdb_txn_abort(txn);
    return lmdb_env_err(env, "advance", code);
}

void lmdb_env_check_readers(struct lmdb_env *env)
{
    int dead = 0;
    if (mdb_reader_check(env->env, &dead) == 0 && dead > 0)
        log_warn("store", "stale readers freed environment=%s count=%d", env->name, dead);
}
