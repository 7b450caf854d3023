/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate scan, get, range, changes, timeline: reads, printed as they come. */
#include <stdio.h>

#include "client/cli/cli.h"
#include "client/cli/cli_connect.h"

struct read_flags {
    struct cli_connect connect;
    const char *table;
    const char *version;
    const char *as_of;
    const char *columns;
    const char *limit;
    const char *format;
    bool in_order;
    bool deleted;
    struct cli_list from; /* or key */
    struct cli_list to;
    const char *after;
    const char *until;
    const char *token;
    const char *wait_ms;
};

#define READ_FLAGS(read)                                                                        \
    CLI_CONNECT_TABLE((read).connect),                                                          \
        {"table", 't', CLI_TEXT, &(read).table, 0, "NAME", "table"},                            \
        {"columns", 'c', CLI_TEXT, &(read).columns, 0, "A,B", "only these columns"},            \
        {"limit", 'n', CLI_TEXT, &(read).limit, 0, "N", "at most so many rows"},                \
        {"format", 'f', CLI_TEXT, &(read).format, 0, "json|csv", "of the rows (default json)"}, \
    {                                                                                           \
        "deleted", 0, CLI_BOOL, &(read).deleted, 0, NULL, "deleted rows too, marked"            \
    }

#define POINT_FLAGS(read)                                                                \
    {"version", 'v', CLI_TEXT, &(read).version, 0, "N", "as of that version"},           \
        {"as-of",                                                                        \
         'a',                                                                            \
         CLI_TEXT,                                                                       \
         &(read).as_of,                                                                  \
         0,                                                                              \
         "TIME",                                                                         \
         "as of that time: microseconds since the epoch, or 2026-01-31T12:00:00+01:00"}, \
    {                                                                                    \
        "key-order", 'o', CLI_BOOL, &(read).in_order, 0, NULL, "rows in key order"       \
    }

static void add_list(struct buf *target, const char *name, const struct cli_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        cli_parameter(target, name, list->items[i]);
}

static int run(struct read_flags *read, const char *route, const char *from_name)
{
    struct buf target = BUF_INIT;
    struct client *client;
    int rc = cli_connect(&read->connect, &client);

    if (rc != CLI_OK)
        return rc;
    cli_target(&target, read->connect.db, read->table, route);
    cli_parameter(&target, "columns", read->columns);
    cli_parameter(&target, "limit", read->limit);
    cli_parameter(&target, "format", read->format);
    cli_parameter(&target, "version", read->version);
    cli_parameter(&target, "as_of", read->as_of);
    cli_parameter(&target, "order", read->in_order ? "key" : NULL);
    cli_parameter(&target, "include_deleted", read->deleted ? "true" : NULL);
    cli_parameter(&target, "after", read->after);
    cli_parameter(&target, "until", read->until);
    cli_parameter(&target, "token", read->token);
    cli_parameter(&target, "wait_ms", read->wait_ms);
    add_list(&target, from_name, &read->from);
    add_list(&target, "to", &read->to);
    rc = cli_print_get(client, &target);
    client_close(client);
    return rc;
}

static int parse(const struct cli_usage *usage, int argc, char **argv,
                 const struct read_flags *read, struct cli_list *keys)
{
    struct cli_words words;
    int rc = cli_flags_parse(usage, argc, argv, &words);

    if (rc != CLI_OK)
        return rc;
    if (read->connect.db[0] == '\0' || read->table == NULL)
        return cli_wrong(usage, "--db and --table are needed");
    if (keys == NULL && words.count > 0)
        return cli_wrong(usage, "what is '%s'?", words.items[0]);
    for (size_t i = 0; i < words.count && keys != NULL; i++)
        keys->items[keys->count++] = words.items[i];
    return CLI_OK;
}

int cli_scan(int argc, char **argv)
{
    struct read_flags read = {.connect = CLI_CONNECT_INIT};
    const struct cli_flag flags[] = {READ_FLAGS(read), POINT_FLAGS(read)};
    const struct cli_usage usage = {"tidegate scan --db NAME --table NAME [FLAGS]",
                                    "Prints all rows of a table.", flags,
                                    sizeof flags / sizeof flags[0]};
    int rc = parse(&usage, argc, argv, &read, NULL);

    return rc != CLI_OK ? rc : run(&read, "_scan", "from");
}

int cli_get(int argc, char **argv)
{
    struct read_flags read = {.connect = CLI_CONNECT_INIT};
    const struct cli_flag flags[] = {READ_FLAGS(read), POINT_FLAGS(read)};
    const struct cli_usage usage = {"tidegate get --db NAME --table NAME [FLAGS] KEY…",
                                    "Prints one row; KEY is the value of each key column.", flags,
                                    sizeof flags / sizeof flags[0]};
    int rc = parse(&usage, argc, argv, &read, &read.from);

    if (rc == CLI_OK && read.from.count == 0)
        return cli_wrong(&usage, "a key is needed");
    return rc != CLI_OK ? rc : run(&read, "_get", "key");
}

int cli_range(int argc, char **argv)
{
    struct read_flags read = {.connect = CLI_CONNECT_INIT};
    const struct cli_flag flags[] = {
        READ_FLAGS(read),
        POINT_FLAGS(read),
        {"from", 0, CLI_LIST, &read.from, 0, "KEY", "first key; once for each key column"},
        {"to", 0, CLI_LIST, &read.to, 0, "KEY", "the key before which to end"}};
    const struct cli_usage usage = {"tidegate range --db NAME --table NAME --from KEY --to KEY",
                                    "Prints the rows from one key up to, not including, another.",
                                    flags, sizeof flags / sizeof flags[0]};
    int rc = parse(&usage, argc, argv, &read, NULL);

    return rc != CLI_OK ? rc : run(&read, "_range", "from");
}

int cli_changes(int argc, char **argv)
{
    struct read_flags read = {.connect = CLI_CONNECT_INIT};
    const struct cli_flag flags[] = {
        READ_FLAGS(read),
        {"after", 0, CLI_TEXT, &read.after, 0, "BOUND", "version or time; 0 = from the start"},
        {"until", 0, CLI_TEXT, &read.until, 0, "BOUND", "version or time (default now)"},
        {"token", 0, CLI_TEXT, &read.token, 0, "TEXT", "go on where an answer ended"},
        {"wait-ms", 0, CLI_TEXT, &read.wait_ms, 0, "MS", "wait so long for something new"}};
    const struct cli_usage usage = {"tidegate changes --db NAME --table NAME --after BOUND",
                                    "Prints what changed behind one bound up to another, in order.",
                                    flags, sizeof flags / sizeof flags[0]};
    int rc = parse(&usage, argc, argv, &read, NULL);

    if (rc == CLI_OK && read.after == NULL && read.token == NULL)
        read.after = "0";
    return rc != CLI_OK ? rc : run(&read, "_changes", "from");
}

int cli_timeline(int argc, char **argv)
{
    struct cli_connect connect = CLI_CONNECT_INIT;
    const char *table = NULL;
    const char *limit = NULL;
    const char *action = NULL;
    const struct cli_flag flags[] = {
        CLI_CONNECT_TABLE(connect),
        {"table", 't', CLI_TEXT, &table, 0, "NAME", "table (default: all of the database)"},
        {"limit", 'n', CLI_TEXT, &limit, 0, "N", "at most so many instants"},
        {"action", 0, CLI_TEXT, &action, 0, "NAME", "deltacommit, replacecommit, rollback, …"}};
    const struct cli_usage usage = {"tidegate timeline --db NAME [--table NAME]",
                                    "Prints the newest instants of a table or database as JSON.",
                                    flags, sizeof flags / sizeof flags[0]};
    struct buf target = BUF_INIT;
    struct client *client;
    struct cli_words words;
    int rc = cli_flags_parse(&usage, argc, argv, &words);

    if (rc != CLI_OK)
        return rc;
    if (connect.db[0] == '\0' || words.count > 0)
        return cli_wrong(&usage, "--db is needed, and nothing but flags");
    rc = cli_connect(&connect, &client);
    if (rc != CLI_OK)
        return rc;
    cli_target(&target, connect.db, table, "_timeline");
    cli_parameter(&target, "limit", limit);
    cli_parameter(&target, "action", action);
    rc = cli_print_get(client, &target);
    client_close(client);
    return rc;
}
