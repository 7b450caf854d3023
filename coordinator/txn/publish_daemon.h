/* SPDX-License-Identifier: Apache-2.0 */
/* Drives COMMITTED transactions to VISIBLE: looks at the state, sends to each participant what it
 * has not bound yet, and proposes VISIBLE for all that have their quorum. Level-triggered: a new
 * leader needs no hand-over. Does no I/O and reads no clock of its own. */
#ifndef TG_COORDINATOR_TXN_PUBLISH_DAEMON_H
#define TG_COORDINATOR_TXN_PUBLISH_DAEMON_H

#include <stdint.h>

#include "common/base/clock.h"
#include "coordinator/cluster/participants.h"
#include "coordinator/consensus/consensus.h"

enum {
    PUBLISH_RETRY_MS_MIN = 50,
    PUBLISH_RETRY_MS_MAX = 1000,
    PUBLISH_CONFIRM_MS = 50,   /* so long CONFIRM waits for another command to ride with */
    PUBLISH_VISIBLE_MAX = 1024 /* transactions in one VISIBLE command */
};

struct publish_daemon_options {
    uint64_t publish_wait_ms; /* after it one good replica of each tablet suffices (rule 4):
                                 300 000 */
    uint64_t rpc_timeout_ms;  /* of one MSG_PUBLISH: 10 000 */
};

struct publish_daemon;

/* All pointers must outlive the daemon; options are copied. TG_NOMEM. */
int publish_daemon_open(struct consensus *consensus, struct participants *participants,
                        struct clock *clock, const struct publish_daemon_options *options,
                        struct publish_daemon **daemon);
/* Calls under way keep their memory until they end; their answers are dropped. */
void publish_daemon_close(struct publish_daemon *daemon);
/* Looks and acts: after every applied batch, on a timer (50 ms), and after each answer. Does
 * nothing on a follower. */
void publish_daemon_run(struct publish_daemon *daemon);
/* Leadership changed: what was learned from answers is forgotten (binding is idempotent, so asking
 * again costs nothing but time). */
void publish_daemon_reset(struct publish_daemon *daemon);

#endif
