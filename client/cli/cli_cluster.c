/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate cluster: start, status, stop, kill, restart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/cli.h"
#include "client/cli/cli_flags.h"
#include "client/cli/cluster_dir.h"
#include "client/cli/cluster_members.h"
#include "client/cli/cluster_node.h"
#include "client/cli/cluster_watch.h"
#include "common/base/random.h"

enum { AUTO_START_STEPS = 200, NODES_DEFAULT = 3 };

struct cluster_call {
    const char *dir;
    const char *offset_text;
    struct cluster_plan plan;
    struct cli_list coordinator_options;
    struct cli_list participant_options;
    bool rejoin;    /* restart: the participant takes its place anew */
    bool was_there; /* start: the directory had a cluster already */
    struct cluster cluster;
};

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int failed(const struct tg_errmsg *msg)
{
    fprintf(stderr, "tidegate: %s\n", msg->text);
    return CLI_FAILED;
}

/* ---- start ---- */

static int check_options(const struct cli_usage *usage, const struct cli_list *options)
{
    for (size_t i = 0; i < options->count; i++)
        if (strchr(options->items[i], '=') == NULL || strpbrk(options->items[i], "\r\n") != NULL)
            return cli_wrong(usage, "'%s' is not key=value", options->items[i]);
    return CLI_OK;
}

static int check_plan(const struct cli_usage *usage, struct cluster_call *call)
{
    struct cluster_plan *plan = &call->plan;
    char *end;

    if (plan->coordinators < 1 || plan->coordinators % 2 == 0 || plan->coordinators > 5)
        return cli_wrong(usage, "--coordinators must be 1, 3 or 5");
    if (plan->participants < 1)
        return cli_wrong(usage, "--participants must be at least 1");
    if (call->offset_text != NULL && strcmp(call->offset_text, "auto") != 0) {
        plan->port_offset = strtoull(call->offset_text, &end, 10);
        if (call->offset_text[0] < '0' || call->offset_text[0] > '9' || *end != '\0' ||
            plan->port_offset > CLUSTER_OFFSET_MAX || plan->port_offset % CLUSTER_OFFSET_STEP != 0)
            return cli_wrong(usage, "--port-offset must be a multiple of %d up to %d, or auto",
                             CLUSTER_OFFSET_STEP, CLUSTER_OFFSET_MAX);
    }
    int rc = check_options(usage, &call->coordinator_options);
    return rc != CLI_OK ? rc : check_options(usage, &call->participant_options);
}

/* A cluster that was laid out but never ran. */
static bool never_ran(const struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++)
        if (cluster_node_runs(cluster, &cluster->nodes[i]))
            return false;
    return cluster_dir_is_new(cluster);
}

/* A directory without a cluster gets one; one that is there keeps its nodes and ports. */
static int find_cluster(struct cluster_call *call, struct tg_errmsg *msg)
{
    struct cluster *cluster = &call->cluster;
    int err = cluster_dir_open(call->dir, true, cluster, msg);

    if (err == 0)
        err = cluster_dir_read(cluster, msg);
    if (err == 0 && never_ran(cluster))
        err = TG_NOT_FOUND;
    call->was_there = err == 0;
    if (err != TG_NOT_FOUND)
        return err;
    if (call->offset_text != NULL && strcmp(call->offset_text, "auto") == 0) {
        uint64_t start = 1 + random_below(random_system(), AUTO_START_STEPS);

        if (cluster_dir_find_offset(&call->plan, start, &call->plan.port_offset) != 0)
            return tg_fail(msg, TG_NOT_FOUND, "no port offset has all its ports free");
    }
    cluster->count = 0;
    return cluster_dir_make(cluster, &call->plan, msg);
}

static int start_nodes(struct cluster *cluster, unsigned *started, struct tg_errmsg *msg)
{
    bool bootstrap = cluster_dir_is_forming(cluster);
    int err = 0;

    for (unsigned i = 0; i < cluster->count && err == 0; i++)
        if (!cluster_node_runs(cluster, &cluster->nodes[i]))
            err = cluster_dir_check_ports(&cluster->nodes[i], msg);
    for (unsigned i = 0; i < cluster->count && err == 0; i++) {
        struct cluster_node *node = &cluster->nodes[i];

        if (cluster_node_runs(cluster, node))
            continue;
        err = cluster_node_start(cluster, node,
                                 bootstrap && node->is_coordinator ? "--bootstrap" : NULL, msg);
        if (err == 0)
            *started |= 1u << i;
    }
    return err;
}

static void show_log(const struct cluster *cluster, int place)
{
    struct buf text = BUF_INIT;

    if (place < 0)
        return;
    cluster_node_log_tail(cluster, &cluster->nodes[place], &text);
    fprintf(stderr, "---- the end of %s/%s/log:\n%.*s----\n", cluster->dir,
            cluster->nodes[place].name, (int)text.len, text.len > 0 ? (const char *)text.data : "");
    buf_close(&text);
}

static void take_back(struct cluster *cluster, unsigned started)
{
    struct tg_errmsg msg;
    bool killed;

    for (unsigned i = 0; i < cluster->count; i++)
        if ((started & 1u << i) != 0 &&
            cluster_node_stop(cluster, &cluster->nodes[i], &killed, &msg) != 0)
            fprintf(stderr, "tidegate: %s\n", msg.text);
    cluster_dir_write(cluster, NULL);
}

static void print_nodes(const struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++)
        printf("  %-15s http 127.0.0.1:%-5u  pid %ld\n", cluster->nodes[i].name,
               cluster->nodes[i].http_port, cluster->nodes[i].pid);
}

/* Flags of the first start, given to a cluster that is there, would otherwise be lost in silence.
 */
static void warn_of_flags(const struct cluster_call *call)
{
    const struct cluster_plan *plan = &call->plan;
    bool shaped = plan->coordinators != NODES_DEFAULT || plan->participants != NODES_DEFAULT;

    if (call->was_there && (shaped || call->offset_text != NULL ||
                            call->coordinator_options.count + call->participant_options.count > 0))
        printf("(%s has a cluster: it keeps its nodes, ports and options; change options in the\n"
               "nodes' .conf files and restart them.)\n",
               call->cluster.dir);
}

static int run_start(struct cluster_call *call)
{
    struct cluster *cluster = &call->cluster;
    struct tg_errmsg msg = {{0}};
    unsigned started = 0;
    int culprit = -1;
    double begun = seconds_now();
    int err = find_cluster(call, &msg);

    if (err != 0)
        return failed(&msg);
    warn_of_flags(call);
    err = start_nodes(cluster, &started, &msg);
    if (err == 0)
        err = cluster_dir_write(cluster, &msg);
    if (err == 0)
        err = cluster_watch_wait(cluster, NULL, &culprit, &msg);
    if (err != 0) {
        failed(&msg);
        show_log(cluster, culprit);
        take_back(cluster, started);
        return CLI_FAILED;
    }
    cluster_dir_formed(cluster);
    print_nodes(cluster);
    if (started == 0)
        printf("The cluster in %s runs already.\n", cluster->dir);
    else
        printf("The cluster in %s serves, after %.1f s.\n", cluster->dir, seconds_now() - begun);
    return CLI_OK;
}

/* ---- status ---- */

static void print_status_line(const struct cluster *cluster, unsigned i,
                              const struct cluster_view *view)
{
    const struct cluster_node *node = &cluster->nodes[i];
    bool runs = cluster_node_runs(cluster, node);
    const char *standing = "-";
    char pid[24] = "-";

    if (runs)
        snprintf(pid, sizeof pid, "%ld", node->pid);
    if (node->is_coordinator && view->leader != 0)
        standing = view->leader == node->id ? "leader" : runs ? "follower" : "-";
    else if (!node->is_coordinator && view->leader != 0)
        standing = view->alive[node->id] ? "alive" : "dead";
    printf("%-16s %-8s %-8s %-17u %-8s %s\n", node->name, runs ? "running" : "stopped", pid,
           node->http_port, view->answers[i] ? "yes" : "no", standing);
}

static int run_status(struct cluster_call *call, struct cluster_node *node)
{
    const struct cluster *cluster = &call->cluster;
    struct cluster_view view;
    bool well = true;

    cluster_watch_look(cluster, &view);
    printf("%-16s %-8s %-8s %-17s %-8s %s\n", "NODE", "PROCESS", "PID", "HTTP PORT", "ANSWERS",
           "STANDING");
    for (unsigned i = 0; i < cluster->count; i++) {
        if (node != NULL && node != &cluster->nodes[i])
            continue;
        print_status_line(cluster, i, &view);
        well = well && view.answers[i];
    }
    if (view.leader == 0)
        puts("No coordinator knows a leader.");
    else
        printf("Transactions: %lu open, %lu being published, %lu finished.\n"
               "Replicas: %lu behind%s.\n",
               (unsigned long)view.open, (unsigned long)view.publishing,
               (unsigned long)view.finished, (unsigned long)view.replicas_behind,
               view.replicas_behind > 0 ? ", being repaired from others" : "");
    return well && view.leader != 0 ? CLI_OK : CLI_FAILED;
}

/* ---- stop, kill, restart ---- */

static int stop_one(struct cluster *cluster, struct cluster_node *node)
{
    struct tg_errmsg msg = {{0}};
    bool ran = cluster_node_runs(cluster, node);
    bool killed;
    int err = cluster_node_stop(cluster, node, &killed, &msg);

    if (err != 0)
        return failed(&msg);
    if (killed)
        printf("%s did not stop within %d s and was killed\n", node->name, CLUSTER_STOP_MS / 1000);
    else
        printf("%s %s\n", node->name, ran ? "stopped" : "did not run");
    return CLI_OK;
}

/* Participants first: they may still need the coordinators. */
static int run_stop(struct cluster_call *call, struct cluster_node *only)
{
    struct cluster *cluster = &call->cluster;
    struct tg_errmsg msg = {{0}};
    int rc = CLI_OK;

    for (unsigned i = cluster->count; i-- > 0;)
        if ((only == NULL || only == &cluster->nodes[i]) &&
            stop_one(cluster, &cluster->nodes[i]) != CLI_OK)
            rc = CLI_FAILED;
    return cluster_dir_write(cluster, &msg) != 0 ? failed(&msg) : rc;
}

static int run_kill(struct cluster_call *call, struct cluster_node *node)
{
    struct tg_errmsg msg = {{0}};
    int err = cluster_node_kill(&call->cluster, node, &msg);

    if (err == 0)
        err = cluster_dir_write(&call->cluster, &msg);
    if (err != 0)
        return failed(&msg);
    printf("%s killed\n", node->name);
    return CLI_OK;
}

static int run_restart(struct cluster_call *call, struct cluster_node *node)
{
    struct cluster *cluster = &call->cluster;
    struct tg_errmsg msg = {{0}};
    unsigned started = 0;
    int culprit = -1;
    double begun = seconds_now();
    int rc = run_stop(call, node);

    if (rc != CLI_OK)
        return rc;
    int err = node == NULL
                  ? start_nodes(cluster, &started, &msg)
                  : cluster_node_start(cluster, node, call->rejoin ? "--rejoin" : NULL, &msg);
    if (err == 0)
        err = cluster_dir_write(cluster, &msg);
    if (err == 0)
        err = cluster_watch_wait(cluster, node, &culprit, &msg);
    if (err != 0) {
        failed(&msg);
        show_log(cluster, culprit);
        return CLI_FAILED;
    }
    printf("%s serves again, after %.1f s\n", node == NULL ? "the cluster" : node->name,
           seconds_now() - begun);
    return CLI_OK;
}

/* ---- coordinators come and go ---- */

static int run_add_coordinator(struct cluster_call *call)
{
    struct tg_errmsg msg = {{0}};
    struct cluster_node *node = NULL;
    int err = cluster_members_add(&call->cluster, &node, &msg);

    if (err != 0) {
        failed(&msg);
        if (node != NULL)
            show_log(&call->cluster, (int)(node - call->cluster.nodes));
        return CLI_FAILED;
    }
    printf("%s votes: http 127.0.0.1:%u\n", node->name, node->http_port);
    return CLI_OK;
}

static int run_drop_coordinator(struct cluster_call *call, struct cluster_node *node)
{
    char name[CLUSTER_NAME_BYTES];
    struct tg_errmsg msg = {{0}};

    if (!node->is_coordinator) {
        fprintf(stderr, "tidegate: %s is no coordinator\n", node->name);
        return CLI_USAGE;
    }
    memcpy(name, node->name, sizeof name);
    if (cluster_members_drop(&call->cluster, node, &msg) != 0)
        return failed(&msg);
    printf("%s is gone (its folder %s/%s stays)\n", name, call->cluster.dir, name);
    return CLI_OK;
}

/* ---- which of them ---- */

static int find_node(struct cluster_call *call, const char *name, struct cluster_node **node)
{
    struct cluster *cluster = &call->cluster;
    char leader[CLUSTER_NAME_BYTES];

    if (strcmp(name, "leader") == 0) {
        unsigned id = cluster_watch_leader(cluster);

        if (id == 0) {
            fputs("tidegate: no coordinator knows a leader\n", stderr);
            return CLI_FAILED;
        }
        snprintf(leader, sizeof leader, "coordinator-%u", id);
        name = leader;
    }
    *node = cluster_dir_find(cluster, name);
    if (*node != NULL)
        return CLI_OK;
    fprintf(stderr,
            "tidegate: the cluster has no node '%s' (say coordinator-1, participant-1 or "
            "leader)\n",
            name);
    return CLI_USAGE;
}

static int run_existing(struct cluster_call *call, const char *verb, const char *name)
{
    struct cluster_node *node = NULL;
    struct tg_errmsg msg = {{0}};
    int rc = CLI_OK;
    int err = cluster_dir_open(call->dir, false, &call->cluster, &msg);

    if (err == 0)
        err = cluster_dir_read(&call->cluster, &msg);
    if (err != 0)
        return failed(&msg);
    if (name != NULL)
        rc = find_node(call, name, &node);
    if (rc != CLI_OK)
        return rc;
    if (strcmp(verb, "status") == 0)
        return run_status(call, node);
    if (strcmp(verb, "stop") == 0)
        return run_stop(call, node);
    if (strcmp(verb, "kill") == 0)
        return run_kill(call, node);
    if (strcmp(verb, "add-coordinator") == 0)
        return run_add_coordinator(call);
    if (strcmp(verb, "drop-coordinator") == 0)
        return run_drop_coordinator(call, node);
    return run_restart(call, node);
}

static bool is_verb(const char *word)
{
    static const char *const verbs[] = {
        "start", "status", "stop", "kill", "restart", "add-coordinator", "drop-coordinator"};

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(word, verbs[i]) == 0)
            return true;
    return false;
}

int cli_cluster(int argc, char **argv)
{
    struct cluster_call call = {
        .plan = {.coordinators = NODES_DEFAULT, .participants = NODES_DEFAULT},
        .cluster = {.lock_fd = -1}};
    const struct cli_flag flags[] = {
        {"dir", 'd', CLI_TEXT, &call.dir, 0, "DIR", "the cluster's directory"},
        {"coordinators", 0, CLI_UINT, &call.plan.coordinators, CLUSTER_COORDINATORS_MAX, "N",
         "start: how many (1, 3 or 5; default 3)"},
        {"participants", 0, CLI_UINT, &call.plan.participants, CLUSTER_PARTICIPANTS_MAX, "N",
         "start: how many (default 3)"},
        {"port-offset", 0, CLI_TEXT, &call.offset_text, 0, "N",
         "start: added to all ports; a multiple of 100, or auto"},
        {"coordinator-option", 0, CLI_LIST, &call.coordinator_options, 0, "K=V",
         "start: a line more for coordinator.conf"},
        {"participant-option", 0, CLI_LIST, &call.participant_options, 0, "K=V",
         "start: a line more for participant.conf"},
        {"rejoin", 0, CLI_BOOL, &call.rejoin, 0, NULL,
         "restart of a participant whose data is lost or an old copy"},
    };
    const struct cli_usage usage = {
        "tidegate cluster start|status|stop|kill|restart|add-coordinator|drop-coordinator --dir "
        "DIR "
        "[NODE]",
        "A cluster on this machine. start makes one in an empty or new DIR, or starts the one\n"
        "that is there, with its data and ports, and returns when it serves; DIR/cluster.json\n"
        "says where. NODE is coordinator-1, participant-1, …, or leader; without it stop and\n"
        "restart mean all. stop is orderly, kill is SIGKILL. Options of a node are changed in\n"
        "its .conf file below DIR and take effect with restart. add-coordinator starts one more\n"
        "under a fresh number; drop-coordinator takes one out, dead or alive.",
        flags, sizeof flags / sizeof flags[0]};
    struct cli_words words;
    int rc = cli_flags_parse(&usage, argc, argv, &words);

    if (rc != CLI_OK)
        return rc;
    if (words.count == 0 || !is_verb(words.items[0]))
        return cli_wrong(&usage,
                         "say what to do: start, status, stop, kill, restart, add-coordinator or "
                         "drop-coordinator");
    bool starts = strcmp(words.items[0], "start") == 0;
    const char *name = words.count > 1 ? words.items[1] : NULL;
    if (call.dir == NULL)
        return cli_wrong(&usage, "--dir is needed");
    bool adds = strcmp(words.items[0], "add-coordinator") == 0;
    if (words.count > 2 || ((starts || adds) && name != NULL))
        return cli_wrong(&usage, "too many arguments");
    if (strcmp(words.items[0], "kill") == 0 && name == NULL)
        return cli_wrong(&usage, "kill whom?");
    if (strcmp(words.items[0], "drop-coordinator") == 0 && name == NULL)
        return cli_wrong(&usage, "drop which one?");
    if (call.rejoin && (strcmp(words.items[0], "restart") != 0 || name == NULL ||
                        strncmp(name, "participant-", strlen("participant-")) != 0))
        return cli_wrong(&usage, "--rejoin goes with restart and a participant");
    call.plan.coordinator_options = &call.coordinator_options;
    call.plan.participant_options = &call.participant_options;
    if (starts)
        rc = check_plan(&usage, &call);
    if (rc == CLI_OK)
        rc = starts ? run_start(&call) : run_existing(&call, words.items[0], name);
    cluster_dir_close(&call.cluster);
    return rc;
}
