/* SPDX-License-Identifier: Apache-2.0 */
/* A real cluster of processes. */
#include "tests/lib/test_cluster.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "tests/lib/test_http.h"

enum { COMMAND_BYTES = 4096, LEADER_WAIT_MS = 10000, LEADER_STEP_MS = 20 };

uint64_t test_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void test_sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

bool test_is_short(void)
{
    return getenv("TIDEGATE_TEST_SHORT") != NULL;
}

static const char *bin_folder(void)
{
    const char *folder = getenv("TIDEGATE_BIN");

    return folder != NULL ? folder : "build/bin";
}

/* ---- the tool ---- */

/* Runs `tidegate cluster VERB --dir DIR REST` with its output in DIR.tool; its exit status. */
static int run_tool(const struct test_cluster *cluster, const char *verb, const char *rest)
{
    char command[COMMAND_BYTES];
    int n = snprintf(command, sizeof command,
                     "exec '%s/tidegate' cluster %s --dir '%s/c' %s >'%s/tool' 2>&1", bin_folder(),
                     verb, cluster->dir.path, rest, cluster->dir.path);

    TG_CHECK(n > 0 && (size_t)n < sizeof command);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void order(const struct test_cluster *cluster, const char *verb, const char *rest)
{
    size_t len;

    if (run_tool(cluster, verb, rest) == 0)
        return;
    char *text = test_dir_read(&cluster->dir, "tool", &len);
    fprintf(stderr, "%s\n", text);
    free(text);
    fail_msg("tidegate cluster %s %s failed", verb, rest);
}

/* ---- who guards it ---- */

/* Stops the cluster once the test program is gone, unless it said that all is well. */
static void start_guard(struct test_cluster *cluster)
{
    int ends[2];
    char script[COMMAND_BYTES];

    snprintf(script, sizeof script,
             "'%s/tidegate' cluster stop --dir '%s/c' >/dev/null 2>&1; rm -rf '%s'", bin_folder(),
             cluster->dir.path, cluster->dir.path);
    TG_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    cluster->guard = fork();
    TG_CHECK(cluster->guard >= 0);
    if (cluster->guard == 0) {
        char word;

        setsid();
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        close(ends[1]);
        if (read(ends[0], &word, 1) == 1)
            _exit(0);
        int null_fd = open("/dev/null", O_RDWR);
        dup2(null_fd, 0);
        dup2(null_fd, 1);
        dup2(null_fd, 2);
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    cluster->guard_pipe = ends[1];
}

static void dismiss_guard(struct test_cluster *cluster)
{
    if (cluster->guard <= 0)
        return;
    (void)!write(cluster->guard_pipe, "x", 1);
    close(cluster->guard_pipe);
    waitpid(cluster->guard, NULL, 0);
    cluster->guard = 0;
}

/* ---- cluster.json ---- */

static long take_number(const struct json_value *value, const char *key)
{
    struct slice text = json_value_text(json_value_get(value, key));
    char number[24] = "";

    if (text.len < sizeof number && text.len > 0)
        memcpy(number, text.data, text.len);
    return strtol(number, NULL, 10);
}

static uint16_t take_port(const struct json_value *value, const char *key)
{
    struct slice text = json_value_text(json_value_get(value, key));
    const char *colon = text.len > 0 ? memrchr(text.data, ':', text.len) : NULL;

    return colon != NULL ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

static unsigned take_nodes(const struct json_value *list, struct test_node nodes[TEST_NODES_MAX])
{
    const struct json_value *value;
    struct json_iter iter;
    unsigned count = 0;

    json_iter_init(&iter, list);
    while (json_iter_element(&iter, &value)) {
        TG_CHECK(count < TEST_NODES_MAX);
        nodes[count++] = (struct test_node){
            .pid = take_number(value, "pid"),
            .http = take_port(value, "http"),
            .rpc = take_port(value, "rpc"),
            .raft = take_port(value, "raft"),
        };
    }
    return count;
}

static void read_nodes(struct test_cluster *cluster)
{
    struct json_doc *doc;
    size_t len;
    char *text = test_dir_read(&cluster->dir, "c/cluster.json", &len);

    TG_CHECK(json_doc_parse(text, len, NULL, &doc, NULL) == 0);
    cluster->coordinator_count =
        take_nodes(json_value_get(json_doc_root(doc), "coordinators"), cluster->coordinators);
    cluster->participant_count =
        take_nodes(json_value_get(json_doc_root(doc), "participants"), cluster->participants);
    json_doc_close(doc);
    free(text);
}

/* ---- start and end ---- */

void test_cluster_start(struct test_cluster *cluster, unsigned coordinators, unsigned participants,
                        const char *options)
{
    char rest[COMMAND_BYTES];

    memset(cluster, 0, sizeof *cluster);
    test_dir_make(&cluster->dir);
    start_guard(cluster);
    /* So that tests do not fail where a disk is nearly full. */
    snprintf(rest, sizeof rest,
             "--coordinators %u --participants %u --port-offset auto "
             "--coordinator-option disk_reserve_bytes=1m "
             "--participant-option disk_reserve_bytes=1m %s",
             coordinators, participants, options != NULL ? options : "");
    order(cluster, "start", rest);
    read_nodes(cluster);
}

/* What the tool could not stop, as when the directory was removed under a running test. Only a
 * process whose command line names this cluster's own directory is ended. */
static void kill_left_over(const struct test_cluster *cluster, const struct test_node *nodes,
                           unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char path[64];
        char line[2 * TEST_PATH_SIZE];
        size_t len = 0;

        snprintf(path, sizeof path, "/proc/%ld/cmdline", nodes[i].pid);
        FILE *file = nodes[i].pid > 1 ? fopen(path, "r") : NULL;
        if (file == NULL)
            continue;
        len = fread(line, 1, sizeof line, file);
        fclose(file);
        if (memmem(line, len, cluster->dir.path, strlen(cluster->dir.path)) != NULL)
            kill((pid_t)nodes[i].pid, SIGKILL);
    }
}

/* Words that no node may ever log: a sanitizer's finding, a broken invariant. */
static const char *find_alarm(const struct test_cluster *cluster, const char *node)
{
    static const char *const alarms[] = {"Sanitizer", "runtime error:", "check failed:"};
    char log[TEST_PATH_SIZE];
    char name[64];

    snprintf(name, sizeof name, "c/%s/log", node);
    if (access(test_dir_path(&cluster->dir, name, log), R_OK) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof alarms / sizeof alarms[0]; i++)
        if (test_cluster_logged(cluster, node, alarms[i]))
            return alarms[i];
    return NULL;
}

static void print_alarms(const struct test_cluster *cluster, const char *kind, unsigned count,
                         bool *found)
{
    for (unsigned i = 1; i <= count; i++) {
        char node[32];
        char name[64];
        size_t len;

        snprintf(node, sizeof node, "%s-%u", kind, i);
        if (find_alarm(cluster, node) == NULL)
            continue;
        snprintf(name, sizeof name, "c/%s/log", node);
        char *log = test_dir_read(&cluster->dir, name, &len);
        fprintf(stderr, "---- %s ----\n%s\n", node, log + (len > 8000 ? len - 8000 : 0));
        free(log);
        *found = true;
    }
}

void test_cluster_end(struct test_cluster *cluster)
{
    bool alarm = false;

    if (cluster->dir.path[0] == '\0')
        return;
    for (unsigned i = 0; i < cluster->coordinator_count; i++)
        if (cluster->coordinators[i].pid > 1)
            kill((pid_t)cluster->coordinators[i].pid, SIGCONT);
    for (unsigned i = 0; i < cluster->participant_count; i++)
        if (cluster->participants[i].pid > 1)
            kill((pid_t)cluster->participants[i].pid, SIGCONT);
    if (run_tool(cluster, "stop", "") != 0) {
        kill_left_over(cluster, cluster->coordinators, cluster->coordinator_count);
        kill_left_over(cluster, cluster->participants, cluster->participant_count);
    }
    dismiss_guard(cluster);
    print_alarms(cluster, "coordinator", cluster->coordinator_count, &alarm);
    print_alarms(cluster, "participant", cluster->participant_count, &alarm);
    if (getenv("TIDEGATE_KEEP") != NULL)
        fprintf(stderr, "kept: %s\n", cluster->dir.path);
    else
        test_dir_remove(&cluster->dir);
    memset(cluster, 0, sizeof *cluster);
    if (alarm)
        fail_msg("a node broke an invariant, or a sanitizer found something");
}

void test_cluster_kill(struct test_cluster *cluster, const char *node)
{
    order(cluster, "kill", node);
    read_nodes(cluster);
}

void test_cluster_stop(struct test_cluster *cluster, const char *node)
{
    order(cluster, "stop", node);
    read_nodes(cluster);
}

void test_cluster_restart(struct test_cluster *cluster, const char *node)
{
    order(cluster, "restart", node);
    read_nodes(cluster);
}

void test_cluster_restart_all(struct test_cluster *cluster)
{
    order(cluster, "restart", "");
    read_nodes(cluster);
}

void test_cluster_start_again(struct test_cluster *cluster)
{
    order(cluster, "start", "");
    read_nodes(cluster);
}

static const struct test_node *find(const struct test_cluster *cluster, const char *name)
{
    const char *dash = strchr(name, '-');
    unsigned place = dash != NULL ? (unsigned)atoi(dash + 1) - 1 : TEST_NODES_MAX;

    TG_CHECK(place < TEST_NODES_MAX);
    return name[0] == 'c' ? &cluster->coordinators[place] : &cluster->participants[place];
}

void test_cluster_pause(const struct test_cluster *cluster, const char *node)
{
    assert_int_equal(kill((pid_t)find(cluster, node)->pid, SIGSTOP), 0);
}

void test_cluster_resume(const struct test_cluster *cluster, const char *node)
{
    assert_int_equal(kill((pid_t)find(cluster, node)->pid, SIGCONT), 0);
}

/* ---- looking ---- */

static long ask_leader(uint16_t port)
{
    struct test_call call = {.port = port, .target = "/api/cluster", .timeout_ms = 3000};
    struct test_answer answer;
    struct json_doc *doc = NULL;
    long leader = 0;

    if (test_http_try(&call, &answer) == TEST_HTTP_ANSWERED && answer.status == 200 &&
        json_doc_parse(answer.body, answer.body_len, NULL, &doc, NULL) == 0) {
        const struct json_value *data = json_value_get(json_doc_root(doc), "data");

        leader = take_number(json_value_get(data, "cluster"), "leader");
        json_doc_close(doc);
    }
    test_answer_close(&answer);
    return leader;
}

unsigned test_cluster_leader(const struct test_cluster *cluster)
{
    uint64_t until = test_now_ms() + LEADER_WAIT_MS;

    while (test_now_ms() < until) {
        for (unsigned i = 0; i < cluster->coordinator_count; i++) {
            long leader =
                cluster->coordinators[i].pid > 0 ? ask_leader(cluster->coordinators[i].http) : 0;

            if (leader > 0)
                return (unsigned)leader - 1;
        }
        test_sleep_ms(LEADER_STEP_MS);
    }
    fail_msg("no coordinator leads within %d ms", LEADER_WAIT_MS);
    return 0;
}

static uint16_t first_running(const struct test_node *nodes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (nodes[i].pid > 0)
            return nodes[i].http;
    fail_msg("no such node runs");
    return 0;
}

uint16_t test_cluster_coordinator(const struct test_cluster *cluster)
{
    return first_running(cluster->coordinators, cluster->coordinator_count);
}

uint16_t test_cluster_participant(const struct test_cluster *cluster)
{
    return first_running(cluster->participants, cluster->participant_count);
}

uint64_t test_process_kib(long pid, const char *field)
{
    char path[64];
    char line[256];
    unsigned long value = 0;
    size_t len = strlen(field);

    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, len) == 0 && line[len] == ':')
            value = strtoul(line + len + 1, NULL, 10);
    fclose(file);
    return value;
}

bool test_cluster_logged(const struct test_cluster *cluster, const char *node, const char *text)
{
    char name[64];
    size_t len;

    snprintf(name, sizeof name, "c/%s/log", node);
    char *log = test_dir_read(&cluster->dir, name, &len);
    bool found = strstr(log, text) != NULL;
    free(log);
    return found;
}

int test_count(int short_of_time, int usual, int full)
{
    if (getenv("TIDEGATE_TEST_FULL") != NULL)
        return full;
    return test_is_short() ? short_of_time : usual;
}
