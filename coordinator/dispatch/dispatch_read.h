/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_POINT: which version a read sees, answered behind a barrier that all waiting reads
 * share. */
#ifndef TG_COORDINATOR_DISPATCH_DISPATCH_READ_H
#define TG_COORDINATOR_DISPATCH_DISPATCH_READ_H

#include <stdbool.h>

#include "coordinator/dispatch/dispatch_call.h"

/* A read that asked for consistency=local, or for a past that can no longer change: any coordinator
 * may answer it from what it has applied. */
bool dispatch_read_wants_no_leader(const struct dispatch *dispatch, uint16_t type,
                                   struct slice head);
int dispatch_read_point(struct dispatch *dispatch, struct slice head, dispatch_done *done,
                        void *data);

#endif
