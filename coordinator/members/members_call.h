/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_COORDINATOR on the leader. */
#ifndef TG_COORDINATOR_MEMBERS_MEMBERS_CALL_H
#define TG_COORDINATOR_MEMBERS_MEMBERS_CALL_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/net/loop.h"
#include "common/proto/msg_coordinator.h"
#include "coordinator/cluster/peer_words.h"
#include "coordinator/consensus/consensus.h"

enum { MEMBERS_CALL_ASK_MS = 2000 /* for the one that is to be added to answer */ };

struct members_calls;

/* As the dispatcher's: once, possibly from inside. */
typedef void members_done(void *data, int err, const char *sentence, struct slice head);

/* words: kept up to date by the caller. TG_TOO_LARGE (the secret), TG_NOMEM. */
int members_calls_open(struct loop *loop, struct consensus *consensus, struct clock *clock,
                       const char *secret, uint64_t self, const struct peer_words *words,
                       struct members_calls **calls, struct tg_errmsg *msg);
/* Consensus must be closed. NULL is fine. */
void members_calls_close(struct members_calls *calls);
/* 0 and done will be called (or was), or an error and it will not. */
int members_call(struct members_calls *calls, struct slice head, members_done *done, void *data);

/* The replicated list as messages carry it. */
void members_infos(const struct coordinators *coordinators, struct coordinator_infos *infos);

#endif
