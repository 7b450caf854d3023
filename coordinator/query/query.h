/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and small questions on the leader: MSG_QUERY to a JSON text. Changes go through the
 * log; everything that is read is read behind a barrier, so that an answer never goes back behind
 * one given before. */
#ifndef TG_COORDINATOR_QUERY_QUERY_H
#define TG_COORDINATOR_QUERY_QUERY_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/proto/msg_query.h"
#include "coordinator/cluster/health.h"
#include "coordinator/consensus/consensus.h"
#include "coordinator/query/query_waits.h"

struct query_context {
    struct consensus *consensus;
    const struct health *health;
    struct clock *clock;
    struct query_waits *waits; /* TRUNCATE waits here; NULL: it is answered once it is decided */
    uint64_t self;             /* this coordinator's id */
};

/* The end: once, possibly from inside query_run. head is an encoded msg_query_reply and stays the
 * query's. err 0, or the verdict with a sentence for the user; TG_NOT_LEADER, TG_UNKNOWN_OUTCOME,
 * TG_BUSY: ask the leader again (statements are repeatable: a repeated CREATE of the same request
 * may answer that it exists). */
typedef void query_done(void *data, int err, const char *sentence, struct slice head);

/* The message stays the caller's; context's pointers must live on, context itself is copied. */
void query_run(const struct query_context *context, const struct msg_query *message,
               query_done *done, void *data);

#endif
