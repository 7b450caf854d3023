/* SPDX-License-Identifier: Apache-2.0 */
/* One round of cloning a tablet: what a good replica has bound is fetched, checked, staged, and
 * bound here, in order. Straight-line code on a thread that may wait. */
#ifndef TG_PARTICIPANT_MAINTAIN_CLONE_TABLET_H
#define TG_PARTICIPANT_MAINTAIN_CLONE_TABLET_H

#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/proto/msg_clone.h"
#include "participant/maintain/throttle.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"

/* How the source is asked, so that a test can be it. As peer_call_wait: head is taken over, replies
 * are the caller's to close. */
struct clone_calls {
    void *ctx;
    int (*call)(void *ctx, node_id node, const char *address, uint16_t type, struct buf *head,
                const atomic_bool *stop, struct buf *reply_head, struct buf *reply_payload,
                struct tg_errmsg *msg);
};

struct clone_tablet {
    struct store *store;
    struct tablet_set *tablets;
    struct clock *clock;
    struct throttle *throttle;
    const struct clone_calls *calls;
    const atomic_bool *stop;
    struct msg_clone order;
    atomic_uint_fast64_t bytes; /* fetched so far: others may look */
    uint64_t resumed;           /* bytes of the rowset under way that were here already */
};

/* What is here after a round. */
struct clone_end {
    version_t bound;     /* the last version */
    version_t damaged;   /* the first one that cannot be read, 0 if none was found */
    version_t proven;    /* as ordered: up to here … */
    struct digest chain; /* … this is the digest over what is bound */
};

/* Runs the round to its end. 0: the tablet has all that the source had; else why not, and what was
 * done so far stays done. *end in any case. A chain here that contradicts a trusted source's, or
 * the log's, is dropped, and all is cloned anew. */
int clone_tablet_run(struct clone_tablet *clone, struct clone_end *end, struct tg_errmsg *msg);

/* Reads all data of versions from `from` on. *damaged: the first one that cannot be read, 0 if
 * none. */
int clone_tablet_verify(struct clone_tablet *clone, version_t from, version_t *damaged,
                        struct tg_errmsg *msg);

#endif
