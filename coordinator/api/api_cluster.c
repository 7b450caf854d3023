/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/cluster. Answers also when nobody leads: then "cluster" is null and "coordinators" shows
 * who is there. */
#include "coordinator/api/api_cluster.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/proto/message.h"
#include "common/proto/msg_status.h"

enum { CLUSTER_STATUS_MS = 500, CLUSTER_LEADER_MS = 1500 };

struct gather;

struct coordinator_word {
    struct gather *gather;
    struct dispatch_peer peer; /* as it was when asked: the list may change meanwhile */
    bool answered;
    struct msg_status_reply status;
};

struct gather {
    struct api_request *request;
    unsigned waits_for;
    uint32_t count;
    struct coordinator_word words[DISPATCH_PEERS_MAX];
    struct buf cluster; /* JSON of the leader, empty if it did not answer */
};

static void print_coordinator(const struct dispatch_peer *peer, const struct coordinator_word *word,
                              struct json_writer *out)
{
    json_writer_object(out);
    json_writer_key(out, "id");
    json_writer_uint(out, peer->id);
    json_writer_key(out, "http");
    json_writer_str(out, peer->http);
    json_writer_key(out, "rpc");
    json_writer_str(out, peer->rpc);
    json_writer_key(out, "alive");
    json_writer_bool(out, word->answered);
    if (word->answered) {
        json_writer_key(out, "leads");
        json_writer_bool(out, word->status.leader == peer->id);
        json_writer_key(out, "leader");
        json_writer_uint(out, word->status.leader);
        json_writer_key(out, "term");
        json_writer_uint(out, word->status.term);
        json_writer_key(out, "applied_index");
        json_writer_uint(out, word->status.applied_index);
        json_writer_key(out, "cluster_uuid");
        json_writer_str(out, word->status.cluster_uuid);
    }
    json_writer_object_end(out);
}

static void gathered(struct gather *gather)
{
    struct api_request *request = gather->request;
    const struct dispatch *dispatch = request->api->link->dispatch;
    struct buf json = BUF_INIT;
    struct json_writer out;

    json_writer_init(&out, &json, 0);
    json_writer_object(&out);
    json_writer_key(&out, "answered_by");
    json_writer_uint(&out, dispatch->self);
    json_writer_key(&out, "coordinators");
    json_writer_array(&out);
    for (uint32_t i = 0; i < gather->count; i++)
        print_coordinator(&gather->words[i].peer, &gather->words[i], &out);
    json_writer_array_end(&out);
    json_writer_key(&out, "cluster");
    if (gather->cluster.len > 0)
        json_writer_raw(&out, slice_of(gather->cluster.data, gather->cluster.len));
    else
        json_writer_null(&out);
    json_writer_object_end(&out);
    if (request->exchange != NULL)
        api_answer_data(request, slice_of(json.data, json.len));
    buf_close(&json);
    buf_close(&gather->cluster);
    api_request_release(request);
    free(gather);
}

static void one_came(struct gather *gather)
{
    if (--gather->waits_for == 0)
        gathered(gather);
}

static void on_status(void *data, const struct rpc_reply *reply)
{
    struct coordinator_word *word = data;

    word->answered = reply->err == 0 && msg_status_reply_decode(reply->head, &word->status) == 0;
    one_came(word->gather);
}

static void on_own_status(void *data, int err, const char *sentence, struct slice head)
{
    struct coordinator_word *word = data;

    (void)sentence;
    word->answered = err == 0 && msg_status_reply_decode(head, &word->status) == 0;
}

static void on_cluster(void *data, int err, const char *sentence, struct slice head)
{
    struct gather *gather = data;
    struct msg_query_reply reply = {0};

    (void)sentence;
    if (err == 0 && msg_query_reply_decode(head, &reply) == 0)
        buf_append(&gather->cluster, reply.data.data, reply.data.len);
    msg_query_reply_close(&reply);
    one_came(gather);
}

static void ask_peers(struct gather *gather, struct leader_link *link)
{
    const struct dispatch *dispatch = link->dispatch;

    gather->count = dispatch->peer_count;
    for (uint32_t i = 0; i < gather->count; i++)
        gather->words[i].peer = dispatch->peers[i];
    for (uint32_t i = 0; i < gather->count; i++) {
        struct coordinator_word *word = &gather->words[i];
        const struct dispatch_peer *peer = &word->peer;

        word->gather = gather;
        if (peer->id == dispatch->self) {
            dispatch_call(link->dispatch, MSG_STATUS, slice_of(NULL, 0), on_own_status, word);
            continue;
        }
        struct rpc_client *client = rpc_pool_client(&link->pool, peer->id, peer->rpc, NULL);
        if (client == NULL)
            continue;
        gather->waits_for++;
        rpc_client_call(client, MSG_STATUS, slice_of(NULL, 0), slice_of(NULL, 0), CLUSTER_STATUS_MS,
                        on_status, word);
    }
}

void api_cluster(struct api_request *request)
{
    struct leader_link *link = request->api->link;
    struct msg_query message = {.kind = QUERY_CLUSTER};
    struct buf head = BUF_INIT;
    struct gather *gather;

    if (!api_request_authorize(request))
        return;
    gather = calloc(1, sizeof *gather);
    TG_CHECK_MEMORY(gather != NULL);
    gather->request = request;
    gather->waits_for = 1; /* the leader's answer, which may come from inside */
    api_request_hold(request);
    ask_peers(gather, link);
    msg_query_encode(&message, &head);
    leader_call_start(link, MSG_QUERY, &head, CLUSTER_LEADER_MS, on_cluster, gather);
}
