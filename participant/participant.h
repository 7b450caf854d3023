/* SPDX-License-Identifier: Apache-2.0 */
/* One participant: its parts made, introduced to each other, started and closed in order. */
#ifndef TG_PARTICIPANT_PARTICIPANT_H
#define TG_PARTICIPANT_PARTICIPANT_H

#include "participant/options.h"

/* Runs until SIGTERM, SIGINT, or until the cluster fences this node. Returns the exit status: 0
 * after an orderly stop; 1 if it could not start (the reason was logged); 3 if it was fenced or
 * refused. */
int participant_run(const struct participant_options *options);

#endif
