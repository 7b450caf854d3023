/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the sweeper: looks every SWEEP_MS, proposes what it plans, and looks again only once all of
 * that has ended. Does nothing on a follower. */
#ifndef TG_COORDINATOR_TXN_SWEEP_DAEMON_H
#define TG_COORDINATOR_TXN_SWEEP_DAEMON_H

#include "common/base/clock.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/txn/txn_sweeper.h"

struct sweep_daemon;

/* All pointers must outlive the daemon; options are copied. TG_NOMEM. */
int sweep_daemon_open(struct consensus *consensus, const struct health *health, struct clock *clock,
                      const struct txn_sweeper_options *options, struct sweep_daemon **daemon);
/* Proposals under way keep their memory until they end. */
void sweep_daemon_close(struct sweep_daemon *daemon);
/* On a timer of SWEEP_MS. */
void sweep_daemon_run(struct sweep_daemon *daemon);

#endif
