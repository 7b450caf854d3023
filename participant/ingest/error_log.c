/* SPDX-License-Identifier: Apache-2.0 */
/* Files of refused rows. A file is written whole when its load ends. Names carry their time, so
 * that the folder itself says what is old: <wall microseconds>_<random>, both 16 hex digits. */
#include "participant/ingest/error_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"

enum { NAME_LEN = 33, PATH_BYTES = 4096 };

struct entry {
    char name[NAME_LEN + 1];
    uint64_t bytes;
};

struct error_logs {
    char *dir;
    struct clock *clock;
    struct random_source *random;
    pthread_mutex_t lock;
    uint32_t count; /* oldest first */
    uint64_t bytes;
    struct entry entries[ERROR_LOG_FILES_MAX];
};

/* Only names that this file makes: nothing that could lead out of the folder. */
static bool is_name(const char *name)
{
    return strlen(name) == NAME_LEN && strspn(name, "0123456789abcdef") == 16 && name[16] == '_' &&
           strspn(name + 17, "0123456789abcdef") == 16;
}

static int path_of(const struct error_logs *logs, const char *name, char path[PATH_BYTES])
{
    int n = snprintf(path, PATH_BYTES, "%s/%s", logs->dir, name);
    return n > 0 && n < PATH_BYTES ? 0 : TG_INVALID;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void remove_oldest(struct error_logs *logs, uint32_t count)
{
    char path[PATH_BYTES];

    for (uint32_t i = 0; i < count; i++) {
        if (path_of(logs, logs->entries[i].name, path) == 0)
            unlink(path);
        logs->bytes -= logs->entries[i].bytes;
    }
    logs->count -= count;
    memmove(logs->entries, logs->entries + count, logs->count * sizeof logs->entries[0]);
}

/* Makes room for one more file of `bytes`, and drops what is too old. */
static void make_room(struct error_logs *logs, uint64_t bytes)
{
    uint64_t now = clock_wall_us(logs->clock);
    uint32_t drop = 0;
    uint64_t left = logs->bytes;

    while (drop < logs->count) {
        uint64_t made = strtoull(logs->entries[drop].name, NULL, 16);
        bool old = made + ERROR_LOG_KEEP_US < now;
        if (!old && logs->count - drop < ERROR_LOG_FILES_MAX &&
            left + bytes <= ERROR_LOG_TOTAL_BYTES_MAX)
            break;
        left -= logs->entries[drop].bytes;
        drop++;
    }
    if (drop > 0)
        remove_oldest(logs, drop);
}

/* Lists what an earlier run left; strangers in the folder are let be. */
static void find_files(struct error_logs *logs, DIR *dir)
{
    char path[PATH_BYTES];
    struct stat st;

    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir)) {
        if (!is_name(item->d_name) || path_of(logs, item->d_name, path) != 0)
            continue;
        if (logs->count == ERROR_LOG_FILES_MAX || stat(path, &st) != 0) {
            unlink(path);
            continue;
        }
        struct entry *entry = &logs->entries[logs->count++];
        memcpy(entry->name, item->d_name, NAME_LEN + 1);
        entry->bytes = (uint64_t)st.st_size;
        logs->bytes += entry->bytes;
    }
    qsort(logs->entries, logs->count, sizeof logs->entries[0], compare_names);
    make_room(logs, 0);
}

int error_logs_open(const char *dir, struct clock *clock, struct random_source *random,
                    struct error_logs **logs, struct tg_errmsg *msg)
{
    struct error_logs *l = calloc(1, sizeof *l);
    if (l == NULL || (l->dir = strdup(dir)) == NULL) {
        free(l);
        return tg_fail(msg, TG_NOMEM, "no memory for the error log");
    }
    l->clock = clock;
    l->random = random;
    pthread_mutex_init(&l->lock, NULL);
    DIR *folder = NULL;
    if ((mkdir(dir, 0755) != 0 && errno != EEXIST) || (folder = opendir(dir)) == NULL) {
        int err = tg_fail(msg, TG_IO, "error log folder %s: %s", dir, strerror(errno));
        error_logs_close(l);
        return err;
    }
    find_files(l, folder);
    closedir(folder);
    *logs = l;
    return 0;
}

void error_logs_close(struct error_logs *logs)
{
    if (logs == NULL)
        return;
    pthread_mutex_destroy(&logs->lock);
    free(logs->dir);
    free(logs);
}

int error_logs_read(struct error_logs *logs, const char *name, struct buf *out)
{
    char path[PATH_BYTES];
    uint8_t piece[16 * 1024];

    if (!is_name(name) || path_of(logs, name, path) != 0)
        return TG_NOT_FOUND;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return TG_NOT_FOUND;
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) > 0)
        buf_append(out, piece, (size_t)n);
    close(fd);
    return n < 0 ? TG_IO : out->err;
}

void error_log_init(struct error_log *log, struct error_logs *logs)
{
    *log = (struct error_log){.logs = logs};
}

void error_log_close(struct error_log *log)
{
    buf_close(&log->text);
}

void error_log_add(struct error_log *log, const char *reason, struct slice line)
{
    if (log->rows == 0)
        snprintf(log->first, sizeof log->first, "%s", reason);
    if (!error_log_has_room(log))
        return;
    log->rows++;
    size_t shown = line.len < ERROR_LOG_LINE_MAX ? line.len : ERROR_LOG_LINE_MAX;
    buf_printf(&log->text, "Reason: %s. src line [", reason);
    buf_append(&log->text, line.data, shown);
    buf_append_str(&log->text, shown < line.len ? " error log is too long]; \n" : "]; \n");
}

static int write_file(const char *path, const struct buf *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    size_t done = 0;

    if (fd < 0)
        return TG_IO;
    while (done < text->len) {
        ssize_t n = write(fd, text->data + done, text->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    close(fd);
    if (done == text->len)
        return 0;
    unlink(path);
    return TG_IO;
}

const char *error_log_finish(struct error_log *log)
{
    struct error_logs *logs = log->logs;
    char path[PATH_BYTES];

    if (log->rows == 0 || logs == NULL || log->text.err != 0)
        return NULL;
    if (log->name[0] != 0)
        return log->name;
    pthread_mutex_lock(&logs->lock);
    make_room(logs, log->text.len);
    struct entry *entry = &logs->entries[logs->count];
    snprintf(entry->name, sizeof entry->name, "%016" PRIx64 "_%016" PRIx64,
             clock_wall_us(logs->clock), random_u64(logs->random));
    entry->bytes = log->text.len;
    if (path_of(logs, entry->name, path) == 0 && write_file(path, &log->text) == 0) {
        memcpy(log->name, entry->name, NAME_LEN + 1);
        logs->bytes += entry->bytes;
        logs->count++;
    } else {
        log_warn("error_log", "write failed path=%s", log_quote(path));
    }
    pthread_mutex_unlock(&logs->lock);
    return log->name[0] != 0 ? log->name : NULL;
}
