/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program: counts its allocations and what it asks of files, and lets the n-th of
 * them fail, or end the process there.
 *
 * What to do is in a page that TIDEGATE_SHIM names and that the test writes and reads (control.py
 * has the same layout), also while the program runs. Only regular files count; standard error is
 * left alone. A call's site is a hash over its return addresses: with addresses fixed, the same in
 * every run. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum kind { KIND_ALLOC, KIND_WRITE, KIND_SYNC, KIND_TRUNCATE, KIND_NAME, KINDS };
/* What happens to the chosen call. TORN: half of a write is done, then as KILL. NOSYNC: nothing is
 * ever made durable. CUT: the file system is shut down without a flush, then as KILL. */
enum action { ACTION_COUNT, ACTION_FAIL, ACTION_KILL, ACTION_TORN, ACTION_NOSYNC, ACTION_CUT };
enum { FRAMES_MAX = 14, SITES_MAX = 8192, SHUTDOWN_NO_FLUSH = 2 };
#define EXT4_SHUTDOWN _IOR('X', 125, uint32_t)

struct site {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic uint32_t count;
    uint32_t kind;
};

struct control {
    uint32_t action;
    uint32_t kinds;          /* bits: which kinds are looked at */
    uint32_t forever;        /* fail from the n-th on, not only that one */
    uint32_t error;          /* errno of a file's failure */
    uint64_t n;              /* the n-th call of these kinds at this site, from 1 */
    uint64_t site;           /* 0: everywhere */
    _Atomic uint32_t record; /* keep sites */
    _Atomic uint32_t hits;   /* how often it happened */
    _Atomic uint64_t seen;   /* calls of these kinds at this site */
    _Atomic uint64_t counts[KINDS];
    struct site sites[SITES_MAX];
};

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static struct control *control;
static pid_t owner; /* only the program itself, not what it forks */
static __thread bool inside __attribute__((tls_model("initial-exec")));

static uint64_t site_of_caller(void)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    uint64_t hash = 14695981039346656037U;
    for (int i = 2; i < count; i++) {
        hash ^= (uint64_t)(uintptr_t)frames[i];
        hash *= 1099511628211U;
        hash ^= hash >> 29;
    }
    return hash == 0 ? 1 : hash;
}

static void record_site(uint64_t hash, enum kind kind)
{
    for (uint64_t i = 0; i < SITES_MAX; i++) {
        struct site *site = &control->sites[(hash + i) % SITES_MAX];
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&site->hash, &there, hash))
            site->kind = (uint32_t)kind;
        else if (there != hash)
            continue;
        atomic_fetch_add(&site->count, 1);
        return;
    }
}

static void tell(enum kind kind, uint64_t at)
{
    void *frames[FRAMES_MAX];
    char line[512];
    int count = backtrace(frames, FRAMES_MAX);
    int len =
        snprintf(line, sizeof line, "shim: kind=%d call=%lu at", (int)kind, (unsigned long)at);
    for (int i = 3; i < count && len < (int)sizeof line - 20; i++)
        len += snprintf(line + len, sizeof line - (size_t)len, " %p", frames[i]);
    line[len++] = '\n';
    syscall(SYS_write, STDERR_FILENO, line, (size_t)len);
}

_Noreturn static void die(void)
{
    for (;;)
        kill(getpid(), SIGKILL);
}

static void cut(int fd)
{
    uint32_t flags = SHUTDOWN_NO_FLUSH;
    ioctl(fd, EXT4_SHUTDOWN, &flags);
}

/* True if the call has to fail. fd: its file, or -1. */
static bool strikes(enum kind kind, int fd)
{
    if (control == NULL || inside || getpid() != owner)
        return false;
    bool hit = false;
    inside = true;
    int saved = errno;
    atomic_fetch_add_explicit(&control->counts[kind], 1, memory_order_relaxed);
    bool looked_at = (control->kinds & 1U << kind) != 0;
    bool record = looked_at && atomic_load_explicit(&control->record, memory_order_relaxed) != 0;
    uint64_t site = record || (looked_at && control->site != 0) ? site_of_caller() : 0;
    if (record)
        record_site(site, kind);
    if (looked_at && (control->site == 0 || control->site == site)) {
        uint64_t at = atomic_fetch_add(&control->seen, 1) + 1;
        hit = control->n != 0 && (at == control->n || (control->forever != 0 && at > control->n));
        if (hit && atomic_fetch_add(&control->hits, 1) == 0)
            tell(kind, at);
    }
    if (hit && control->action == ACTION_CUT && fd >= 0) {
        cut(fd);
        die();
    }
    if (hit && control->action == ACTION_KILL)
        die();
    inside = false;
    errno = saved;
    return hit && (control->action == ACTION_FAIL || control->action == ACTION_TORN);
}

__attribute__((constructor)) static void shim_start(void)
{
    const char *path = getenv("TIDEGATE_SHIM");
    void *frame = NULL;
    backtrace(&frame, 1); /* loads what it needs */
    if (path == NULL)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return;
    owner = getpid();
    control = page;
}

/* ---- memory ---- */

EXPORT void *malloc(size_t size)
{
    if (strikes(KIND_ALLOC, -1)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    if (strikes(KIND_ALLOC, -1)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    if (strikes(KIND_ALLOC, -1)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (strikes(KIND_ALLOC, -1)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_memalign(alignment, size);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (strikes(KIND_ALLOC, -1))
        return ENOMEM;
    *memory = __libc_memalign(alignment, size);
    return *memory == NULL ? ENOMEM : 0;
}

/* ---- files ---- */

static bool is_file(int fd)
{
    struct stat status;
    return fd > STDERR_FILENO && control != NULL && fstat(fd, &status) == 0 &&
           S_ISREG(status.st_mode);
}

static bool file_strikes(enum kind kind, int fd)
{
    if (!is_file(fd) || !strikes(kind, fd))
        return false;
    errno = (int)control->error;
    return true;
}

/* After half of it was written. */
static void write_strikes(int fd, const void *bytes, size_t len, off_t offset)
{
    if (control->action != ACTION_TORN)
        return;
    if (offset >= 0)
        syscall(SYS_pwrite64, fd, bytes, len / 2, offset);
    else
        syscall(SYS_write, fd, bytes, len / 2);
    die();
}

EXPORT ssize_t write(int fd, const void *bytes, size_t len)
{
    if (file_strikes(KIND_WRITE, fd)) {
        write_strikes(fd, bytes, len, -1);
        return -1;
    }
    return syscall(SYS_write, fd, bytes, len);
}

EXPORT ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    if (file_strikes(KIND_WRITE, fd)) {
        write_strikes(fd, bytes, len, offset);
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, len, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
    return pwrite(fd, bytes, len, offset);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (file_strikes(KIND_WRITE, fd)) {
        write_strikes(fd, parts[0].iov_base, parts[0].iov_len, -1);
        return -1;
    }
    return syscall(SYS_writev, fd, parts, count);
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    if (file_strikes(KIND_WRITE, fd)) {
        write_strikes(fd, parts[0].iov_base, parts[0].iov_len, offset);
        return -1;
    }
    return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset)
{
    return pwritev(fd, parts, count, offset);
}

/* raft's writes: one block of kernel AIO each. */
static bool submit_strikes(void **blocks)
{
    struct {
        uint64_t data;
        uint32_t key, flags;
        uint16_t opcode;
        int16_t priority;
        uint32_t fd;
        uint64_t buffer, bytes;
        int64_t offset;
    } head;
    memcpy(&head, blocks[0], sizeof head);
    if (!file_strikes(KIND_WRITE, (int)head.fd))
        return false;
    if (head.opcode == 7 || head.opcode == 8) { /* preadv, pwritev */
        const struct iovec *part = (const struct iovec *)(uintptr_t)head.buffer;
        write_strikes((int)head.fd, part->iov_base, part->iov_len, head.offset);
    }
    write_strikes((int)head.fd, (const void *)(uintptr_t)head.buffer, head.bytes, head.offset);
    return true;
}

EXPORT long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long args[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (next == NULL)
        next = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_io_submit && control != NULL && args[1] > 0 &&
        submit_strikes((void **)args[2])) {
        errno = (int)control->error;
        return -1;
    }
    return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

static bool syncs_nothing(void)
{
    return control != NULL && control->action == ACTION_NOSYNC;
}

EXPORT int fsync(int fd)
{
    struct stat status;
    /* A directory's counts too. */
    bool counts = control != NULL && fstat(fd, &status) == 0;
    if (counts && strikes(KIND_SYNC, fd)) {
        errno = (int)control->error;
        return -1;
    }
    return syncs_nothing() ? 0 : (int)syscall(SYS_fsync, fd);
}

EXPORT int fdatasync(int fd)
{
    if (file_strikes(KIND_SYNC, fd))
        return -1;
    return syncs_nothing() ? 0 : (int)syscall(SYS_fdatasync, fd);
}

EXPORT int msync(void *memory, size_t len, int flags)
{
    if (strikes(KIND_SYNC, -1)) {
        errno = (int)control->error;
        return -1;
    }
    return syncs_nothing() ? 0 : (int)syscall(SYS_msync, memory, len, flags);
}

EXPORT int ftruncate(int fd, off_t len)
{
    return file_strikes(KIND_TRUNCATE, fd) ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

EXPORT int ftruncate64(int fd, off_t len)
{
    return ftruncate(fd, len);
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t len)
{
    if (file_strikes(KIND_TRUNCATE, fd))
        return (int)control->error;
    return syscall(SYS_fallocate, fd, 0, offset, len) == 0 ? 0 : errno;
}

EXPORT int posix_fallocate64(int fd, off_t offset, off_t len)
{
    return posix_fallocate(fd, offset, len);
}

/* ---- names ---- */

static bool name_strikes(void)
{
    if (!strikes(KIND_NAME, -1))
        return false;
    errno = (int)control->error;
    return true;
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
    /* What is only read, and what is no file of ours. */
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
    bool system = strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    if (writes && !system && name_strikes())
        return -1;
    if (syncs_nothing())
        flags &= ~(O_SYNC | O_DSYNC);
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

static mode_t mode_of(int flags, va_list list)
{
    return (flags & O_CREAT) != 0 ? (mode_t)va_arg(list, unsigned) : 0;
}

EXPORT int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_at(dir, path, flags, mode);
}

EXPORT int rename(const char *from, const char *to)
{
    return name_strikes() ? -1 : (int)syscall(SYS_rename, from, to);
}

EXPORT int unlink(const char *path)
{
    return name_strikes() ? -1 : (int)syscall(SYS_unlink, path);
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return name_strikes() ? -1 : (int)syscall(SYS_mkdir, path, mode);
}
