/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate sql: statements over Doris's HTTP query API. */
#include <stdio.h>

#include "client/cli/cli.h"
#include "client/cli/cli_connect.h"
#include "client/cli/table_print.h"

enum { STATEMENT_BYTES_MAX = 1024 * 1024 };

static int run_statement(struct client *client, const char *db, const char *statement, bool as_json)
{
    struct tg_errmsg msg = {{0}};
    struct json_doc *doc = NULL;
    const struct json_value *data = NULL;

    if (client_sql(client, db, statement, &doc, &data, &msg) != 0)
        return cli_failed(&msg);
    if (as_json) {
        struct buf text = BUF_INIT;

        json_value_print(data, &text);
        printf("%.*s\n", (int)text.len, text.len > 0 ? (const char *)text.data : "");
        buf_close(&text);
    } else if (!table_print(data, stdout)) {
        puts("ok");
    }
    json_doc_close(doc);
    return CLI_OK;
}

static int read_statement(struct buf *out)
{
    struct tg_errmsg msg = {{0}};
    uint8_t piece[4096];
    size_t n;

    while ((n = fread(piece, 1, sizeof piece, stdin)) > 0 && out->len <= STATEMENT_BYTES_MAX)
        buf_append(out, piece, n);
    if (out->err != 0 || out->len > STATEMENT_BYTES_MAX) {
        tg_fail(&msg, TG_TOO_LARGE, "the statement is larger than %d bytes", STATEMENT_BYTES_MAX);
        return cli_failed(&msg);
    }
    return CLI_OK;
}

int cli_sql(int argc, char **argv)
{
    struct cli_connect connect = CLI_CONNECT_INIT;
    bool as_json = false;
    const struct cli_flag flags[] = {
        CLI_CONNECT_TABLE(connect),
        {"json", 0, CLI_BOOL, &as_json, 0, NULL, "print the result as JSON, not as a table"}};
    const struct cli_usage usage = {
        "tidegate sql [--url HOST:PORT] [--db NAME] STATEMENT…",
        "Runs statements on a coordinator, one an argument; '-' reads one\n"
        "from stdin.",
        flags, sizeof flags / sizeof flags[0]};
    struct buf input = BUF_INIT;
    struct cli_words words;
    struct client *client;
    int rc = cli_flags_parse(&usage, argc, argv, &words);

    if (rc != CLI_OK)
        return rc;
    if (words.count == 0)
        return cli_wrong(&usage, "a statement is needed");
    rc = cli_connect(&connect, &client);
    if (rc != CLI_OK)
        return rc;
    for (size_t i = 0; i < words.count && rc == CLI_OK; i++) {
        const char *statement = words.items[i];

        if (statement[0] == '-' && statement[1] == '\0') {
            rc = read_statement(&input);
            statement = buf_cstr(&input);
        }
        if (rc == CLI_OK && statement != NULL)
            rc = run_statement(client, connect.db, statement, as_json);
    }
    buf_close(&input);
    client_close(client);
    return rc;
}
