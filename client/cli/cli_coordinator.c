/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate coordinator: list, add, drop, transfer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/cli.h"
#include "client/cli/cli_connect.h"
#include "client/cli/coordinator_order.h"

static void print_text(const struct json_value *one, const char *key, int width)
{
    struct slice text = json_value_text(json_value_get(one, key));

    printf(" %-*.*s", width, (int)text.len, text.len > 0 ? (const char *)text.data : "");
}

static bool is_true(const struct json_value *one, const char *key)
{
    const struct json_value *value = json_value_get(one, key);

    return value != NULL && json_value_bool(value);
}

static void print_list(const struct json_value *data)
{
    struct json_iter iter;
    const struct json_value *one;

    printf("%-4s %-21s %-9s %-8s %-6s %-8s %12s %-16s %s\n", "ID", "HTTP", "STANDING", "ROLE",
           "ALIVE", "LEADS", "LOG INDEX", "CLOCK AHEAD US", "DISK");
    json_iter_init(&iter, json_value_get(data, "coordinators"));
    while (json_iter_element(&iter, &one)) {
        printf("%-4" PRIu64, coordinator_order_number(one, "id"));
        print_text(one, "http", 21);
        print_text(one, "standing", 9);
        print_text(one, "role", 8);
        printf(" %-6s %-8s %12" PRIu64, is_true(one, "alive") ? "yes" : "no",
               is_true(one, "leads") ? "yes" : "-", coordinator_order_number(one, "log_index"));
        print_text(one, "clock_ahead_us", 16);
        print_text(one, "disk", 7);
        putchar('\n');
    }
}

static int run(struct client *client, const char *verb, const char *id, uint64_t wait_s)
{
    struct tg_errmsg msg = {{0}};
    struct json_doc *doc = NULL;
    const struct json_value *data = NULL;
    int err = coordinator_order(client, verb, id, &doc, &data, &msg);

    uint64_t leader = err == 0 ? coordinator_order_number(data, "leader") : 0;

    if (err == 0 && strcmp(verb, "list") == 0)
        print_list(data);
    json_doc_close(doc);
    if (err == 0)
        err = coordinator_order_wait(client, verb, id, leader, wait_s * 1000, &msg);
    if (err != 0)
        return cli_failed(&msg);
    if (strcmp(verb, "add") == 0)
        printf("coordinator %" PRIu64 " votes\n", coordinator_order_id(id));
    else if (strcmp(verb, "drop") == 0)
        printf("coordinator %" PRIu64 " is gone\n", coordinator_order_id(id));
    else if (strcmp(verb, "transfer") == 0)
        puts("another coordinator leads");
    return CLI_OK;
}

int cli_coordinator(int argc, char **argv)
{
    struct cli_connect connect = CLI_CONNECT_INIT;
    const struct cli_flag flags[] = {CLI_CONNECT_TABLE(connect)};
    const struct cli_usage usage = {
        "tidegate coordinator list | add ID=HOST:RAFT_PORT:RPC_PORT:HTTP_PORT | drop ID | "
        "transfer [ID]",
        "The coordinators of a cluster. add takes one in that runs with the option join and an\n"
        "empty data directory, and returns when it votes; drop takes one out, dead or alive, and\n"
        "returns when it is gone; transfer lets another one lead. An id is used once: who "
        "replaces\n"
        "a dead coordinator drops it and adds one under a fresh id. --wait also limits how long\n"
        "add, drop and transfer wait.",
        flags, sizeof flags / sizeof flags[0]};
    struct client *client;
    struct cli_words words;
    int rc = cli_flags_parse(&usage, argc, argv, &words);

    if (rc != CLI_OK)
        return rc;
    const char *verb = words.count > 0 ? words.items[0] : "";
    const char *id = words.count > 1 ? words.items[1] : NULL;
    bool needs_id = strcmp(verb, "add") == 0 || strcmp(verb, "drop") == 0;
    bool takes_id = needs_id || strcmp(verb, "transfer") == 0;

    if (!takes_id && strcmp(verb, "list") != 0)
        return cli_wrong(&usage, "say what to do: list, add, drop or transfer");
    if ((needs_id && id == NULL) || words.count > (takes_id ? 2u : 1u))
        return cli_wrong(&usage, needs_id && id == NULL ? "which one?" : "too many arguments");
    rc = cli_connect(&connect, &client);
    if (rc != CLI_OK)
        return rc;
    rc = run(client, verb, id, connect.timeout_s);
    client_close(client);
    return rc;
}
