/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `tidegate`. Each gets the arguments behind its name and returns the exit
 * status: 0, 1 (it failed, a sentence is on stderr), 2 (wrong usage). */
#ifndef TG_CLIENT_CLI_CLI_H
#define TG_CLIENT_CLI_CLI_H

int cli_cluster(int argc, char **argv);
int cli_coordinator(int argc, char **argv);
int cli_node(int argc, char **argv);
int cli_declare_lost(int argc, char **argv);
int cli_sql(int argc, char **argv);
int cli_load(int argc, char **argv);
int cli_txn(int argc, char **argv);
int cli_get(int argc, char **argv);
int cli_range(int argc, char **argv);
int cli_scan(int argc, char **argv);
int cli_changes(int argc, char **argv);
int cli_timeline(int argc, char **argv);

#endif
