/* SPDX-License-Identifier: Apache-2.0 */
/* A repeated question. */
#include "tests/sim/sim_call.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/proto/message.h"

enum { SIM_ATTEMPT_US_MIN = 100 * 1000, SIM_ATTEMPT_US_MAX = 700 * 1000, SIM_RETRY_US = 30 * 1000 };

struct sim_call {
    struct sim_net *net;
    struct sim_coordinator **coordinators;
    int from;
    uint16_t type;
    struct buf message;
    sim_call_done *done;
    void *data;
    uint64_t until_us;
    unsigned target; /* coordinator asked last */
    unsigned attempt;
    bool ended;
    unsigned references; /* events and attempts that hold it */
};

struct sim_attempt {
    struct sim_call *call;
    unsigned number;
    unsigned target;
    int err;
    struct buf head;
};

static void sim_call_release(struct sim_call *call)
{
    if (--call->references > 0)
        return;
    buf_close(&call->message);
    free(call);
}

static void sim_attempt_drop(void *data)
{
    struct sim_attempt *attempt = data;
    struct sim_call *call = attempt->call;
    buf_close(&attempt->head);
    free(attempt);
    sim_call_release(call);
}

static void sim_call_end(struct sim_call *call, int err, struct slice head)
{
    if (call->ended)
        return;
    call->ended = true;
    call->done(call->data, err, head);
}

static void sim_call_try(struct sim_call *call);

static bool sim_is_answer(int err)
{
    return err != TG_NOT_LEADER && err != TG_UNKNOWN_OUTCOME && err != TG_BUSY &&
           err != TG_NOSPACE && err != TG_TIMEOUT && err != TG_CLOSED;
}

static void sim_call_on_retry(void *data)
{
    struct sim_call *call = data;
    if (!call->ended)
        sim_call_try(call);
    sim_call_release(call);
}

static void sim_call_drop(void *data)
{
    sim_call_release(data);
}

/* The next coordinator, a little later. */
static void sim_call_retry(struct sim_call *call)
{
    call->target = sim_net_next_coordinator(call->net, call->target);
    call->attempt++;
    call->references++;
    sim_world_after(&call->net->world, SIM_RETRY_US, sim_call_on_retry, call, sim_call_drop);
}

static void sim_attempt_on_answer(void *data)
{
    struct sim_attempt *attempt = data;
    struct sim_call *call = attempt->call;
    if (call->ended) {
        sim_attempt_drop(attempt);
        return;
    }
    if (sim_is_answer(attempt->err))
        sim_call_end(call, attempt->err, slice_of(attempt->head.data, attempt->head.len));
    else if (attempt->number == call->attempt)
        sim_call_retry(call);
    sim_attempt_drop(attempt);
}

static void sim_attempt_on_done(void *data, int err, struct slice head)
{
    struct sim_attempt *attempt = data;
    struct sim_call *call = attempt->call;
    attempt->err = err;
    buf_append(&attempt->head, head.data, head.len);
    /* A coordinator that has crashed says nothing. */
    if (!sim_coordinator_is_up(call->coordinators[attempt->target]))
        sim_attempt_drop(attempt);
    else
        sim_net_send(call->net, (int)attempt->target, call->from, sim_attempt_on_answer, attempt,
                     sim_attempt_drop);
}

static void sim_attempt_on_arrival(void *data)
{
    struct sim_attempt *attempt = data;
    struct sim_call *call = attempt->call;
    struct sim_coordinator *coordinator = call->coordinators[attempt->target];
    if (!sim_coordinator_is_up(coordinator))
        sim_attempt_drop(attempt);
    else
        sim_coordinator_call(coordinator, call->type,
                             slice_of(call->message.data, call->message.len), sim_attempt_on_done,
                             attempt);
}

struct sim_patience {
    struct sim_call *call;
    unsigned attempt;
};

static void sim_patience_drop(void *data)
{
    struct sim_patience *patience = data;
    sim_call_release(patience->call);
    free(patience);
}

/* No answer to this attempt in time. */
static void sim_patience_on_end(void *data)
{
    struct sim_patience *patience = data;
    struct sim_call *call = patience->call;
    if (!call->ended && patience->attempt == call->attempt)
        sim_call_retry(call);
    sim_patience_drop(patience);
}

static void sim_call_try(struct sim_call *call)
{
    struct sim_world *world = &call->net->world;
    if (world->now_us >= call->until_us) {
        sim_call_end(call, TG_TIMEOUT, slice_of(NULL, 0));
        return;
    }
    struct sim_attempt *attempt = calloc(1, sizeof *attempt);
    struct sim_patience *patience = calloc(1, sizeof *patience);
    TG_CHECK(attempt != NULL && patience != NULL);
    *attempt = (struct sim_attempt){.call = call, .number = call->attempt, .target = call->target};
    *patience = (struct sim_patience){call, call->attempt};
    call->references += 2;
    /* Waits for VISIBLE take their time. */
    uint64_t us = sim_world_between(world, SIM_ATTEMPT_US_MIN, SIM_ATTEMPT_US_MAX);
    if (call->type == MSG_LOAD_DONE || call->type == MSG_TXN_2PC || call->type == MSG_QUERY)
        us += 1000 * 1000;
    sim_world_after(world, us, sim_patience_on_end, patience, sim_patience_drop);
    sim_net_send(call->net, call->from, (int)call->target, sim_attempt_on_arrival, attempt,
                 sim_attempt_drop);
}

void sim_call_start(struct sim_net *net, struct sim_coordinator **coordinators, int from,
                    uint16_t type, struct buf *head, sim_call_done *done, void *data)
{
    struct sim_call *call = calloc(1, sizeof *call);
    TG_CHECK(call != NULL && head->err == 0);
    call->net = net;
    call->coordinators = coordinators;
    call->from = from;
    call->type = type;
    call->message = *head;
    buf_init(head);
    call->done = done;
    call->data = data;
    call->until_us = net->world.now_us + SIM_CALL_US_MAX;
    call->target = sim_net_any_coordinator(net);
    call->references = 1;
    sim_call_try(call);
    sim_call_release(call);
}
