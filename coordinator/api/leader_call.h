/* SPDX-License-Identifier: Apache-2.0 */
/* A message from this coordinator's HTTP side to whoever leads: handled right here if that is this
 * node, otherwise sent there, and sent again while leaders change. All messages are idempotent by
 * request key, so a repetition is safe whatever became of the first. */
#ifndef TG_COORDINATOR_API_LEADER_CALL_H
#define TG_COORDINATOR_API_LEADER_CALL_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/net/loop.h"
#include "common/net/rpc_pool.h"
#include "coordinator/dispatch/dispatch.h"

enum {
    LEADER_CALLS_MAX = 65536,      /* at once; more are refused with TG_BUSY */
    LEADER_CALL_TICK_MS = 20,      /* retries and leader changes are looked at this often */
    LEADER_CALL_PAUSE_MS_MIN = 20, /* before a call is sent again */
    LEADER_CALL_PAUSE_MS_MAX = 200
};

struct leader_call;

struct leader_link {
    struct loop *loop;
    struct dispatch *dispatch;
    struct rpc_pool pool; /* to the other coordinators */
    struct loop_timer *timer;
    bool ticking;
    bool closing;
    struct leader_call *calls;
    uint32_t count;
};

/* The end of a call: once, possibly from inside leader_call_start. err: the leader's verdict; or
 * TG_UNKNOWN_OUTCOME if the time ran out and an attempt may have had an effect, TG_UNREACHABLE if
 * certainly none had. head is valid during the call only. */
typedef void leader_call_done(void *data, int err, const char *sentence, struct slice head);

/* Before the loop runs, or on it. Fills link, which must stay where it is; loop and dispatch must
 * outlive it. TG_TOO_LARGE (the secret), TG_NOMEM. */
int leader_link_open(struct leader_link *link, struct loop *loop, struct dispatch *dispatch,
                     const char *secret, struct tg_errmsg *msg);
/* Ends what is under way with TG_CANCELED. Nothing may be under way in the dispatcher any more
 * (consensus is closed). */
void leader_link_close(struct leader_link *link);

/* Takes over head's memory. */
void leader_call_start(struct leader_link *link, uint16_t type, struct buf *head,
                       uint64_t timeout_ms, leader_call_done *done, void *data);

#endif
