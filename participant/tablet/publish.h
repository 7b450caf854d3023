/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing: binds staged rowsets to versions as the leading coordinator says. Idempotent; the
 * decision is pure, the effect one LMDB transaction (grouped with others), and readers see it once
 * it is durable. */
#ifndef TG_PARTICIPANT_TABLET_PUBLISH_H
#define TG_PARTICIPANT_TABLET_PUBLISH_H

#include "common/base/clock.h"
#include "common/proto/msg_publish.h"
#include "participant/store/version_store.h"
#include "participant/tablet/tablet_set.h"

/* The decision for one bind: PUBLISH_BOUND (do it, or it is done: facts->bound), else why not.
 * Needs nothing but the facts, so that a simulation can use it without a store. */
enum publish_status publish_decide(const struct publish_bind *bind, const struct bind_facts *facts);

/* reply belongs to the callee, who closes it with msg_publish_reply_close. err 0: reply has a
 * status for each bind. Else nothing is known to have happened: the publisher asks again. */
typedef void (*publish_done)(void *data, int err, struct msg_publish_reply *reply);

/* Takes the message over (moved: *message is empty afterwards, also on failure). done is called
 * once: on the store's writer thread, or on the caller's before it returns if nothing could be
 * begun. Does not wait: fit for an event loop. Whether the message is for this node and epoch was
 * checked by the caller. */
void publish_apply(struct store *store, struct tablet_set *set, struct clock *clock,
                   struct msg_publish *message, publish_done done, void *data);

#endif
