/* SPDX-License-Identifier: Apache-2.0 */
/* What simulated loads write: bytes that follow from tablet and rowset alone, so that whoever reads
 * them knows what must be there. Most are small, some fill extents of both sizes. */
#ifndef TG_TESTS_SIM_SIM_CONTENT_H
#define TG_TESTS_SIM_SIM_CONTENT_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/model/rowset.h"
#include "common/proto/msg_replicate.h"

/* It begins with these, then tablet and rowset, 8 bytes each. */
#define SIM_CONTENT_MAGIC "simulated rows: "

uint32_t sim_content_bytes(rowset_id rowset);
/* Appends. */
void sim_content_make(tablet_id tablet, rowset_id rowset, struct buf *out);
bool sim_content_is(tablet_id tablet, rowset_id rowset, struct slice bytes);
struct digest sim_content_digest(tablet_id tablet, rowset_id rowset);
/* The description that seals it: the caller closes it. */
void sim_content_meta(tablet_id tablet, rowset_id rowset, table_id table, txn_id txn,
                      struct rowset_meta *meta);
/* Appends one message of it: the piece that begins at `sent`, and the seal with the last one. The
 * message says all but pieces and seals. Returns the piece's length. */
uint32_t sim_content_piece(struct msg_replicate *message, tablet_id tablet,
                           const struct buf *content, uint32_t sent, struct buf *head,
                           struct buf *payload);

#endif
