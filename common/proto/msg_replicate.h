/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_REPLICATE: pieces of rowsets, and their seals, from the ingest node to a replica. Pieces of
 * one rowset come in order of offset on one connection. With a seal the answer means: everything of
 * that rowset is durable here, counted and digested right (rule 6). */
#ifndef TG_COMMON_PROTO_MSG_REPLICATE_H
#define TG_COMMON_PROTO_MSG_REPLICATE_H

#include "common/base/buf.h"
#include "common/model/ids.h"
#include "common/model/rowset.h"

enum { REPLICATE_PIECES_MAX = 4096, REPLICATE_SEALS_MAX = 4096 };

struct replicate_piece {
    tablet_id tablet;
    uint64_t offset; /* in the rowset's content */
    uint32_t len;    /* its bytes follow in the payload, pieces one after another */
};
struct msg_replicate {
    node_id sender;
    uint64_t sender_epoch;
    node_id receiver;
    txn_id txn;
    rowset_id rowset;
    table_id table;
    uint32_t piece_count;
    struct replicate_piece *pieces; /* owned */
    uint32_t seal_count;
    struct rowset_meta *seals; /* owned, each closed with the message */
};
/* Verdict: 0; TG_NOSPACE; TG_DIGEST (bytes, block count or digest differ: that seal is nothing);
 * TG_STALE (offset does not follow: pieces were lost); TG_REFUSED (the transaction is known to be
 * dead here). */
void msg_replicate_encode(const struct msg_replicate *message, struct buf *out);
int msg_replicate_decode(struct slice head, struct msg_replicate *message);
void msg_replicate_close(struct msg_replicate *message);

#endif
