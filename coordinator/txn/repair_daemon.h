/* SPDX-License-Identifier: Apache-2.0 */
/* Makes replicas that are behind good again: orders clones from good ones, asks until they are
 * done, and proposes that the replica is written to again and then that it is healed
 * (state/replica.c). What participants report as damaged is made part of the state first.
 * Level-triggered like the publisher; a new leader needs no hand-over. Does no I/O and reads no
 * clock of its own. */
#ifndef TG_COORDINATOR_TXN_REPAIR_DAEMON_H
#define TG_COORDINATOR_TXN_REPAIR_DAEMON_H

#include <stdint.h>

#include "common/base/clock.h"
#include "coordinator/cluster/health.h"
#include "coordinator/cluster/participants.h"
#include "coordinator/consensus/consensus.h"

enum {
    REPAIR_LOOK_MS = 100,   /* between looks at the whole catalog */
    REPAIR_ASK_MS_MIN = 20, /* after an order, doubling while it is under way … */
    REPAIR_ASK_MS_MAX = 500,
    REPAIR_RETRY_MS_MIN = 200, /* after a failure, doubling … */
    REPAIR_RETRY_MS_MAX = 10000,
    REPAIR_RPC_MS = 5000
};

struct repair_daemon;

int repair_daemon_open(struct consensus *consensus, struct participants *participants,
                       struct health *health, struct clock *clock, struct repair_daemon **daemon);
/* Calls under way keep their memory until they end; their answers are dropped. */
void repair_daemon_close(struct repair_daemon *daemon);
/* Looks, at most every REPAIR_LOOK_MS, and acts: on a timer (50 ms). Does nothing on a follower. */
void repair_daemon_run(struct repair_daemon *daemon);
/* Of a tablet without a good copy: the last version that one of its replicas still holds and can
 * read, 0 if none. TG_REFUSED with a sentence: how far a replica reaches is not known yet, or it is
 * on a participant that is silent (force: that one counts for nothing). */
int repair_daemon_reach(const struct repair_daemon *daemon, const struct tablet *tablet, bool force,
                        version_t *version, struct tg_errmsg *msg);
/* Leadership changed: what was learned is forgotten. */
void repair_daemon_reset(struct repair_daemon *daemon);
/* Clones ordered and not ended. */
uint32_t repair_daemon_active(const struct repair_daemon *daemon);

#endif
