/* SPDX-License-Identifier: Apache-2.0 */
/* _stream_load_2pc as clients speak it: header values to a message, its outcome to JSON. Both
 * programs answer it alike. Pure. */
#ifndef TG_COMMON_PROTO_TXN_2PC_ANSWER_H
#define TG_COMMON_PROTO_TXN_2PC_ANSWER_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/proto/msg_txn.h"

enum { TXN_TIMEOUT_S_MIN = 1, TXN_TIMEOUT_S_MAX = 259200 };

/* Values as received, NULL where the header is absent or empty. */
struct txn_2pc_headers {
    const char *operation; /* txn_operation */
    const char *txn_id;
    const char *label;
    const char *timeout; /* seconds; of begin */
};

/* True and message is filled (its random request bits and wait_visible_ms are the caller's to set);
 * false and reply is the refusal. */
bool txn_2pc_request(const char *db, const char *user, const struct txn_2pc_headers *headers,
                     struct msg_txn_2pc *message, struct msg_txn_2pc_reply *reply);
/* The refusal of somebody who has no right, or of a server that cannot: status and text. */
void txn_2pc_refuse(struct msg_txn_2pc_reply *reply, const char *status, const char *text);
/* 1 to 128 of A-Z, a-z, 0-9, '-', '_', ':'. */
bool txn_label_is_valid(const char *label);
/* {"status": …, "msg": …}; for begin also txn_id and label, those of the transaction that has the
 * label already included. All values are strings, because connectors read them into a map of
 * strings. Ends with a newline. */
void txn_2pc_print(const struct msg_txn_2pc *message, const struct msg_txn_2pc_reply *reply,
                   struct buf *out);

#endif
