/* SPDX-License-Identifier: Apache-2.0 */
/* What all subcommands that speak to a cluster share: whom they ask, about which table, as whom. */
#ifndef TG_CLIENT_CLI_CLI_CONNECT_H
#define TG_CLIENT_CLI_CLI_CONNECT_H

#include "client/cli/cli_flags.h"
#include "client/client.h"

enum { CLI_CONNECT_FLAGS = 5, CLI_TIMEOUT_S_MAX = 259200 };

struct cli_connect {
    const char *url;
    const char *db;
    const char *user;
    const char *password;
    uint64_t timeout_s;
};

#define CLI_CONNECT_INIT                     \
    {                                        \
        "127.0.0.1:8030", "", "root", "", 60 \
    }

/* The flags, for the first CLI_CONNECT_FLAGS places of a command's table. */
#define CLI_CONNECT_TABLE(connect)                                                              \
    {"url", 0, CLI_TEXT, &(connect).url, 0, "HOST:PORT", "any node (default 127.0.0.1:8030)"},  \
        {"db", 'D', CLI_TEXT, &(connect).db, 0, "NAME", "database"},                            \
        {"user", 'u', CLI_TEXT, &(connect).user, 0, "NAME", "user (default root)"},             \
        {"password", 'p', CLI_TEXT, &(connect).password, 0, "TEXT", "password (default none)"}, \
    {                                                                                           \
        "wait", 0, CLI_UINT, &(connect).timeout_s, CLI_TIMEOUT_S_MAX, "SECONDS",                \
            "longest silence of the server that is borne"                                       \
    }

/* CLI_OK, or CLI_FAILED after a sentence on stderr. */
int cli_connect(const struct cli_connect *connect, struct client **client);
/* Says "tidegate: …" on stderr; returns CLI_FAILED. */
int cli_failed(const struct tg_errmsg *msg);
/* Begins a target: /api/DB/TABLE/route, without table if it is NULL. */
void cli_target(struct buf *out, const char *db, const char *table, const char *route);
/* Appends ?name=value or &name=value; nothing if value is NULL. */
void cli_parameter(struct buf *out, const char *name, const char *value);
/* GET of target, its body to stdout; what is no 200 to stderr. */
int cli_print_get(struct client *client, struct buf *target);

#endif
