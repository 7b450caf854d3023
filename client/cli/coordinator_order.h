/* SPDX-License-Identifier: Apache-2.0 */
/* Orders about coordinators over HTTP, and waiting until they are carried out: for `tidegate
 * coordinator` and `tidegate cluster`. */
#ifndef TG_CLIENT_CLI_COORDINATOR_ORDER_H
#define TG_CLIENT_CLI_COORDINATOR_ORDER_H

#include "client/client.h"

enum { COORDINATOR_ORDER_STEP_MS = 100, COORDINATOR_ORDER_TRIES_MS = 10000 };

/* verb: list, add ("4=host:raft:rpc:http"), drop ("4"), transfer ("4" or NULL). Data as GET
 * /api/coordinators says it; the caller closes doc. TG_INVALID (the text), or the server's
 * verdict. */
int coordinator_order(struct client *client, const char *verb, const char *id,
                      struct json_doc **doc, const struct json_value **data, struct tg_errmsg *msg);
/* Until the one added votes, the one dropped is gone, another one leads than `leader`, which the
 * order's answer named. TG_TIMEOUT. */
int coordinator_order_wait(struct client *client, const char *verb, const char *id, uint64_t leader,
                           uint64_t timeout_ms, struct tg_errmsg *msg);
/* A member of a JSON object that is a number without a sign; 0 if it is not. */
uint64_t coordinator_order_number(const struct json_value *value, const char *key);
uint64_t coordinator_order_id(const char *id);

#endif
