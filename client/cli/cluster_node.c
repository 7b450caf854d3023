/* SPDX-License-Identifier: Apache-2.0 */
/* One node of a local cluster as a process. */
#include "client/cli/cluster_node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/cluster_json.h"

enum { CMDLINE_BYTES = 4096, CHILD_FD_MAX = 1024 };

static const char *program_of(const struct cluster_node *node)
{
    return node->is_coordinator ? "tidegate-coordinator" : "tidegate-participant";
}

/* ---- who a process is ---- */

static bool has_program(long pid, const char *program)
{
    char link[64];
    char exe[PATH_MAX];

    snprintf(link, sizeof link, "/proc/%ld/exe", pid);
    ssize_t n = readlink(link, exe, sizeof exe - 1);
    if (n <= 0)
        return false;
    exe[n] = '\0';
    char *deleted = strstr(exe, " (deleted)"); /* built anew while it runs */
    if (deleted != NULL)
        *deleted = '\0';
    const char *name = strrchr(exe, '/');
    return name != NULL && strcmp(name + 1, program) == 0;
}

static bool has_argument(long pid, const char *argument)
{
    char path[64];
    char line[CMDLINE_BYTES];
    bool found = false;

    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    line[n] = '\0';
    for (const char *at = line; at < line + n && !found; at += strlen(at) + 1)
        found = strcmp(at, argument) == 0;
    return found;
}

bool cluster_node_runs(const struct cluster *cluster, const struct cluster_node *node)
{
    char conf[CLUSTER_PATH_BYTES];

    cluster_dir_conf_path(cluster, node, conf);
    return node->pid > 1 && has_program(node->pid, program_of(node)) &&
           has_argument(node->pid, conf);
}

/* A handle on the node's process, -1 if it does not run. The handle is taken before the check, so
 * that a signal cannot hit another process that got the number in between. */
static int hold(const struct cluster *cluster, const struct cluster_node *node)
{
    int fd = node->pid > 1 ? pidfd_open((pid_t)node->pid, 0) : -1;

    if (fd >= 0 && !cluster_node_runs(cluster, node)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool wait_end(int fd, const struct cluster_node *node, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int rc;

    do
        rc = poll(&poll_fd, 1, timeout_ms);
    while (rc < 0 && errno == EINTR);
    if (rc > 0)
        waitpid((pid_t)node->pid, NULL, WNOHANG); /* if it is a child of ours */
    return rc > 0;
}

static void forget_pid(const struct cluster *cluster, struct cluster_node *node)
{
    char path[CLUSTER_PATH_BYTES];

    node->pid = 0;
    cluster_dir_path(cluster, node, "pid", path);
    unlink(path);
}

int cluster_node_stop(const struct cluster *cluster, struct cluster_node *node, bool *killed,
                      struct tg_errmsg *msg)
{
    int fd = hold(cluster, node);
    int err = 0;

    *killed = false;
    if (fd >= 0) {
        pidfd_send_signal(fd, SIGTERM, NULL, 0);
        if (!wait_end(fd, node, CLUSTER_STOP_MS)) {
            *killed = true;
            pidfd_send_signal(fd, SIGKILL, NULL, 0);
            if (!wait_end(fd, node, CLUSTER_KILL_MS))
                err = tg_fail(msg, TG_IO, "%s (pid %ld) does not end", node->name, node->pid);
        }
        close(fd);
    }
    if (err == 0)
        forget_pid(cluster, node);
    return err;
}

int cluster_node_kill(const struct cluster *cluster, struct cluster_node *node,
                      struct tg_errmsg *msg)
{
    int fd = hold(cluster, node);
    int err = 0;

    if (fd < 0)
        return tg_fail(msg, TG_NOT_FOUND, "%s does not run", node->name);
    if (pidfd_send_signal(fd, SIGKILL, NULL, 0) != 0 || !wait_end(fd, node, CLUSTER_KILL_MS))
        err = tg_fail(msg, TG_IO, "cannot kill %s (pid %ld)", node->name, node->pid);
    close(fd);
    if (err == 0)
        forget_pid(cluster, node);
    return err;
}

/* ---- starting ---- */

static int find_program(const struct cluster_node *node, char out[PATH_MAX], struct tg_errmsg *msg)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (n <= 0)
        return tg_fail(msg, TG_IO, "/proc/self/exe: %s", strerror(errno));
    self[n] = '\0';
    slash = strrchr(self, '/');
    *slash = '\0';
    if (snprintf(out, PATH_MAX, "%s/%s", self, program_of(node)) >= PATH_MAX ||
        access(out, X_OK) != 0)
        return tg_fail(msg, TG_NOT_FOUND, "%s is not beside this program (%s)", program_of(node),
                       self);
    return 0;
}

/* In the child: becomes the program; what hinders it is written into `word`, which closes by itself
 * otherwise. Only calls that are safe after fork. */
static void __attribute__((noreturn)) become(char *const argv[], int null_fd, int log_fd, int word)
{
    sigset_t none;
    int problem;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    if (dup2(null_fd, 0) >= 0 && dup2(log_fd, 1) >= 0 && dup2(log_fd, 2) >= 0) {
        for (int fd = 3; fd < CHILD_FD_MAX; fd++)
            if (fd != word)
                close(fd);
        execv(argv[0], argv);
    }
    problem = errno;
    _exit(write(word, &problem, sizeof problem) > 0 ? 127 : 126);
}

/* Returns once the child is the program; its process id, or -1 with errno. */
static pid_t spawn(char *const argv[], int null_fd, int log_fd)
{
    int word[2];
    int problem = 0;

    if (pipe2(word, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        become(argv, null_fd, log_fd, word[1]);
    problem = errno;
    close(word[1]);
    if (pid > 0 && read(word[0], &problem, sizeof problem) == (ssize_t)sizeof problem) {
        waitpid(pid, NULL, 0);
        pid = -1;
    }
    close(word[0]);
    errno = problem;
    return pid;
}

static int record_pid(const struct cluster *cluster, const struct cluster_node *node,
                      struct tg_errmsg *msg)
{
    char path[CLUSTER_PATH_BYTES];
    char text[24];
    int len = snprintf(text, sizeof text, "%ld\n", node->pid);

    cluster_dir_path(cluster, node, "pid", path);
    return cluster_file_write(path, slice_of(text, (size_t)len), 0644, msg);
}

int cluster_node_start(const struct cluster *cluster, struct cluster_node *node, const char *flag,
                       struct tg_errmsg *msg)
{
    char program[PATH_MAX];
    char conf[CLUSTER_PATH_BYTES];
    char log[CLUSTER_PATH_BYTES];
    char config_flag[] = "--config";
    char last[CLUSTER_NAME_BYTES] = "";
    char *argv[] = {program, config_flag, conf, flag != NULL ? last : NULL, NULL};
    int err = find_program(node, program, msg);

    if (err != 0)
        return err;
    if (flag != NULL)
        snprintf(last, sizeof last, "%s", flag);
    cluster_dir_conf_path(cluster, node, conf);
    cluster_dir_path(cluster, node, "log", log);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    pid_t pid = null_fd < 0 || log_fd < 0 ? -1 : spawn(argv, null_fd, log_fd);
    if (pid < 0)
        err = tg_fail(msg, TG_IO, "cannot start %s: %s", node->name, strerror(errno));
    if (null_fd >= 0)
        close(null_fd);
    if (log_fd >= 0)
        close(log_fd);
    if (err != 0)
        return err;
    node->pid = pid;
    return record_pid(cluster, node, msg);
}

void cluster_node_log_tail(const struct cluster *cluster, const struct cluster_node *node,
                           struct buf *out)
{
    char path[CLUSTER_PATH_BYTES];
    struct buf text = BUF_INIT;
    const uint8_t *at;

    cluster_dir_path(cluster, node, "log", path);
    if (cluster_file_read(path, CLUSTER_LOG_TAIL_BYTES, &text) == 0 && text.len > 0) {
        at = text.len == CLUSTER_LOG_TAIL_BYTES ? memchr(text.data, '\n', text.len) : NULL;
        at = at != NULL ? at + 1 : text.data; /* whole lines */
        buf_append(out, at, (size_t)(text.data + text.len - at));
    }
    buf_close(&text);
}
