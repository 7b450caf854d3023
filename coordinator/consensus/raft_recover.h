/* SPDX-License-Identifier: Apache-2.0 */
/* For when a majority of the coordinators is lost for good: makes one that is left the only member,
 * by writing a configuration behind the end of its log. What only the lost ones knew is lost. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_RECOVER_H
#define TG_COORDINATOR_CONSENSUS_RAFT_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct raft_recover {
    uint64_t id;
    const char *address; /* of its raft port */
    const char *dir;     /* raft's directory; nobody else may use it meanwhile */
    bool write;          /* else only look */
    /* What is there: the end of the log, which tells the best of several survivors. */
    uint64_t last_index;
    uint64_t last_term;
    uint64_t term;
};

/* TG_REFUSED (no log here), TG_CORRUPT, TG_IO, TG_NOSPACE, TG_NOMEM. */
int raft_recover_alone(struct raft_recover *recover, struct tg_errmsg *msg);

#endif
