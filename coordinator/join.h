/* SPDX-License-Identifier: Apache-2.0 */
/* Before a coordinator with an empty directory takes part in a cluster that is there: it waits until
 * an operator has added it, under an id that nobody had before (rule 12). Its directory holds a
 * random number, which the log notes with the id; without it nobody starts under that id again. */
#ifndef TG_COORDINATOR_JOIN_H
#define TG_COORDINATOR_JOIN_H

#include "common/base/random.h"
#include "common/net/loop.h"
#include "common/proto/msg_coordinator.h"
#include "coordinator/dispatch/dispatch_call.h"

enum {
    JOIN_ASK_MS = 1000,  /* for one answer */
    JOIN_PAUSE_MS = 100, /* between rounds */
    JOIN_LOG_MS = 5000   /* between two lines that say what it waits for */
};

struct join;

/* The directory's number for that id: read from DIR/join, or made and written there durably. TG_IO,
 * TG_NOSPACE. */
int join_nonce(const char *data_dir, uint64_t id, struct random_source *random, uint64_t *nonce,
               struct tg_errmsg *msg);

/* done comes once, never from inside: 0 with the cluster's coordinators: it is admitted; or
 * TG_REFUSED with the sentence for the operator. dispatch: self and the peers are read. */
int join_start(struct loop *loop, const struct dispatch *dispatch, const char *secret,
               uint64_t nonce,
               void (*done)(void *data, int err, const char *sentence,
                            const struct coordinator_infos *infos),
               void *data, struct join **join, struct tg_errmsg *msg);
/* Also while it is under way: then done is not called. NULL is fine. Not from inside done. */
void join_close(struct join *join);

#endif
