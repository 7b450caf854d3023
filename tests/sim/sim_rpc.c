/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to participants. */
#include "tests/sim/sim_rpc.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/err.h"
#include "common/proto/message.h"
#include "tests/sim/sim_participant.h"
#include "tests/sim/sim_serve.h"

enum { RPC_RESET_PERMILLE = 500 };

struct sim_rpc {
    struct sim_net *net;
    struct sim_rpc *prev, *next;
    int from;
    struct sim_participant *to;
    unsigned references; /* timer, letters, questions */
    bool open;           /* done is still to be called */
    sim_rpc_done *done;
    void *data;
    uint16_t type;
    struct buf head, payload;
};

static struct sim_rpc *calls;

static void rpc_end(struct sim_rpc *rpc, int err, struct slice head, struct slice payload)
{
    if (!rpc->open)
        return;
    rpc->open = false;
    if (rpc->prev != NULL)
        rpc->prev->next = rpc->next;
    else
        calls = rpc->next;
    if (rpc->next != NULL)
        rpc->next->prev = rpc->prev;
    if (rpc->done != NULL)
        rpc->done(rpc->data, err, head, payload);
}

static void rpc_release(struct sim_rpc *rpc)
{
    if (--rpc->references > 0)
        return;
    if (rpc->open)
        rpc_end(rpc, TG_CLOSED, slice_of(NULL, 0), slice_of(NULL, 0));
    buf_close(&rpc->head);
    buf_close(&rpc->payload);
    free(rpc);
}

static void rpc_drop(void *data)
{
    rpc_release(data);
}

static void on_late(void *data)
{
    struct sim_rpc *rpc = data;
    rpc_end(rpc, TG_TIMEOUT, slice_of(NULL, 0), slice_of(NULL, 0));
    rpc_release(rpc);
}

/* ---- at the participant ---- */

static void question_free(struct sim_question *question)
{
    buf_close(&question->head);
    buf_close(&question->payload);
    buf_close(&question->answer_head);
    buf_close(&question->answer_payload);
    rpc_release(question->rpc);
    free(question);
}

static void on_arrival(void *data)
{
    struct sim_rpc *rpc = data;
    if (!rpc->to->up) {
        rpc_release(rpc);
        return;
    }
    struct sim_question *question = calloc(1, sizeof *question);
    TG_CHECK(question != NULL);
    question->rpc = rpc; /* with the letter's reference */
    question->to = rpc->to;
    question->type = rpc->type;
    buf_append(&question->head, rpc->head.data, rpc->head.len);
    buf_append(&question->payload, rpc->payload.data, rpc->payload.len);
    question->next = rpc->to->questions;
    if (question->next != NULL)
        question->next->prev = question;
    rpc->to->questions = question;
    sim_serve(question);
}

static void on_answer(void *data)
{
    struct sim_question *question = data;
    bool good = question->err == 0;
    const struct buf *head = &question->answer_head;
    const struct buf *payload = &question->answer_payload;
    rpc_end(question->rpc, question->err,
            good ? slice_of(head->data, head->len) : slice_of(NULL, 0),
            good ? slice_of(payload->data, payload->len) : slice_of(NULL, 0));
    question_free(question);
}

static void answer_drop(void *data)
{
    question_free(data);
}

static void question_unlink(struct sim_question *question)
{
    if (question->prev != NULL)
        question->prev->next = question->next;
    else
        question->to->questions = question->next;
    if (question->next != NULL)
        question->next->prev = question->prev;
}

void sim_question_answer(struct sim_question *question)
{
    struct sim_rpc *rpc = question->rpc;
    question_unlink(question);
    sim_net_send(rpc->net, sim_node(question->to->node - 1), rpc->from, on_answer, question,
                 answer_drop);
}

void sim_question_lost(struct sim_question *question)
{
    struct sim_net *net = question->rpc->net;
    question_unlink(question);
    question->err = TG_CLOSED;
    if (sim_world_chance(&net->world, RPC_RESET_PERMILLE))
        sim_net_send(net, sim_node(question->to->node - 1), question->rpc->from, on_answer,
                     question, answer_drop);
    else
        question_free(question);
}

/* ---- the caller's side ---- */

void sim_rpc_call(struct sim_net *net, int from, struct sim_participant *to, uint16_t type,
                  struct buf *head, struct buf *payload, uint64_t timeout_us, sim_rpc_done *done,
                  void *data)
{
    struct sim_rpc *rpc = calloc(1, sizeof *rpc);
    int target = sim_node(to->node - 1);
    TG_CHECK(rpc != NULL);
    *rpc = (struct sim_rpc){.net = net,
                            .from = from,
                            .to = to,
                            .open = true,
                            .done = done,
                            .data = data,
                            .type = type,
                            .head = *head,
                            .payload = *payload,
                            .next = calls,
                            .references = 2};
    buf_init(head);
    buf_init(payload);
    if (rpc->next != NULL)
        rpc->next->prev = rpc;
    calls = rpc;
    sim_world_after(&net->world, timeout_us, on_late, rpc, rpc_drop);
    bool twice = from != target && sim_world_chance(&net->world, net->repeat_permille);
    if (twice)
        rpc->references++;
    sim_net_send(net, from, target, on_arrival, rpc, rpc_drop);
    if (twice)
        sim_net_send(net, from, target, on_arrival, rpc, rpc_drop);
}

void sim_rpc_end_from(int from)
{
    for (struct sim_rpc *rpc = calls, *next; rpc != NULL; rpc = next) {
        next = rpc->next;
        if (rpc->from != from)
            continue;
        /* Its cloners are dead; loads and reads are clients' as well. */
        if (rpc->type == MSG_CLONE_LIST || rpc->type == MSG_CLONE_READ)
            rpc->done = NULL;
        rpc_end(rpc, TG_CLOSED, slice_of(NULL, 0), slice_of(NULL, 0));
        next = calls; /* the callee may have made or ended others */
    }
}

void sim_rpc_clear(void)
{
    calls = NULL;
}
