/* SPDX-License-Identifier: Apache-2.0 */
/* An operator declares that no copy is left of what a table's tablets lack (rule 4). */
#ifndef TG_COORDINATOR_DISPATCH_DISPATCH_LOST_H
#define TG_COORDINATOR_DISPATCH_DISPATCH_LOST_H

#include "common/proto/msg_query.h"
#include "coordinator/dispatch/dispatch_call.h"

/* QUERY_DECLARE_LOST. Looks which tablets have no good copy and how far each of their replicas
 * reaches; then one command for each. Ends with a msg_query_reply that names them. Refused if
 * nothing is lost, or if it is not known yet how far a replica reaches. */
void dispatch_lost(struct dispatch *dispatch, const struct msg_query *message, dispatch_done *done,
                   void *data);

#endif
