/* SPDX-License-Identifier: Apache-2.0 */
/* Drops staged rowsets and tablets, but only those that the coordinators named (rule 10): a thread
 * of its own with a bounded queue. What does not fit is simply named again by a later heartbeat. */
#ifndef TG_PARTICIPANT_MAINTAIN_GC_H
#define TG_PARTICIPANT_MAINTAIN_GC_H

#include <stdint.h>

#include "common/base/err.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"

enum { GC_QUEUE_MAX = 8192 };

struct gc;

/* Starts the thread. store and tablets must outlive it. TG_NOMEM. */
int gc_open(struct store *store, struct tablet_set *tablets, struct gc **gc);
/* Finishes the drop under way, forgets the rest. Waits for its thread. */
void gc_close(struct gc *gc);
/* Any thread; never waits. False if the queue is full. */
bool gc_drop_txn(struct gc *gc, txn_id txn);
bool gc_drop_tablet(struct gc *gc, tablet_id tablet);
/* Any thread: that tablet's drop is queued or under way. */
bool gc_drops_tablet(struct gc *gc, tablet_id tablet);
/* Drops done so far. */
uint64_t gc_dropped(const struct gc *gc);

#endif
