/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers commands into batches, stamps them, and tells proposers how they ended. */
#include "coordinator/consensus/proposer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/mutant.h"

enum {
    /* Header and padding of a batch, generously. */
    PROPOSER_BATCH_OVERHEAD_BYTES = 128,
    PROPOSER_BATCH_TIMES_MIN = 1
};

static void request_list_add(struct request_list *list, struct consensus_request *request)
{
    request->next = NULL;
    if (list->last == NULL)
        list->first = request;
    else
        list->last->next = request;
    list->last = request;
    list->count++;
}

static struct consensus_request *request_list_take(struct request_list *list)
{
    struct consensus_request *request = list->first;
    if (request == NULL)
        return NULL;
    list->first = request->next;
    if (list->first == NULL)
        list->last = NULL;
    list->count--;
    request->next = NULL;
    return request;
}

static void proposer_finish(struct proposer *proposer, struct consensus_request *request, int err)
{
    request->err = err;
    request_list_add(&proposer->finished, request);
}

void proposer_init(struct proposer *proposer, uint32_t window)
{
    memset(proposer, 0, sizeof *proposer);
    TG_CHECK(window >= 1 && window <= PROPOSER_WINDOW_MAX);
    proposer->window = window;
    proposer->batch_commands_max = BATCH_COMMANDS_MAX;
    proposer->batch_bytes_max = BATCH_BYTES_MAX;
    buf_init(&proposer->waiting_bytes);
}

void proposer_close(struct proposer *proposer)
{
    TG_CHECK(proposer_is_idle(proposer));
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++)
        free(proposer->batches[i].results);
    buf_close(&proposer->waiting_bytes);
}

void proposer_lead(struct proposer *proposer, uint64_t state_stamp_us, struct proposer_time now)
{
    proposer->leading = true;
    if (proposer->last_us < state_stamp_us)
        proposer->last_us = state_stamp_us;
    proposer->elapsed_from_us = now.monotonic_us;
}

void proposer_lose(struct proposer *proposer)
{
    proposer->leading = false;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++)
        if (proposer->batches[i].state == BATCH_IN_FLIGHT)
            proposer_failed(proposer, &proposer->batches[i]);
    struct consensus_request *request;
    while ((request = request_list_take(&proposer->waiting)) != NULL)
        proposer_finish(proposer, request, TG_NOT_LEADER);
    while ((request = request_list_take(&proposer->barriers)) != NULL)
        proposer_finish(proposer, request, TG_NOT_LEADER);
    buf_clear(&proposer->waiting_bytes);
}

void proposer_set_room(struct proposer *proposer, enum proposer_room room)
{
    proposer->room = room;
}

/* What only adds work; everything else ends or repairs what is there, and may use the reserve. */
static bool proposer_command_begins_work(const struct command *command)
{
    switch (command->type) {
    case COMMAND_TXN_BEGIN:
    case COMMAND_LOAD_START:
    case COMMAND_CREATE_DB:
    case COMMAND_CREATE_TABLE:
        return true;
    default:
        return false;
    }
}

static int proposer_admit(const struct proposer *proposer, const struct command *command)
{
    if (!proposer->leading)
        return TG_NOT_LEADER;
    if (proposer->room == PROPOSER_ROOM_NONE ||
        (proposer->room == PROPOSER_ROOM_RESERVE && proposer_command_begins_work(command)))
        return TG_NOSPACE;
    if (proposer->waiting.count >= PROPOSER_WAITING_MAX ||
        proposer->waiting_bytes.len >= PROPOSER_WAITING_BYTES_MAX)
        return TG_BUSY;
    return 0;
}

/* How many times of its own the command may need when it is applied. */
static uint32_t proposer_times(const struct command *command)
{
    if (command->type == COMMAND_TXN_VISIBLE || command->type == COMMAND_TXN_CONFIRM)
        return command->visible.count + PROPOSER_BATCH_TIMES_MIN;
    return PROPOSER_BATCH_TIMES_MIN;
}

void proposer_add_command(struct proposer *proposer, const struct command *command,
                          struct consensus_request *request)
{
    int err = proposer_admit(proposer, command);
    if (err != 0) {
        proposer_finish(proposer, request, err);
        return;
    }
    struct buf *bytes = &proposer->waiting_bytes;
    size_t before = bytes->len;
    command_encode(command, bytes);
    size_t size = bytes->len - before;
    if (bytes->err != 0)
        err = TG_NOMEM;
    else if (size > proposer->batch_bytes_max - PROPOSER_BATCH_OVERHEAD_BYTES)
        err = TG_TOO_LARGE;
    if (err != 0) {
        bytes->len = before;
        bytes->err = 0;
        proposer_finish(proposer, request, err);
        return;
    }
    request->bytes_at = (uint32_t)size;
    request->closes_us = proposer_times(command);
    request_list_add(&proposer->waiting, request);
}

void proposer_add_barrier(struct proposer *proposer, uint64_t closes_us, struct proposer_time now,
                          struct consensus_request *request)
{
    uint64_t now_us = proposer_now_us(proposer, 0, now);
    if (!proposer->leading) {
        proposer_finish(proposer, request, TG_NOT_LEADER);
        return;
    }
    if (closes_us > now_us + PROPOSER_CLOSES_AHEAD_US_MAX) {
        proposer_finish(proposer, request, TG_FUTURE);
        return;
    }
    if (proposer->barriers.count >= PROPOSER_WAITING_MAX) {
        proposer_finish(proposer, request, TG_BUSY);
        return;
    }
    request->closes_us = closes_us;
    /* Measured on the monotonic clock: a wall clock that was set back must not delay a read. */
    request->due_us = now.monotonic_us;
    if (closes_us > now_us)
        request->due_us += closes_us - now_us;
    request_list_add(&proposer->barriers, request);
}

/* True if the barrier can go into a batch stamped *stamp, which may be raised for one whose time
 * has come. */
static bool proposer_barrier_ready(const struct consensus_request *request,
                                   struct proposer_time now, uint64_t *stamp)
{
    if (request->closes_us > *stamp) {
        if (request->due_us > now.monotonic_us)
            return false;
        *stamp = request->closes_us;
    }
    return true;
}

static void proposer_take_barriers(struct proposer *proposer, struct proposer_batch *batch,
                                   struct proposer_time now, uint64_t *stamp)
{
    struct request_list waiting = proposer->barriers;
    proposer->barriers = (struct request_list){0};
    struct consensus_request *request;
    while ((request = request_list_take(&waiting)) != NULL) {
        bool ready = proposer_barrier_ready(request, now, stamp);
        request_list_add(ready ? &batch->barriers : &proposer->barriers, request);
    }
}

/* Moves the waiting commands that fit into the batch; returns their encoded length. */
static size_t proposer_take_commands(struct proposer *proposer, struct proposer_batch *batch,
                                     uint64_t *times)
{
    size_t bytes = 0;
    size_t bytes_max = proposer->batch_bytes_max - PROPOSER_BATCH_OVERHEAD_BYTES;
    while (proposer->waiting.first != NULL &&
           batch->commands.count < proposer->batch_commands_max &&
           bytes + proposer->waiting.first->bytes_at <= bytes_max) {
        struct consensus_request *request = request_list_take(&proposer->waiting);
        bytes += request->bytes_at;
        *times += request->closes_us;
        request_list_add(&batch->commands, request);
    }
    return bytes;
}

/* True if there is a command, or a barrier whose time has come. */
static bool proposer_has_something(const struct proposer *proposer, struct proposer_time now,
                                   uint64_t stamp)
{
    if (proposer->waiting.first != NULL)
        return true;
    for (const struct consensus_request *r = proposer->barriers.first; r != NULL; r = r->next)
        if (r->closes_us <= stamp || r->due_us <= now.monotonic_us)
            return true;
    return false;
}

static struct proposer_batch *proposer_free_batch(struct proposer *proposer)
{
    uint32_t used = 0;
    struct proposer_batch *found = NULL;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++) {
        if (proposer->batches[i].state == BATCH_FREE)
            found = &proposer->batches[i];
        else
            used++;
    }
    return used < proposer->window ? found : NULL;
}

static bool proposer_reserve_results(struct proposer_batch *batch, uint32_t count)
{
    if (batch->results_capacity >= count)
        return true;
    struct apply_result *results = realloc(batch->results, count * sizeof *results);
    if (results == NULL)
        return false;
    batch->results = results;
    batch->results_capacity = count;
    return true;
}

struct proposer_batch *proposer_next(struct proposer *proposer, struct proposer_time now,
                                     struct buf *out)
{
    uint64_t stamp = proposer_now_us(proposer, 0, now);
    if (MUTANT(23))
        stamp = now.wall_us;
    else if (stamp <= proposer->last_us)
        stamp = proposer->last_us + 1;
    struct proposer_batch *batch = proposer_free_batch(proposer);
    if (!proposer->leading || batch == NULL || !proposer_has_something(proposer, now, stamp))
        return NULL;

    uint64_t times = PROPOSER_BATCH_TIMES_MIN;
    batch->commands = (struct request_list){0};
    batch->barriers = (struct request_list){0};
    size_t bytes = proposer_take_commands(proposer, batch, &times);
    proposer_take_barriers(proposer, batch, now, &stamp);
    batch->stamp_us = stamp;
    batch->elapsed_delta_ms = proposer_elapsed_ms(proposer, now);
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++)
        if (proposer->batches[i].state == BATCH_IN_FLIGHT)
            batch->elapsed_delta_ms -= proposer->batches[i].elapsed_delta_ms;
    batch->proposed_us = now.monotonic_us;
    batch->err = 0;
    batch->state = BATCH_IN_FLIGHT;

    struct batch_header header = {.stamp_us = stamp,
                                  .elapsed_delta_ms = batch->elapsed_delta_ms,
                                  .count = batch->commands.count};
    batch_begin(&header, out);
    if (bytes > 0)
        buf_append(out, proposer->waiting_bytes.data, bytes);
    batch_end(out);
    buf_consume(&proposer->waiting_bytes, bytes);
    if (out->err != 0 || !proposer_reserve_results(batch, batch->commands.count)) {
        batch->elapsed_delta_ms = 0;
        proposer_refused(proposer, batch, TG_NOMEM);
        return NULL;
    }
    TG_CHECK(out->len % 8 == 0);
    proposer->elapsed_from_us += batch->elapsed_delta_ms * 1000;
    proposer->last_us = stamp + times;
    proposer->batches_proposed++;
    proposer->commands_proposed += batch->commands.count;
    proposer->bytes_proposed += out->len;
    return batch;
}

uint64_t proposer_due_us(const struct proposer *proposer)
{
    uint64_t due = 0;
    for (const struct consensus_request *r = proposer->barriers.first; r != NULL; r = r->next)
        if (due == 0 || r->due_us < due)
            due = r->due_us;
    return due;
}

static void proposer_end(struct proposer_batch *batch, int err)
{
    TG_CHECK(batch->state == BATCH_IN_FLIGHT);
    batch->state = BATCH_ENDED;
    batch->err = err;
}

void proposer_applied(struct proposer *proposer, struct proposer_batch *batch,
                      uint64_t state_stamp_us)
{
    if (proposer->last_us < state_stamp_us)
        proposer->last_us = state_stamp_us;
    proposer_end(batch, 0);
}

void proposer_refused(struct proposer *proposer, struct proposer_batch *batch, int err)
{
    /* The time that it accounted for goes into the next one. */
    proposer->elapsed_from_us -= batch->elapsed_delta_ms * 1000;
    proposer_end(batch, err);
}

void proposer_failed(struct proposer *proposer, struct proposer_batch *batch)
{
    (void)proposer;
    proposer_end(batch, TG_UNKNOWN_OUTCOME);
}

/* The oldest batch that has ended. */
static struct proposer_batch *proposer_ended_batch(struct proposer *proposer)
{
    struct proposer_batch *oldest = NULL;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++) {
        struct proposer_batch *batch = &proposer->batches[i];
        if (batch->state == BATCH_ENDED && (oldest == NULL || batch->stamp_us < oldest->stamp_us))
            oldest = batch;
    }
    return oldest;
}

static void proposer_deliver_batch(struct proposer_batch *batch)
{
    struct consensus_request *request;
    for (uint32_t i = 0; (request = request_list_take(&batch->commands)) != NULL; i++)
        request->done(request, batch->err, batch->err == 0 ? &batch->results[i] : NULL);
    while ((request = request_list_take(&batch->barriers)) != NULL)
        request->done(request, batch->err, NULL);
    batch->state = BATCH_FREE;
}

bool proposer_deliver(struct proposer *proposer)
{
    bool any = false;
    struct proposer_batch *batch;
    while ((batch = proposer_ended_batch(proposer)) != NULL) {
        proposer_deliver_batch(batch);
        any = true;
    }
    /* What is refused while these are told waits for the next call, so that this one ends. */
    struct request_list finished = proposer->finished;
    proposer->finished = (struct request_list){0};
    struct consensus_request *request;
    while ((request = request_list_take(&finished)) != NULL) {
        request->done(request, request->err, NULL);
        any = true;
    }
    return any;
}

bool proposer_is_idle(const struct proposer *proposer)
{
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++)
        if (proposer->batches[i].state != BATCH_FREE)
            return false;
    return proposer->waiting.count == 0 && proposer->barriers.count == 0 &&
           proposer->finished.count == 0;
}

uint64_t proposer_now_us(const struct proposer *proposer, uint64_t state_stamp_us,
                         struct proposer_time now)
{
    uint64_t last = proposer->last_us > state_stamp_us ? proposer->last_us : state_stamp_us;
    return now.wall_us > last ? now.wall_us : last;
}

uint64_t proposer_elapsed_ms(const struct proposer *proposer, struct proposer_time now)
{
    uint64_t elapsed = 0;
    if (!proposer->leading)
        return 0;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++)
        if (proposer->batches[i].state == BATCH_IN_FLIGHT)
            elapsed += proposer->batches[i].elapsed_delta_ms;
    if (now.monotonic_us > proposer->elapsed_from_us)
        elapsed += (now.monotonic_us - proposer->elapsed_from_us) / 1000;
    return elapsed;
}
