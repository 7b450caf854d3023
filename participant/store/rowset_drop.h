/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping rowsets on the coordinators' word (rule 10), and listing what there is to
 * ask about. The drops wait for the writers, in bounded pieces: for a background thread. A drop
 * that was interrupted by a crash is listed again and goes on when it is ordered again. */
#ifndef TG_PARTICIPANT_STORE_ROWSET_DROP_H
#define TG_PARTICIPANT_STORE_ROWSET_DROP_H

#include <stdbool.h>

#include "participant/store/store.h"

/* Drops all rowsets of a dead transaction that no version binds; this is looked at again under the
 * writer, so that a binding that races wins or loses as a whole. Later pieces of the transaction
 * are refused. 0; TG_NOSPACE, TG_IO: do it again. */
int rowset_drop_txn(struct store *store, txn_id txn);

/* Drops one rowset, bound or not, so that it can be staged again: for repairs only, whose tablet is
 * held. A version that binds it keeps naming it. */
int rowset_drop_one(struct store *store, txn_id txn, tablet_id tablet, rowset_id rowset);

/* Drops extents of a rowset from an offset on. For rowset_store_resume. */
int rowset_drop_extents(struct store *store, tablet_id tablet, rowset_id rowset, uint64_t from);

/* Takes away the tablet's versions above `keep`; their rowsets are collected with their
 * transactions. A crash in the middle leaves fewer versions above it. */
int rowset_drop_above(struct store *store, tablet_id tablet, version_t keep);

/* Drops a tablet: its versions, rowsets, and what is staged for it. */
int rowset_drop_tablet(struct store *store, tablet_id tablet);
/* Whether a crash interrupted that: until it was done again no version can be bound. */
int rowset_drop_tablet_unfinished(struct store *store, tablet_id tablet, bool *unfinished);

/* Up to max transactions above `after` (0: from the start) that have staged, unbound rowsets here,
 * ascending. *count < max: there are no more; go on with the last one otherwise. */
int rowset_drop_list(struct store *store, txn_id after, txn_id *txns, uint32_t max,
                     uint32_t *count);

#endif
