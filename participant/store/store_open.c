/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the store: three environments, their writers, the format's number. */
#include "participant/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/endian.h"
#include "common/base/log.h"
#include "participant/store/disk_reserve.h"
#include "participant/store/rowset_cache.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/rowset_open.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

#define META_MAP_BYTES     (64ull << 30)
#define BLOCKS_MAP_BYTES   (256ull << 30)
#define DISK_RESERVE_BYTES (256ull << 20)
#define WRITER_QUEUE_BYTES (32ull << 20)
#define CACHE_BYTES        (32ull << 20)

enum { RESUME_TABLETS_MAX = 256, FORMAT_BYTES = 4, LOCK_MODE = 0644 };

void store_options_init(struct store_options *options)
{
    *options = (struct store_options){.meta_map_bytes = META_MAP_BYTES,
                                      .blocks_map_bytes = BLOCKS_MAP_BYTES,
                                      .disk_reserve_bytes = DISK_RESERVE_BYTES,
                                      .writer_queue_bytes = WRITER_QUEUE_BYTES,
                                      .cache_bytes = CACHE_BYTES};
}

/* LMDB would let two processes in; our state in memory would not survive that. */
static int lock_directory(struct store *store, struct tg_errmsg *msg)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/lock", store->dir);
    const char *text = buf_cstr(&path);
    if (text != NULL)
        store->lock_fd = open(text, O_RDWR | O_CREAT | O_CLOEXEC, LOCK_MODE);
    int err = 0;
    if (text == NULL)
        err = tg_fail(msg, TG_NOMEM, "store");
    else if (store->lock_fd < 0)
        err = tg_fail(msg, errno == ENOSPC ? TG_NOSPACE : TG_IO, "%s: %s", text, strerror(errno));
    else if (flock(store->lock_fd, LOCK_EX | LOCK_NB) != 0)
        err = tg_fail(msg, TG_BUSY, "%s: another process uses this directory", text);
    buf_close(&path);
    return err;
}

static int open_databases(struct store *store)
{
    int err = lmdb_env_database(&store->meta, "meta", &store->db_meta);
    if (err == 0)
        err = lmdb_env_database(&store->meta, "tablet", &store->db_tablet);
    if (err == 0)
        err = lmdb_env_database(&store->meta, "staged", &store->db_staged);
    if (err == 0)
        err = lmdb_env_database(&store->meta, "rowset", &store->db_rowset);
    if (err == 0)
        err = lmdb_env_database(&store->meta, "version", &store->db_version);
    for (int i = 0; i < BLOCK_CLASSES && err == 0; i++)
        err = lmdb_env_database(&store->blocks[i], "block", &store->db_block[i]);
    return err;
}

/* Before anything else is read: an unknown format stops the node. A new store gets its number here.
 */
static int check_format(struct store *store, struct tg_errmsg *msg)
{
    struct lmdb_txn txn;
    struct slice key = slice_str("format");
    struct slice value;
    int err = lmdb_txn_write(&store->meta, &txn);
    if (err != 0)
        return tg_fail(msg, err, "store format");
    if (lmdb_txn_get(&txn, store->db_meta, key, &value)) {
        uint32_t format = value.len == FORMAT_BYTES ? load_u32le(value.data) : 0;
        lmdb_txn_abort(&txn);
        if (format == STORE_FORMAT)
            return 0;
        return tg_fail(msg, TG_UNSUPPORTED, "%s has store format %u, this program knows %u",
                       store->dir, format, STORE_FORMAT);
    }
    uint8_t bytes[FORMAT_BYTES];
    store_u32le(bytes, STORE_FORMAT);
    lmdb_txn_put(&txn, store->db_meta, key, slice_of(bytes, sizeof bytes));
    err = lmdb_txn_commit(&txn);
    return err == 0 ? 0 : tg_fail(msg, err, "store format");
}

static int start_writers(struct store *store)
{
    uint64_t queue = store->options.writer_queue_bytes;
    int err = store_writer_start(&store->meta, queue, &store->meta_writer);
    for (int i = 0; i < BLOCK_CLASSES && err == 0; i++)
        err = store_writer_start(&store->blocks[i], queue, &store->block_writer[i]);
    return err;
}

/* Some tablets whose drop a crash interrupted. */
static int find_dropping(struct store *store, tablet_id *tablets, uint32_t *count)
{
    struct lmdb_txn txn;
    struct lmdb_cursor cursor;
    int err = lmdb_txn_read(&store->meta, &txn);
    *count = 0;
    if (err != 0)
        return err;
    if (lmdb_cursor_open(&cursor, &txn, store->db_tablet)) {
        struct tablet_value value;
        for (bool more = lmdb_cursor_next(&cursor); more; more = lmdb_cursor_next(&cursor)) {
            uint64_t tablet;
            err = store_key_parse(cursor.key, 1, &tablet);
            if (err == 0)
                err = tablet_value_decode(cursor.value, &value);
            if (err != 0)
                break;
            if (value.state == TABLET_DROPPING && *count < RESUME_TABLETS_MAX)
                tablets[(*count)++] = tablet;
        }
        lmdb_cursor_close(&cursor);
    }
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

static int resume_drops(struct store *store)
{
    tablet_id tablets[RESUME_TABLETS_MAX];
    uint32_t count;
    do {
        int err = find_dropping(store, tablets, &count);
        for (uint32_t i = 0; i < count && err == 0; i++)
            err = rowset_drop_tablet(store, tablets[i]);
        if (err != 0)
            return err;
    } while (count > 0);
    return 0;
}

static int open_parts(struct store *store, struct tg_errmsg *msg)
{
    int err = lock_directory(store, msg);
    if (err == 0)
        err = disk_reserve_open(store->dir, store->options.disk_reserve_bytes, &store->disk, msg);
    if (err == 0)
        err = lmdb_env_open(&store->meta, store->dir, "meta", store->options.meta_map_bytes, msg);
    if (err == 0)
        err = lmdb_env_open(&store->blocks[BLOCKS_64K], store->dir, "blocks-64k",
                            store->options.blocks_map_bytes, msg);
    if (err == 0)
        err = lmdb_env_open(&store->blocks[BLOCKS_256K], store->dir, "blocks-256k",
                            store->options.blocks_map_bytes, msg);
    if (err != 0)
        return err;
    store->meta.disk = store->disk;
    for (int i = 0; i < BLOCK_CLASSES; i++)
        store->blocks[i].disk = store->disk;
    err = open_databases(store);
    if (err != 0)
        return tg_fail(msg, err, "%s: databases: %s", store->dir, tg_err_sentence(err));
    err = check_format(store, msg);
    if (err != 0)
        return err;
    err = open_table_init(&store->open);
    if (err == 0)
        err = rowset_cache_init(store->options.cache_bytes, &store->cache);
    if (err == 0)
        err = start_writers(store);
    if (err == 0)
        err = resume_drops(store);
    return err == 0 ? 0 : tg_fail(msg, err, "%s: %s", store->dir, tg_err_sentence(err));
}

int store_open(const char *dir, const struct store_options *options, struct store **store,
               struct tg_errmsg *msg)
{
    if (options->writer_queue_bytes == 0)
        return tg_fail(msg, TG_INVALID, "the writer's queue must have room");
    struct store *made = calloc(1, sizeof *made);
    if (made == NULL)
        return tg_fail(msg, TG_NOMEM, "store");
    made->options = *options;
    made->lock_fd = -1;
    pthread_mutex_init(&made->drop_lock, NULL);
    made->dir = strdup(dir);
    int err = made->dir == NULL ? tg_fail(msg, TG_NOMEM, "store") : open_parts(made, msg);
    if (err != 0) {
        store_close(made);
        return err;
    }
    *store = made;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    /* The block writers first: what they finish may be followed by a seal. */
    for (int i = 0; i < BLOCK_CLASSES; i++)
        store_writer_stop(store->block_writer[i]);
    store_writer_stop(store->meta_writer);
    open_table_free(store->open);
    pthread_mutex_destroy(&store->drop_lock);
    rowset_cache_free(store->cache);
    for (int i = 0; i < BLOCK_CLASSES; i++)
        lmdb_env_close(&store->blocks[i]);
    lmdb_env_close(&store->meta);
    disk_reserve_close(store->disk);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store->dir);
    free(store);
}

int store_disk(const struct store *store, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct statvfs disk;
    if (statvfs(store->dir, &disk) != 0)
        return TG_IO;
    *free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    *total_bytes = (uint64_t)disk.f_blocks * disk.f_frsize;
    return 0;
}

static int used_bytes(struct lmdb_env *env, uint64_t *bytes)
{
    struct lmdb_pages pages;
    int err = lmdb_env_pages(env, true, &pages);
    uint64_t free_pages = pages.usable + pages.fresh + pages.pinned;
    *bytes = err == 0 ? (pages.last - free_pages) * env->page_bytes : 0;
    return err;
}

int store_measure(struct store *store, struct store_usage *usage)
{
    int err = used_bytes(&store->meta, &usage->meta_bytes);
    if (err == 0)
        err = used_bytes(&store->blocks[BLOCKS_64K], &usage->blocks_64k_bytes);
    if (err == 0)
        err = used_bytes(&store->blocks[BLOCKS_256K], &usage->blocks_256k_bytes);
    return err;
}
