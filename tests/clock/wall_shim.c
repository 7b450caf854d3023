/* SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: the wall clock of one process differs from the machine's by as many seconds as
 * the file TIDEGATE_WALL_FILE says, looked at anew each time. The monotonic clock, and all that
 * waits, is left alone. (libfaketime would do, if it did not take over pthread_cond_timedwait, too,
 * and lose wake-ups by that.) */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset_s(void)
{
    char text[32];
    const char *path = getenv("TIDEGATE_WALL_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strtoll(text, NULL, 10);
}

static int real_time(clockid_t id, struct timespec *at)
{
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL) {
        void *found = dlsym(RTLD_NEXT, "clock_gettime");
        memcpy(&next, &found, sizeof next);
    }
    return next(id, at);
}

int clock_gettime(clockid_t id, struct timespec *at)
{
    int result = real_time(id, at);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        at->tv_sec += offset_s();
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}
