/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the leading coordinator: finds the leader, repeats what is idempotent until the caller's
 * deadline. This and rpc_client are the only places that retry. */
#ifndef TG_PARTICIPANT_LINK_COORDINATOR_CLIENT_H
#define TG_PARTICIPANT_LINK_COORDINATOR_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/net/loop.h"
#include "common/net/rpc.h"

enum { COORDINATOR_CALLS_MAX = 16384, COORDINATOR_ATTEMPT_MS = 5000 };

struct coordinator_client;

/* addresses: "127.0.0.1:9020,127.0.0.1:9021": the coordinators' rpc addresses. TG_INVALID,
 * TG_LIMIT, TG_NOMEM. */
int coordinator_client_open(struct loop *loop, const char *addresses, const char *secret,
                            struct coordinator_client **client, struct tg_errmsg *msg);
/* On the loop (or before it runs): these are the coordinators now. Those that are new are asked too
 * from now on; those that are not among them still are, as long as there is room. True if one was
 * new. */
bool coordinator_client_learn(struct coordinator_client *client,
                              const char (*addresses)[ADDRESS_BYTES], uint32_t count);
/* On the loop. Ends what is under way with TG_CANCELED. */
void coordinator_client_close(struct coordinator_client *client);

/* On the loop. Takes over head's memory. Sends to the leader; on TG_NOT_LEADER, TG_UNREACHABLE,
 * TG_CLOSED, TG_UNKNOWN_OUTCOME or an attempt's timeout (attempt_ms, 0 = COORDINATOR_ATTEMPT_MS;
 * more than any wait asked for in the message) it looks for the leader and sends again until
 * timeout_ms have passed: then done gets TG_TIMEOUT, whose outcome is unknown. Any other verdict is
 * final. done is called once, never from inside. */
void coordinator_client_call(struct coordinator_client *client, uint16_t type, struct buf *head,
                             uint64_t timeout_ms, uint64_t attempt_ms, rpc_done *done, void *data);
/* On the loop. Takes over head's memory. Asks the leader, if it is known, and the others after it,
 * each once, until one answers: for questions that any of them may answer. done gets the last
 * verdict; it is called once, never from inside. */
void coordinator_client_ask_any(struct coordinator_client *client, uint16_t type, struct buf *head,
                                rpc_done *done, void *data);
/* coordinator_client_call from another thread, waiting for the end. reply_head gets a copy that the caller closes.
 * TG_CANCELED when the client closes. */
int coordinator_client_call_wait(struct coordinator_client *client, uint16_t type, struct buf *head,
                                 uint64_t timeout_ms, uint64_t attempt_ms, struct buf *reply_head,
                                 struct tg_errmsg *msg);

#endif
