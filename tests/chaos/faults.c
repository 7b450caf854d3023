/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a node: its wall clock runs off, or its syncs fail, as a mapped page says. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Written by tests/chaos/nodes.py (FaultPage). */
struct faults {
    int64_t clock_ns;     /* added to the wall clock */
    int32_t sync_errors;  /* so many of the next syncs fail with EIO */
    int32_t syncs_failed; /* so many did */
    char file[240];       /* whose sync failed last */
};

static struct faults *faults;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_page(void)
{
    const char *path = getenv("TIDEGATE_CHAOS_FAULTS");
    void *symbol = dlsym(RTLD_NEXT, "clock_gettime");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

    /* What POSIX says of dlsym: a cast through the pointer's own bytes. */
    *(void **)&real_clock_gettime = symbol;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        faults = page;
}

static int64_t clock_offset(void)
{
    return faults != NULL ? __atomic_load_n(&faults->clock_ns, __ATOMIC_RELAXED) : 0;
}

static int wall_clock(clockid_t id, struct timespec *time)
{
    int result = real_clock_gettime != NULL ? real_clock_gettime(id, time)
                                            : (int)syscall(SYS_clock_gettime, id, time);
    int64_t offset = clock_offset();

    if (result != 0 || offset == 0 || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return result;
    int64_t ns = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + offset;
    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
    return 0;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    return wall_clock(id, time);
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    if (wall_clock(CLOCK_REALTIME, &now) != 0)
        return -1;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now = {0};

    (void)wall_clock(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

static int sync_fails(int fd)
{
    char link[64];

    if (faults == NULL || __atomic_load_n(&faults->sync_errors, __ATOMIC_RELAXED) <= 0)
        return 0;
    if (__atomic_fetch_sub(&faults->sync_errors, 1, __ATOMIC_RELAXED) <= 0)
        return 0;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, faults->file, sizeof faults->file - 1);
    faults->file[len > 0 ? len : 0] = 0;
    __atomic_fetch_add(&faults->syncs_failed, 1, __ATOMIC_RELAXED);
    errno = EIO;
    return 1;
}

int fsync(int fd)
{
    return sync_fails(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}
