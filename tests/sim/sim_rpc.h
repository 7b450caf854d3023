/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to participants over the simulated network: bytes there, bytes back, or nothing until the
 * time is over. */
#ifndef TG_TESTS_SIM_SIM_RPC_H
#define TG_TESTS_SIM_SIM_RPC_H

#include <stdint.h>

#include "common/base/buf.h"
#include "tests/sim/sim_net.h"

struct sim_participant;

/* head and payload are valid during the call; empty unless err is 0. Called once. */
typedef void sim_rpc_done(void *data, int err, struct slice head, struct slice payload);

/* One arrival of a question at a participant. */
struct sim_question {
    struct sim_rpc *rpc;
    struct sim_participant *to;
    struct sim_question *prev, *next; /* of those that the participant has not answered */
    uint16_t type;
    struct buf head, payload; /* the question's */
    int err;                  /* the answer's */
    struct buf answer_head, answer_payload;
};

/* from: a node, or SIM_CLIENT. Takes head and payload over. */
void sim_rpc_call(struct sim_net *net, int from, struct sim_participant *to, uint16_t type,
                  struct buf *head, struct buf *payload, uint64_t timeout_us, sim_rpc_done *done,
                  void *data);
/* That node died: all its calls that are under way end with TG_CLOSED, but for those of its cloners,
 * of which nobody is left to be told. */
void sim_rpc_end_from(int from);
/* Answers; takes the buffers of the question's answer over. From anywhere, once. */
void sim_question_answer(struct sim_question *question);
/* The participant died: whoever asked hears that the connection is closed, or nothing. */
void sim_question_lost(struct sim_question *question);
/* At the end of a run. */
void sim_rpc_clear(void);

#endif
