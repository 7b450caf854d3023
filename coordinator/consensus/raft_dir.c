/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at raft's directory before raft does. */
#include "coordinator/consensus/raft_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/endian.h"
#include "common/base/log.h"

enum {
    RAFT_DIR_PATH_BYTES = 4096,
    RAFT_DIR_METADATA_BYTES = 32,
    RAFT_DIR_SEGMENT_BYTES = 32, /* of an open segment's begin: format, checksums, entries */
    RAFT_DIR_SEGMENT_FORMAT = 1
};

static const char *const raft_dir_metadata[2] = {"metadata1", "metadata2"};

static int raft_dir_sync_file(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int code = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return code;
}

/* What a killed process had written and not synced is still with the system: raft reads it, counts
 * it as stored, and tells others so. Then it must be on the disk. */
static int raft_dir_sync(const char *path, struct tg_errmsg *msg)
{
    DIR *open_dir = opendir(path);
    if (open_dir == NULL)
        return tg_fail(msg, TG_IO, "cannot read %s: %s", path, strerror(errno));
    int code = 0;
    for (struct dirent *entry; code == 0 && (entry = readdir(open_dir)) != NULL;)
        if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN)
            code = raft_dir_sync_file(dirfd(open_dir), entry->d_name);
    if (code == 0 && fsync(dirfd(open_dir)) != 0)
        code = errno;
    closedir(open_dir);
    return code == 0 ? 0 : tg_fail(msg, TG_IO, "cannot sync %s: %s", path, strerror(code));
}

int raft_dir_prepare(const char *path, struct tg_errmsg *msg)
{
    if (strlen(path) + 64 > RAFT_DIR_PATH_BYTES)
        return tg_fail(msg, TG_TOO_LARGE, "the path of raft's directory is too long");
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return tg_fail(msg, TG_IO, "cannot make %s: %s", path, strerror(errno));
    return raft_dir_sync(path, msg);
}

static bool raft_dir_is_digits(const char *text, size_t len)
{
    return len > 0 && strspn(text, "0123456789") >= len;
}

/* "FIRST-LAST" and "snapshot-….meta" hold entries or a configuration. */
static bool raft_dir_is_log(const char *name)
{
    size_t len = strlen(name);
    const char *dash = strchr(name, '-');
    if (dash == NULL)
        return false;
    if (strncmp(name, "snapshot-", 9) == 0)
        return len > 5 && strcmp(name + len - 5, ".meta") == 0;
    return raft_dir_is_digits(name, (size_t)(dash - name)) &&
           raft_dir_is_digits(dash + 1, strlen(dash + 1));
}

/* "open-N" is made ahead of use, full of zeros; in use it holds entries. A server that joined has
 * nothing but such files until one of them is full: only who bootstraps begins with a closed one. */
static bool raft_dir_is_open_log(const char *path, const char *name)
{
    char file[RAFT_DIR_PATH_BYTES];
    uint8_t bytes[RAFT_DIR_SEGMENT_BYTES];

    if (strncmp(name, "open-", 5) != 0 || !raft_dir_is_digits(name + 5, strlen(name + 5)))
        return false;
    int len = snprintf(file, sizeof file, "%s/%s", path, name);
    int fd = len < (int)sizeof file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    if (n != (ssize_t)sizeof bytes || load_u64le(bytes) != RAFT_DIR_SEGMENT_FORMAT)
        return false;
    return load_u64le(bytes + 8) != 0 || load_u64le(bytes + 16) != 0;
}

/* format, version, term, vote: u64 each. The newer of the two files counts. */
static void raft_dir_read_metadata(const char *path, struct raft_dir *dir, uint64_t *vote)
{
    uint64_t newest = 0;
    for (int i = 0; i < 2; i++) {
        char file[RAFT_DIR_PATH_BYTES];
        uint8_t bytes[RAFT_DIR_METADATA_BYTES];
        snprintf(file, sizeof file, "%s/%s", path, raft_dir_metadata[i]);
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t n = read(fd, bytes, sizeof bytes);
        close(fd);
        if (n != (ssize_t)sizeof bytes || load_u64le(bytes + 8) < newest)
            continue;
        newest = load_u64le(bytes + 8);
        dir->term = load_u64le(bytes + 16);
        *vote = load_u64le(bytes + 24);
    }
}

int raft_dir_look(const char *path, struct raft_dir *dir, struct tg_errmsg *msg)
{
    memset(dir, 0, sizeof *dir);
    DIR *open_dir = opendir(path);
    if (open_dir == NULL)
        return tg_fail(msg, TG_IO, "cannot read %s: %s", path, strerror(errno));
    bool has_log = false;
    bool has_metadata = false;
    for (struct dirent *entry; (entry = readdir(open_dir)) != NULL;) {
        has_log =
            has_log || raft_dir_is_log(entry->d_name) || raft_dir_is_open_log(path, entry->d_name);
        has_metadata = has_metadata || strncmp(entry->d_name, "metadata", 8) == 0;
    }
    closedir(open_dir);
    uint64_t vote = 0;
    if (has_metadata)
        raft_dir_read_metadata(path, dir, &vote);
    if (has_log)
        dir->kind = RAFT_DIR_COMPLETE;
    else if (!has_metadata)
        dir->kind = RAFT_DIR_EMPTY;
    else
        dir->kind = dir->term <= 1 && vote == 0 ? RAFT_DIR_HALF : RAFT_DIR_LOST;
    return 0;
}

static int raft_dir_empty(const char *path, struct tg_errmsg *msg)
{
    for (int i = 0; i < 2; i++) {
        char file[RAFT_DIR_PATH_BYTES];
        snprintf(file, sizeof file, "%s/%s", path, raft_dir_metadata[i]);
        if (unlink(file) != 0 && errno != ENOENT)
            return tg_fail(msg, TG_IO, "cannot remove %s: %s", file, strerror(errno));
    }
    return 0;
}

int raft_dir_admit(const char *path, bool wanted, bool *bootstrap, struct tg_errmsg *msg)
{
    struct raft_dir dir;
    int err = raft_dir_look(path, &dir, msg);
    *bootstrap = false;
    if (err != 0)
        return err;
    switch (dir.kind) {
    case RAFT_DIR_COMPLETE:
        return 0;
    case RAFT_DIR_LOST:
        return tg_fail(msg, TG_REFUSED,
                       "%s has a vote or term (%lu) but no log: this server's log is lost, and it "
                       "must not come back under its old id",
                       path, (unsigned long)dir.term);
    case RAFT_DIR_HALF:
    case RAFT_DIR_EMPTY:
        break;
    }
    if (!wanted)
        return tg_fail(msg, TG_REFUSED,
                       "%s holds no log: a server whose log is gone must not come back under its "
                       "old id; to form a new cluster start all its coordinators with `bootstrap`",
                       path);
    if (dir.kind == RAFT_DIR_HALF) {
        log_warn("raft", "bootstrap was cut off before, starting over dir=%s", path);
        err = raft_dir_empty(path, msg);
    }
    *bootstrap = err == 0;
    return err;
}

uint64_t raft_dir_free_bytes(const char *path)
{
    struct statvfs fs;
    if (statvfs(path, &fs) != 0)
        return UINT64_MAX;
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}
