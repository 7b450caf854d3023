/* SPDX-License-Identifier: Apache-2.0 */
/* One coordinator: makes the parts, introduces them to each other, orders start and end. */
#ifndef TG_COORDINATOR_COORDINATOR_H
#define TG_COORDINATOR_COORDINATOR_H

#include "coordinator/options.h"

/* Runs until SIGTERM or SIGINT. Returns the process's exit status: 0 after an ordered end, 1 if it
 * could not start (the reason is logged). */
int coordinator_run(const struct coordinator_options *options);

#endif
