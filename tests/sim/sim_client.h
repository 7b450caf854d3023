/* SPDX-License-Identifier: Apache-2.0 */
/* Clients and the ingest side of loads: each load is a small program of calls that are repeated at
 * one coordinator after the other until the log has answered or its time is over. What they were
 * told is kept for the checks. */
#ifndef TG_TESTS_SIM_SIM_CLIENT_H
#define TG_TESTS_SIM_SIM_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/sim_check.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

enum sim_load_kind {
    SIM_PLAIN,  /* committed with the load */
    SIM_2PC,    /* precommit, then commit */
    SIM_ABORT,  /* precommit, then abort */
    SIM_RACE,   /* precommit, then commit and abort at once */
    SIM_SILENT, /* precommit, then nothing: times out */
    SIM_FAILS,  /* the ingest gives up */
    SIM_MULTI,  /* begin, a load into each table, commit */
    SIM_TWIN,   /* plain, by two clients at once under one label */
    SIM_KINDS
};

enum sim_told {
    TOLD_NOTHING = 0,
    TOLD_COMMITTED = 1,
    TOLD_ABORTED = 2,
    TOLD_REFUSED = 4 /* nothing began, or its label is another's */
};

/* What one client knows of its transaction. */
struct sim_history {
    enum sim_load_kind kind;
    txn_id txn;    /* 0: never learned */
    unsigned told; /* bits of enum sim_told */
    char label[32];
    uint32_t label_number;
    bool borrowed;            /* txn is another client's, of the same label */
    uint64_t commit_us;       /* when a commit was first asked for; 0: never */
    struct sim_floors floors; /* what was visible for certain by then */
};

struct sim_clients;

struct sim_clients *sim_clients_open(struct sim_net *net, struct sim_coordinator **coordinators,
                                     struct sim_participant *participants, struct sim_check *check);
void sim_clients_close(struct sim_clients *clients);
/* A new load, unless all is quiet. */
void sim_clients_load(struct sim_clients *clients);
uint32_t sim_clients_under_way(const struct sim_clients *clients);
const struct sim_history *sim_clients_history(const struct sim_clients *clients, uint32_t *count);

#endif
