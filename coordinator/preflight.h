/* SPDX-License-Identifier: Apache-2.0 */
/* Before a coordinator forms a new cluster from an empty directory it asks the others whether there
 * is one already: a node that lost its disk must not come back under its old id (rule 12).
 *
 * It goes on once it has heard from each of them that there is none, and each says the same of
 * itself: so nobody finds a cluster that was formed while it was still asking. If some stay silent,
 * a majority does after a while; those that were missing then have to join. */
#ifndef TG_COORDINATOR_PREFLIGHT_H
#define TG_COORDINATOR_PREFLIGHT_H

#include "common/net/loop.h"
#include "common/proto/msg_status.h"
#include "coordinator/dispatch/dispatch_call.h"

enum {
    PREFLIGHT_ASK_MS = 400,        /* one round of questions */
    PREFLIGHT_PAUSE_MS = 20,       /* between rounds */
    PREFLIGHT_WAIT_ALL_MS = 10000, /* after it a majority suffices */
    PREFLIGHT_LOG_MS = 5000        /* between two lines that say what it waits for */
};

struct preflight;

/* done comes once, never from inside: 0, or TG_REFUSED with the sentence for the operator.
 * dispatch: self and the peers are read. phase is kept up to date meanwhile. */
int preflight_start(struct loop *loop, const struct dispatch *dispatch, const char *secret,
                    enum status_phase *phase,
                    void (*done)(void *data, int err, const char *sentence), void *data,
                    struct preflight **preflight, struct tg_errmsg *msg);
/* Also while it is under way: then done is not called. NULL is fine. Not from inside done. */
void preflight_close(struct preflight *preflight);

#endif
