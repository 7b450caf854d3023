/* SPDX-License-Identifier: Apache-2.0 */
/* Clones of a simulated cluster. */
#include "tests/sim/sim_clone.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/err.h"

enum { CLONE_TIMEOUT_US = 400 * 1000, CLONE_SLOW_PERMILLE = 300, CLONE_CUT_PERMILLE = 150 };

struct sim_clone {
    struct sim_net *net;
    unsigned from;
    struct sim_participant *participants;
    struct msg_clone message;
    int err;
    struct msg_clone_reply reply;
    unsigned references;           /* events that hold it */
    participants_clone_done *done; /* NULL once it was called */
    void *data;
};

static void sim_clone_end(struct sim_clone *clone, int err)
{
    participants_clone_done *done = clone->done;
    if (done == NULL)
        return;
    clone->done = NULL;
    done(clone->data, err, err == 0 ? &clone->reply : NULL);
}

static void sim_clone_release(void *data)
{
    struct sim_clone *clone = data;
    if (--clone->references > 0)
        return;
    sim_clone_end(clone, TG_CLOSED);
    free(clone);
}

static void sim_clone_on_late(void *data)
{
    sim_clone_end(data, TG_TIMEOUT);
    sim_clone_release(data);
}

static void sim_clone_on_answer(void *data)
{
    struct sim_clone *clone = data;
    sim_clone_end(clone, clone->err);
    sim_clone_release(clone);
}

static void sim_clone_on_arrival(void *data)
{
    struct sim_clone *clone = data;
    struct sim_world *world = &clone->net->world;
    struct sim_participant *to = &clone->participants[clone->message.node - 1];
    if (!to->up || clone->net->cut[clone->from][to->node - 1]) {
        sim_clone_release(clone);
        return;
    }
    clone->err = clone->message.epoch != to->epoch ? TG_FENCED : 0;
    if (clone->err == 0 && !sim_world_chance(world, CLONE_SLOW_PERMILLE)) {
        uint32_t most = sim_world_chance(world, CLONE_CUT_PERMILLE)
                            ? (uint32_t)sim_world_below(world, 4)
                            : UINT32_MAX;
        sim_participant_clone(to, &clone->participants[clone->message.source - 1], &clone->message,
                              most, &clone->reply);
    }
    sim_net_send(clone->net, sim_clone_on_answer, clone, sim_clone_release);
}

void sim_clone_start(struct sim_net *net, unsigned from, struct sim_participant *participants,
                     const struct msg_clone *message, participants_clone_done *done, void *data)
{
    struct sim_clone *clone = calloc(1, sizeof *clone);
    struct buf head = BUF_INIT;
    TG_CHECK(clone != NULL);
    msg_clone_encode(message, &head);
    TG_CHECK(msg_clone_decode(slice_of(head.data, head.len), &clone->message) == 0);
    buf_close(&head);
    clone->net = net;
    clone->from = from;
    clone->participants = participants;
    clone->done = done;
    clone->data = data;
    clone->references = 2;
    sim_world_after(&net->world, CLONE_TIMEOUT_US, sim_clone_on_late, clone, sim_clone_release);
    sim_net_send(net, sim_clone_on_arrival, clone, sim_clone_release);
}
