/* SPDX-License-Identifier: Apache-2.0 */
/* Rowsets on their way in: pieces of content, then a seal. Staged rowsets are invisible until a
 * version binds them (version_store.h).
 *
 *   piece at 0 ──▶ OPEN (in memory; full extents go to the block environments as they fill)
 *                   │ seal: bytes, blocks and digest match, all extents durable
 *                   ▼
 *                 SEALED (durable) ── bind ──▶ BOUND
 *                   │ the coordinators say that the transaction is dead (rowset_drop.h)
 *                   ▼
 *                 gone
 *
 * An OPEN rowset does not outlive the process: after a restart its extents lie there, listed by
 * transaction, until the coordinators give their word; further pieces of it get TG_STALE. A rowset
 * of at most ROWSET_INLINE_BYTES_MAX lies beside its description, so that a small load costs one
 * commit. */
#ifndef TG_PARTICIPANT_STORE_ROWSET_STORE_H
#define TG_PARTICIPANT_STORE_ROWSET_STORE_H

#include "common/base/buf.h"
#include "common/proto/msg_replicate.h"
#include "participant/store/store.h"

enum {
    ROWSET_INLINE_BYTES_MAX = 16 * 1024, /* content of a rowset that lies with its description */
    ROWSET_OPEN_MAX = 32 * 1024          /* rowsets being written at once; more: TG_BUSY */
};

/* Called once, on a writer thread or, before the call returns, on the caller's own: it must not
 * block and must not call the store's waiting functions. */
typedef void (*rowset_store_done)(void *data, int err);

/* Takes one message, from a peer or from this node's own load: appends its pieces (their bytes
 * follow one another in payload), then seals. Nothing of message or payload is needed once the call
 * has returned. done gets
 *   0           pieces: taken, and the writers keep up (a sender that waits for it, with a bounded
 *               number of bytes outstanding, is slowed to the disk's pace);
 *               seals: all of them are durable, counts and digests checked
 *   TG_INVALID  pieces and payload do not fit together, or a seal does not describe its bytes
 *   TG_STALE    a piece does not follow what is here, or the rowset is not open here: pieces were
 *               lost, and this node cannot take part in the rowset any more
 *   TG_DIGEST   count or digest of a seal differ: nothing of this message is sealed, its rowsets
 *               are forgotten
 *   TG_REFUSED  the transaction is known to be dead here
 *   TG_NOSPACE  disk or map full, or the disk below its reserve
 *   TG_BUSY     too much is waiting here, or the same seal is under way already: ask again
 *   TG_NOMEM
 * Pieces and seals may be repeated: what is here is not taken twice. All seals of a message become
 * durable together. Two threads must not hand in pieces of one rowset and tablet at once. Does not
 * wait for a disk to write: fit for an event loop. */
void rowset_store_replicate(struct store *store, const struct msg_replicate *message,
                            struct slice payload, rowset_store_done done, void *data);

/* The same for threads that may wait; returns what done would get. */
int rowset_store_replicate_wait(struct store *store, const struct msg_replicate *message,
                                struct slice payload);

/* What is here of a rowset, bound or not. */
enum rowset_here {
    ROWSET_NOT_HERE,
    ROWSET_LEFTOVER, /* begun by an earlier process, or being dropped: rowset_store_resume, or
                        rowset_drop_one first */
    ROWSET_SEALED    /* complete, with that digest */
};
int rowset_store_find(struct store *store, txn_id txn, tablet_id tablet, rowset_id rowset,
                      enum rowset_here *here, struct digest *digest);

/* How many bytes of a rowset whose writing was broken off are here, so that the next piece may begin
 * there: in memory, or in extents that an earlier process wrote. 0 bytes: it is not here, or cannot
 * be gone on with. For repairs, whose tablet is held; the seal's digest tells whether they were the
 * right ones. */
int rowset_store_resume(struct store *store, txn_id txn, table_id table, tablet_id tablet,
                        rowset_id rowset, uint64_t *offset);

/* While a tablet is held, what final transactions wrote into it may be staged again, by a clone,
 * and is not dropped with them (DESIGN.md 2.4, rule 10). Waits for a drop under way. TG_BUSY: held
 * already, or too many are. */
int rowset_store_hold(struct store *store, tablet_id tablet);
void rowset_store_let_go(struct store *store, tablet_id tablet);

/* Transactions below this that are not bound are dead (from the coordinators): their pieces are
 * refused. Never goes back. */
void rowset_store_set_low_water(struct store *store, txn_id low_water);

/* Rowsets being written, and bytes in memory that no extent holds yet. */
void rowset_store_open_count(struct store *store, uint64_t *rowsets, uint64_t *bytes);

#endif
