/* SPDX-License-Identifier: Apache-2.0 */
/* Participants that a client may be sent to, in turn. */
#include "coordinator/api/backend_list.h"

#include <stdio.h>
#include <string.h>

#include "common/base/json.h"
#include "common/proto/message.h"
#include "common/proto/msg_query.h"

void backend_list_init(struct backend_list *list, struct leader_link *link)
{
    memset(list, 0, sizeof *list);
    list->link = link;
}

/* The next living one. */
static const char *next_alive(struct backend_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct backend *backend = &list->list[(list->turn + i) % list->count];

        if (backend->alive) {
            list->turn = (list->turn + i + 1) % list->count;
            return backend->http;
        }
    }
    return NULL;
}

/* As the leader: straight from what it has heard. */
static void look_here(struct backend_list *list)
{
    const struct dispatch *dispatch = list->link->dispatch;
    const struct members *members = &consensus_state(dispatch->consensus)->members;
    uint64_t now = clock_monotonic_ms(dispatch->clock);

    list->count = members->count;
    for (uint32_t i = 0; i < members->count; i++) {
        memcpy(list->list[i].http, members->list[i].http, sizeof list->list[i].http);
        list->list[i].alive = !members->list[i].draining &&
                              health_is_reachable(dispatch->health, members->list[i].node, now);
    }
}

/* Without any word of a leader: everybody who is registered. */
static void look_at_members(struct backend_list *list)
{
    const struct members *members = &consensus_state(list->link->dispatch->consensus)->members;

    list->count = members->count;
    for (uint32_t i = 0; i < members->count; i++) {
        memcpy(list->list[i].http, members->list[i].http, sizeof list->list[i].http);
        list->list[i].alive = !members->list[i].draining;
    }
}

static void take_backend(struct backend_list *list, const struct json_value *value)
{
    struct slice ip = json_value_text(json_value_get(value, "ip"));
    struct slice port = json_value_text(json_value_get(value, "http_port"));
    const struct json_value *alive = json_value_get(value, "is_alive");
    struct backend *backend = &list->list[list->count];

    if (list->count == NODES_MAX || alive == NULL || ip.len + port.len + 2 > sizeof backend->http)
        return;
    snprintf(backend->http, sizeof backend->http, "%.*s:%.*s", (int)ip.len, (const char *)ip.data,
             (int)port.len, (const char *)port.data);
    backend->alive = json_value_bool(alive);
    list->count++;
}

static int take_answer(struct backend_list *list, struct slice head)
{
    struct msg_query_reply reply = {0};
    struct json_doc *doc = NULL;
    struct json_iter iter;
    const struct json_value *value;
    int err = msg_query_reply_decode(head, &reply);

    if (err == 0)
        err = json_doc_parse(reply.data.data, reply.data.len, NULL, &doc, NULL);
    if (err == 0) {
        list->count = 0;
        json_iter_init(&iter, json_value_get(json_doc_root(doc), "backends"));
        while (json_iter_element(&iter, &value))
            take_backend(list, value);
    }
    json_doc_close(doc);
    msg_query_reply_close(&reply);
    return err;
}

static void told(void *data, int err, const char *sentence, struct slice head)
{
    struct backend_list *list = data;
    struct backend_wait *waiting = list->waiting;

    (void)sentence;
    list->asking = false;
    list->waiting = NULL;
    list->waiting_count = 0;
    if (err == 0 && take_answer(list, head) == 0) {
        list->known = true;
        list->told_ms = loop_now_ms(list->link->loop);
    } else if (!list->known) {
        look_at_members(list);
    }
    while (waiting != NULL) {
        struct backend_wait *next = waiting->next;

        waiting->chosen(waiting, next_alive(list));
        waiting = next;
    }
}

static void ask(struct backend_list *list)
{
    struct msg_query message = {.kind = QUERY_BACKENDS};
    struct buf head = BUF_INIT;

    list->asking = true;
    msg_query_encode(&message, &head);
    leader_call_start(list->link, MSG_QUERY, &head, BACKEND_LIST_ASK_MS, told, list);
}

void backend_list_choose(struct backend_list *list, struct backend_wait *wait)
{
    bool fresh =
        list->known && loop_now_ms(list->link->loop) - list->told_ms < BACKEND_LIST_KEEP_MS;

    if (consensus_is_leader(list->link->dispatch->consensus)) {
        look_here(list);
        list->known = true;
        list->told_ms = loop_now_ms(list->link->loop);
        wait->chosen(wait, next_alive(list));
        return;
    }
    if (fresh || list->waiting_count == BACKEND_LIST_WAITING_MAX) {
        wait->chosen(wait, next_alive(list));
        return;
    }
    wait->next = list->waiting;
    list->waiting = wait;
    list->waiting_count++;
    if (!list->asking)
        ask(list);
}
