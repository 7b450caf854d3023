/* SPDX-License-Identifier: Apache-2.0 */
/* A log of one that applies when told to. */
#include "tests/lib/fake_consensus.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "coordinator/consensus/batch.h"
#include "coordinator/consensus/proposer.h"

enum { FAKE_CONSENSUS_STEPS_MAX = 10000 };

struct fake_consensus {
    struct consensus consensus; /* first */
    struct clock *clock;
    struct consensus_observer observer;
    struct state state;
    struct proposer proposer;
    uint64_t term;
    uint64_t applied_index;
    uint64_t other_leader;
    struct apply_result done_result;
    bool done_called;
};

static struct fake_consensus *fake_of(const struct consensus *consensus)
{
    return (struct fake_consensus *)(uintptr_t)consensus;
}

static struct proposer_time fake_time(const struct fake_consensus *fake)
{
    return (struct proposer_time){clock_wall_us(fake->clock), clock_monotonic_us(fake->clock)};
}

static void fake_propose(struct consensus *consensus, const struct command *command,
                         struct consensus_request *request)
{
    proposer_add_command(&fake_of(consensus)->proposer, command, request);
}

static void fake_barrier(struct consensus *consensus, uint64_t closes_us,
                         struct consensus_request *request)
{
    struct fake_consensus *fake = fake_of(consensus);
    proposer_add_barrier(&fake->proposer, closes_us, fake_time(fake), request);
}

static bool fake_is_leader(const struct consensus *consensus)
{
    return fake_of(consensus)->proposer.leading;
}

static uint64_t fake_leader(const struct consensus *consensus)
{
    const struct fake_consensus *fake = fake_of(consensus);
    return fake->proposer.leading ? FAKE_CONSENSUS_ID : fake->other_leader;
}

static uint64_t fake_term(const struct consensus *consensus)
{
    return fake_of(consensus)->term;
}

static uint64_t fake_applied_index(const struct consensus *consensus)
{
    return fake_of(consensus)->applied_index;
}

static const struct state *fake_state(const struct consensus *consensus)
{
    return &fake_of(consensus)->state;
}

static uint64_t fake_now_us(const struct consensus *consensus)
{
    const struct fake_consensus *fake = fake_of(consensus);
    return proposer_now_us(&fake->proposer, fake->state.stamp_us, fake_time(fake));
}

static uint64_t fake_elapsed_ms(const struct consensus *consensus)
{
    const struct fake_consensus *fake = fake_of(consensus);
    return fake->state.elapsed_ms + proposer_elapsed_ms(&fake->proposer, fake_time(fake));
}

static const struct consensus_ops fake_ops = {
    .propose = fake_propose,
    .barrier = fake_barrier,
    .is_leader = fake_is_leader,
    .leader = fake_leader,
    .term = fake_term,
    .applied_index = fake_applied_index,
    .state = fake_state,
    .now_us = fake_now_us,
    .elapsed_ms = fake_elapsed_ms,
};

struct fake_consensus *fake_consensus_open(struct clock *clock)
{
    struct fake_consensus *fake = calloc(1, sizeof *fake);
    TG_CHECK(fake != NULL);
    fake->consensus.ops = &fake_ops;
    fake->clock = clock;
    TG_CHECK(state_init(&fake->state) == 0);
    proposer_init(&fake->proposer, 1);
    fake->term = 1;
    proposer_lead(&fake->proposer, fake->state.stamp_us, fake_time(fake));
    return fake;
}

void fake_consensus_close(struct fake_consensus *fake)
{
    if (fake == NULL)
        return;
    proposer_lose(&fake->proposer);
    while (!proposer_is_idle(&fake->proposer))
        proposer_deliver(&fake->proposer);
    proposer_close(&fake->proposer);
    state_close(&fake->state);
    free(fake);
}

struct consensus *fake_consensus_consensus(struct fake_consensus *fake)
{
    return &fake->consensus;
}

void fake_consensus_set_observer(struct fake_consensus *fake,
                                 const struct consensus_observer *observer)
{
    fake->observer = *observer;
}

struct state *fake_consensus_state(struct fake_consensus *fake)
{
    return &fake->state;
}

/* Requests that would be told by the next deliver. */
static unsigned fake_ended(const struct fake_consensus *fake)
{
    unsigned count = fake->proposer.finished.count;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++) {
        const struct proposer_batch *batch = &fake->proposer.batches[i];
        if (batch->state == BATCH_ENDED)
            count += batch->commands.count + batch->barriers.count;
    }
    return count;
}

static void fake_apply(struct fake_consensus *fake, struct proposer_batch *batch,
                       const struct buf *bytes)
{
    uint32_t count = 0;
    struct tg_errmsg msg = {""};
    int err = batch_apply(&fake->state, slice_of(bytes->data, bytes->len), batch->results,
                          batch->commands.count, &count, &msg);
    if (err != 0)
        fprintf(stderr, "fake_consensus: %s\n", msg.text);
    TG_CHECK(err == 0 && count == batch->commands.count);
    fake->applied_index++;
}

unsigned fake_consensus_step(struct fake_consensus *fake)
{
    struct buf bytes = BUF_INIT;
    struct proposer_batch *batch = proposer_next(&fake->proposer, fake_time(fake), &bytes);
    if (batch != NULL) {
        fake_apply(fake, batch, &bytes);
        proposer_applied(&fake->proposer, batch, fake->state.stamp_us);
    }
    buf_close(&bytes);
    unsigned ended = fake_ended(fake);
    proposer_deliver(&fake->proposer);
    if (batch != NULL && fake->observer.applied != NULL)
        fake->observer.applied(fake->observer.data);
    return ended;
}

unsigned fake_consensus_run(struct fake_consensus *fake)
{
    unsigned told = 0;
    for (unsigned step = 0; step < FAKE_CONSENSUS_STEPS_MAX; step++) {
        unsigned now = fake_consensus_step(fake);
        told += now;
        if (now == 0 && fake->proposer.waiting.count == 0)
            return told;
    }
    TG_UNREACHABLE();
}

static void fake_done(struct consensus_request *request, int err, const struct apply_result *result)
{
    struct fake_consensus *fake = request->data;
    TG_CHECK(err == 0);
    fake->done_result = *result;
    fake->done_called = true;
}

struct apply_result fake_consensus_do(struct fake_consensus *fake, const struct command *command)
{
    struct consensus_request request = {.done = fake_done, .data = fake};
    fake->done_called = false;
    proposer_add_command(&fake->proposer, command, &request);
    while (!fake->done_called)
        fake_consensus_step(fake);
    return fake->done_result;
}

static void fake_tell_leadership(struct fake_consensus *fake, bool leads)
{
    proposer_deliver(&fake->proposer);
    if (fake->observer.leadership != NULL)
        fake->observer.leadership(fake->observer.data, leads);
}

void fake_consensus_set_leader(struct fake_consensus *fake, bool leads)
{
    if (leads == fake->proposer.leading)
        return;
    if (!leads) {
        fake_consensus_lose(fake, false);
        return;
    }
    fake->term++;
    proposer_lead(&fake->proposer, fake->state.stamp_us, fake_time(fake));
    fake_tell_leadership(fake, true);
}

void fake_consensus_lose(struct fake_consensus *fake, bool applied)
{
    struct buf bytes = BUF_INIT;
    struct proposer_batch *batch = proposer_next(&fake->proposer, fake_time(fake), &bytes);
    if (batch != NULL && applied)
        fake_apply(fake, batch, &bytes);
    buf_close(&bytes);
    proposer_lose(&fake->proposer);
    fake_tell_leadership(fake, false);
    if (batch != NULL && applied && fake->observer.applied != NULL)
        fake->observer.applied(fake->observer.data);
}

void fake_consensus_set_other_leader(struct fake_consensus *fake, uint64_t id)
{
    fake->other_leader = id;
}
