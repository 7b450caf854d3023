/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate declare-lost: the operator's word that no copy of something is left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/cli_connect.h"

static uint64_t number(const struct json_value *value, const char *key)
{
    struct slice text = json_value_text(json_value_get(value, key));
    char digits[24] = "";

    if (text.len < sizeof digits && text.len > 0)
        memcpy(digits, text.data, text.len);
    return strtoull(digits, NULL, 10);
}

static void print(const struct json_value *data)
{
    struct json_iter iter;
    const struct json_value *one;

    json_iter_init(&iter, json_value_get(data, "tablets"));
    while (json_iter_element(&iter, &one)) {
        const struct json_value *lost = json_value_get(one, "lost");

        if (lost != NULL && json_value_bool(lost))
            printf("tablet %lu: what came after version %lu is lost, later loads go on\n",
                   number(one, "tablet"), number(one, "kept_version"));
        else
            printf("tablet %lu: nothing is lost, it is repaired\n", number(one, "tablet"));
    }
}

static int run(struct client *client, const char *db, const char *table, uint64_t tablet,
               bool force)
{
    struct buf target = BUF_INIT;
    struct http_reply reply = {0};
    struct json_doc *doc = NULL;
    const struct json_value *data = NULL;
    struct tg_errmsg msg = {{0}};

    buf_append_str(&target, "/api/");
    client_url_encode(db, &target);
    buf_append_str(&target, "/");
    client_url_encode(table, &target);
    buf_printf(&target, "/_declare_lost?tablet=%lu&force=%s", tablet, force ? "true" : "false");
    int err = target.err != 0
                  ? tg_fail(&msg, TG_NOMEM, "out of memory")
                  : client_request(client, "POST", buf_cstr(&target), NULL, NULL, 0, &reply, &msg);
    if (err == 0)
        err = client_envelope(&reply, &doc, &data, &msg);
    if (err == 0)
        print(data);
    json_doc_close(doc);
    http_reply_close(&reply);
    buf_close(&target);
    return err != 0 ? cli_failed(&msg) : CLI_OK;
}

int cli_declare_lost(int argc, char **argv)
{
    struct cli_connect connect = CLI_CONNECT_INIT;
    uint64_t tablet = 0;
    bool force = false;
    const struct cli_flag flags[] = {
        {"tablet", 0, CLI_UINT, &tablet, UINT64_MAX, "N", "this tablet only (default: all)"},
        {"force", 0, CLI_BOOL, &force, 0, NULL,
         "although participants that may hold more are silent"},
        CLI_CONNECT_TABLE(connect)};
    const struct cli_usage usage = {
        "tidegate declare-lost DB TABLE [--tablet N] [--force]",
        "The last resort where no good copy of a table's tablet is left: of what no replica holds\n"
        "any more the cluster lets go, so that transactions that wait for it, and later ones, go\n"
        "on. Its rows are gone, and the versions say so in the timeline. Refused as long as a\n"
        "copy is good, is being repaired, or is on a participant that is only silent.",
        flags, sizeof flags / sizeof flags[0]};
    struct client *client;
    struct cli_words words;
    int rc = cli_flags_parse(&usage, argc, argv, &words);

    if (rc != CLI_OK)
        return rc;
    if (words.count != 2)
        return cli_wrong(&usage, "say the database and the table");
    rc = cli_connect(&connect, &client);
    if (rc != CLI_OK)
        return rc;
    rc = run(client, words.items[0], words.items[1], tablet, force);
    client_close(client);
    return rc;
}
