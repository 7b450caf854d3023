/* SPDX-License-Identifier: Apache-2.0 */
/* Makes raft's configuration follow the replicated list of coordinators, on the leader. Looks after
 * every applied batch and on a timer; a new leader just goes on. */
#ifndef TG_COORDINATOR_MEMBERS_MEMBERS_DAEMON_H
#define TG_COORDINATOR_MEMBERS_MEMBERS_DAEMON_H

#include "common/base/clock.h"
#include "common/proto/msg_status.h"
#include "coordinator/consensus/consensus.h"

enum { MEMBERS_RETRY_MS = 200 /* after a step that could not begin, before it is tried again */ };

struct members_daemon;

/* founders: where the servers are that formed the cluster, by the options; copied. All else must
 * outlive the daemon. TG_NOMEM. */
int members_daemon_open(struct consensus *consensus, struct clock *clock, uint64_t self,
                        const struct coordinator_infos *founders, struct members_daemon **daemon);
/* Consensus may still owe it an answer: it then frees itself with that. NULL is fine. */
void members_daemon_close(struct members_daemon *daemon);
void members_daemon_run(struct members_daemon *daemon);

#endif
