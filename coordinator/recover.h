/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate-coordinator --recover-alone: after a majority was lost for good, one that is left becomes
 * the whole cluster, to which others are then added. */
#ifndef TG_COORDINATOR_RECOVER_H
#define TG_COORDINATOR_RECOVER_H

#include <stdbool.h>

#include "coordinator/options.h"

#define RECOVER_FLAG   "--recover-alone"
#define RECOVER_ACCEPT "--accept-loss"

/* Says what is in the directory and, unless the loss is accepted, what would have to be accepted.
 * Returns the process' exit status: 0 if it was done, 1 if not. */
int recover_run(const struct coordinator_options *options, bool accepted);

#endif
