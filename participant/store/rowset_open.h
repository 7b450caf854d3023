/* SPDX-License-Identifier: Apache-2.0 */
/* Rowsets being written: what of them is still in memory, and their extents on the way to the block
 * environments. Not for other folders: rowset_store.h is the way in.
 *
 * Before the first extent of a rowset is written, its `staged` record is durable: so no extent is
 * ever on disk that its transaction's end would not find. */
#ifndef TG_PARTICIPANT_STORE_ROWSET_OPEN_H
#define TG_PARTICIPANT_STORE_ROWSET_OPEN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/buf.h"
#include "common/base/checksum.h"
#include "common/model/ids.h"

struct store;
struct open_table;

/* Somebody who waits until all extents of a rowset are durable. Called once, on a writer thread or
 * inside open_rowset_flush; err: one of them could not be written. */
struct open_waiter {
    void (*ready)(struct open_waiter *waiter, int err);
};

struct open_rowset {
    struct open_rowset *next; /* in its bucket of the table */
    struct open_table *table;
    tablet_id tablet;
    rowset_id rowset;
    txn_id txn;
    table_id table_id;
    atomic_uint refs;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t staged_changed;
    uint64_t end; /* bytes received: where the next piece must begin */
    struct digest_stream *digest;
    struct buf tail;  /* the last bytes, in no extent yet */
    uint64_t tail_at; /* their offset */
    uint32_t pending; /* extents submitted and not durable */
    bool extents;     /* some were submitted */
    enum { STAGED_NOT, STAGED_COMING, STAGED_DURABLE } staged;
    bool sealing; /* no further pieces */
    struct open_waiter *waiter;
    int err; /* sticky: a write failed, or the transaction is dead */
};

int open_table_init(struct open_table **table);
void open_table_free(struct open_table *table);

/* With a reference, or NULL. */
struct open_rowset *open_table_find(struct open_table *table, tablet_id tablet, rowset_id rowset);
/* Makes one, with a reference for the caller. TG_BUSY (ROWSET_OPEN_MAX), TG_REFUSED (dead),
 * TG_NOMEM. */
int open_table_add(struct open_table *table, txn_id txn, rowset_id rowset, table_id of_table,
                   tablet_id tablet, struct open_rowset **open);
/* Takes it out of the table, if it is in, and makes its further use fail with err. */
void open_table_remove(struct open_table *table, struct open_rowset *open, int err);
void open_rowset_release(struct open_rowset *open);

/* Known to be dead: below the low water, or among the last ones dropped; never in a tablet that is
 * held. */
bool open_table_is_dead(struct open_table *table, txn_id txn, tablet_id tablet);
/* A tablet that is being cloned: what final transactions wrote into it is staged again until it is
 * bound. TG_BUSY: OPEN_HELD_MAX are held, or this one is. */
int open_table_hold(struct open_table *table, tablet_id tablet);
void open_table_let_go(struct open_table *table, tablet_id tablet);
bool open_table_is_held(struct open_table *table, tablet_id tablet);
void open_table_set_low_water(struct open_table *table, txn_id low_water);
/* From now on dead; removes its open rowsets, but for those of held tablets. */
void open_table_kill(struct open_table *table, txn_id txn);
void open_table_count(struct open_table *table, uint64_t *rowsets, uint64_t *bytes);
/* Transactions above `after` with open rowsets, in no order, repeated; allocated, to be freed. */
int open_table_txns(struct open_table *table, txn_id after, txn_id **txns, uint32_t *count);

/* Takes bytes at an offset. Bytes that are here already are passed over; TG_STALE if they do not
 * follow. */
int open_rowset_append(struct store *store, struct open_rowset *open, uint64_t offset,
                       struct slice bytes);
/* Under open->lock: submits all of the tail as extents. 0 or the sticky error. */
int open_rowset_flush(struct store *store, struct open_rowset *open);

#endif
