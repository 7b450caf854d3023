/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the other coordinators how they are, again and again: MSG_STATUS, whose answer tells of their
 * clocks and disks too. */
#ifndef TG_COORDINATOR_CLUSTER_PEER_WATCH_H
#define TG_COORDINATOR_CLUSTER_PEER_WATCH_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/net/loop.h"
#include "coordinator/cluster/peer_words.h"

struct peer_watch;

/* heard: an answer came, words are up to date; NULL: nobody wants to know. */
int peer_watch_open(struct loop *loop, const char *secret, struct clock *clock, uint64_t self,
                    void (*heard)(void *data, const struct msg_status_reply *status), void *data,
                    struct peer_watch **watch, struct tg_errmsg *msg);
/* On the loop. NULL is fine. */
void peer_watch_close(struct peer_watch *watch);
/* Whom to ask from now on; asks at once. */
void peer_watch_set(struct peer_watch *watch, const struct coordinator_infos *infos);
const struct peer_words *peer_watch_words(const struct peer_watch *watch);

#endif
