/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate: the tool. A table of subcommands. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/cli_flags.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"cluster", cli_cluster, "start, look at, stop, kill or restart a cluster on this machine"},
    {"coordinator", cli_coordinator, "list, add or drop coordinators, or let another one lead"},
    {"node", cli_node, "list participants; add, decommission, recommission or drop one"},
    {"declare-lost", cli_declare_lost, "let go of data of which no copy is left"},
    {"sql", cli_sql, "run a statement: CREATE, DROP, TRUNCATE, SHOW, DESCRIBE"},
    {"load", cli_load, "load a file or standard input into a table"},
    {"txn", cli_txn, "begin, precommit, commit or abort a transaction; state of a label"},
    {"scan", cli_scan, "print the rows of a table, now or as of a version or time"},
    {"get", cli_get, "print one row by its key"},
    {"range", cli_range, "print the rows of a range of keys"},
    {"changes", cli_changes, "print what changed between two versions or times"},
    {"timeline", cli_timeline, "print what was done to a table, and when"},
};

static void print_help(FILE *out)
{
    fputs("Usage: tidegate COMMAND [FLAGS]   (tidegate COMMAND --help says more)\n\n", out);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].help);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("tidegate " TIDEGATE_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, argv[1]) == 0) {
            int rc = commands[i].run(argc - 2, argv + 2);

            return rc == CLI_HELPED ? 0 : rc;
        }
    fprintf(stderr, "tidegate: unknown command '%s' (tidegate --help lists them)\n", argv[1]);
    return CLI_USAGE;
}
