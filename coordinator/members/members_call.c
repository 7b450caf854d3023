/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_COORDINATOR on the leader: each order is checked against what is applied, put into the log,
 * and answered when it is applied; what follows from it is the daemon's. */
#include "coordinator/members/members_call.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/rpc_pool.h"
#include "common/proto/message.h"
#include "coordinator/members/members_plan.h"

struct members_calls {
    struct consensus *consensus;
    struct clock *clock;
    uint64_t self;
    const struct peer_words *words;
    struct rpc_pool pool; /* to those that are to be added */
};

struct call {
    struct consensus_request request;
    struct members_calls *calls;
    struct msg_coordinator message;
    members_done *done;
    void *data;
};

int members_calls_open(struct loop *loop, struct consensus *consensus, struct clock *clock,
                       const char *secret, uint64_t self, const struct peer_words *words,
                       struct members_calls **calls, struct tg_errmsg *msg)
{
    struct members_calls *c = calloc(1, sizeof *c);

    if (c == NULL)
        return tg_fail(msg, TG_NOMEM, "out of memory");
    int err = rpc_pool_init(&c->pool, loop, secret, msg);
    if (err != 0) {
        free(c);
        return err;
    }
    c->consensus = consensus;
    c->clock = clock;
    c->self = self;
    c->words = words;
    *calls = c;
    return 0;
}

void members_calls_close(struct members_calls *calls)
{
    if (calls == NULL)
        return;
    rpc_pool_close(&calls->pool);
    free(calls);
}

void members_infos(const struct coordinators *coordinators, struct coordinator_infos *infos)
{
    memset(infos, 0, sizeof *infos);
    infos->next_id = coordinators->next_id;
    for (uint32_t i = 0; i < coordinators->count; i++) {
        const struct coordinator_record *record = &coordinators->list[i];
        struct coordinator_info *info = &infos->list[infos->count++];

        info->id = record->id;
        info->standing = (uint32_t)record->standing;
        memcpy(info->raft, record->raft, sizeof info->raft);
        memcpy(info->rpc, record->rpc, sizeof info->rpc);
        memcpy(info->http, record->http, sizeof info->http);
    }
}

/* ---- answers ---- */

static void finish(struct call *call, int err, const char *sentence, struct slice head)
{
    call->done(call->data, err, sentence, head);
    free(call);
}

static void refuse(struct call *call, int err, const struct tg_errmsg *msg)
{
    finish(call, err, msg->text[0] != '\0' ? msg->text : tg_err_sentence(err), slice_of(NULL, 0));
}

static void fill_fare(const struct members_calls *calls, const struct consensus_servers *servers,
                      uint64_t id, struct coordinator_fare *fare)
{
    uint64_t now_us = clock_monotonic_us(calls->clock);
    const struct peer_word *word = peer_words_find(calls->words, id);
    int64_t behind;

    for (uint32_t i = 0; i < servers->count; i++)
        if (servers->list[i].id == id) {
            fare->role = (uint32_t)servers->list[i].role;
            fare->match_index = servers->list[i].match_index;
        }
    fare->alive = id == calls->self || peer_words_is_alive(calls->words, id, now_us);
    if (word == NULL)
        return;
    fare->room = word->room;
    fare->disk_free_bytes = word->disk_free_bytes;
    if (peer_words_ahead(word, clock_wall_us(calls->clock), now_us, &behind))
        fare->ahead_us = -behind;
}

static void answer(struct call *call, bool admitted)
{
    const struct members_calls *calls = call->calls;
    const struct state *state = consensus_state(calls->consensus);
    struct msg_coordinator_reply reply = {.admitted = admitted, .leader = calls->self};
    struct consensus_servers servers = {0};
    struct buf head = BUF_INIT;

    if (calls->consensus->ops->servers != NULL)
        calls->consensus->ops->servers(calls->consensus, &servers);
    reply.last_index = servers.last_index;
    memcpy(reply.cluster_uuid, state->cluster_uuid, sizeof reply.cluster_uuid);
    members_infos(&state->coordinators, &reply.coordinators);
    for (uint32_t i = 0; i < reply.coordinators.count; i++)
        fill_fare(calls, &servers, reply.coordinators.list[i].id, &reply.fares[i]);
    msg_coordinator_reply_encode(&reply, &head);
    finish(call, head.err, "", slice_of(head.data, head.len));
    buf_close(&head);
}

static void applied(struct consensus_request *request, int err, const struct apply_result *result)
{
    struct call *call = request->data;
    struct tg_errmsg msg = {{0}};

    if (err == 0 && result->err != 0) {
        err = result->err;
        msg = result->msg;
    }
    if (err != 0)
        refuse(call, err, &msg);
    else
        answer(call, false);
}

static void propose(struct call *call, enum command_type type)
{
    struct command command = {.type = type};

    command.coordinator.id = call->message.id;
    command.coordinator.nonce = call->message.nonce;
    memcpy(command.coordinator.raft, call->message.raft, sizeof command.coordinator.raft);
    memcpy(command.coordinator.rpc, call->message.rpc, sizeof command.coordinator.rpc);
    memcpy(command.coordinator.http, call->message.http, sizeof command.coordinator.http);
    call->request.done = applied;
    call->request.data = call;
    consensus_propose(call->calls->consensus, &command, &call->request);
}

/* ---- add ---- */

/* Only one that waits with an empty directory is put into the log, and only with the nonce that it
 * says: so nobody else can take its place under this id. */
static void candidate_answered(void *data, const struct rpc_reply *reply)
{
    struct call *call = data;
    struct msg_status_reply status = {0};
    struct tg_errmsg msg = {{0}};
    int err = reply->err;

    if (err == 0)
        err = msg_status_reply_decode(reply->head, &status);
    if (err != 0)
        err = tg_fail(&msg, TG_REFUSED,
                      "coordinator %lu does not answer at %s: start it first, with the option join "
                      "(%s)",
                      (unsigned long)call->message.id, call->message.rpc, tg_err_sentence(err));
    else if (status.coordinator != call->message.id)
        err = tg_fail(&msg, TG_REFUSED, "at %s is coordinator %lu, not %lu", call->message.rpc,
                      (unsigned long)status.coordinator, (unsigned long)call->message.id);
    else if (status.phase != STATUS_JOINS || status.nonce == 0)
        err = tg_fail(&msg, TG_REFUSED,
                      "coordinator %lu does not wait to be added: it needs an empty data directory "
                      "and the option join",
                      (unsigned long)call->message.id);
    else if (!consensus_is_leader(call->calls->consensus))
        err = TG_NOT_LEADER;
    if (err != 0) {
        refuse(call, err, &msg);
        return;
    }
    call->message.nonce = status.nonce;
    propose(call, COMMAND_COORDINATOR_ADD);
}

static int ask_candidate(struct call *call, struct tg_errmsg *msg)
{
    const struct coordinators *coordinators =
        &consensus_state(call->calls->consensus)->coordinators;
    const struct coordinator_record *busy = coordinators_changing(coordinators);
    const struct coordinator_record *known = coordinators_find(coordinators, call->message.id);

    if (known != NULL && known->standing != COORDINATOR_LEAVES &&
        strcmp(known->rpc, call->message.rpc) == 0) {
        answer(call, false); /* asked again, after an answer that was lost */
        return 0;
    }
    if (busy != NULL && busy->id != call->message.id)
        return tg_fail(msg, TG_REFUSED, "coordinator %lu is still %s: one change at a time",
                       (unsigned long)busy->id,
                       busy->standing == COORDINATOR_JOINS ? "joining" : "leaving");
    if (busy == NULL && call->message.id < coordinators->next_id)
        return tg_fail(
            msg, TG_EXISTS,
            "coordinator id %lu was given before and is never given again: the next free "
            "one is %lu",
            (unsigned long)call->message.id, (unsigned long)coordinators->next_id);
    struct rpc_client *client =
        rpc_pool_client(&call->calls->pool, call->message.id, call->message.rpc, msg);
    if (client == NULL)
        return TG_REFUSED;
    rpc_client_call(client, MSG_STATUS, slice_of(NULL, 0), slice_of(NULL, 0), MEMBERS_CALL_ASK_MS,
                    candidate_answered, call);
    return 0;
}

/* ---- drop, transfer, join ---- */

static int check_drop(const struct call *call, struct tg_errmsg *msg)
{
    const struct members_calls *calls = call->calls;
    uint64_t now_us = clock_monotonic_us(calls->clock);
    struct consensus_servers servers;
    struct members_alive alive = {0};

    calls->consensus->ops->servers(calls->consensus, &servers);
    if (servers.changing)
        return tg_fail(msg, TG_REFUSED, "another change of the coordinators is under way");
    for (uint32_t i = 0; i < servers.count; i++) {
        uint64_t id = servers.list[i].id;
        if (id == calls->self || peer_words_is_alive(calls->words, id, now_us))
            alive.ids[alive.count++] = id;
    }
    return members_may_drop(&servers, &alive, call->message.id, msg);
}

static int transfer(const struct call *call, struct tg_errmsg *msg)
{
    uint64_t id = call->message.id;

    if (id == call->calls->self)
        return 0;
    if (id != 0 &&
        !peer_words_is_alive(call->calls->words, id, clock_monotonic_us(call->calls->clock)))
        return tg_fail(msg, TG_REFUSED, "coordinator %lu does not answer, so it cannot lead",
                       (unsigned long)id);
    int err = call->calls->consensus->ops->transfer(call->calls->consensus, id);
    if (err == TG_NOT_FOUND)
        return tg_fail(msg, err, "there is no other coordinator%s that votes",
                       id != 0 ? " of that id" : "");
    if (err == TG_BUSY)
        return tg_fail(msg, TG_REFUSED, "the leadership is being handed over already");
    return err;
}

/* Whoever asks is told what the log says at this moment, not what an old leader remembers. */
static void barrier_passed(struct consensus_request *request, int err,
                           const struct apply_result *result)
{
    struct call *call = request->data;
    struct tg_errmsg msg = {{0}};
    enum members_entry entry = MEMBERS_ENTRY_WAIT;

    (void)result;
    if (err == 0)
        entry = members_may_start(&consensus_state(call->calls->consensus)->coordinators,
                                  call->message.id, call->message.nonce, &msg);
    if (err == 0 && entry == MEMBERS_ENTRY_REFUSED)
        err = TG_REFUSED;
    if (err != 0)
        refuse(call, err, &msg);
    else
        answer(call, entry == MEMBERS_ENTRY_START);
}

int members_call(struct members_calls *calls, struct slice head, members_done *done, void *data)
{
    struct call *call = calloc(1, sizeof *call);
    struct tg_errmsg msg = {{0}};

    TG_CHECK_MEMORY(call != NULL);
    int err = msg_coordinator_decode(head, &call->message);
    if (err != 0 || calls->consensus->ops->servers == NULL) {
        free(call);
        return err != 0 ? err : TG_UNSUPPORTED;
    }
    call->calls = calls;
    call->done = done;
    call->data = data;
    switch (call->message.order) {
    case COORDINATOR_ORDER_ADD:
        err = ask_candidate(call, &msg);
        break;
    case COORDINATOR_ORDER_DROP:
        err = check_drop(call, &msg);
        if (err == 0)
            propose(call, COMMAND_COORDINATOR_DROP);
        break;
    case COORDINATOR_ORDER_JOIN:
        call->request.done = barrier_passed;
        call->request.data = call;
        consensus_barrier(calls->consensus, 0, &call->request);
        break;
    case COORDINATOR_ORDER_TRANSFER:
        err = transfer(call, &msg);
        if (err == 0)
            answer(call, false);
        break;
    case COORDINATOR_ORDER_LIST:
        answer(call, false);
        break;
    default:
        err = TG_INVALID;
        break;
    }
    if (err != 0)
        refuse(call, err, &msg);
    return 0;
}
