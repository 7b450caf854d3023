/* SPDX-License-Identifier: Apache-2.0 */
/* Moves replicas: to new participants, away from those that drain, and in place of those that are
 * long dead. It only proposes that a tablet gets one replica more, and that it is left by one; what
 * is between is a repair like any other (repair_daemon.h). Level-triggered; a new leader needs no
 * hand-over. Does no I/O and reads no clock of its own. */
#ifndef TG_COORDINATOR_TXN_MOVE_DAEMON_H
#define TG_COORDINATOR_TXN_MOVE_DAEMON_H

#include <stdint.h>

#include "common/base/clock.h"
#include "coordinator/cluster/health.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/txn/move_plan.h"

enum {
    MOVE_LOOK_MS = 200, /* between looks at all tablets while something is to be done … */
    MOVE_IDLE_MS = 3000 /* … and while nothing is, and no member came, left or drains */
};

struct move_daemon;

/* TG_NOMEM. What is given must outlive the daemon. */
int move_daemon_open(struct consensus *consensus, struct health *health, struct clock *clock,
                     const struct move_options *options, struct move_daemon **daemon);
/* Proposals under way keep their memory until they end. */
void move_daemon_close(struct move_daemon *daemon);
/* Looks, if it is time, and acts: on a timer. Does nothing on a follower. */
void move_daemon_run(struct move_daemon *daemon);
/* Leadership changed. */
void move_daemon_reset(struct move_daemon *daemon);

#endif
