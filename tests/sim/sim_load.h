/* SPDX-License-Identifier: Apache-2.0 */
/* A client's load under way, and all of them: what sim_client.c keeps. */
#ifndef TG_TESTS_SIM_SIM_LOAD_H
#define TG_TESTS_SIM_SIM_LOAD_H

#include "common/proto/msg_txn.h"
#include "tests/sim/sim_client.h"

struct sim_load {
    struct sim_clients *clients;
    struct sim_history *history;
    unsigned ingest; /* participant */
    uint64_t epoch;
    uint64_t request;
    unsigned table; /* being loaded */
    struct msg_txn_begin_reply plan;
    bool planned;
    uint8_t sealed[BUCKETS_MAX > 64 ? 64 : BUCKETS_MAX];
    unsigned staging;
    uint64_t request_hi, request_lo; /* of the client */
    bool renamed;                    /* planted: the cluster sees another label */
    unsigned finishing;              /* calls under way */
    struct sim_load *prev, *next;
};

struct sim_clients {
    struct sim_net *net;
    struct sim_coordinator **coordinators;
    struct sim_participant *participants;
    struct sim_check *check;
    struct sim_history *history;
    uint32_t count;
    uint32_t under_way;
    struct sim_load *loads;
};

#endif
