/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's view of the coordinators, and orders to them: sent to whoever leads, answered with
 * the list as it is after them. */
#include "coordinator/api/api_coordinators.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/proto/message.h"
#include "common/proto/msg_coordinator.h"

enum { COORDINATORS_CALL_MS = 15000, ID_TEXT_BYTES = 24 };

static const char *standing_of(const struct coordinator_info *info)
{
    static const char *const names[] = {"", "joins", "votes", "leaves"};

    return info->standing < sizeof names / sizeof names[0] ? names[info->standing] : "";
}

static const char *role_of(const struct coordinator_fare *fare)
{
    static const char *const names[] = {"none", "spare", "standby", "voter"};

    return fare->role < sizeof names / sizeof names[0] ? names[fare->role] : "";
}

static const char *room_of(const struct coordinator_fare *fare)
{
    static const char *const names[] = {"free", "reserve", "full"};

    return names[fare->room];
}

static void print_one(const struct msg_coordinator_reply *reply, uint32_t i,
                      struct json_writer *out)
{
    const struct coordinator_info *info = &reply->coordinators.list[i];
    const struct coordinator_fare *fare = &reply->fares[i];

    json_writer_object(out);
    json_writer_key(out, "id");
    json_writer_uint(out, info->id);
    json_writer_key(out, "http");
    json_writer_str(out, info->http);
    json_writer_key(out, "rpc");
    json_writer_str(out, info->rpc);
    json_writer_key(out, "raft");
    json_writer_str(out, info->raft);
    json_writer_key(out, "standing");
    json_writer_str(out, standing_of(info));
    json_writer_key(out, "role");
    json_writer_str(out, role_of(fare));
    json_writer_key(out, "alive");
    json_writer_bool(out, fare->alive);
    json_writer_key(out, "leads");
    json_writer_bool(out, info->id == reply->leader);
    json_writer_key(out, "log_index");
    json_writer_uint(out, fare->match_index);
    json_writer_key(out, "clock_ahead_us");
    json_writer_int(out, fare->ahead_us);
    json_writer_key(out, "disk");
    json_writer_str(out, room_of(fare));
    json_writer_object_end(out);
}

static void answered(struct api_request *request, int err, const char *sentence, struct slice head)
{
    struct msg_coordinator_reply reply;
    struct buf json = BUF_INIT;
    struct json_writer out;

    if (err == 0)
        err = msg_coordinator_reply_decode(head, &reply);
    if (err != 0) {
        api_answer_verdict(request, err, sentence);
        return;
    }
    json_writer_init(&out, &json, 0);
    json_writer_object(&out);
    json_writer_key(&out, "leader");
    json_writer_uint(&out, reply.leader);
    json_writer_key(&out, "log_index");
    json_writer_uint(&out, reply.last_index);
    json_writer_key(&out, "next_id");
    json_writer_uint(&out, reply.coordinators.next_id);
    json_writer_key(&out, "coordinators");
    json_writer_array(&out);
    for (uint32_t i = 0; i < reply.coordinators.count; i++)
        print_one(&reply, i, &out);
    json_writer_array_end(&out);
    json_writer_object_end(&out);
    api_answer_data(request, slice_of(json.data, json.len));
    buf_close(&json);
}

static bool take_order(const struct http_request *http, const char *verb,
                       struct msg_coordinator *message, struct tg_errmsg *msg)
{
    char id[ID_TEXT_BYTES] = "";

    message->order = strcmp(verb, "list") == 0       ? COORDINATOR_ORDER_LIST
                     : strcmp(verb, "add") == 0      ? COORDINATOR_ORDER_ADD
                     : strcmp(verb, "drop") == 0     ? COORDINATOR_ORDER_DROP
                     : strcmp(verb, "transfer") == 0 ? COORDINATOR_ORDER_TRANSFER
                                                     : 0;
    if (message->order == 0) {
        tg_fail(msg, TG_INVALID, "say add, drop or transfer");
        return false;
    }
    http_request_query(http, "id", 0, id, sizeof id);
    http_request_query(http, "raft", 0, message->raft, sizeof message->raft);
    http_request_query(http, "rpc", 0, message->rpc, sizeof message->rpc);
    http_request_query(http, "http", 0, message->http, sizeof message->http);
    message->id = strtoull(id, NULL, 10);
    bool needs_id =
        message->order == COORDINATOR_ORDER_ADD || message->order == COORDINATOR_ORDER_DROP;
    if ((needs_id && message->id == 0) || message->id > UINT32_MAX) {
        tg_fail(msg, TG_INVALID, "the parameter id must be a coordinator's number");
        return false;
    }
    if (message->order == COORDINATOR_ORDER_ADD &&
        (message->raft[0] == '\0' || message->rpc[0] == '\0' || message->http[0] == '\0')) {
        tg_fail(msg, TG_INVALID, "the parameters raft, rpc and http must be host:port");
        return false;
    }
    return true;
}

void api_coordinators(struct api_request *request, const char *verb)
{
    struct msg_coordinator message = {0};
    struct tg_errmsg msg = {{0}};
    struct buf head = BUF_INIT;

    if (!api_request_authorize(request))
        return;
    if (!take_order(http_exchange_request(request->exchange), verb, &message, &msg)) {
        api_answer_error(request, 403, msg.text);
        return;
    }
    msg_coordinator_encode(&message, &head);
    api_request_call(request, MSG_COORDINATOR, &head, COORDINATORS_CALL_MS, answered);
}

/* Encodes the whole state: for comparing coordinators, not for every second. */
void api_state(struct api_request *request)
{
    const struct consensus *consensus = request->api->link->dispatch->consensus;
    struct buf json = BUF_INIT;

    if (!api_request_authorize(request))
        return;
    buf_printf(&json, "{\"applied_index\":%" PRIu64 ",\"state_hash\":\"%016" PRIx64 "\"}",
               consensus->ops->applied_index(consensus), state_hash(consensus_state(consensus)));
    api_answer_data(request, slice_of(json.data, json.len));
    buf_close(&json);
}
