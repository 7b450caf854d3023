/* SPDX-License-Identifier: Apache-2.0 */
/* What a participant does with a question: as participant/api/rpc_handlers.c does. Reads are a
 * question of the simulation's own: which rowsets a tablet shows, their bytes read and compared. */
#ifndef TG_TESTS_SIM_SIM_SERVE_H
#define TG_TESTS_SIM_SIM_SERVE_H

#include "participant/tablet/version_map.h"
#include "tests/sim/sim_rpc.h"

enum { SIM_MSG_READ = 1000 };

/* The question's head; the answer's payload is an array of struct version_rowset. */
struct sim_read_question {
    tablet_id tablet;
    version_t version;
    version_t need;
    version_t after;
    bool changes; /* versions in (after, version], else what is visible at version */
};

/* Of a participant that is up. Answers at once or later, or never if it dies. */
void sim_serve(struct sim_question *question);

#endif
