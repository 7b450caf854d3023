/* SPDX-License-Identifier: Apache-2.0 */
/* Insides of the client, for its two files: calls on the loop and calls of waiting threads. */
#ifndef TG_PARTICIPANT_LINK_COORDINATOR_CLIENT_PRIVATE_H
#define TG_PARTICIPANT_LINK_COORDINATOR_CLIENT_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "participant/link/coordinator_client.h"

struct call;

enum { COORDINATOR_PEERS_MAX = 2 * COORDINATORS_MAX };

struct coordinator_client {
    struct loop *loop;
    char *secret;
    atomic_uint references; /* the owner, each waiting thread's posted call */
    bool closing;
    unsigned count;
    struct rpc_client *peers[COORDINATOR_PEERS_MAX];
    struct call *calls;
    uint32_t call_count;
    bool leader_known;
    unsigned leader; /* index; where a search begins if it is not known */
    /* the search */
    bool searching;
    bool searched_before;
    unsigned asking;
    unsigned asked; /* how many since the last pause */
    uint64_t search_pause_ms;
    uint64_t silent_until_ms[COORDINATOR_PEERS_MAX];
    struct loop_timer *search_timer;
};

/* Gives a reference back; the last one frees the client. Any thread. */
void coordinator_client_release(struct coordinator_client *client);

#endif
