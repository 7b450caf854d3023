/* SPDX-License-Identifier: Apache-2.0 */
/* Orders about coordinators over HTTP. */
#include "client/cli/coordinator_order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ORDER_HOST_BYTES = 48 };

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void rest(void)
{
    struct timespec pause = {.tv_nsec = COORDINATOR_ORDER_STEP_MS * 1000000L};

    nanosleep(&pause, NULL);
}

uint64_t coordinator_order_id(const char *id)
{
    return id != NULL ? strtoull(id, NULL, 10) : 0;
}

uint64_t coordinator_order_number(const struct json_value *value, const char *key)
{
    struct slice text = json_value_text(json_value_get(value, key));
    char number[24];

    if (text.len == 0 || text.len >= sizeof number)
        return 0;
    memcpy(number, text.data, text.len);
    number[text.len] = '\0';
    return strtoull(number, NULL, 10);
}

static int add_target(const char *text, struct buf *target, struct tg_errmsg *msg)
{
    char host[ORDER_HOST_BYTES];
    unsigned long id;
    unsigned raft;
    unsigned rpc;
    unsigned http;
    char end;

    if (sscanf(text, "%lu=%47[^:]:%u:%u:%u%c", &id, host, &raft, &rpc, &http, &end) != 5 ||
        raft > 65535 || rpc > 65535 || http > 65535)
        return tg_fail(msg, TG_INVALID, "'%s' is not ID=HOST:RAFT_PORT:RPC_PORT:HTTP_PORT", text);
    buf_printf(target, "?id=%lu&raft=", id);
    client_url_encode(host, target);
    buf_printf(target, "%%3A%u&rpc=", raft);
    client_url_encode(host, target);
    buf_printf(target, "%%3A%u&http=", rpc);
    client_url_encode(host, target);
    buf_printf(target, "%%3A%u", http);
    return 0;
}

int coordinator_order(struct client *client, const char *verb, const char *id,
                      struct json_doc **doc, const struct json_value **data, struct tg_errmsg *msg)
{
    struct buf target = BUF_INIT;
    struct http_reply reply = {0};
    bool list = strcmp(verb, "list") == 0;
    int err = 0;

    *doc = NULL;
    buf_append_str(&target, "/api/coordinators");
    if (!list)
        buf_printf(&target, "/%s", verb);
    if (strcmp(verb, "add") == 0)
        err = add_target(id, &target, msg);
    else if (!list && id != NULL)
        buf_printf(&target, "?id=%" PRIu64, coordinator_order_id(id));
    if (err == 0 && target.err != 0)
        err = tg_fail(msg, TG_NOMEM, "out of memory");
    if (err == 0)
        err = client_request(client, list ? "GET" : "POST", buf_cstr(&target), NULL, NULL, 0,
                             &reply, msg);
    if (err == 0)
        err = client_envelope(&reply, doc, data, msg);
    http_reply_close(&reply);
    buf_close(&target);
    return err;
}

static bool is_done(const struct json_value *data, const char *verb, uint64_t id,
                    uint64_t first_leader)
{
    uint64_t leader = coordinator_order_number(data, "leader");
    struct json_iter iter;
    const struct json_value *one;

    if (strcmp(verb, "transfer") == 0)
        return id != 0 ? leader == id : leader != first_leader;
    json_iter_init(&iter, json_value_get(data, "coordinators"));
    while (json_iter_element(&iter, &one)) {
        if (coordinator_order_number(one, "id") == id)
            return strcmp(verb, "add") == 0 &&
                   slice_equal_str(json_value_text(json_value_get(one, "role")), "voter");
    }
    return strcmp(verb, "drop") == 0;
}

/* While leaders change a question may fail: it is asked again. */
int coordinator_order_wait(struct client *client, const char *verb, const char *id, uint64_t leader,
                           uint64_t timeout_ms, struct tg_errmsg *msg)
{
    uint64_t until = now_ms() + timeout_ms;

    if (strcmp(verb, "list") == 0)
        return 0;
    do {
        struct json_doc *doc = NULL;
        const struct json_value *data = NULL;
        bool done = false;

        if (coordinator_order(client, "list", NULL, &doc, &data, msg) == 0)
            done = is_done(data, verb, coordinator_order_id(id), leader);
        json_doc_close(doc);
        if (done)
            return 0;
        rest();
    } while (now_ms() < until);
    return tg_fail(msg, TG_TIMEOUT,
                   "the order was taken, but it is not carried out after %" PRIu64 " s",
                   timeout_ms / 1000);
}
