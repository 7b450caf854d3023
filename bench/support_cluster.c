/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of the cluster under measurement, and what they cost: processor time and own memory. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/support.h"
#include "client/cli/cluster_json.h"

enum { WATCH_NS = 5 * 1000 * 1000 };

void bench_cluster_read(const char *dir, struct bench_cluster *cluster)
{
    static struct cluster found;
    struct tg_errmsg msg = {{0}};

    memset(&found, 0, sizeof found);
    memset(cluster, 0, sizeof *cluster);
    snprintf(found.dir, sizeof found.dir, "%s", dir);
    if (cluster_json_read(&found, &msg) != 0)
        bench_die("no cluster in %s: %s", dir, msg.text);
    for (unsigned i = 0; i < found.count; i++) {
        const struct cluster_node *from = &found.nodes[i];
        struct bench_node *to = from->is_coordinator
                                    ? &cluster->coordinators[cluster->coordinator_count++]
                                    : &cluster->participants[cluster->participant_count++];

        to->pid = from->pid;
        snprintf(to->http, sizeof to->http, "127.0.0.1:%u", from->http_port);
    }
    if (cluster->coordinator_count == 0 || cluster->participant_count == 0)
        bench_die("the cluster in %s has no nodes", dir);
}

/* User and system time of a process that runs, in seconds; 0 if unknown. */
static double cpu_of(long pid)
{
    char path[64];
    char line[1024];
    unsigned long user = 0, system = 0;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    size_t len = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[len] = 0;
    /* Behind the program's name, which may hold anything. */
    const char *rest = strrchr(line, ')');
    if (rest == NULL || sscanf(rest + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu",
                               &user, &system) != 2)
        return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

void bench_usage_take(const struct bench_cluster *cluster, struct bench_usage *usage)
{
    struct rusage own;

    *usage = (struct bench_usage){.at_s = bench_now_s()};
    for (unsigned i = 0; i < cluster->coordinator_count; i++)
        usage->coordinator_cpu_s += cpu_of(cluster->coordinators[i].pid);
    for (unsigned i = 0; i < cluster->participant_count; i++)
        usage->participant_cpu_s += cpu_of(cluster->participants[i].pid);
    getrusage(RUSAGE_SELF, &own);
    usage->client_cpu_s = seconds_of(own.ru_utime) + seconds_of(own.ru_stime);
}

void bench_usage_print(const struct bench_cluster *cluster, const struct bench_usage *begin,
                       double operations, char *out, size_t cap)
{
    struct bench_usage end;

    bench_usage_take(cluster, &end);
    double coordinators = end.coordinator_cpu_s - begin->coordinator_cpu_s;
    double participants = end.participant_cpu_s - begin->participant_cpu_s;
    double client = end.client_cpu_s - begin->client_cpu_s;
    double scale = operations > 0 ? 1e6 / operations : 0;
    size_t len = strlen(out);
    snprintf(out + len, cap - len,
             ",\"cpu_us\":%.3f,\"cpu_us_coordinators\":%.3f,\"cpu_us_participants\":%.3f,"
             "\"cpu_us_client\":%.3f",
             (coordinators + participants) * scale, coordinators * scale, participants * scale,
             client * scale);
}

uint64_t bench_own_memory(long pid)
{
    char path[64];
    char line[256];
    uint64_t total = 0;
    unsigned long kb;

    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "RssAnon: %lu", &kb) == 1 || sscanf(line, "RssShmem: %lu", &kb) == 1)
            total += kb * 1024;
    fclose(file);
    return total;
}

static double largest_mb(const struct bench_node *nodes, unsigned count)
{
    uint64_t largest = 0;

    for (unsigned i = 0; i < count; i++) {
        uint64_t bytes = bench_own_memory(nodes[i].pid);
        if (bytes > largest)
            largest = bytes;
    }
    return (double)largest / 1e6;
}

void bench_memory_print(const struct bench_cluster *cluster, char *out, size_t cap)
{
    size_t len = strlen(out);

    snprintf(out + len, cap - len, ",\"own_mb_coordinator\":%.1f,\"own_mb_participant\":%.1f",
             largest_mb(cluster->coordinators, cluster->coordinator_count),
             largest_mb(cluster->participants, cluster->participant_count));
}

struct bench_watch {
    pthread_t thread;
    long pid;
    atomic_bool stop;
    uint64_t largest;
};

static void *watch(void *data)
{
    struct bench_watch *w = data;
    struct timespec pause = {.tv_nsec = WATCH_NS};

    while (!atomic_load(&w->stop)) {
        uint64_t bytes = bench_own_memory(w->pid);
        if (bytes > w->largest)
            w->largest = bytes;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

struct bench_watch *bench_watch_start(long pid)
{
    struct bench_watch *w = calloc(1, sizeof *w);

    if (w == NULL)
        bench_die("out of memory");
    w->pid = pid;
    if (pthread_create(&w->thread, NULL, watch, w) != 0)
        bench_die("no more threads");
    return w;
}

uint64_t bench_watch_end(struct bench_watch *w)
{
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    uint64_t largest = w->largest;
    free(w);
    return largest;
}
