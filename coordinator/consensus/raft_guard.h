/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between a raft_io and raft 0.22.1, around faults of that version that a simulation has
 * shown:
 *
 * - A snapshot from the leader that arrives while an own one is being written is put on hold by
 * raft, which then follows a null pointer: here it waits outside until the own one is written.
 * - One that arrives while another is being installed is leaked: dropped here, since the leader
 * repeats it.
 * - When reading a snapshot for a follower fails or is cancelled, raft frees what it never set:
 * such an end is not told to raft; the leader tries again when its time for the install is over.
 * - When a newer snapshot than the one that raft meant to send is read, raft corrects its index in
 * the message but not its term, and the follower is stuck with it for good: the term is set here.
 * - A follower rejects entries whose predecessor it has dropped behind a snapshot of its own (the
 * answer to an earlier message was lost), and the leader steps back for ever. What a snapshot
 * contains is committed, so the leader has it too: the message is made to begin behind the
 * snapshot.
 * - A message that ends before what a follower knows to be committed, while the leader has
 * committed more, turns the follower's commit index back; a snapshot taken then names too small an
 * index, and after a restart entries are applied twice. The leader's commit index is cut to the
 * message's end.
 * - A term or a vote that could not be written is in force all the same: asked again, the server
 * gives a vote that its disk does not know, and after a restart another one in the same term. An
 * entry that cannot be written meets an assertion, or is freed twice if it could not even be
 * submitted; a snapshot that the disk fails to keep is given up without a word (a full disk is no
 * such failure). All are told to `fatal`, which ends the process before raft goes on; if it returns
 * (in a simulation), raft is told that all is well, and must be closed without anything of it
 * reaching a peer any more.
 *
 * And it watches the appends to the own disk: the library tries a write that failed again and again
 * and tells nobody, and a disk that hangs tells nobody either.
 *
 * raft->data must point to the guard. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_GUARD_H
#define TG_COORDINATOR_CONSENSUS_RAFT_GUARD_H

#include <raft.h>
#include <stdbool.h>

#include "common/model/ids.h"

struct guard_append;

struct raft_guard {
    struct raft *raft;
    int (*io_start)(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv);
    int (*io_snapshot_get)(struct raft_io *io, struct raft_io_snapshot_get *request,
                           raft_io_snapshot_get_cb cb);
    int (*io_send)(struct raft_io *io, struct raft_io_send *request,
                   const struct raft_message *message, raft_io_send_cb cb);
    int (*io_set_term)(struct raft_io *io, raft_term term);
    int (*io_set_vote)(struct raft_io *io, raft_id vote);
    int (*io_append)(struct raft_io *io, struct raft_io_append *request,
                     const struct raft_entry entries[], unsigned n, raft_io_append_cb cb);
    int (*io_truncate)(struct raft_io *io, raft_index index);
    int (*io_snapshot_put)(struct raft_io *io, unsigned trailing,
                           struct raft_io_snapshot_put *request,
                           const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb);
    void (*fatal)(void *data, const char *why); /* set by the caller before raft_start */
    void *fatal_data;
    struct guard_append *appends, *last_append; /* under way, the oldest first */
    raft_io_recv_cb recv;
    raft_term sending_term; /* of the snapshot that raft is just putting into a message, else 0 */
    struct raft_message held;
    char held_address[ADDRESS_BYTES];
    bool holding;
};

/* Whether the state machine may take a snapshot now (else it answers RAFT_BUSY and is asked again).
 * raft applies what is committed even if it is not on the own disk yet; a snapshot that drops such
 * entries from the log makes it wait for ever for them to be stored. */
static inline bool raft_guard_may_snapshot(const struct raft *raft)
{
    return raft->last_stored >= raft->last_applied && raft->commit_index == raft->last_applied;
}

/* After raft_init, before raft_start. */
void raft_guard_attach(struct raft_guard *guard, struct raft *raft);
/* Gives raft what waited, if it may have it now. To be called in every turn. */
void raft_guard_turn(struct raft_guard *guard);
/* How long the oldest append to the own disk has been under way; 0: none is. Milliseconds of raft's
 * clock. */
uint64_t raft_guard_append_ms(const struct raft_guard *guard);
/* Before raft_close: frees what waits. */
void raft_guard_detach(struct raft_guard *guard);

#endif
