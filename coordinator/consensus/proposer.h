/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on their way into the log: gathers what waits into batches, stamps them, keeps what is
 * in flight and tells each proposer how it ended. Pure: knows no raft, and clocks are handed in.
 *
 *   waiting ──proposer_next──▶ in flight ──applied | refused | failed──▶ finished
 *   finished ──proposer_deliver──▶ done()
 *
 * done() is called by proposer_deliver only, so never from inside a call that proposes, and never
 * from inside a callback of the log. */
#ifndef TG_COORDINATOR_CONSENSUS_PROPOSER_H
#define TG_COORDINATOR_CONSENSUS_PROPOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/state/command.h"
#include "coordinator/state/state.h"

enum {
    PROPOSER_WINDOW_MAX = 4,          /* entries in flight */
    PROPOSER_WAITING_MAX = 64 * 1024, /* requests that wait for a batch */
    PROPOSER_WAITING_BYTES_MAX = 16 * 1024 * 1024,
    /* A barrier may ask to close time so far ahead of now. */
    PROPOSER_CLOSES_AHEAD_US_MAX = 10 * 1000000
};

struct proposer_time {
    uint64_t wall_us;
    uint64_t monotonic_us;
};

/* How much room the log's disk has. */
enum proposer_room {
    PROPOSER_ROOM_FREE = 0,
    PROPOSER_ROOM_RESERVE = 1, /* only what ends work already begun goes in (rule 19) */
    PROPOSER_ROOM_NONE = 2     /* nothing */
};

struct request_list {
    struct consensus_request *first, *last;
    uint32_t count;
};

enum proposer_batch_state { BATCH_FREE = 0, BATCH_IN_FLIGHT, BATCH_ENDED };

/* One entry in flight. */
struct proposer_batch {
    uint64_t stamp_us;
    uint64_t elapsed_delta_ms;
    uint64_t proposed_us;         /* monotonic */
    struct request_list commands; /* in the order of the batch */
    struct request_list barriers;
    struct apply_result *results; /* one for each command, owned */
    uint32_t results_capacity;
    enum proposer_batch_state state;
    int err; /* how it ended */
};

struct proposer {
    uint32_t window;
    uint32_t batch_commands_max;
    size_t batch_bytes_max;
    enum proposer_room room;
    bool leading;
    uint64_t last_us; /* the largest time that any batch proposed or applied here may have used */
    uint64_t elapsed_from_us; /* monotonic: up to here batches account for the time that passed */
    struct request_list waiting;
    struct buf waiting_bytes; /* the waiting commands, encoded, one after the other */
    struct request_list barriers;
    struct request_list finished;
    struct proposer_batch batches[PROPOSER_WINDOW_MAX];
    uint64_t commands_proposed, batches_proposed, bytes_proposed; /* since the start */
};

/* window: entries in flight, 1..PROPOSER_WINDOW_MAX. */
void proposer_init(struct proposer *proposer, uint32_t window);
/* Everything must have been delivered. */
void proposer_close(struct proposer *proposer);

/* Leadership is proven and everything before is applied: state_stamp_us is the state's last used
 * time. From now on time counts and commands are taken. */
void proposer_lead(struct proposer *proposer, uint64_t state_stamp_us, struct proposer_time now);
/* Leadership is over (or was never had): what waits ends with TG_NOT_LEADER, what is in flight with
 * TG_UNKNOWN_OUTCOME. */
void proposer_lose(struct proposer *proposer);
void proposer_set_room(struct proposer *proposer, enum proposer_room room);

/* Takes a command: encoded now, so it stays the caller's. A refusal is delivered like any end:
 * TG_NOT_LEADER, TG_BUSY (too many wait), TG_NOSPACE, TG_TOO_LARGE, TG_NOMEM. */
void proposer_add_command(struct proposer *proposer, const struct command *command,
                          struct consensus_request *request);
/* Takes a barrier. closes_us 0: any stamp will do. TG_FUTURE beyond PROPOSER_CLOSES_AHEAD_US_MAX.
 */
void proposer_add_barrier(struct proposer *proposer, uint64_t closes_us, struct proposer_time now,
                          struct consensus_request *request);

/* The next batch: its bytes are appended to out (which must be empty). NULL if nothing is to be
 * sent now, or if the window is full. The batch is the proposer's. */
struct proposer_batch *proposer_next(struct proposer *proposer, struct proposer_time now,
                                     struct buf *out);
/* Monotonic time at which a barrier that waits for its time becomes due; 0 if none waits. */
uint64_t proposer_due_us(const struct proposer *proposer);

/* The batch went into the log and was applied: results[i] is of its i-th command. */
void proposer_applied(struct proposer *proposer, struct proposer_batch *batch,
                      uint64_t state_stamp_us);
/* The batch is certainly not in the log. */
void proposer_refused(struct proposer *proposer, struct proposer_batch *batch, int err);
/* Nobody here knows. */
void proposer_failed(struct proposer *proposer, struct proposer_batch *batch);
/* Calls done() of everything that has ended. They may add more. True if there was anything. */
bool proposer_deliver(struct proposer *proposer);

/* Nothing waits, flies, or is to be delivered. */
bool proposer_is_idle(const struct proposer *proposer);
uint64_t proposer_now_us(const struct proposer *proposer, uint64_t state_stamp_us,
                         struct proposer_time now);
/* What has to be added to the state's elapsed time. */
uint64_t proposer_elapsed_ms(const struct proposer *proposer, struct proposer_time now);

#endif
