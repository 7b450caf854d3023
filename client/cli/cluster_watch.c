/* SPDX-License-Identifier: Apache-2.0 */
/* What a local cluster says of itself, and waiting until it serves. */
#include "client/cli/cluster_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "client/cli/cluster_node.h"
#include "client/client.h"

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* GET of a node's path. */
static int ask(const struct cluster *cluster, const struct cluster_node *node, const char *path,
               struct http_reply *reply)
{
    char address[32];
    char password[CLUSTER_OPTION_BYTES];
    struct client *client;

    memset(reply, 0, sizeof *reply);
    snprintf(address, sizeof address, "127.0.0.1:%u", node->http_port);
    cluster_dir_option(cluster, node, "root_password", password);
    struct client_options options = {address, "root", password, CLUSTER_ASK_MS};
    int err = client_open(&options, &client, NULL);
    if (err != 0)
        return err;
    err = client_request(client, "GET", path, NULL, NULL, 0, reply, NULL);
    client_close(client);
    return err;
}

static bool answers(const struct cluster *cluster, const struct cluster_node *node)
{
    struct http_reply reply;
    bool good = ask(cluster, node, node->is_coordinator ? "/" : "/api/health", &reply) == 0 &&
                reply.status == 200;

    http_reply_close(&reply);
    return good;
}

static uint64_t take_uint(const struct json_value *object, const char *key)
{
    struct slice text = json_value_text(json_value_get(object, key));
    char number[24] = "";

    if (text.len < sizeof number)
        memcpy(number, text.data, text.len);
    return strtoull(number, NULL, 10);
}

static bool take_view(const struct json_value *data, struct cluster_view *view)
{
    const struct json_value *participant;
    const struct json_value *transactions = json_value_get(data, "transactions");
    struct json_iter iter;

    view->leader = (unsigned)take_uint(data, "leader");
    view->open = take_uint(transactions, "open");
    view->publishing = take_uint(transactions, "publishing");
    view->finished = take_uint(transactions, "finished");
    view->replicas_behind = take_uint(data, "replicas_behind");
    json_iter_init(&iter, json_value_get(data, "participants"));
    while (json_iter_element(&iter, &participant)) {
        uint64_t id = take_uint(participant, "id");

        if (id <= CLUSTER_PARTICIPANTS_MAX)
            view->alive[id] = json_value_bool(json_value_get(participant, "alive"));
    }
    return view->leader != 0;
}

/* Whether this coordinator could say who leads and who is alive. */
static bool ask_cluster(const struct cluster *cluster, const struct cluster_node *node,
                        struct cluster_view *view)
{
    struct http_reply reply;
    struct json_doc *doc = NULL;
    const struct json_value *data;
    bool good = ask(cluster, node, "/api/cluster", &reply) == 0 &&
                client_envelope(&reply, &doc, &data, NULL) == 0 &&
                take_view(json_value_get(data, "cluster"), view);

    json_doc_close(doc);
    http_reply_close(&reply);
    return good;
}

void cluster_watch_look(const struct cluster *cluster, struct cluster_view *view)
{
    bool asked = false;

    memset(view, 0, sizeof *view);
    for (unsigned i = 0; i < cluster->count; i++) {
        const struct cluster_node *node = &cluster->nodes[i];

        if (!cluster_node_runs(cluster, node))
            continue;
        view->answers[i] = answers(cluster, node);
        if (view->answers[i] && node->is_coordinator && !asked)
            asked = ask_cluster(cluster, node, view);
    }
}

unsigned cluster_watch_leader(const struct cluster *cluster)
{
    struct cluster_view view;

    cluster_watch_look(cluster, &view);
    return view.leader;
}

/* ---- waiting ---- */

static bool concerns(const struct cluster *cluster, unsigned i, const struct cluster_node *only)
{
    return only == NULL || only == &cluster->nodes[i];
}

static int find_ended(const struct cluster *cluster, const struct cluster_node *only)
{
    for (unsigned i = 0; i < cluster->count; i++) {
        waitpid((pid_t)cluster->nodes[i].pid, NULL, WNOHANG);
        if (concerns(cluster, i, only) && !cluster_node_runs(cluster, &cluster->nodes[i]))
            return (int)i;
    }
    return -1;
}

/* -1: all is well; the place of the first node that does not serve otherwise. */
static int find_silent(const struct cluster *cluster, const struct cluster_node *only)
{
    struct cluster_view view;

    memset(&view, 0, sizeof view);
    for (unsigned i = 0; i < cluster->count; i++)
        if (concerns(cluster, i, only) && !answers(cluster, &cluster->nodes[i]))
            return (int)i;
    for (unsigned i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].is_coordinator && concerns(cluster, i, only) &&
            !ask_cluster(cluster, &cluster->nodes[i], &view))
            return (int)i;
    for (unsigned i = 0; i < cluster->count && view.leader == 0; i++)
        if (cluster->nodes[i].is_coordinator && cluster_node_runs(cluster, &cluster->nodes[i]))
            ask_cluster(cluster, &cluster->nodes[i], &view);
    for (unsigned i = 0; i < cluster->count; i++)
        if (!cluster->nodes[i].is_coordinator && concerns(cluster, i, only) &&
            !view.alive[cluster->nodes[i].id])
            return (int)i;
    return -1;
}

int cluster_watch_wait(const struct cluster *cluster, const struct cluster_node *only, int *culprit,
                       struct tg_errmsg *msg)
{
    const struct timespec step = {.tv_nsec = CLUSTER_STEP_MS * 1000000L};
    uint64_t until = now_ms() + CLUSTER_WAIT_MS;

    for (;;) {
        *culprit = find_ended(cluster, only);
        if (*culprit >= 0)
            return tg_fail(msg, TG_CLOSED, "%s has ended", cluster->nodes[*culprit].name);
        *culprit = find_silent(cluster, only);
        if (*culprit < 0)
            return 0;
        if (now_ms() >= until)
            return tg_fail(msg, TG_TIMEOUT, "%s does not serve after %d s",
                           cluster->nodes[*culprit].name, CLUSTER_WAIT_MS / 1000);
        nanosleep(&step, NULL);
    }
}
