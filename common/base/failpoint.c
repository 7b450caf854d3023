/* SPDX-License-Identifier: Apache-2.0 */
/* Failpoints: what the file of armed ones says of the one that was hit. */
#include "common/base/failpoint.h"

#ifdef TG_FAILPOINTS
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ARMED_MAX = 64, LINE_BYTES = 128, WORD_BYTES = 64 };

/* A line that this process has seen. */
struct armed {
    char line[LINE_BYTES];
    char name[WORD_BYTES];
    unsigned hits;
    unsigned done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct armed armed[ARMED_MAX];
static unsigned armed_count;

static struct armed *armed_of(const char *line, const char *name)
{
    for (unsigned i = 0; i < armed_count; i++)
        if (strcmp(armed[i].line, line) == 0)
            return &armed[i];
    if (armed_count == ARMED_MAX)
        return NULL;
    struct armed *made = &armed[armed_count++];
    snprintf(made->line, sizeof made->line, "%s", line);
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

static void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void *kill_later(void *data)
{
    sleep_ms((long)(intptr_t)data);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* Copies the action of a line that is due now; under the lock. */
static bool is_due(const char *name, const char *line, char action[WORD_BYTES])
{
    char named[WORD_BYTES];
    unsigned number = 0;
    int pid = 0;
    if (sscanf(line, "%63s %63s %u %d", named, action, &number, &pid) < 3 ||
        strcmp(named, name) != 0 || (pid != 0 && pid != getpid()))
        return false;
    struct armed *found = armed_of(line, name);
    if (found == NULL || ++found->hits != number)
        return false;
    found->done++;
    return true;
}

static bool act(const char *name, const char *action)
{
    long ms = 0;
    fprintf(stderr, "failpoint %s %s\n", name, action);
    if (strcmp(action, "kill") == 0) {
        kill(getpid(), SIGKILL);
    } else if (sscanf(action, "hold:%ld", &ms) == 1) {
        sleep_ms(ms);
    } else if (sscanf(action, "later:%ld", &ms) == 1) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, kill_later, (void *)(intptr_t)ms) == 0)
            pthread_detach(thread);
    }
    return strcmp(action, "error") == 0;
}

bool failpoint_hit(const char *name)
{
    const char *path = getenv("TIDEGATE_FAILPOINTS");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char line[LINE_BYTES];
    char action[WORD_BYTES];
    bool due = false;
    if (file == NULL)
        return false;
    pthread_mutex_lock(&lock);
    while (!due && fgets(line, sizeof line, file) != NULL)
        due = is_due(name, line, action);
    pthread_mutex_unlock(&lock);
    fclose(file);
    return due && act(name, action);
}

unsigned failpoint_done(const char *name)
{
    unsigned done = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < armed_count; i++)
        if (strcmp(armed[i].name, name) == 0)
            done += armed[i].done;
    pthread_mutex_unlock(&lock);
    return done;
}
#endif
