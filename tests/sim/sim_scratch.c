/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch folders: one for the process, one in it for each disk. */
#include "tests/sim/sim_scratch.h"

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/check.h"

#define ROOM_BYTES (UINT64_C(1) << 30)

static char base[SIM_SCRATCH_BYTES - 32];
static pid_t owner;
static unsigned count;

static const char *parent(void)
{
    struct statvfs stat;
    if (statvfs("/dev/shm", &stat) == 0 && (uint64_t)stat.f_bavail * stat.f_frsize > ROOM_BYTES &&
        access("/dev/shm", W_OK) == 0)
        return "/dev/shm";
    const char *tmp = getenv("TMPDIR");
    return tmp == NULL ? "/tmp" : tmp;
}

static void name_of(pid_t pid)
{
    TG_CHECK((size_t)snprintf(base, sizeof base, "%s/tidegate-sim-%d", parent(), (int)pid) <
             sizeof base);
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
    (void)stat;
    (void)type;
    (void)at;
    return remove(path);
}

void sim_scratch_clear_of(pid_t pid)
{
    name_of(pid);
    nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void sim_scratch_make(char path[SIM_SCRATCH_BYTES])
{
    if (owner != getpid()) {
        owner = getpid();
        name_of(owner);
        sim_scratch_clear_of(owner); /* of an earlier process with that number */
        name_of(owner);
        TG_CHECK(mkdir(base, S_IRWXU) == 0);
        atexit(sim_scratch_clear);
    }
    snprintf(path, SIM_SCRATCH_BYTES, "%s/%u", base, count++);
    TG_CHECK(mkdir(path, S_IRWXU) == 0);
}

void sim_scratch_clear(void)
{
    if (owner != getpid())
        return;
    owner = 0;
    sim_scratch_clear_of(getpid());
}
