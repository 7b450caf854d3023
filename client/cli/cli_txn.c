/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate txn: two-phase commit by hand. */
#include <stdio.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/cli_connect.h"

struct txn_call {
    const char *label;
    const char *txn;
    const char *timeout;
};

static int judge(const struct http_reply *reply)
{
    struct json_doc *doc = NULL;
    bool good = false;

    fwrite(reply->body.data, 1, reply->body.len, stdout);
    if (json_doc_parse(reply->body.data, reply->body.len, NULL, &doc, NULL) == 0)
        good = slice_equal_str(json_value_text(json_value_get(json_doc_root(doc), "status")),
                               "Success");
    json_doc_close(doc);
    return good ? CLI_OK : CLI_FAILED;
}

static void add_header(struct buf *out, const char *name, const char *value)
{
    if (value != NULL)
        buf_printf(out, "%s: %s\r\n", name, value);
}

static int run_operation(struct client *client, const char *db, const char *operation,
                         const struct txn_call *call)
{
    struct buf target = BUF_INIT;
    struct buf headers = BUF_INIT;
    struct http_reply reply = {0};
    struct tg_errmsg msg = {{0}};

    cli_target(&target, db, NULL, "_stream_load_2pc");
    add_header(&headers, "txn_operation", operation);
    add_header(&headers, "txn_id", call->txn);
    add_header(&headers, "label", call->label);
    add_header(&headers, "timeout", call->timeout);
    const char *path = buf_cstr(&target);
    const char *lines = buf_cstr(&headers);
    int rc = CLI_OK;
    if (path == NULL || lines == NULL ||
        client_request(client, "PUT", path, lines, NULL, 0, &reply, &msg) != 0)
        rc = cli_failed(&msg);
    else
        rc = judge(&reply);
    http_reply_close(&reply);
    buf_close(&target);
    buf_close(&headers);
    return rc;
}

static int run_state(struct client *client, const char *db, const struct txn_call *call)
{
    struct buf target = BUF_INIT;
    struct http_reply reply = {0};
    struct tg_errmsg msg = {{0}};
    struct json_doc *doc = NULL;
    const struct json_value *data;
    int rc = CLI_OK;

    cli_target(&target, db, NULL, "get_load_state");
    cli_parameter(&target, "label", call->label);
    const char *path = buf_cstr(&target);
    if (path == NULL || client_request(client, "GET", path, NULL, NULL, 0, &reply, &msg) != 0 ||
        client_envelope(&reply, &doc, &data, &msg) != 0) {
        rc = cli_failed(&msg);
    } else {
        struct slice state = json_value_text(data);

        printf("%.*s\n", (int)state.len, state.len > 0 ? (const char *)state.data : "");
    }
    json_doc_close(doc);
    http_reply_close(&reply);
    buf_close(&target);
    return rc;
}

static bool is_operation(const char *word)
{
    static const char *const words[] = {"begin", "precommit", "commit", "abort", "state"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

int cli_txn(int argc, char **argv)
{
    struct cli_connect connect = CLI_CONNECT_INIT;
    struct txn_call call = {0};
    const struct cli_flag flags[] = {
        CLI_CONNECT_TABLE(connect),
        {"label", 'l', CLI_TEXT, &call.label, 0, "TEXT", "the transaction's label"},
        {"txn", 0, CLI_TEXT, &call.txn, 0, "ID", "or its number"},
        {"timeout", 0, CLI_TEXT, &call.timeout, 0, "SECONDS",
         "begin: aborted if it is neither precommitted nor committed by then"}};
    const struct cli_usage usage = {
        "tidegate txn begin|precommit|commit|abort|state --db NAME [--label TEXT|--txn ID]",
        "Moves a transaction on, by its number or label, and prints the answer. state prints what\n"
        "became of a label: UNKNOWN, PREPARE, PRECOMMITTED, COMMITTED, VISIBLE or ABORTED; only "
        "coordinators\n"
        "know it.",
        flags, sizeof flags / sizeof flags[0]};
    struct client *client;
    struct cli_words words;
    int rc = cli_flags_parse(&usage, argc, argv, &words);

    if (rc != CLI_OK)
        return rc;
    if (words.count > 1)
        return cli_wrong(&usage, "what is '%s'? (a label follows --label)", words.items[1]);
    if (words.count != 1 || !is_operation(words.items[0]))
        return cli_wrong(&usage, "say what to do: begin, precommit, commit, abort or state");
    if (connect.db[0] == '\0')
        return cli_wrong(&usage, "--db is needed");
    bool state = strcmp(words.items[0], "state") == 0;
    if (call.label == NULL && (state || call.txn == NULL))
        return cli_wrong(&usage, state ? "--label is needed" : "--label or --txn is needed");
    rc = cli_connect(&connect, &client);
    if (rc != CLI_OK)
        return rc;
    rc = state ? run_state(client, connect.db, &call)
               : run_operation(client, connect.db, words.items[0], &call);
    client_close(client);
    return rc;
}
