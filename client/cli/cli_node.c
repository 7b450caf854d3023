/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate node: the participants of a cluster, and how it grows and shrinks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/cli_connect.h"
#include "client/cli/cluster_grow.h"

/* ---- list ---- */

static uint64_t number(const struct json_value *node, const char *key)
{
    struct slice text = json_value_text(json_value_get(node, key));
    char digits[24] = "";

    if (text.len > 0 && text.len < sizeof digits)
        memcpy(digits, text.data, text.len);
    return strtoull(digits, NULL, 10);
}

static void print_size(uint64_t bytes, char *out, size_t size)
{
    if (bytes == 0)
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%.1f GiB", (double)bytes / (1024.0 * 1024.0 * 1024.0));
}

static void print_node(const struct json_value *node)
{
    struct slice http = json_value_text(json_value_get(node, "http"));
    struct slice state = json_value_text(json_value_get(node, "state"));
    uint64_t waits = number(node, "waits_for_txn");
    char disk_free[32];
    char disk_total[32];

    print_size(number(node, "disk_free_bytes"), disk_free, sizeof disk_free);
    print_size(number(node, "disk_total_bytes"), disk_total, sizeof disk_total);
    printf("%-4" PRIu64 " %-22.*s %-6s %-15.*s %-8" PRIu64 " %-8" PRIu64 " %-6" PRIu64 " %-12s %s",
           number(node, "id"), (int)http.len, (const char *)http.data,
           json_value_bool(json_value_get(node, "alive")) ? "yes" : "no", (int)state.len,
           (const char *)state.data, number(node, "tablets"), number(node, "behind"),
           number(node, "live_loads"), disk_free, disk_total);
    if (waits != 0)
        printf("  waits for transaction %" PRIu64, waits);
    putchar('\n');
}

static int print_list(const struct json_value *data)
{
    struct json_iter iter;
    const struct json_value *node;

    printf("%-4s %-22s %-6s %-15s %-8s %-8s %-6s %-12s %s\n", "ID", "ADDRESS", "ALIVE", "STATE",
           "TABLETS", "BEHIND", "LOADS", "DISK FREE", "OF");
    json_iter_init(&iter, json_value_get(data, "nodes"));
    while (json_iter_element(&iter, &node))
        print_node(node);
    if (number(data, "tablets_moving") > 0)
        printf("%" PRIu64 " tablets are moving.\n", number(data, "tablets_moving"));
    if (number(data, "moves_wait_for_txn") > 0)
        printf("Transaction %" PRIu64
               " was begun before they moved: old copies stay until it has ended.\n",
               number(data, "moves_wait_for_txn"));
    if (number(data, "tablets_low") > 0)
        printf("%" PRIu64 " tablets have fewer good copies than they should.\n",
               number(data, "tablets_low"));
    return CLI_OK;
}

static int ask(struct client *client, const char *method, const char *target, bool as_json,
               int (*print)(const struct json_value *data))
{
    struct http_reply reply = {0};
    struct tg_errmsg msg = {{0}};
    struct json_doc *doc = NULL;
    const struct json_value *data = NULL;
    int rc;

    if (client_request(client, method, target, NULL, NULL, 0, &reply, &msg) != 0 ||
        client_envelope(&reply, &doc, &data, &msg) != 0) {
        rc = cli_failed(&msg);
    } else if (as_json) {
        struct buf text = BUF_INIT;

        json_value_print(data, &text);
        printf("%.*s\n", (int)text.len, text.len > 0 ? (const char *)text.data : "");
        buf_close(&text);
        rc = CLI_OK;
    } else {
        rc = print(data);
    }
    json_doc_close(doc);
    http_reply_close(&reply);
    return rc;
}

/* ---- orders ---- */

static int print_order(const struct json_value *data)
{
    struct slice state = json_value_text(json_value_get(data, "state"));

    printf("participant %" PRIu64 " is %.*s\n", number(data, "id"), (int)state.len,
           (const char *)state.data);
    return CLI_OK;
}

static int run_order(struct client *client, const char *verb, const char *id, bool as_json)
{
    char target[64];
    char *end;
    unsigned long node = strtoul(id, &end, 10);

    if (id[0] < '0' || id[0] > '9' || *end != '\0' || node == 0 || node > UINT32_MAX) {
        struct tg_errmsg msg;

        tg_fail(&msg, TG_INVALID, "'%s' is not the number of a participant", id);
        return cli_failed(&msg);
    }
    snprintf(target, sizeof target, "/api/nodes/%lu/%s", node, verb);
    return ask(client, "POST", target, as_json, print_order);
}

/* ---- add ---- */

static int run_add(const char *dir, const struct cli_list *options)
{
    struct tg_errmsg msg = {{0}};
    struct cluster_node node;

    if (dir == NULL) {
        puts("A participant joins by itself: start tidegate-participant with an empty data_dir,\n"
             "with the cluster's `coordinators` and `cluster_secret`. `tidegate node list` shows\n"
             "it then, and tablets move to it. In a cluster of `tidegate cluster`:\n"
             "tidegate node add --dir DIR.");
        return CLI_OK;
    }
    if (cluster_grow(dir, options, &node, &msg) != 0)
        return cli_failed(&msg);
    printf("%s serves: http 127.0.0.1:%u  pid %ld\n", node.name, node.http_port, node.pid);
    return CLI_OK;
}

static bool is_order(const char *word)
{
    return strcmp(word, "decommission") == 0 || strcmp(word, "recommission") == 0 ||
           strcmp(word, "drop") == 0;
}

int cli_node(int argc, char **argv)
{
    struct cli_connect connect = CLI_CONNECT_INIT;
    struct cli_list options = {.count = 0};
    const char *dir = NULL;
    bool as_json = false;
    const struct cli_flag flags[] = {
        CLI_CONNECT_TABLE(connect),
        {"json", 0, CLI_BOOL, &as_json, 0, NULL, "print JSON, not a table"},
        {"dir", 'd', CLI_TEXT, &dir, 0, "DIR", "add: the directory of a cluster on this machine"},
        {"participant-option", 0, CLI_LIST, &options, 0, "K=V",
         "add: a line more for participant.conf"},
    };
    const struct cli_usage usage = {
        "tidegate node list|add|decommission|recommission|drop [--url HOST:PORT] [ID]",
        "The participants. add starts one more in a cluster of `tidegate cluster`; elsewhere\n"
        "one joins by being started. decommission moves a participant's tablets away, one by\n"
        "one, until it is `decommissioned` and may be stopped; recommission takes that back.\n"
        "drop strikes a dead or decommissioned one off for good: its tablets are made anew\n"
        "from the others' copies.",
        flags, sizeof flags / sizeof flags[0]};
    struct cli_words words;
    struct client *client;
    int rc = cli_flags_parse(&usage, argc, argv, &words);

    if (rc != CLI_OK)
        return rc;
    const char *verb = words.count > 0 ? words.items[0] : "";
    bool orders = is_order(verb);
    if (!orders && strcmp(verb, "list") != 0 && strcmp(verb, "add") != 0)
        return cli_wrong(&usage, "say what to do: list, add, decommission, recommission or drop");
    if (words.count != (orders ? 2 : 1))
        return cli_wrong(&usage, orders ? "which participant?" : "too many arguments");
    if (strcmp(verb, "add") == 0)
        return run_add(dir, &options);
    rc = cli_connect(&connect, &client);
    if (rc != CLI_OK)
        return rc;
    rc = orders ? run_order(client, verb, words.items[1], as_json)
                : ask(client, "GET", "/api/nodes", as_json, print_list);
    client_close(client);
    return rc;
}
