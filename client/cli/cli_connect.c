/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the subcommands that speak to a cluster. */
#include "client/cli/cli_connect.h"

#include <stdio.h>
#include <string.h>

int cli_failed(const struct tg_errmsg *msg)
{
    fprintf(stderr, "tidegate: %s\n", msg->text);
    return CLI_FAILED;
}

int cli_connect(const struct cli_connect *connect, struct client **client)
{
    struct client_options options = {
        .url = connect->url,
        .user = connect->user,
        .password = connect->password,
        .timeout_ms = connect->timeout_s * 1000,
    };
    struct tg_errmsg msg = {{0}};

    return client_open(&options, client, &msg) == 0 ? CLI_OK : cli_failed(&msg);
}

void cli_target(struct buf *out, const char *db, const char *table, const char *route)
{
    buf_append_str(out, "/api/");
    client_url_encode(db, out);
    if (table != NULL) {
        buf_append_str(out, "/");
        client_url_encode(table, out);
    }
    buf_printf(out, "/%s", route);
}

void cli_parameter(struct buf *out, const char *name, const char *value)
{
    if (value == NULL)
        return;
    buf_append_str(out, out->len > 0 && memchr(out->data, '?', out->len) != NULL ? "&" : "?");
    buf_printf(out, "%s=", name);
    client_url_encode(value, out);
}

/* The sentence of an answer that is an error, or the answer itself. */
static int print_refusal(const struct http_reply *reply)
{
    struct tg_errmsg msg = {{0}};
    struct json_doc *doc;
    const struct json_value *data;

    if (client_envelope(reply, &doc, &data, &msg) == 0) {
        json_doc_close(doc);
        tg_fail(&msg, TG_REFUSED, "HTTP status %d", reply->status);
    }
    return cli_failed(&msg);
}

/* Rows are JSON lines or CSV; an envelope is a coordinator's, which says 200 for errors, too. */
static bool is_refusal(const struct http_reply *reply)
{
    char type[64] = "";
    struct json_doc *doc;
    const struct json_value *data;
    struct tg_errmsg msg;

    if (reply->status != 200)
        return true;
    http_reply_header(reply, "Content-Type", type, sizeof type);
    if (strncmp(type, "application/json", 16) != 0)
        return false;
    int err = client_envelope(reply, &doc, &data, &msg);
    if (err == 0)
        json_doc_close(doc);
    return err == TG_REFUSED;
}

int cli_print_get(struct client *client, struct buf *target)
{
    struct http_reply reply = {0};
    struct tg_errmsg msg = {{0}};
    const char *path = buf_cstr(target);
    int rc = CLI_OK;

    if (path == NULL || client_request(client, "GET", path, NULL, NULL, 0, &reply, &msg) != 0)
        rc = cli_failed(&msg);
    else if (is_refusal(&reply))
        rc = print_refusal(&reply);
    else if (fwrite(reply.body.data, 1, reply.body.len, stdout) > 0 &&
             reply.body.data[reply.body.len - 1] != '\n')
        putchar('\n');
    http_reply_close(&reply);
    buf_close(target);
    return rc;
}
