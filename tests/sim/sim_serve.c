/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a participant. */
#include "tests/sim/sim_serve.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/err.h"
#include "common/proto/message.h"
#include "common/proto/msg_replicate.h"
#include "participant/store/rowset_reader.h"
#include "participant/store/rowset_store.h"
#include "participant/tablet/publish.h"
#include "tests/sim/sim_content.h"
#include "tests/sim/sim_participant.h"

static void answer_err(struct sim_question *question, int err)
{
    question->err = err;
    sim_question_answer(question);
}

static struct slice question_head(const struct sim_question *question)
{
    return slice_of(question->head.data, question->head.len);
}

static bool planted(const struct sim_question *question, unsigned mutant, unsigned permille)
{
    struct sim_net *net = question->to->net;
    return net->options->mutant == mutant && sim_world_chance(&net->world, permille);
}

/* ---- publishing ---- */

static void trace_binds(const struct sim_question *question, const struct msg_publish *message,
                        const struct msg_publish_reply *reply)
{
    for (uint32_t i = 0; i < message->bind_count; i++)
        sim_world_trace(&question->to->net->world,
                        "bind participant=%u tablet=%lu version=%lu txn=%lu status=%u",
                        question->to->node, (unsigned long)message->binds[i].tablet,
                        (unsigned long)message->binds[i].version,
                        (unsigned long)message->binds[i].txn, reply->status[i]);
}

static void on_published(void *data, int err, struct msg_publish_reply *reply)
{
    struct sim_question *question = data;
    struct msg_publish message;
    question->err = err;
    if (err == 0) {
        TG_CHECK(msg_publish_decode(question_head(question), &message) == 0);
        trace_binds(question, &message, reply);
        msg_publish_close(&message);
        msg_publish_reply_encode(reply, &question->answer_head);
    }
    msg_publish_reply_close(reply);
    sim_question_answer(question);
}

static void say_bound(struct sim_question *question, const struct msg_publish *message)
{
    struct msg_publish_reply reply = {.count = message->bind_count,
                                      .status = calloc(message->bind_count + 1, 1)};
    TG_CHECK(reply.status != NULL);
    msg_publish_reply_encode(&reply, &question->answer_head);
    msg_publish_reply_close(&reply);
    answer_err(question, 0);
}

static void serve_publish(struct sim_participant *participant, struct sim_question *question)
{
    struct msg_publish message;
    TG_CHECK(msg_publish_decode(question_head(question), &message) == 0);
    if (message.node != participant->node || message.epoch != participant->epoch) {
        msg_publish_close(&message);
        answer_err(question, TG_FENCED);
    } else if (planted(question, MUTANT_FORGETS_A_TABLET, 100)) {
        say_bound(question, &message);
        msg_publish_close(&message);
    } else {
        publish_apply(participant->store, participant->tablets, &participant->clock.clock, &message,
                      on_published, question);
    }
}

/* ---- rowsets ---- */

static void on_replicated(void *data, int err)
{
    answer_err(data, err);
}

static void serve_replicate(struct sim_participant *participant, struct sim_question *question)
{
    struct msg_replicate message;
    TG_CHECK(msg_replicate_decode(question_head(question), &message) == 0);
    if (message.receiver != participant->node)
        answer_err(question, TG_FENCED);
    else if (planted(question, MUTANT_ACKS_BEFORE_SYNC, 100))
        answer_err(question, 0);
    else
        rowset_store_replicate(participant->store, &message,
                               slice_of(question->payload.data, question->payload.len),
                               on_replicated, question);
    msg_replicate_close(&message);
}

/* ---- clones ---- */

/* It says what its source could say, and has fetched nothing. */
static struct msg_clone_reply sim_lie(const struct sim_participant *source,
                                      const struct msg_clone *message)
{
    struct version_map map;
    struct msg_clone_reply reply = {.state = CLONE_DONE, .proven = message->prove};
    tablet_set_share(source->tablets, message->tablet, &map);
    reply.bound = version_map_last(&map);
    TG_CHECK(version_map_chain(&map, message->prove, &reply.chain) == 0);
    version_map_close(&map);
    return reply;
}

static void serve_clone(struct sim_participant *participant, struct sim_question *question)
{
    struct msg_clone message;
    struct msg_clone_reply reply;
    TG_CHECK(msg_clone_decode(question_head(question), &message) == 0);
    int err =
        message.node != participant->node || message.epoch != participant->epoch ? TG_FENCED : 0;
    const struct sim_participant *source = &participant->all[message.source - 1];
    if (err == 0 && source->up && planted(question, MUTANT_CLONES_A_PART, 500))
        reply = sim_lie(source, &message);
    else if (err == 0)
        err = cloner_order(participant->cloner, &message, &reply);
    if (err == 0) {
        sim_world_trace(&participant->net->world, "clone participant=%u tablet=%lu state=%d",
                        participant->node, (unsigned long)message.tablet, reply.state);
        participant->net->result->clones += reply.state == CLONE_DONE;
        msg_clone_reply_encode(&reply, &question->answer_head);
    }
    answer_err(question, err);
}

static void on_cloned_from(void *data, int err, struct buf *head, struct buf *payload)
{
    struct sim_question *question = data;
    if (err == 0) {
        question->answer_head = *head;
        question->answer_payload = *payload;
        buf_init(head);
        buf_init(payload);
    }
    answer_err(question, err);
}

/* ---- reads ---- */

/* The bytes of one rowset are what its load wrote. */
static int read_rowset(struct sim_participant *participant, tablet_id tablet, rowset_id rowset)
{
    struct rowset_reader reader;
    struct buf bytes = BUF_INIT;
    int err = rowset_reader_open(participant->store, tablet, rowset, &reader);
    /* A read of the product's checks each block. */
    if (err == 0)
        err = rowset_reader_verify(&reader);
    if (err == 0)
        err = rowset_reader_bytes(&reader, 0, reader.meta->bytes, &bytes);
    if (err == 0 && participant->net->options->mutant == MUTANT_ROTS && bytes.len > 0 &&
        sim_world_chance(&participant->net->world, 2))
        bytes.data[bytes.len / 2] ^= 1;
    if (err == 0 && !sim_content_is(tablet, rowset, slice_of(bytes.data, bytes.len)))
        sim_net_fail(participant->net, "participant %u reads other bytes of rowset %lu tablet %lu",
                     participant->node, (unsigned long)rowset, (unsigned long)tablet);
    rowset_reader_close(&reader);
    buf_close(&bytes);
    return err;
}

static void serve_read(struct sim_participant *participant, struct sim_question *question)
{
    struct sim_read_question ask;
    struct version_map map;
    struct version_view view = {0};
    memcpy(&ask, question->head.data, sizeof ask);
    if (participant->net->options->mutant == MUTANT_READS_OLD)
        ask.need = 0;
    tablet_set_share(participant->tablets, ask.tablet, &map);
    int err = ask.changes ? version_map_between(&map, ask.after, ask.version, ask.need, &view)
                          : version_map_at(&map, ask.version, ask.need, &view);
    for (uint32_t i = 0; i < view.count && err == 0; i++) {
        err = read_rowset(participant, ask.tablet, view.rowsets[i].rowset);
        if (err == TG_CORRUPT || err == TG_NOT_FOUND)
            tablet_set_suspect(participant->tablets, ask.tablet);
    }
    if (err == 0)
        buf_append(&question->answer_payload, view.rowsets, view.count * sizeof *view.rowsets);
    version_map_close(&map);
    answer_err(question, err);
}

/* ---- all ---- */

static void serve(struct sim_participant *participant, void *data)
{
    struct sim_question *question = data;
    switch (question->type) {
    case MSG_PUBLISH:
        serve_publish(participant, question);
        break;
    case MSG_REPLICATE:
        serve_replicate(participant, question);
        break;
    case MSG_CLONE:
        serve_clone(participant, question);
        break;
    case MSG_CLONE_LIST:
    case MSG_CLONE_READ:
        clone_source_serve(participant->source, participant->node, question->type,
                           question_head(question), on_cloned_from, question);
        break;
    case SIM_MSG_READ:
        serve_read(participant, question);
        break;
    default:
        TG_UNREACHABLE();
    }
}

void sim_serve(struct sim_question *question)
{
    sim_participant_do(question->to, serve, question);
}
