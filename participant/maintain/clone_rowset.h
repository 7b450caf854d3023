/* SPDX-License-Identifier: Apache-2.0 */
/* One rowset of a clone: here already, or fetched and sealed. */
#ifndef TG_PARTICIPANT_MAINTAIN_CLONE_ROWSET_H
#define TG_PARTICIPANT_MAINTAIN_CLONE_ROWSET_H

#include "participant/maintain/clone_tablet.h"

/* Rowsets whose seals are on their way to the disk: many at once cost about one sync. */
struct clone_batch;
struct clone_batch *clone_batch_open(void); /* NULL on TG_NOMEM */
/* Waits for all of them, and frees it. Whether each came through is seen when it is bound. */
void clone_batch_close(struct clone_batch *batch);

/* Fetches the rowset if it is not here, and lets its seal go on in the batch. */
int clone_rowset_prepare(struct clone_tablet *clone, struct clone_batch *batch, txn_id txn,
                         const struct publish_rowset *rowset, struct tg_errmsg *msg);
/* Makes sure that the rowset is here, sealed, with that digest. */
int clone_rowset_stage(struct clone_tablet *clone, txn_id txn, const struct publish_rowset *rowset,
                       struct tg_errmsg *msg);
/* Drops what is here of it, bound or not, and stages it anew. */
int clone_rowset_replace(struct clone_tablet *clone, txn_id txn,
                         const struct publish_rowset *rowset, struct tg_errmsg *msg);
/* 0, or TG_CORRUPT or TG_NOT_FOUND if its data is not here as the digest says. */
int clone_rowset_verify(struct clone_tablet *clone, const struct publish_rowset *rowset);

#endif
