/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_REGISTER and MSG_HEARTBEAT on the leader. */
#ifndef TG_COORDINATOR_DISPATCH_DISPATCH_MEMBER_H
#define TG_COORDINATOR_DISPATCH_DISPATCH_MEMBER_H

#include "coordinator/dispatch/dispatch_call.h"

/* 0 and done will be called, or an error and it will not. */
int dispatch_member_register(struct dispatch *dispatch, struct slice head, dispatch_done *done,
                             void *data);
int dispatch_member_heartbeat(struct dispatch *dispatch, struct slice head, dispatch_done *done,
                              void *data);

#endif
