/* SPDX-License-Identifier: Apache-2.0 */
/* The raft library's state machine callbacks on our state: apply a batch, take a snapshot by bytes
 * logged, restore.
 *
 * A snapshot, little-endian:
 *
 *   offset  bytes
 *        0      4  magic "TGSN"
 *        4      4  format, 1
 *        8      8  log index of the last entry it contains
 *       16      8  n, length of the encoded state
 *       24      n  the state (state_encode)
 *     24+n      8  XXH3 of everything before */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_FSM_H
#define TG_COORDINATOR_CONSENSUS_RAFT_FSM_H

#include <raft.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "coordinator/state/state.h"

enum {
    RAFT_FSM_SNAPSHOT_FORMAT = 1,
    RAFT_FSM_SNAPSHOT_BYTES_MAX = 1024 * 1024 * 1024, /* raft cannot read back files of 2 GiB */
    RAFT_FSM_SNAPSHOT_ENTRIES_MAX = 32 * 1024,        /* entries between snapshots, however small */
    RAFT_FSM_TRAILING_MIN = 64,                       /* entries kept behind a snapshot */
    RAFT_FSM_TRAILING_MAX = 2 * RAFT_FSM_SNAPSHOT_ENTRIES_MAX
};

struct raft_fsm_shell {
    struct raft_fsm fsm; /* for raft_init */
    struct state *state;
    struct raft *raft;
    uint64_t snapshot_bytes; /* of log between snapshots */
    uint32_t snapshot_entries;
    uint64_t bytes_since_snapshot;
    uint64_t snapshot_index; /* of the last one taken or restored */
    bool started; /* raft_start returned: from now on nobody looks at what restore returns */
    bool applied; /* something was applied or restored since the owner cleared this */
    uint64_t entries_applied, bytes_applied, snapshots_taken, snapshots_restored;
    /* Where the results of the entry at index go, NULL if nobody here waits for them. */
    struct apply_result *(*results)(void *data, uint64_t index, uint32_t *results_max);
    /* The process must end: it may not differ from its peers. May return in tests only. */
    void (*fatal)(void *data, const char *why);
    void *data;
    bool broken; /* fatal was called: applies nothing any more */
};

/* Everything but fsm, raft and the callbacks at rest. state must be initialised and is the
 * caller's. */
void raft_fsm_init(struct raft_fsm_shell *shell, struct state *state, uint64_t snapshot_bytes);

/* The bytes of a snapshot of the state at a log index: out must be empty. TG_NOMEM, TG_TOO_LARGE.
 */
int raft_fsm_encode_snapshot(const struct state *state, uint64_t index, struct buf *out);
/* Replaces the state, which stays as it was on failure: TG_CORRUPT, TG_UNSUPPORTED, TG_NOMEM. */
int raft_fsm_decode_snapshot(struct slice bytes, struct state *state, uint64_t *index,
                             struct tg_errmsg *msg);

#endif
