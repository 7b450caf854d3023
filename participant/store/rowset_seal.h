/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing: the descriptions of a message become durable in one transaction, once all their extents
 * are (rule 6). Not for other folders: rowset_store.h is the way in. */
#ifndef TG_PARTICIPANT_STORE_ROWSET_SEAL_H
#define TG_PARTICIPANT_STORE_ROWSET_SEAL_H

#include "common/proto/msg_replicate.h"
#include "participant/store/rowset_store.h"

/* Checks each seal of the message against what is here, and makes all durable. done as
 * rowset_store_replicate says. */
void rowset_seal_begin(struct store *store, const struct msg_replicate *message,
                       rowset_store_done done, void *data);

enum seal_found {
    SEAL_FOUND_NOTHING,
    SEAL_FOUND_LEFTOVER, /* extents of an earlier process, or being dropped: never to be continued
                          */
    SEAL_FOUND_SEALED    /* complete, bound or not; its digest is set */
};
struct lmdb_txn;
/* What the store holds of a rowset that is not open. An LMDB error is sticky in txn. */
int rowset_seal_find(struct store *store, struct lmdb_txn *txn, txn_id txn_number, tablet_id tablet,
                     rowset_id rowset, enum seal_found *found, struct digest *digest);

#endif
