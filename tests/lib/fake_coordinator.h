/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator that says what a test tells it to: an RPC server on loopback that answers
 * MSG_STATUS itself and hands the rest to the test, as long as it believes to lead. */
#ifndef TG_TESTS_LIB_FAKE_COORDINATOR_H
#define TG_TESTS_LIB_FAKE_COORDINATOR_H

#include <stdatomic.h>

#include "common/net/rpc.h"
#include "tests/lib/loop_thread.h"

#define FAKE_COORDINATOR_SECRET "the cluster's secret"

struct fake_coordinator {
    struct loop_thread *thread;
    struct rpc_server *server; /* NULL while it is down */
    uint16_t port;
    char address[32];
    uint64_t id;
    atomic_uint asked; /* MSG_STATUS */
    atomic_uint calls; /* others */
    pthread_mutex_t lock;
    uint64_t leader; /* id it names, 0: none; its own: it leads */
    char leader_address[32];
    /* On the loop, for calls while it leads; NULL: an empty answer without error. */
    void (*handle)(void *data, struct rpc_request *request);
    void *data;
};

/* Listens on a free port, and names nobody. */
void fake_coordinator_open(struct fake_coordinator *coordinator, struct loop_thread *thread,
                           uint64_t id);
/* leader NULL: names nobody. */
void fake_coordinator_follow(struct fake_coordinator *coordinator,
                             const struct fake_coordinator *leader);
void fake_coordinator_handle(struct fake_coordinator *coordinator,
                             void (*handle)(void *data, struct rpc_request *request), void *data);
/* Closes its connections and its port; up again on the same port. */
void fake_coordinator_down(struct fake_coordinator *coordinator);
void fake_coordinator_up(struct fake_coordinator *coordinator);
void fake_coordinator_close(struct fake_coordinator *coordinator);

#endif
