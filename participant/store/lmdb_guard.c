/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in LMDB's maps. The handler uses write and _exit only. */
#include "participant/store/lmdb_guard.h"

#include <link.h>
#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

struct guarded {
    const char *_Atomic path; /* NULL: free */
    _Atomic uintptr_t base;
    _Atomic size_t len;
};

static struct guarded maps[LMDB_GUARD_MAPS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool installed;
static struct sigaction old_bus;
static struct sigaction old_segv;
static uintptr_t code_base; /* of LMDB, if it is a library of its own */
static size_t code_len;

const char lmdb_guard_advice[] =
    "this participant's data is damaged: make its data directory empty and start it once with "
    "--rejoin, and its data is fetched from the other participants";

static void say(const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);

        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

/* Where the code was that met the fault; 0 where that is not known how to be told. */
static uintptr_t place_of(const void *context)
{
#if defined(__x86_64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* A damaged page can lead LMDB far outside of its map. */
static bool is_lmdb(const void *context)
{
    return place_of(context) - code_base < code_len;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    bool inside = is_lmdb(context);

    for (unsigned i = 0; i < LMDB_GUARD_MAPS_MAX; i++) {
        const char *path = maps[i].path;

        if (path == NULL || (!inside && at - maps[i].base >= maps[i].len))
            continue;
        say("ERROR store cannot_read environment=");
        say(inside ? "?" : path);
        say(number == SIGBUS
                ? " reason=\"the disk has an error, or the file is shorter than it was: "
                : " reason=\"a page leads to nowhere: ");
        say(lmdb_guard_advice);
        say("\"\n");
        _exit(LMDB_GUARD_EXIT_CODE);
    }
    /* Not about a store: as if this handler were not here. */
    sigaction(number, number == SIGBUS ? &old_bus : &old_segv, NULL);
}

/* Looks for the loaded object that holds LMDB's functions. */
static int find_code(struct dl_phdr_info *object, size_t size, void *data)
{
    uintptr_t wanted = (uintptr_t)mdb_env_create;

    (void)size;
    (void)data;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t base = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;

        if (object->dlpi_phdr[i].p_type == PT_LOAD &&
            wanted - base < object->dlpi_phdr[i].p_memsz && object->dlpi_name[0] != '\0') {
            code_base = base;
            code_len = object->dlpi_phdr[i].p_memsz;
            return 1;
        }
    }
    return 0;
}

void lmdb_guard_add(const char *path, void *base, size_t len)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    pthread_mutex_lock(&lock);
    if (!installed) {
        installed = true;
        dl_iterate_phdr(find_code, NULL);
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &old_bus);
        sigaction(SIGSEGV, &action, &old_segv);
    }
    for (unsigned i = 0; i < LMDB_GUARD_MAPS_MAX; i++)
        if (maps[i].path == NULL) {
            maps[i].base = (uintptr_t)base;
            maps[i].len = len;
            maps[i].path = path;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void lmdb_guard_remove(const char *path)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < LMDB_GUARD_MAPS_MAX; i++)
        if (maps[i].path == path)
            maps[i].path = NULL;
    pthread_mutex_unlock(&lock);
}
